#include "base/system_limits.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
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

// A file's time and period, both in microseconds: of two processors' time "200000 100000"; no limit is "max 100000".
std::optional<double> ProcessorsIn(const std::string& path) {
  std::ifstream file(path);
  double time = 0, period = 0;
  return file >> time >> period && time > 0 && period > 0 ? std::optional(time / period) : std::nullopt;
}

// The least of `least` and what `of(folder)` says of this process's group and those above it.
template <typename Number, typename Of>
std::optional<Number> LeastOfGroups(const std::string& root, std::optional<Number> least, const Of& of) {
  const std::filesystem::path top = root + "/sys/fs/cgroup";
  for (std::filesystem::path group = OwnGroup(root);; group = group.parent_path()) {
    if (const std::optional<Number> in_group = of((top / group.relative_path()).string())) {
      least = std::min(least.value_or(*in_group), *in_group);
    }
    if (!group.has_relative_path()) break;
  }
  return least;
}

std::optional<Bytes> AsBytes(std::optional<int64_t> bytes) {
  return bytes ? std::optional(Bytes{*bytes}) : std::nullopt;
}

}  // namespace

std::optional<Bytes> MemoryLeft(const std::string& root) {
  std::optional<int64_t> left = NumberAfter(root + "/proc/meminfo", "MemAvailable:");
  if (left) *left *= 1024;  // it is in kB
  return AsBytes(LeastOfGroups(root, left, LeftInGroup));
}

std::optional<Bytes> MemoryLimit(const std::string& root) {
  return AsBytes(LeastOfGroups(root, std::optional<int64_t>(),
                               [](const std::string& folder) { return NumberIn(folder + "/memory.max"); }));
}

std::optional<double> ProcessorLimit(const std::string& root) {
  return LeastOfGroups(root, std::optional<double>(),
                       [](const std::string& folder) { return ProcessorsIn(folder + "/cpu.max"); });
}

std::optional<double> ProcessorLimitBelow(size_t cores, const std::string& root) {
  const std::optional<double> limit = ProcessorLimit(root);
  return limit && *limit < static_cast<double>(cores) ? limit : std::nullopt;
}

std::vector<int> UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

size_t UsableThreads(const std::string& root) {
  const size_t cores = UsableCores().size();
  const std::optional<double> limit = ProcessorLimitBelow(cores, root);
  return limit ? static_cast<size_t>(std::ceil(*limit)) : cores;
}

}  // namespace berth
