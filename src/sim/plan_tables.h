// What a simulation derives from a placement before it begins, kept up to date while ops move.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "placement/plan.h"
#include "sim/flat_problem.h"

namespace berth {

struct OpState {
  double duration;
  int32_t missing;  // inputs that are not on its device
  int32_t device;
};

class PlanTables {
 public:
  // O(ops + edges + uses of parameters).
  PlanTables(const FlatProblem& flat, std::span<const DeviceId> device);

  // O(edges and parameters of the op + devices).
  void Move(int32_t op, int32_t to);

  int32_t device(int32_t op) const { return ops_[static_cast<size_t>(op)].device; }
  const std::vector<OpState>& ops() const { return ops_; }                          // as at the start: all is missing
  const std::vector<int32_t>& first_op() const { return first_op_; }                // see ParallelWorkspace
  const std::vector<int32_t>& edges() const { return edges_; }                      // see transfers.h
  const std::vector<int64_t>& parameter_bytes() const { return parameter_bytes_; }  // by device

 private:
  int32_t& EdgesBetween(int32_t from, int32_t to) {
    return edges_[static_cast<size_t>(from) * devices_ + static_cast<size_t>(to)];
  }
  int32_t HomeOf(int32_t tensor) const;
  void AddOutputs(int32_t op, int32_t sign);
  void AddUser(ParameterId parameter, size_t device);
  void RemoveUser(ParameterId parameter, size_t device);

  const FlatProblem& flat_;
  size_t devices_;
  std::vector<OpState> ops_;
  std::vector<int32_t> first_op_, edges_;
  std::vector<int32_t> users_;  // parameter x device
  std::vector<int64_t> parameter_bytes_;
};

}  // namespace berth
