#include "plan/contiguous.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace berth {
namespace {

// How far a cut may be moved, as a share of a part, to where fewer bytes cross.
constexpr double kSlack = 0.15;
constexpr double kAsFast = 1.1;

}  // namespace

std::vector<double> MemoryOfEach(const Problem& problem, std::span<const DeviceId> devices) {
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  double most = 1;
  for (const DeviceId device : devices) {
    const int64_t limit = problem.memory_limit(device);
    if (limit != kUnlimited) most = std::max(most, static_cast<double>(limit));
  }
  std::vector<double> memory;
  for (const DeviceId device : devices) {
    const int64_t limit = problem.memory_limit(device);
    memory.push_back(limit == kUnlimited ? most : static_cast<double>(limit));
  }
  return memory;
}

double TimeOfAll(const Problem& problem, DeviceId device) {
  double sum = 0;
  for (const OpId op : problem.graph().ops()) {
    if (problem.can_run(op, device)) {
      sum += problem.op_time(op, device);
      continue;
    }
    double slowest = 0;
    for (const double time : problem.op_times(op)) slowest = time == kCannotRun ? slowest : std::max(slowest, time);
    sum += slowest;
  }
  return sum;
}

Contiguous::Contiguous(const Problem& problem, const Layers& layers)
    : problem_(problem), layers_(layers), order_(MakeForwardOrder(problem)) {}

std::vector<double> Contiguous::Sums(const std::function<double(OpId)>& of) const {
  std::vector<double> sum(order_.ops.size(), 0);
  for (const OpId op : problem_.graph().ops()) sum[static_cast<size_t>(order_.position_of[Index(op)])] += of(op);
  return sum;
}

bool Contiguous::MayCut(size_t position, Cuts cuts) const {
  return cuts != Cuts::kLayers || position == 0 || layer_at(position) != layer_at(position - 1);
}

std::vector<DeviceId> Contiguous::EqualWork(std::span<const DeviceId> devices, Cuts cuts) const {
  // On the fastest device: a device that is slower by some factor on the whole has a share smaller by it.
  const std::vector<double> work = Sums([&](OpId op) { return std::ranges::min(problem_.op_times(op)); });
  std::vector<double> share;
  for (const DeviceId device : devices) {
    const double time = TimeOfAll(problem_, device);
    share.push_back(time > 0 ? 1 / time : 1);
  }
  return Parts(devices, work, share, cuts);
}

std::vector<DeviceId> Contiguous::Parts(std::span<const DeviceId> devices, std::span<const double> size,
                                        std::span<const double> share, Cuts cuts) const {
  const size_t positions = order_.ops.size();
  const double whole = std::accumulate(size.begin(), size.end(), 0.0);
  const double shares = std::accumulate(share.begin(), share.end(), 0.0);
  std::vector<double> before(positions + 1, 0);  // the size of what stands before a position
  for (size_t p = 0; p < positions; ++p) before[p + 1] = before[p] + size[p];
  std::vector<DeviceId> at(positions);
  size_t first = 0;
  double until = 0;
  for (size_t part = 0; part < devices.size(); ++part) {
    size_t cut = positions;
    if (part + 1 < devices.size()) {
      const double length = shares > 0 ? whole * share[part] / shares : 0;
      until += length;
      const auto distance = [&](size_t p) { return std::abs(before[p] - until); };
      for (size_t p = first; p <= positions; ++p) {
        if (p < positions && !MayCut(p, cuts)) continue;
        if (distance(p) < distance(cut) || (cut == positions && p == first)) cut = p;
      }
      if (cuts == Cuts::kLeastCrossing) {
        for (size_t p = first; p < positions; ++p) {
          if (distance(p) > kSlack * length) continue;
          if (cut == positions || order_.crossing[p] < order_.crossing[cut]) cut = p;
        }
      }
    }
    for (size_t p = first; p < cut; ++p) at[p] = devices[part];
    first = std::max(first, cut);
  }
  std::vector<DeviceId> device;
  for (const OpId op : problem_.graph().ops()) device.push_back(at[static_cast<size_t>(order_.position_of[Index(op)])]);
  return device;
}

std::vector<DeviceId> DevicesBySpeed(const Problem& problem) {
  std::vector<std::pair<double, DeviceId>> devices;
  for (const DeviceId device : problem.cluster().ids()) devices.emplace_back(TimeOfAll(problem, device), device);
  std::ranges::sort(devices);
  std::vector<DeviceId> sorted;
  for (const auto& [time, device] : devices) sorted.push_back(device);
  return sorted;
}

std::vector<DeviceId> FastestDevices(const Problem& problem) {
  std::vector<DeviceId> devices = DevicesBySpeed(problem);
  const double least = TimeOfAll(problem, devices.front());
  std::erase_if(devices, [&](DeviceId device) { return TimeOfAll(problem, device) > kAsFast * least; });
  std::ranges::sort(devices);
  return devices;
}

}  // namespace berth
