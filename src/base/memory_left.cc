#include "base/memory_left.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

namespace berth {
namespace {

// The number that follows a word at the beginning of a line; none where there is no such line.
std::optional<int64_t> NumberAfter(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  for (std::string first; file >> first; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    int64_t number = 0;
    if (first == word && file >> number) return number;
    file.clear();
  }
  return std::nullopt;
}

// Of a file that holds one number, and not the word "max".
std::optional<int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> LeftInGroup(const std::string& folder) {
  const auto most = NumberIn(folder + "/memory.max"), held = NumberIn(folder + "/memory.current");
  if (!most || !held) return std::nullopt;
  const int64_t cached = NumberAfter(folder + "/memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(*most - *held + cached, 0);
}

// The path of this process's group of version 2, like /user.slice; "/" where nothing is said of one.
std::string OwnGroup(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "/";
}

// The least of `least` and what `of(folder)` says of this process's group and those above it.
template <typename Of>
std::optional<Bytes> LeastOfGroups(const std::string& root, std::optional<int64_t> least, const Of& of) {
  const std::filesystem::path top = root + "/sys/fs/cgroup";
  for (std::filesystem::path group = OwnGroup(root);; group = group.parent_path()) {
    if (const std::optional<int64_t> in_group = of((top / group.relative_path()).string())) {
      least = std::min(least.value_or(*in_group), *in_group);
    }
    if (!group.has_relative_path()) break;
  }
  return least ? std::optional(Bytes{*least}) : std::nullopt;
}

}  // namespace

std::optional<Bytes> MemoryLeft(const std::string& root) {
  std::optional<int64_t> left = NumberAfter(root + "/proc/meminfo", "MemAvailable:");
  if (left) *left *= 1024;  // it is in kB
  return LeastOfGroups(root, left, LeftInGroup);
}

std::optional<Bytes> MemoryLimit(const std::string& root) {
  return LeastOfGroups(root, std::nullopt, [](const std::string& folder) { return NumberIn(folder + "/memory.max"); });
}

}  // namespace berth
