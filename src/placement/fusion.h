// What a runtime executes as one kernel.
#pragma once

#include "graph/graph.h"
#include "placement/grouping.h"

namespace berth {

// The ops that OpenVINO's CPU plugin makes one kernel of, by rules that need nothing but the graph: docs/costs.md has
// them, docs/fusion.md how far they agree with OpenVINO. Groups feed one another in no circle. A graph with a backward
// pass has none: OpenVINO runs no training, and what a backward pass reads again has to be written. Nearly linear;
// groups that are far apart in a graph cost more, since circles are looked for between them.
Grouping FusedOps(const Graph& graph);

}  // namespace berth
