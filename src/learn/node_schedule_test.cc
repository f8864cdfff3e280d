#include "learn/node_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "moves/clusters.h"
#include "moves/list_scheduler.h"
#include "placement/testing.h"
#include "placement/units.h"

namespace berth {
namespace {

// What the scheduler says of each op; of ops that must share a device, which are one node, the first start.
TEST(NodeSchedule, SaysWhereAndWhenTheSchedulerRunsEachNode) {
  Random random(31);
  for (int round = 0; round < 20; ++round) {
    const Problem free = testing::RandomProblem(random, {.ops = 25, .devices = 3, .forbidden = 0.2});
    const Problem problem =
        round % 2 == 0 ? free : free.With({.colocate = {{OpId{0}, OpId{7}}, {OpId{3}, OpId{9}, OpId{20}}}});
    const CoarseGraph graph = MakeCoarseGraph(problem, "none");
    const NodeSchedule nodes = ScheduleNodes(problem, graph);
    // The same, schedule by schedule.
    const Units units(problem);
    ListScheduler scheduler(units, Urgency::kUpward);
    std::vector<std::optional<Clusters>> clusters(1);
    for (const double ratio : kTieRatios) {
      if (round % 2 == 1) clusters.push_back(TieUnits(units, ratio));
    }
    double shortest = std::numeric_limits<double>::infinity();
    std::vector<int32_t> device;
    std::vector<double> start;
    for (const std::optional<Clusters>& each : clusters) {
      const PartialSchedule schedule = scheduler.Run({.contention = Contention::kPorts}, each ? &*each : nullptr);
      if (schedule.makespan() >= shortest) continue;
      shortest = schedule.makespan();
      device.clear(), start.clear();
      for (size_t node = 0; node < graph.size(); ++node) {
        const auto ops = graph.grouping.ops_of(MakeId<GroupId>(node));
        double first = std::numeric_limits<double>::infinity();
        for (const OpId op : ops) {
          EXPECT_EQ(schedule.device(op), schedule.device(ops.front()));
          first = std::min(first, schedule.start(op) / shortest);
        }
        device.push_back(static_cast<int32_t>(Index(schedule.device(ops.front()))));
        start.push_back(first);
      }
    }
    EXPECT_EQ(nodes.device, device);
    EXPECT_EQ(nodes.start, start);
  }
}

}  // namespace
}  // namespace berth
