#include "learn/coarse_graph.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <string>

#include "base/error.h"

namespace berth {
namespace {

// Joins the groups that the problem's colocate constraints tie together.
Grouping Joined(const Problem& problem, std::vector<int32_t> label) {
  std::vector<int32_t> root(label.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int32_t x) {
    while (root[static_cast<size_t>(x)] != x) {
      root[static_cast<size_t>(x)] = root[static_cast<size_t>(root[static_cast<size_t>(x)])];
      x = root[static_cast<size_t>(x)];
    }
    return x;
  };
  for (const auto& together : problem.constraints().colocate) {
    for (const OpId op : together) {
      const int32_t a = find(label[Index(op)]), b = find(label[Index(together[0])]);
      root[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  for (int32_t& each : label) each = find(each);
  return Grouping(problem.graph(), label);
}

std::vector<int32_t> TopologicalOrder(const CoarseGraph& graph) {
  std::vector<int32_t> order(graph.size());
  std::iota(order.begin(), order.end(), 0);
  if (!graph.quotient.acyclic) return order;
  order.clear();
  std::vector<size_t> waiting(graph.size());
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t v = 0; v < graph.size(); ++v) {
    waiting[v] = graph.parents[v].size();
    if (waiting[v] == 0) ready.push(static_cast<int32_t>(v));
  }
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const int32_t child : graph.children[static_cast<size_t>(order.back())]) {
      if (--waiting[static_cast<size_t>(child)] == 0) ready.push(child);
    }
  }
  return order;
}

}  // namespace

CoarseGraph MakeCoarseGraph(const Problem& problem, std::string_view rule) {
  std::vector<int32_t> label(problem.num_ops());
  std::iota(label.begin(), label.end(), 0);
  if (rule != "none") {
    GroupingCatalog groupings("grouping");
    RegisterGroupings(groupings);
    const Grouping grouping = groupings.Make("colocation(rule=" + std::string(rule) + ")", problem);
    for (const OpId op : problem.graph().ops()) label[Index(op)] = static_cast<int32_t>(grouping.group_of(op));
  }
  Grouping grouping = Joined(problem, std::move(label));
  Quotient quotient = MakeQuotient(problem, grouping);
  CoarseGraph graph{.grouping = std::move(grouping),
                    .quotient = std::move(quotient),
                    .neighbours = {},
                    .parents = {},
                    .children = {},
                    .topological = {},
                    .num_devices = problem.num_devices()};
  graph.parents.resize(graph.size());
  graph.children.resize(graph.size());
  for (const Quotient::Edge& edge : graph.quotient.edges) {
    const auto from = static_cast<int32_t>(edge.from), to = static_cast<int32_t>(edge.to);
    graph.neighbours.emplace_back(std::min(from, to), std::max(from, to));
    graph.children[static_cast<size_t>(from)].push_back(to);
    graph.parents[static_cast<size_t>(to)].push_back(from);
  }
  std::ranges::sort(graph.neighbours);
  const auto repeated = std::ranges::unique(graph.neighbours);
  graph.neighbours.erase(repeated.begin(), repeated.end());
  for (auto& list : graph.parents) std::ranges::sort(list);
  graph.topological = TopologicalOrder(graph);
  return graph;
}

NodePlacer::NodePlacer(const Problem& problem, const CoarseGraph& graph) : graph_(graph) {
  const auto least = [](std::span<const double> times) {
    return DeviceId{static_cast<int32_t>(std::ranges::min_element(times) - times.begin())};
  };
  for (size_t node = 0; node < graph.size(); ++node) {
    const std::span<const double> times(graph.quotient.time.data() + node * graph.num_devices, graph.num_devices);
    const DeviceId best = least(times);
    otherwise_.push_back(times[static_cast<size_t>(Index(best))] < kCannotRun ? best : DeviceId{-1});
  }
  for (const OpId op : problem.graph().ops()) fastest_.push_back(least(problem.op_times(op)));
}

void NodePlacer::Place(std::span<const int32_t> device_of_node, std::span<DeviceId> placement) const {
  for (size_t node = 0; node < graph_.size(); ++node) {
    DeviceId device{device_of_node[node]};
    if (!graph_.can_run(node, device)) device = otherwise_[node];
    for (const OpId op : graph_.grouping.ops_of(MakeId<GroupId>(node))) {
      placement[Index(op)] = device == DeviceId{-1} ? fastest_[Index(op)] : device;
    }
  }
}

}  // namespace berth
