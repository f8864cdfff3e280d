// A graph in ever larger groups of ops, for searches that place few large ones first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/stop_check.h"
#include "placement/units.h"

namespace berth {

// Levels of groups: each joins groups of the level before, and none parts what must share a device. Joined are
// neighbours in an order in which every group comes after those that feed it, and in which a group is followed by the
// one that it sends most to where that can be; those first whose transfer takes longest beside their work, and those of
// one layer (placement/layers.h) before others. Pairs of neighbours in such an order make no cycle, so that the groups
// can be put in such an order again. (Of units that must share a device each counts by its first op, since forward and
// backward ops of a step of training make cycles by themselves.)
class Coarsening {
 public:
  // Down to about `fewest` groups, none with more than half of a device's share of the work, each level with at most a
  // quarter of the groups of the one before, but perhaps the last. `units` outlives it. `stop`, asked now and then:
  // whether to leave it at the levels that there are. O(edges log edges) for each halving.
  Coarsening(const Units& units, size_t fewest, const StopCheck& stop);

  // Level 0 has the units.
  size_t size() const { return levels_.size(); }
  // By op: the group's number.
  std::vector<int32_t> Labels(size_t level) const;
  size_t num_groups(size_t level) const { return groups_[level]; }

 private:
  struct Edge {
    size_t from, to;
    double time;  // of all transfers between them
  };

  void MakeGraph();
  std::vector<size_t> Order() const;
  // Joins pairs; whether there were any.
  bool Halve(double most_work);
  void Relabel(std::span<const size_t> group_of, size_t groups);

  const Units& units_;
  std::vector<std::vector<size_t>> levels_;  // by unit: its group
  std::vector<size_t> groups_;               // by level: how many
  // The graph of the groups as far as they are joined.
  std::vector<size_t> group_of_;  // by unit
  std::vector<Edge> edges_;       // by from, then to; those that stand for tensors go forward in Order
  std::vector<size_t> first_;     // by group, into edges_
  std::vector<double> work_;      // by group: on the fastest device
  std::vector<int32_t> layer_;    // by group; -1 for parts of several
};

}  // namespace berth
