// Ops that are placed together. Why a grouped problem is the same problem with constraints:
// docs/decisions/0004-groups.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/catalog.h"
#include "base/stop_check.h"
#include "placement/problem.h"

namespace berth {

enum class GroupId : int32_t {};

// A partition of the ops into groups, numbered by their first ops. O(1) both ways.
class Grouping {
 public:
  // `label` gives equal numbers to ops of one group; any numbers.
  Grouping(const Graph& graph, std::span<const int32_t> label);

  size_t num_groups() const { return start_.size() - 1; }
  Ids<GroupId> groups() const { return Ids<GroupId>(num_groups()); }
  GroupId group_of(OpId op) const { return group_of_[Index(op)]; }
  // Ascending.
  std::span<const OpId> ops_of(GroupId group) const {
    return {ops_.data() + start_[Index(group)], start_[Index(group) + 1] - start_[Index(group)]};
  }

 private:
  std::vector<GroupId> group_of_;
  std::vector<size_t> start_{0};
  std::vector<OpId> ops_;
};

// The groups of both, those that share an op made one.
Grouping Joined(const Graph& graph, const Grouping& a, const Grouping& b);
// The groups of `label`, as above, with those made one that the problem's colocate constraints tie together.
Grouping JoinColocated(const Problem& problem, std::vector<int32_t> label);
// Ops that must share a device are a group, every other op is one of its own.
Grouping ColocatedOps(const Problem& problem);

// The groups that read a tensor, without the one that makes it: ascending, each once. `readers` is overwritten.
void OtherReaders(const Graph& graph, const Grouping& grouping, TensorId tensor, std::vector<GroupId>& readers);

// The groups as a graph: an edge where a tensor leaves a group for another, no loops.
struct Quotient {
  struct Edge {
    GroupId from, to;
    int64_t bytes;  // of the different tensors that go this way
  };
  std::vector<Edge> edges;            // by from, then to
  std::vector<double> time;           // groups x devices: the sum of the ops' times, kCannotRun where one cannot run
  std::vector<int64_t> output_bytes;  // by group: of all tensors that leave it, each once
  bool acyclic;

  size_t num_groups() const { return output_bytes.size(); }
};
Quotient MakeQuotient(const Problem& problem, const Grouping& grouping);

// All groups in topological order, of several the smallest first; where a cycle leaves none, the smallest that is left.
// O((groups + edges) log groups).
std::vector<GroupId> TopologicalOrder(const Quotient& quotient);

// The problem with the further demand that each group shares a device. Groups that would contradict the problem's own
// constraints (two ops that must be apart, or no device that runs all) are left as they were; `dropped` counts them,
// those of several ops. Where the others contradict the constraints only together, some of them are left out too: those
// that 60 trials, each O(size), find by halves, or more where these do not suffice.
Problem Grouped(const Problem& problem, const Grouping& grouping, size_t& dropped);

// A rule that is told to stop makes its groups the quick way: fine ones as far as it came, and the rest by their order.
using GroupingCatalog = Catalog<Grouping(const Problem&, const StopCheck&)>;
void RegisterGroupings(GroupingCatalog& catalog);

}  // namespace berth
