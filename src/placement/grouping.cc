#include "placement/grouping.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "placement/units.h"

namespace berth {
namespace {

class Sets {
 public:
  explicit Sets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t Find(int32_t v) {
    while (parent_[static_cast<size_t>(v)] != v) {
      int32_t& up = parent_[static_cast<size_t>(v)];
      v = up = parent_[static_cast<size_t>(up)];
    }
    return v;
  }
  int32_t Find(OpId op) { return Find(static_cast<int32_t>(op)); }
  void Join(int32_t a, int32_t b) { parent_[static_cast<size_t>(Find(b))] = Find(a); }
  void Join(OpId a, OpId b) { Join(static_cast<int32_t>(a), static_cast<int32_t>(b)); }

 private:
  std::vector<int32_t> parent_;
};

}  // namespace

Grouping::Grouping(const Graph& graph, std::span<const int32_t> label) : group_of_(graph.num_ops()) {
  BERTH_CHECK(label.size() == graph.num_ops());
  std::unordered_map<int32_t, GroupId> number;
  for (const OpId op : graph.ops()) {
    const GroupId group = number.emplace(label[Index(op)], MakeId<GroupId>(number.size())).first->second;
    group_of_[Index(op)] = group;
  }
  start_.assign(number.size() + 1, 0);
  for (const GroupId group : group_of_) ++start_[Index(group) + 1];
  std::partial_sum(start_.begin(), start_.end(), start_.begin());
  ops_.resize(graph.num_ops());
  std::vector<size_t> next(start_.begin(), start_.end() - 1);
  for (const OpId op : graph.ops()) ops_[next[Index(group_of_[Index(op)])]++] = op;
}

Grouping Joined(const Graph& graph, const Grouping& a, const Grouping& b) {
  Sets sets(graph.num_ops());
  for (const Grouping* grouping : {&a, &b}) {
    for (const OpId op : graph.ops()) sets.Join(grouping->ops_of(grouping->group_of(op)).front(), op);
  }
  std::vector<int32_t> label;
  for (const OpId op : graph.ops()) label.push_back(sets.Find(op));
  return Grouping(graph, label);
}

Grouping JoinColocated(const Problem& problem, std::vector<int32_t> label) {
  // Labels are any numbers; groups are counted from 0.
  const Grouping given(problem.graph(), label);
  Sets sets(given.num_groups());
  const auto number = [&](OpId op) { return static_cast<int32_t>(given.group_of(op)); };
  for (const std::vector<OpId>& together : problem.constraints().colocate) {
    for (const OpId op : together) sets.Join(number(together.front()), number(op));
  }
  for (const OpId op : problem.graph().ops()) label[Index(op)] = sets.Find(number(op));
  return Grouping(problem.graph(), label);
}

Grouping ColocatedOps(const Problem& problem) {
  std::vector<int32_t> label(problem.num_ops());
  std::iota(label.begin(), label.end(), 0);
  return JoinColocated(problem, std::move(label));
}

void OtherReaders(const Graph& graph, const Grouping& grouping, TensorId tensor, std::vector<GroupId>& readers) {
  readers.clear();
  for (const OpId consumer : graph.consumers(tensor)) readers.push_back(grouping.group_of(consumer));
  std::ranges::sort(readers);
  readers.erase(std::ranges::unique(readers).begin(), readers.end());
  std::erase(readers, grouping.group_of(graph.producer(tensor)));
}

Quotient MakeQuotient(const Problem& problem, const Grouping& grouping) {
  const Graph& graph = problem.graph();
  Quotient quotient{
      .edges = {}, .time = {}, .output_bytes = std::vector<int64_t>(grouping.num_groups()), .acyclic = true};
  std::map<std::pair<GroupId, GroupId>, int64_t> bytes;
  std::vector<GroupId> to;
  for (const TensorId tensor : graph.tensors()) {
    const GroupId from = grouping.group_of(graph.producer(tensor));
    OtherReaders(graph, grouping, tensor, to);
    for (const GroupId group : to) bytes[{from, group}] += graph.tensor_bytes(tensor);
    if (!to.empty()) quotient.output_bytes[Index(from)] += graph.tensor_bytes(tensor);
  }
  std::vector<size_t> missing(grouping.num_groups()), first_edge(grouping.num_groups() + 1);
  for (const auto& [ends, sum] : bytes) {
    quotient.edges.push_back({ends.first, ends.second, sum});
    ++missing[Index(ends.second)];
    ++first_edge[Index(ends.first) + 1];
  }
  std::partial_sum(first_edge.begin(), first_edge.end(), first_edge.begin());
  std::vector<GroupId> ready;
  for (const GroupId group : grouping.groups()) {
    if (missing[Index(group)] == 0) ready.push_back(group);
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    for (size_t e = first_edge[Index(ready[i])]; e < first_edge[Index(ready[i]) + 1]; ++e) {
      if (--missing[Index(quotient.edges[e].to)] == 0) ready.push_back(quotient.edges[e].to);
    }
  }
  quotient.acyclic = ready.size() == grouping.num_groups();
  quotient.time.assign(grouping.num_groups() * problem.num_devices(), 0);
  for (const OpId op : graph.ops()) {
    double* const row = quotient.time.data() + Index(grouping.group_of(op)) * problem.num_devices();
    for (const DeviceId device : problem.cluster().ids()) row[Index(device)] += problem.op_time(op, device);
  }
  return quotient;
}

std::vector<GroupId> TopologicalOrder(const Quotient& quotient) {
  const size_t count = quotient.num_groups();
  std::vector<size_t> missing(count), first_edge(count + 1);
  for (const Quotient::Edge& edge : quotient.edges) {
    ++missing[Index(edge.to)];
    ++first_edge[Index(edge.from) + 1];
  }
  std::partial_sum(first_edge.begin(), first_edge.end(), first_edge.begin());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t v = 0; v < count; ++v) {
    if (missing[v] == 0) ready.push(v);
  }
  std::vector<uint8_t> is_out(count);
  std::vector<GroupId> order;
  for (size_t next = 0; order.size() < count;) {
    if (ready.empty()) {
      while (is_out[next] != 0) ++next;
      ready.push(next);
    }
    const size_t v = ready.top();
    ready.pop();
    if (is_out[v] != 0) continue;
    is_out[v] = 1;
    order.push_back(MakeId<GroupId>(v));
    for (size_t e = first_edge[v]; e < first_edge[v + 1]; ++e) {
      const size_t to = Index(quotient.edges[e].to);
      if (--missing[to] == 0 && is_out[to] == 0) ready.push(to);
    }
  }
  return order;
}

namespace {

// The problem with these groups joined one after another, but for those that contradict what there is already: these
// are counted.
Problem Joined(const Problem& problem, const Grouping& grouping, std::span<const GroupId> groups, size_t& dropped) {
  const Constraints& own = problem.constraints();
  dropped = 0;
  Sets sets(problem.num_ops());
  for (const std::vector<OpId>& group : own.colocate) {
    for (const OpId op : group) sets.Join(group.front(), op);
  }
  // What the set of each op can run on, and whom it must keep away from, as groups are joined one by one.
  std::vector<std::vector<OpId>> members(problem.num_ops());
  for (const OpId op : problem.graph().ops()) members[static_cast<size_t>(sets.Find(op))].push_back(op);
  const auto runs_somewhere = [&](std::span<const OpId> ops) {
    return std::ranges::any_of(problem.cluster().ids(), [&](DeviceId device) {
      return std::ranges::all_of(ops, [&](OpId op) { return problem.can_run(op, device); });
    });
  };
  std::vector<std::vector<OpId>> separate_from(problem.num_ops());
  for (const auto& [a, b] : own.separate) {
    separate_from[Index(a)].push_back(b);
    separate_from[Index(b)].push_back(a);
  }
  for (const GroupId group : groups) {
    const std::span<const OpId> ops = grouping.ops_of(group);
    std::vector<int32_t> roots;
    for (const OpId op : ops) roots.push_back(sets.Find(op));
    std::ranges::sort(roots);
    roots.erase(std::ranges::unique(roots).begin(), roots.end());
    std::vector<OpId> joined;
    for (const int32_t root : roots) {
      const std::vector<OpId>& part = members[static_cast<size_t>(root)];
      joined.insert(joined.end(), part.begin(), part.end());
    }
    const auto is_in = [&](OpId op) { return std::ranges::binary_search(roots, sets.Find(op)); };
    const bool apart =
        std::ranges::any_of(joined, [&](OpId op) { return std::ranges::any_of(separate_from[Index(op)], is_in); });
    if (apart || !runs_somewhere(joined)) {
      ++dropped;
      continue;
    }
    for (const int32_t root : roots) {
      sets.Join(ops.front(), static_cast<OpId>(root));
      members[static_cast<size_t>(root)].clear();
    }
    members[static_cast<size_t>(sets.Find(ops.front()))] = std::move(joined);
  }
  Constraints constraints = own;
  constraints.colocate.clear();
  for (std::vector<OpId>& group : members) {
    if (group.size() < 2) continue;
    std::ranges::sort(group);
    constraints.colocate.push_back(std::move(group));
  }
  return problem.With(std::move(constraints));
}

}  // namespace

Problem Grouped(const Problem& problem, const Grouping& grouping, size_t& dropped) {
  std::vector<GroupId> groups;
  for (const GroupId group : grouping.groups()) {
    if (grouping.ops_of(group).size() > 1) groups.push_back(group);
  }
  const Constraints& own = problem.constraints();
  const auto holds = [&own](const Problem& of) {
    return (own.separate.empty() && own.forbidden_transfers.empty()) || !Units(of).contradiction();
  };
  Problem all = Joined(problem, grouping, groups, dropped);
  if (holds(all)) return all;
  // Some contradict the constraints only together: of each half as many as do not, in turn.
  constexpr int kMostTrials = 60;
  int trials = holds(problem) ? 0 : kMostTrials;
  std::vector<GroupId> kept;
  const auto keep = [&](const auto& self, std::span<const GroupId> more) -> void {
    if (more.empty() || trials == kMostTrials) return;
    ++trials;
    std::vector<GroupId> tried = kept;
    tried.insert(tried.end(), more.begin(), more.end());
    if (holds(Joined(problem, grouping, tried, dropped))) {
      kept = std::move(tried);
    } else if (more.size() > 1) {
      self(self, more.first(more.size() / 2));
      self(self, more.subspan(more.size() / 2));
    }
  };
  const std::span<const GroupId> whole(groups);
  keep(keep, whole.first(groups.size() / 2));
  keep(keep, whole.subspan(groups.size() / 2));
  Problem grouped = Joined(problem, grouping, kept, dropped);
  dropped += groups.size() - kept.size();
  return grouped;
}

}  // namespace berth
