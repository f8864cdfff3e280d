// An order of all ops, each after its producers, that changes by moving one op at a time.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "placement/problem.h"

namespace berth {

// Each device runs its own ops in this order; whatever the placement, no two devices wait for each other.
class OpOrder {
 public:
  // By start time in some schedule; of equal times the smaller op number.
  OpOrder(const Graph& graph, std::span<const double> starts);

  const std::vector<OpId>& ops() const { return ops_; }
  size_t position(OpId op) const { return position_[Index(op)]; }

  // Moves the op to this position. What it depends on and would come after it goes with it, to the places before it; or
  // to a later position what depends on it, to the places after it. The others keep their order. O(edges of the ops
  // between).
  void Move(OpId op, size_t position);
  // Undoes all Moves since the last Keep, and since the order was made.
  void TakeBack();
  // Sorts the ops by their starts in a schedule that keeps this order on each device, which therefore stays the same
  // schedule: then ops stand beside those that run at the same time. No Move can be taken back any more.
  void Keep(std::span<const double> starts);

 private:
  void Put(size_t position, OpId op) {
    ops_[position] = op;
    position_[Index(op)] = position;
  }
  bool FeedsMarked(OpId op) const;
  bool TakesFromMarked(OpId op) const;

  const Graph& graph_;
  std::vector<OpId> ops_;
  std::vector<size_t> position_;                 // by op
  std::vector<std::pair<size_t, OpId>> before_;  // places that have changed, and what was there
  std::vector<uint32_t> stamp_;                  // by op: the Move that took it along
  uint32_t round_ = 0;
  std::vector<OpId> moved_, passed_;  // scratch
};

}  // namespace berth
