// Ops of which some size is no more than estimated, or unknown.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace berth {

// How many there are, and what they mean for the model.
struct DoubtfulSizes {
  size_t ops = 0;
  double share_of_ops = 0, share_of_work = 0;  // work: FLOP, or bytes moved where the model has no FLOP
  OpId first{};                                // in the order of the graph
};

// Of exactly this certainty; nothing where there is no such op. O(ops).
std::optional<DoubtfulSizes> FindDoubtful(const Graph& graph, Certainty certainty);

}  // namespace berth
