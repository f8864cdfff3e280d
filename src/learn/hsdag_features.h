// The six blocks of node features of HSDAG (Duan et al. 2024, section 2.2), and two of ours.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "learn/coarse_graph.h"
#include "learn/feature_table.h"
#include "placement/problem.h"

namespace berth {

// Which columns there are, in this order.
struct FeatureBlocks {
  bool type = true;        // mean one-hot of the members' op types, over the graph's types (equation 3)
  bool in_degree = true;   // one-hot over the in-degrees that occur
  bool out_degree = true;  // one-hot over the out-degrees that occur
  bool fractal = true;     // node-based fractal dimension (equation 4), over reachable nodes
  int64_t position = 16;   // sinusoidal encoding of the topological number (equation 5), so many columns; 1: the number
  bool shape = true;       // dimensions of the last member's first output, padded with 0 to four
  bool costs = false;      // ours: log time per device, and the log time of sending what it makes, per route
  // ours: the same columns for every graph, so that a policy serves many. Op types are hashed into kTypeColumns
  // columns, degrees put into ranges.
  bool fixed = false;
  bool normalised = false;  // ours: each column shifted and scaled to mean 0 and deviation 1 over the nodes
};

inline constexpr size_t kTypeColumns = 32;

// `with_fractal` is false for who needs the names alone: that column is 0 then, and O(V (V + E)) is saved.
FeatureTable MakeHsdagFeatures(const Problem& problem, const CoarseGraph& graph, const FeatureBlocks& blocks,
                               bool with_fractal = true);

// Slope of log N(v, r) over log r, by least squares, over the distances r >= 1 that occur from v along the edges'
// direction; N counts the nodes within r, v not among them. 0 where fewer than two distances occur. O(V + E) per node,
// and beyond 14,000 nodes only the nearest ones of each count, so that all take seconds.
std::vector<double> FractalDimensions(const CoarseGraph& graph);

}  // namespace berth
