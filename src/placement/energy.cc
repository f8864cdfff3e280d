#include "placement/energy.h"

#include <vector>

namespace berth {

double Joules(const Problem& problem, const Timeline& timeline) {
  std::vector<double> busy(problem.num_devices());
  for (const OpRun& op : timeline.ops) busy[Index(op.device)] += op.end - op.start;
  double joules = 0;
  for (const DeviceId id : problem.cluster().ids()) {
    const Device& device = problem.cluster().device(id);
    const double busy_seconds = problem.ToSeconds(busy[Index(id)]).value;
    const double idle_seconds = problem.ToSeconds(timeline.score.time - busy[Index(id)]).value;
    joules += busy_seconds * device.watts_busy.value + idle_seconds * device.watts_idle.value;
  }
  return joules;
}

}  // namespace berth
