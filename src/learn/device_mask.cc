#include "learn/device_mask.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace berth {

at::Tensor DeviceMask(const CoarseGraph& graph, std::span<const int32_t> order) {
  const size_t devices = graph.num_devices;
  at::Tensor mask = torch::zeros({static_cast<int64_t>(order.size()), static_cast<int64_t>(devices)});
  float* row = mask.data_ptr<float>();
  for (size_t i = 0; i < order.size(); ++i, row += devices) {
    bool any = false;
    const auto can_run = [&](size_t d) {
      return graph.can_run(static_cast<size_t>(order[i]), DeviceId{static_cast<int32_t>(d)});
    };
    for (size_t d = 0; d < devices; ++d) any = any || can_run(d);
    for (size_t d = 0; d < devices; ++d) {
      if (any && !can_run(d)) row[d] = -std::numeric_limits<float>::infinity();
    }
  }
  return mask;
}

void NameLikeliest(std::span<const DeviceId> class_of, std::span<const float> log_probability,
                   std::span<int64_t> device) {
  const size_t devices = class_of.size();
  bool any = false;
  for (size_t d = 0; d < devices; ++d) any = any || Index(class_of[d]) != d;
  if (!any) return;
  // gain[a][b]: how likely what is on `a` would be on `b`.
  std::vector<double> gain(devices * devices, 0);
  for (size_t i = 0; i < device.size(); ++i) {
    for (size_t d = 0; d < devices; ++d) {
      gain[static_cast<size_t>(device[i]) * devices + d] += static_cast<double>(log_probability[i * devices + d]);
    }
  }
  std::vector<size_t> name(devices);
  std::iota(name.begin(), name.end(), 0);
  for (bool better = true; better;) {
    better = false;
    for (size_t a = 0; a < devices; ++a) {
      for (size_t b = a + 1; b < devices; ++b) {
        if (class_of[a] != class_of[b]) continue;
        const double now = gain[a * devices + name[a]] + gain[b * devices + name[b]];
        const double swapped = gain[a * devices + name[b]] + gain[b * devices + name[a]];
        if (!(swapped > now + 1e-9 * std::abs(now))) continue;
        std::swap(name[a], name[b]);
        better = true;
      }
    }
  }
  for (int64_t& each : device) each = static_cast<int64_t>(name[static_cast<size_t>(each)]);
}

std::vector<float> NamesOf(std::span<const int64_t> device, size_t devices) {
  std::vector<float> there(device.size() * devices, 0);
  for (size_t i = 0; i < device.size(); ++i) there[i * devices + static_cast<size_t>(device[i])] = 1;
  return there;
}

}  // namespace berth
