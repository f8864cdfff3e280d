// What planners and policies move about: units of ops that must share a device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "placement/evaluator.h"
#include "placement/problem.h"
#include "placement/rule_network.h"

namespace berth {

// A partition of the ops by the Colocate constraints: ops that must share a device are one unit, every other op is one
// of its own. Units are numbered by their first op. Without constraints the unit of an op has the op's number.
class Units {
 public:
  explicit Units(const Problem& problem);

  // Why no placement keeps all constraints; empty when one does.
  const std::optional<std::string>& contradiction() const { return contradiction_; }

  const Problem& problem() const { return problem_; }
  size_t size() const { return first_.size() - 1; }
  std::span<const OpId> ops(size_t unit) const { return {ops_.data() + first_[unit], first_[unit + 1] - first_[unit]}; }
  size_t unit_of(OpId op) const { return unit_of_.empty() ? Index(op) : unit_of_[Index(op)]; }
  // Whether there are rules that join units: constraints separate and forbid-transfer. A unit without any may go where
  // it can run, whatever the others do.
  bool has_rules() const { return rules_.has_value(); }

  // The sum of its ops' times; kCannotRun when one of them cannot run there.
  double time(size_t unit, DeviceId device) const;
  bool can_run(size_t unit, DeviceId device) const { return time(unit, device) < kCannotRun; }
  DeviceId fastest(size_t unit) const;
  // How many devices can run it.
  size_t num_devices(size_t unit) const;

  // Whether `unit` may be on `device` when the other ops are where `placement` says (DeviceId{-1}: nowhere yet). All
  // that moves a unit asks this, or Legalise.
  bool Fits(std::span<const DeviceId> placement, size_t unit, DeviceId device) const;
  void Put(std::span<DeviceId> placement, size_t unit, DeviceId device) const;

  // The nearest placement that keeps all constraints, nearly: units keep their device where they may be on it, else
  // they go to the fastest that is left. `placement` may be anything; a unit's wish is its first op's device. False
  // when none was found, which is sure when `contradiction` says so, and else only means that the search for it was
  // given up.
  bool Legalise(std::span<DeviceId> placement) const;

  // Legalise, for planners that have asked Refuses before: an Error when it fails.
  std::vector<DeviceId> Legal(std::vector<DeviceId> placement) const;
  // Everything on one device as far as it can run it.
  std::vector<DeviceId> AllOn(DeviceId device) const;
  // Each unit's device drawn with these weights among those that can run it.
  std::vector<DeviceId> Draw(Random& random, std::span<const double> weight) const;

 private:
  void Join();
  void MakeRules();
  bool KeepRules(std::span<DeviceId> placement) const;

  const Problem& problem_;
  std::vector<size_t> first_;         // per unit, into ops_
  std::vector<OpId> ops_;             // by unit
  std::vector<size_t> unit_of_;       // empty without Colocate constraints
  std::optional<RuleNetwork> rules_;  // over the units that have any
  std::vector<size_t> ruled_;         // which these are, ascending
  std::vector<size_t> variable_of_;   // per unit: its place in ruled_; empty without rules
  std::optional<std::string> contradiction_;
};

// Devices that may be swapped without changing any score of this problem under this evaluator: per device the smallest
// one. The host of inputs and outputs is like no other. (Where transfers queue, those of one request start by the
// number of their destination: a swap may then change the score a little.)
std::vector<DeviceId> InterchangeableDevices(const Evaluator& evaluator);

}  // namespace berth
