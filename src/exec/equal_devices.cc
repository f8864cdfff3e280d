#include "exec/equal_devices.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "exec/compilations.h"
#include "exec/statistics.h"

namespace berth {
namespace {

// Between cores that `detect` found equal.
constexpr double kSameButDisturbed = 0.15;

bool AreEqual(const OpMeasurement& a, const OpMeasurement& b) {
  if (a.kind != b.kind || a.kernels != b.kernels) return false;
  const auto [faster, slower] = std::minmax({Median(a.seconds), Median(b.seconds)});
  const bool found_equal = a.pace > 0 && a.pace == b.pace;
  return slower <= (1 + (found_equal ? kSameButDisturbed : kSameButCompiled)) * faster;
}

}  // namespace

std::vector<std::vector<size_t>> EqualDevices(std::span<const OpMeasurement> devices) {
  std::vector<size_t> left;  // the fastest first, so that who shares with whom does not depend on how they are named
  for (size_t device = 0; device < devices.size(); ++device) {
    if (devices[device].error.empty() && !devices[device].seconds.empty()) left.push_back(device);
  }
  std::ranges::stable_sort(left, {}, [&](size_t device) { return Median(devices[device].seconds); });
  std::vector<std::vector<size_t>> groups;
  while (!left.empty()) {
    const OpMeasurement& first = devices[left.front()];
    std::vector<size_t> equal, others;
    for (const size_t device : left) (AreEqual(first, devices[device]) ? equal : others).push_back(device);
    groups.push_back(std::move(equal));
    left = std::move(others);
  }
  return groups;
}

void ShareMeans(std::span<OpMeasurement> devices) {
  for (const std::vector<size_t>& equal : EqualDevices(devices)) {
    for (size_t op = 0; op < devices[equal.front()].op_seconds.size(); ++op) {
      double mean = 0;
      for (const size_t device : equal) mean += devices[device].op_seconds[op] / static_cast<double>(equal.size());
      for (const size_t device : equal) devices[device].op_seconds[op] = mean;
    }
  }
}

}  // namespace berth
