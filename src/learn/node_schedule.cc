#include "learn/node_schedule.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "moves/clusters.h"
#include "moves/list_scheduler.h"
#include "placement/units.h"

namespace berth {
namespace {

struct OpSchedule {
  std::vector<DeviceId> device{};  // by op
  std::vector<double> start{};     // by op, as a share of the whole
};

OpSchedule ScheduleOps(const Problem& problem) {
  const Units units(problem);
  ListScheduler scheduler(units, Urgency::kUpward);
  OpSchedule best;
  double shortest = std::numeric_limits<double>::infinity();
  const auto run = [&](const Clusters* clusters) {
    const PartialSchedule schedule = scheduler.Run({.contention = Contention::kPorts}, clusters);
    const double length = schedule.makespan();
    if (!best.device.empty() && !(length < shortest)) return;
    shortest = length;
    best = {.device = scheduler.kept_apart() ? scheduler.device() : units.Legal(scheduler.device())};
    for (const OpId op : problem.graph().ops()) {
      best.start.push_back(schedule.placed(op) && length > 0 ? schedule.start(op) / length : 0);
    }
  };
  run(nullptr);
  if (units.size() == problem.num_ops()) return best;
  for (const double ratio : kTieRatios) {
    const std::optional<Clusters> clusters = TieUnits(units, ratio);
    if (clusters) run(&*clusters);
  }
  return best;
}

// One that can run all of the node, the fastest; 0 where there is none.
int32_t FastestOf(const CoarseGraph& graph, size_t node) {
  const auto times = graph.quotient.time.begin() + static_cast<std::ptrdiff_t>(node * graph.num_devices);
  return static_cast<int32_t>(std::min_element(times, times + static_cast<std::ptrdiff_t>(graph.num_devices)) - times);
}

}  // namespace

NodeSchedule ScheduleNodes(const Problem& problem, const CoarseGraph& graph) {
  const OpSchedule ops = ScheduleOps(problem);
  NodeSchedule nodes{.device = std::vector<int32_t>(graph.size(), 0), .start = std::vector<double>(graph.size(), 1)};
  graph.ReadBack(ops.device, nodes.device);
  for (size_t node = 0; node < graph.size(); ++node) {
    for (const OpId op : graph.grouping.ops_of(MakeId<GroupId>(node))) {
      nodes.start[node] = std::min(nodes.start[node], ops.start[Index(op)]);
    }
    if (!graph.can_run(node, MakeId<DeviceId>(static_cast<size_t>(nodes.device[node])))) {
      nodes.device[node] = FastestOf(graph, node);
    }
  }
  return nodes;
}

}  // namespace berth
