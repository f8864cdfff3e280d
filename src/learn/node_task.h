// Tasks of policies that decide about groups of ops, the nodes of a coarse graph, all at once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "learn/coarse_graph.h"
#include "learn/policy.h"

namespace berth {

struct NodeTask : Task {
  NodeTask(const Problem& of, std::string_view colocation)
      : Task(of), coarse(MakeCoarseGraph(of, colocation)), placer(of, coarse) {}

  // The costs of placements, in time units. Of each the device of every node in `order`, which names each node once;
  // the rules are kept. Scored as one after another would be, on the search's threads; fewer where its budget or
  // `options.stop` ended it.
  std::vector<double> CostsOf(std::span<const int32_t> order, std::span<const std::span<const int64_t>> devices,
                              Search& search, const PlayOptions& options) const;

  CoarseGraph coarse;
  NodePlacer placer;
};

}  // namespace berth
