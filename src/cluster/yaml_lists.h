// YAML files of the simplest kind: keys that hold texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth {

struct YamlEntry {
  std::string key;
  std::string text;
  int line;  // from 1
};

// A mapping whose values are texts or lists of texts, one entry per text, in the file's order. `what` names the kind of
// file in errors. Throws Error with file and line, and for a key that is not `known`.
std::vector<YamlEntry> ReadYamlLists(std::string_view yaml, const std::string& path, std::string_view what,
                                     const std::vector<std::string>& known);

}  // namespace berth
