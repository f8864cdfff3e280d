#include "cli/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "base/system_limits.h"
#include "base/units.h"
#include "exec/detect.h"

namespace berth {

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  std::string name = "processor";
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) name = line.substr(colon + 2);
    break;
  }
  return fmt::format("{}, {}", name, Counted(static_cast<int64_t>(UsableCores().size()), "core"));
}

DeviceCores CoresFor(size_t split) {
  std::vector<int> cores = UsableCores();
  std::vector<int> physical = OnePerPhysicalCore(cores);
  const size_t count = physical.size();
  return {.cores = std::move(split > 1 && split <= count ? physical : cores), .physical = count};
}

double MemoryBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  const double machine = pages > 0 && size > 0 ? static_cast<double>(pages) * static_cast<double>(size) : 0;
  const std::optional<Bytes> limit = MemoryLimit();
  if (!limit) return machine;
  const auto most = static_cast<double>(limit->value);
  return machine > 0 ? std::min(machine, most) : most;
}

Cluster WholeProcessor() {
  Device device{.name = "cpu", .kind = "cpu"};
  const double memory = MemoryBytes();
  if (memory > 0) device.memory = Quantity{memory, Provenance::kMeasured, "the operating system"};
  // For the roofline, which predicts what no kernel runs.
  device.peak["f32"] = Quantity{1e11, Provenance::kGuess, "a usual processor"};
  device.memory_bandwidth = Quantity{2e10, Provenance::kGuess, "a usual processor"};
  device.op_overhead = Quantity{2e-6, Provenance::kGuess, "a usual processor"};
  device.runs_on = "CPU";
  device.cores = UsableCores();
  return Cluster("here", {device}, {Link{}});
}

}  // namespace berth
