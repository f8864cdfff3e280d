// The answer of a Planner: a device per op, and what else a runtime must be told.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "placement/problem.h"

namespace berth {

// A strict order: each device runs its ops, and each port its transfers, in this order, waiting for the next one even
// if others could start. Published optima need that.
struct Sequence {
  std::vector<OpId> ops{};                                 // all ops, once each
  std::vector<std::pair<TensorId, DeviceId>> transfers{};  // (tensor, destination), every transfer of the placement
  bool operator==(const Sequence&) const = default;
};

// What an Evaluator needs of a plan; views, so that search can score arrays it changes in place.
struct PlanView {
  std::span<const DeviceId> device;    // one per op
  std::span<const double> priority{};  // empty, or one per op: larger runs first
  const Sequence* sequence = nullptr;
};

// A value. Causes answer "why is this op there" in a few words.
struct Plan {
  std::vector<DeviceId> device{};
  std::vector<double> priority{};
  std::optional<Sequence> sequence{};
  // Empty, or one per op: an index into cause_texts.
  std::vector<uint16_t> cause{};
  std::vector<std::string> cause_texts{};

  PlanView view() const { return {device, priority, sequence ? &*sequence : nullptr}; }

  // Sets every op's cause to `text`.
  void SetCause(std::string text);
  // Sets one op's cause; equal texts are stored once. At most 65,535 different ones, later ones become "other".
  void SetCause(OpId op, std::string_view text);
  std::string_view cause_of(OpId op) const;

  bool operator==(const Plan&) const = default;
};

// The first thing that makes `plan` no plan for `problem`: a wrong length, a device that does not exist or cannot run
// an op, ops that must share a device and do not, a NaN priority, a sequence that is no permutation. Empty when it is
// one. Memory is not looked at (that is the Evaluator's business). O(ops + constraints).
std::optional<std::string> FindViolation(const Problem& problem, const PlanView& plan);

}  // namespace berth
