// The boxes of a picture: an op each, or several ops where a graph has too many for a picture.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace berth {

struct Boxes {
  std::vector<std::vector<OpId>> ops;  // by box, ascending; boxes are numbered in a topological order
  std::vector<size_t> of_op;
  std::vector<std::pair<size_t, size_t>> arrows;  // (from, to) with from < to, each once, ascending

  size_t size() const { return ops.size(); }
};

// A box per op.
Boxes BoxPerOp(const Graph& graph);

// At most `most_boxes` (at least 2) and `most_arrows`, and no arrows that lead back. First neighbours on one device
// come together: ops in a chain, an op and the only one that feeds or uses it, ops with the same neighbours. Where that
// is not enough, so do neighbours on different devices, and at last whatever is next to one another in a topological
// order. Boxes grow evenly. O((V + E) log(V + E)) but for a logarithmic factor.
Boxes FoldOps(const Graph& graph, std::span<const DeviceId> device, size_t most_boxes, size_t most_arrows);

}  // namespace berth
