#include "placement/energy.h"

#include <algorithm>
#include <vector>

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

}  // namespace berth
