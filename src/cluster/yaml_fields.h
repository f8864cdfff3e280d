// Strict reading of YAML: every key known and given once, every error with its file and line.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace berth {

// What a file is about, for errors.
struct YamlSubject {
  std::string_view what;  // "cluster"
  std::string_view keys;  // the most important ones, as they are written
};

// The one document of a YAML text. Throws Error with file and line for what is no text, no YAML, empty or more than
// one.
YAML::Node ParseYaml(std::string_view text, const std::string& path, const YamlSubject& subject);

// A value and the line of its key, from 1.
struct YamlField {
  std::string key;
  YAML::Node value;
  int line = 0;
};

// "file:7: memory of gpu: <text>".
struct YamlPlace {
  const std::string* path;
  int line;
  std::string what;

  Error Fail(std::string_view text) const { return Error("{}:{}: {}: {}", *path, line, what, text); }
};

// A mapping. Keys of the one that it stands for are checked by the caller's list.
class YamlFields {
 public:
  // Any keys, each once.
  YamlFields(const YAML::Node& node, YamlPlace place);
  // Keys of `known` only; another is an Error with the closest known one.
  YamlFields(const YAML::Node& node, YamlPlace place, const std::vector<std::string>& known);

  const std::vector<YamlField>& all() const { return fields_; }
  const YamlPlace& place() const { return place_; }

  const YamlField* Find(std::string_view key) const;
  // Throws when it is missing; `example` says how it is written.
  const YamlField& Need(std::string_view key, std::string_view example) const;
  // Where to say that `field` is wrong.
  YamlPlace PlaceOf(const YamlField& field) const;

 private:
  YamlPlace place_;
  std::vector<YamlField> fields_;
};

// The scalar, never empty; `example` says what was expected instead of a list, a mapping or nothing.
const std::string& YamlText(const YAML::Node& node, const YamlPlace& place, std::string_view example);
// A scalar or a list of scalars.
std::vector<std::string> YamlTexts(const YAML::Node& node, const YamlPlace& place, std::string_view example);

}  // namespace berth
