// The graph that a learned placer sees: groups of ops as nodes, and what joins them.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "placement/grouping.h"
#include "placement/problem.h"

namespace berth {

struct CoarseGraph {
  Grouping grouping;
  Quotient quotient;
  // Pairs that an edge joins, whatever its direction; first < second, ascending.
  std::vector<std::pair<int32_t, int32_t>> neighbours;
  std::vector<std::vector<int32_t>> parents, children;  // by node, ascending
  std::vector<int32_t> topological;                     // all nodes; in the nearest to one where groups form cycles

  size_t size() const { return grouping.num_groups(); }
  // Whether a device can run all ops of a node.
  bool can_run(size_t node, DeviceId device) const {
    return quotient.time[node * num_devices + static_cast<size_t>(Index(device))] < kCannotRun;
  }
  // The device of each node's first op in a placement.
  void ReadBack(std::span<const DeviceId> placement, std::span<int32_t> device_of_node) const;

  size_t num_devices;
};

// Nodes are the groups of `rule` ("none": each op alone; "paper" or "code": HSDAG's two co-location rules; "layers":
// whole layers), joined where the problem's colocate constraints say so. O(size).
CoarseGraph MakeCoarseGraph(const Problem& problem, std::string_view rule);

// A complete placement from a device per node. Where the device cannot run all ops of the node, they go to the one that
// runs them fastest together, or else each, with those that must share its device, to their own fastest.
class NodePlacer {
 public:
  NodePlacer(const Problem& problem, const CoarseGraph& graph);
  void Place(std::span<const int32_t> device_of_node, std::span<DeviceId> placement) const;

 private:
  const CoarseGraph& graph_;
  std::vector<DeviceId> otherwise_;  // by node; -1: each op by fastest_
  std::vector<DeviceId> fastest_;    // by op
};

}  // namespace berth
