#include "learn/coarse_graph.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace berth {

CoarseGraph MakeCoarseGraph(const Problem& problem, std::string_view rule) {
  std::vector<int32_t> label(problem.num_ops());
  std::iota(label.begin(), label.end(), 0);
  if (rule != "none") {
    GroupingCatalog groupings("grouping");
    RegisterGroupings(groupings);
    const std::string name = rule == "layers" ? "layers" : "colocation(rule=" + std::string(rule) + ")";
    const Grouping grouping = groupings.Make(name, problem, {});
    for (const OpId op : problem.graph().ops()) label[Index(op)] = static_cast<int32_t>(grouping.group_of(op));
  }
  Grouping grouping = JoinColocated(problem, std::move(label));
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
  for (const GroupId group : TopologicalOrder(graph.quotient)) {
    graph.topological.push_back(static_cast<int32_t>(group));
  }
  return graph;
}

void CoarseGraph::ReadBack(std::span<const DeviceId> placement, std::span<int32_t> device_of_node) const {
  for (const GroupId node : grouping.groups()) {
    device_of_node[Index(node)] = static_cast<int32_t>(placement[Index(grouping.ops_of(node).front())]);
  }
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
  const Grouping units = ColocatedOps(problem);
  const Quotient together = MakeQuotient(problem, units);
  for (const OpId op : problem.graph().ops()) {
    const size_t unit = Index(units.group_of(op));
    const auto times = std::span(together.time).subspan(unit * graph.num_devices, graph.num_devices);
    const DeviceId best = least(times);
    fastest_.push_back(times[Index(best)] < kCannotRun ? best : least(problem.op_times(op)));
  }
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
