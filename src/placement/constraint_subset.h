// Where ops may be under some of the constraints on a model: what a diagnosis asks again and again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "placement/constraints.h"

namespace berth {

// A problem as it is without its constraints, and these beside it, so that some of them can be left out.
struct ConstrainedModel {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Cluster> cluster;
  std::vector<uint8_t> can_run;  // ops x devices: 0, 1, or 2 where it takes time
  std::vector<int64_t> memory;   // by device
  std::vector<Constraint> constraints;
};

// Some ops under some of the constraints: units of colocated ops, and the devices that these may take.
class ConstraintSubset {
 public:
  // `chosen`: positions in model.constraints. `ops`: ascending.
  ConstraintSubset(const ConstrainedModel& model, std::span<const size_t> chosen, std::span<const OpId> ops);

  size_t num_units() const { return units_.size(); }
  std::span<const OpId> ops(size_t unit) const { return units_[unit]; }
  bool has(OpId op) const { return unit_of_[Index(op)] != kNone; }
  size_t unit_of(OpId op) const { return unit_of_[Index(op)]; }
  std::vector<DeviceId> devices(size_t unit) const;  // ascending

  // False also where nobody can tell: colourings too hard to decide.
  bool CannotBePlaced() const;

  // By device: the cluster's memory limits lowered by the chosen constraints.
  std::vector<int64_t> MemoryLimits() const;

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void Join(std::span<const OpId> ops);
  void Narrow(const Constraint& constraint);
  bool RulesContradict() const;
  bool allowed(size_t unit, DeviceId device) const { return allowed_[unit * devices_ + Index(device)] != 0; }

  const ConstrainedModel& model_;
  size_t devices_;
  std::vector<size_t> chosen_;
  std::vector<size_t> unit_of_;  // by op; kNone for those left out
  std::vector<std::vector<OpId>> units_;
  std::vector<uint8_t> allowed_;  // units x devices
};

}  // namespace berth
