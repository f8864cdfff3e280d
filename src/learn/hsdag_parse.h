// Graph parsing: from scores of edges to clusters of nodes (Duan et al. 2024, section 2.4; Song et al. 2024).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace berth {

struct ScoredEdge {
  int32_t from, to;
  float score;
};

struct ParsedClusters {
  std::vector<int32_t> of;  // by node: its cluster, numbered by the smallest node
  int32_t count = 0;
};

// The algorithm as written: each node's best edge is dominant (the first of equals); the best remaining dominant edge
// seeds a cluster, which takes in all nodes whose dominant edge points into it until none does. `edges` holds both
// directions of every edge, ordered by (from, to), without loops. Where the two directions differ in score, a node that
// is in a cluster may be taken into a later one. O(V E).
ParsedClusters ParseInSequence(int32_t nodes, std::span<const ScoredEdge> edges);

// The same for equal scores in both directions: the connected parts of the dominant edges, one step of Boruvka's
// algorithm. O(E alpha).
ParsedClusters ParseByUnion(int32_t nodes, std::span<const ScoredEdge> edges);

}  // namespace berth
