// Where and when a list scheduler would run the nodes of a graph: what a policy may read beside the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/coarse_graph.h"
#include "placement/problem.h"

namespace berth {

struct NodeSchedule {
  std::vector<int32_t> device;  // by node, that of its first op; the fastest that can run it where that cannot
  std::vector<double> start;    // by node, of the first of its ops to start, as a share of the schedule's length
};

// The shortest of the schedules that HEFT makes (Topcuoglu, Hariri and Wu 2002, section 4; list_scheduler.h), with ops
// on their own and, where some must share a device, in clusters. Transfers queue at both ends; memory limits and the
// host of inputs are not minded, and nothing is evaluated. Throws Error where no placement keeps the problem's
// constraints.
NodeSchedule ScheduleNodes(const Problem& problem, const CoarseGraph& graph);

}  // namespace berth
