#include "exec/equal_devices.h"

#include <algorithm>
#include <vector>

#include "exec/statistics.h"

namespace berth {
namespace {

// A model that is compiled again is up to a few percent faster or slower on the same device.
constexpr double kEquallyFast = 0.05;

bool AreEqual(const OpMeasurement& a, const OpMeasurement& b) {
  if (a.kind != b.kind || a.kernels != b.kernels) return false;
  const auto [faster, slower] = std::minmax({Median(a.seconds), Median(b.seconds)});
  return slower <= (1 + kEquallyFast) * faster;
}

}  // namespace

void ShareMeans(std::span<OpMeasurement> devices) {
  std::vector<bool> shared(devices.size(), false);
  for (size_t first = 0; first < devices.size(); ++first) {
    if (shared[first] || !devices[first].error.empty() || devices[first].seconds.empty()) continue;
    std::vector<size_t> equal;
    for (size_t device = first; device < devices.size(); ++device) {
      const OpMeasurement& other = devices[device];
      if (shared[device] || !other.error.empty() || other.seconds.empty()) continue;
      if (AreEqual(devices[first], other)) equal.push_back(device);
    }
    for (size_t op = 0; op < devices[first].op_seconds.size(); ++op) {
      double mean = 0;
      for (const size_t device : equal) mean += devices[device].op_seconds[op] / static_cast<double>(equal.size());
      for (const size_t device : equal) devices[device].op_seconds[op] = mean;
    }
    for (const size_t device : equal) shared[device] = true;
  }
}

}  // namespace berth
