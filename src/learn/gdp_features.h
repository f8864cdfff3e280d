// What GDP's policy reads of each node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/coarse_graph.h"
#include "learn/coarse_transfers.h"
#include "learn/feature_table.h"
#include "learn/node_schedule.h"
#include "placement/problem.h"

namespace berth {

enum class GdpFeatures : uint8_t {
  // Beside the op type what is recalled of the published ones (docs/decisions/0005-learning.md): the shape of the
  // output, and the neighbours' numbers.
  kRecalled,
  // Ours, which mean the same on every graph: shape, bytes and FLOP in logarithms, degrees, times per device, levels,
  // sides, and the level, the side and the work of the layer that a node is in.
  kExtended,
  // The same, and on which device and when a list scheduler would run it.
  kScheduled,
};

// Columns that depend on nothing but the number of devices, shifted and scaled to mean 0 and deviation 1 over the
// nodes. Rows are in the graph's own numbering; `order` is the one in which nodes are read, `layers` the grouping of
// that name, `schedule` what kScheduled reads. O(size devices).
FeatureTable MakeGdpFeatures(const Problem& problem, const CoarseGraph& graph, GdpFeatures which,
                             std::span<const int32_t> order, const Grouping& layers, const NodeSchedule& schedule = {});

// How many columns these are.
size_t NumGdpFeatures(GdpFeatures which, size_t devices);

// The longest path that ends before each node, and the longest that begins with it, in time units: nodes with their
// mean time over the devices that can run them, edges with the mean time of a transfer. Edges that close a cycle of
// groups are left out.
struct Levels {
  std::vector<double> top, bottom;
};
Levels LevelsOf(const CoarseGraph& graph, const CoarseTransfers& transfers);

// Of the work at the same depth of the forward pass the share that stands before each node in a depth-first order, from
// 0 to 1: what tells one of several branches that look alike from the others, and one of several layers that work at
// the same time, by the same number along the whole branch. Of ops that are one node the mean, by their work; 0.5 where
// a node has none of the forward pass. O(size).
std::vector<double> SidesOf(const Problem& problem, const CoarseGraph& graph);

}  // namespace berth
