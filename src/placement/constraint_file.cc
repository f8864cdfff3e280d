#include "placement/constraint_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "cluster/yaml_lists.h"

namespace berth {

std::vector<ConstraintText> ParseConstraintFile(std::string_view yaml, const std::string& path) {
  const std::vector<std::string> known(kConstraintNames.begin(), kConstraintNames.end());
  std::vector<ConstraintText> constraints;
  for (YamlEntry& entry : ReadYamlLists(yaml, path, "list of constraints", known)) {
    const auto kind = std::ranges::find(known, entry.key);
    constraints.push_back({.kind = static_cast<ConstraintKind>(kind - known.begin()),
                           .text = std::move(entry.text),
                           .place = fmt::format("{}:{}", path, entry.line)});
  }
  return constraints;
}

std::vector<ConstraintText> ReadConstraintFile(const std::string& path) {
  return ParseConstraintFile(ReadFile(path, {.what = "list of constraints", .most_bytes = int64_t{4} << 20}), path);
}

}  // namespace berth
