// A plan with a sequence that is changed by moves, like those of a Walk (placement/search.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "placement/search.h"
#include "plan/op_order.h"

namespace berth {

// Its state is a placement and one order of all ops, from which each device has its sequence; a tensor is sent when its
// producer's turn has come. So a device can wait for an op that comes soon, which priorities cannot tell it. What moves
// to another device keeps its time. Each try is scored in full.
class SequenceWalk {
 public:
  // Begins at a plan, whose ops keep the order in which they start; two evaluations. All plans that are kept have
  // `cause`.
  SequenceWalk(Search& search, const PlanView& start, std::string_view cause);

  const Score& score() const { return score_; }  // of the plan as it stands
  std::span<const DeviceId> device() const { return device_; }
  // What stands for an order here: of n ops the first has n - 1, the last 0.
  std::span<const double> priority() const { return priority_; }

  // An op with a new priority goes to where that fits in, with what must come before it or after it.
  Score TryChange(const PlanChange& change);
  // As the plan stands; costs nothing.
  void Starts(std::span<double> starts) const;
  static constexpr int kStartsFor = 1;
  // Makes the last Try permanent.
  void Take();

 private:
  Score Evaluate();
  void MakeSequence();

  Search& search_;
  std::string cause_;
  std::vector<double> starts_, tried_starts_;
  std::vector<DeviceId> device_, tried_device_;
  OpOrder order_;
  std::vector<double> priority_;
  Sequence sequence_;
  std::vector<DeviceId> destinations_;  // scratch
  Score score_, tried_;
};

}  // namespace berth
