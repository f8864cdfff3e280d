#include "cli/problem_strings.h"

#include <string_view>

namespace berth {

std::vector<FileInCosts> FilesInCosts(std::string_view costs) {
  constexpr std::string_view kKey = "file=";
  std::vector<FileInCosts> files;
  for (size_t at = costs.find(kKey); at != costs.npos; at = costs.find(kKey, at)) {
    at += kKey.size();
    const bool quoted = costs.substr(at).starts_with('"');
    const size_t begin = quoted ? at + 1 : at, end = costs.find_first_of(quoted ? "\"" : ",)", begin);
    if (end == costs.npos) break;
    const size_t size = end + (quoted ? 1 : 0) - at;
    files.push_back({.at = at, .size = size, .name = std::string(costs.substr(begin, end - begin))});
    at += size;
  }
  return files;
}

std::vector<std::string> ProblemStrings::Files() const {
  std::vector<std::string> files = {model, cluster};
  for (const FileInCosts& file : FilesInCosts(costs)) files.push_back(file.name);
  return files;
}

}  // namespace berth
