// What a move would change in the schedule of a plan, at a glance: without a score.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "placement/problem.h"

namespace berth {

// Of moves from one plan at a time. An op is critical by exp(-slack / 2 % of the makespan), from 0 to 1, where its
// slack is how much later it could end before the makespan grows, the order of ops on each device and the lengths of
// transfers given (queues of transfers are not followed). Not thread-safe: it has scratch memory.
class MoveFeatures {
 public:
  static constexpr size_t kCount = 16;
  using Row = std::array<double, kCount>;  // from -1 to 1 each, the first is 1

  explicit MoveFeatures(const Problem& problem);

  const Problem& problem() const { return problem_; }

  // The plan that moves start from, with the starts of all its ops in the problem's unit.
  // O(ops log ops + edges).
  void Know(std::span<const DeviceId> device, std::span<const double> starts);

  // Of a move from that plan; of several entries for an op the last counts. O(edges at these ops + their number x log
  // ops).
  Row Of(std::span<const std::pair<OpId, DeviceId>> moves);

 private:
  double Busy(DeviceId device, double begin, double end) const;
  double Critical(double slack) const;
  double time(OpId op) const { return end_[Index(op)] - start_[Index(op)]; }

  const Problem& problem_;
  std::vector<DeviceId> device_;
  double makespan_ = 0;
  std::vector<double> start_, end_;
  std::vector<double> after_;             // per op: from its end to the end of all, where nothing waits in vain
  std::vector<double> load_;              // per device: what its ops take
  std::vector<std::vector<OpId>> order_;  // per device, as they start
  // Of the last call of Of.
  std::vector<uint32_t> round_of_;  // per op: the round in which it moved
  std::vector<DeviceId> goal_;
  std::vector<double> load_after_, added_;
  std::vector<OpId> moved_;
  uint32_t round_ = 0;
};

}  // namespace berth
