#include "placement/energy.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace berth {
namespace {

double JoulesOf(const Problem& problem, std::span<const double> busy, double time) {
  double joules = 0;
  for (const DeviceId id : problem.cluster().ids()) {
    const Device& device = problem.cluster().device(id);
    const double busy_time = std::min(busy[Index(id)], time);
    joules += problem.ToSeconds(busy_time).value * device.watts_busy.value +
              problem.ToSeconds(time - busy_time).value * device.watts_idle.value;
  }
  return joules;
}

}  // namespace

double Joules(const Problem& problem, const Timeline& timeline) {
  std::vector<double> busy(problem.num_devices());
  for (const OpRun& op : timeline.ops) busy[Index(op.device)] += op.end - op.start;
  return JoulesOf(problem, busy, timeline.score.time);
}

double Joules(const Problem& problem, std::span<const DeviceId> device, double time, std::span<double> busy) {
  std::ranges::fill(busy, 0);
  for (size_t v = 0; v < device.size(); ++v) busy[Index(device[v])] += problem.op_time(MakeId<OpId>(v), device[v]);
  return JoulesOf(problem, busy, time);
}

std::vector<DeviceId> WithoutWatts(const Cluster& cluster) {
  std::vector<DeviceId> without;
  for (const DeviceId id : cluster.ids()) {
    if (!(cluster.device(id).watts_busy.value > 0)) without.push_back(id);
  }
  return without;
}

void RequireWatts(const Cluster& cluster) {
  if (const std::vector<DeviceId> without = WithoutWatts(cluster); !without.empty()) {
    throw Error("the energy of device {} of {} is not known: give it watts (idle and busy) in its device file",
                cluster.device(without.front()).name, cluster.name());
  }
  for (const DeviceId id : cluster.ids()) {
    const Device& device = cluster.device(id);
    if (device.watts_busy.value < device.watts_idle.value) {
      throw Error("device {} of {} takes {} W busy and {} W idle, so less when busy; correct its device file",
                  device.name, cluster.name(), device.watts_busy.value, device.watts_idle.value);
    }
  }
}

}  // namespace berth
