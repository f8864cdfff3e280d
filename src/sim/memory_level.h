// The peak of each device's memory while a simulation runs, without any list of intervals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/plan.h"
#include "placement/timeline.h"
#include "sim/flat_problem.h"
#include "sim/snapshot.h"

namespace berth {

// Counts, for every tensor on every device, what still holds it there: consumers that have not ended, transfers that
// have not left, the end of the run for an output. Intervals are half-open, and a simulation goes through time in
// order: the level counts when time moves on, after all that ends and starts at one instant.
class MemoryLevel {
 public:
  // Parameters lie on their devices from the start: counted here, or given in bytes per device.
  void Reset(const FlatProblem& flat, const PlanView& plan);
  void Reset(const FlatProblem& flat, std::span<const int64_t> parameter_bytes);

  void OpStarts(int32_t op, int32_t device, double now) { Change(device, flat_->op_bytes(op).taken, now); }

  // One of the outputs of an op that ends now, or a graph input at time 0. Hold names its holders, one call each; Drop
  // frees it when there is none.
  void TensorBegins(int32_t tensor) {
    int32_t* row = Row(tensor);
    std::fill(row, row + devices_, 0);
  }
  void Hold(int32_t tensor, int32_t device) { ++Row(tensor)[device]; }
  void Drop(int32_t tensor, int32_t device, double now) {
    if (Row(tensor)[device] == 0) Change(device, -flat_->tensor(tensor).bytes, now);
  }
  void Release(int32_t tensor, int32_t device, double now) {
    if (--Row(tensor)[device] == 0) Change(device, -flat_->tensor(tensor).bytes, now);
  }

  void OpEnds(int32_t op, int32_t device, double now) {
    Change(device, -flat_->op_bytes(op).workspace, now);
    for (const int32_t t : flat_->inputs_of(op)) Release(t, device, now);
  }

  void Arriving(int32_t tensor, int32_t device, double now) { Change(device, flat_->tensor(tensor).bytes, now); }

  // `held`: all tensors that something may hold; those that nothing does any more are taken out.
  void Save(std::vector<int32_t>& held, Snapshot& to) const;
  void Load(Snapshot::Reader& from, std::vector<int32_t>& held);

  // Completes a score whose run ended at `finish`.
  void Finish(double finish, Score& score);

 private:
  struct Level {  // without parameters
    int64_t bytes;
    int64_t peak;    // over the instants before `changed`
    double changed;  // the instant that `bytes` belongs to
  };

  void Prepare(const FlatProblem& flat);
  const int32_t* Row(int32_t tensor) const { return holders_.data() + static_cast<size_t>(tensor) * devices_; }
  int32_t* Row(int32_t tensor) { return holders_.data() + static_cast<size_t>(tensor) * devices_; }

  void Change(int32_t device, int64_t bytes, double now) {
    Level& level = levels_[static_cast<size_t>(device)];
    if (level.changed != now) {
      level.peak = std::max(level.peak, level.bytes);
      level.changed = now;
    }
    level.bytes += bytes;
  }

  const FlatProblem* flat_ = nullptr;
  size_t devices_ = 0;
  std::vector<int32_t> holders_;  // tensors x devices
  std::vector<Level> levels_;
  std::vector<int64_t> parameter_bytes_;  // by device
  std::vector<int32_t> seen_;
};

}  // namespace berth
