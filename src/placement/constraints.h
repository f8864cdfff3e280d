// Constraints as people state them: "pin encoder/*=gpu0". The language: docs/constraints.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "graph/graph.h"
#include "placement/problem.h"

namespace berth {

enum class ConstraintKind : uint8_t { kPin, kForbid, kColocate, kSeparate, kMemory, kKeepFree, kForbidTransfer };
inline constexpr std::array<std::string_view, 7> kConstraintNames = {
    "pin", "forbid", "colocate", "separate", "memory", "keep-free", "forbid-transfer"};

// One constraint, unread.
struct ConstraintText {
  ConstraintKind kind{};
  std::string text{};   // what follows the kind: "encoder/*=gpu0"
  std::string place{};  // where it was stated, for errors: "--pin", "rules.yaml:3"; may be empty

  // "pin encoder/*=gpu0": what plan files keep.
  std::string ToString() const;
  bool operator==(const ConstraintText&) const = default;
};

// The reverse of ToString. Throws Error naming `place`.
ConstraintText ParseConstraint(std::string_view text, const std::string& place);

// One constraint on a graph and a cluster: the ops, tensors and devices that it means.
struct Constraint {
  ConstraintText text{};
  // Of each pattern of its list, ascending. Pin, forbid and colocate have one list for all patterns.
  std::vector<std::vector<OpId>> ops{};
  std::vector<DeviceId> devices{};                       // pin, forbid: ascending
  std::vector<std::pair<DeviceId, int64_t>> limits{};    // memory, keep-free: bytes
  std::vector<ForbiddenTransfer> forbidden_transfers{};  // ascending

  // The pairs that a separate constraint keeps apart, each once.
  std::vector<std::pair<OpId, OpId>> Pairs() const;
};

// How a placement breaks a constraint: "op a is on gpu0"; nothing where it keeps it. Memory is left to evaluators.
std::optional<std::string> Breach(const Constraint& constraint, const Graph& graph, const Cluster& cluster,
                                  std::span<const DeviceId> device);

// Bytes per device before any constraint: what `options` says, else the cluster; INT64_MAX where there is no limit.
std::vector<int64_t> MemoryOf(const Cluster& cluster, const Problem::Options& options);

// Throws Error, with a suggestion where there is one, for a pattern that matches nothing, a device that is not there, a
// number that is none, and what can never mean anything. Whether all can be kept is not asked: DiagnosePlacement.
std::vector<Constraint> ResolveConstraints(std::span<const ConstraintText> texts, const Graph& graph,
                                           const Cluster& cluster, const Problem::Options& options);

// Writes them into what a Problem is made of; several add up, and of memory limits the least holds.
void ApplyConstraints(std::span<const Constraint> constraints, const Graph& graph, const Cluster& cluster,
                      OpTimes& times, Problem::Options& options);

}  // namespace berth
