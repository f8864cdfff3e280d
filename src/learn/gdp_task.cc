#include "learn/gdp_task.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "learn/device_mask.h"
#include "placement/grouping.h"

namespace berth {
namespace {

// Children after their parents, the last branch first: a path stays together.
std::vector<int32_t> DepthFirst(const CoarseGraph& graph) {
  std::vector<int32_t> order;
  std::vector<uint8_t> seen(graph.size(), 0);
  std::vector<std::pair<int32_t, size_t>> path;  // a node, and its next child
  for (const int32_t root : graph.topological) {
    if (seen[static_cast<size_t>(root)] != 0) continue;
    seen[static_cast<size_t>(root)] = 1;
    path.emplace_back(root, 0);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      const auto& children = graph.children[static_cast<size_t>(node)];
      if (next == children.size()) {
        order.push_back(node);
        path.pop_back();
        continue;
      }
      const int32_t child = children[next++];
      if (seen[static_cast<size_t>(child)] != 0) continue;
      seen[static_cast<size_t>(child)] = 1;
      path.emplace_back(child, 0);
    }
  }
  std::ranges::reverse(order);
  return order;
}

std::vector<int32_t> OrderOf(const CoarseGraph& graph, const std::string& name) {
  if (name == "depth_first") return DepthFirst(graph);
  std::vector<int32_t> order = graph.topological;
  if (name == "shuffled") {
    Random random(graph.size());
    random.Shuffle(std::span(order));
  }
  return order;
}

GdpInput MakeInput(const Problem& problem, const CoarseGraph& graph, std::span<const int32_t> order,
                   const Grouping& layers, GdpFeatures which, const NodeSchedule& schedule) {
  const Graph& ops = problem.graph();
  const auto nodes = static_cast<int64_t>(graph.size());
  std::vector<int64_t> type;
  std::vector<int32_t> position(graph.size());
  for (size_t i = 0; i < order.size(); ++i) {
    position[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
    // The longest of its ops.
    const auto members = graph.grouping.ops_of(MakeId<GroupId>(static_cast<size_t>(order[i])));
    const OpId longest = *std::ranges::max_element(members, {}, [&](OpId op) {
      double time = 0;
      for (const double each : problem.op_times(op)) time += each < kCannotRun ? each : 0;
      return time;
    });
    type.push_back(static_cast<int64_t>(Hasher().Add(ops.op_type(longest)).value() % kGdpTypes));
  }
  std::vector<std::pair<int32_t, int32_t>> entries;
  for (const auto& [a, b] : graph.neighbours) {
    const int32_t from = position[static_cast<size_t>(a)], to = position[static_cast<size_t>(b)];
    entries.emplace_back(from, to);
    entries.emplace_back(to, from);
  }
  const FeatureTable table = MakeGdpFeatures(problem, graph, which, order, layers, schedule);
  const std::vector<int64_t> rows(order.begin(), order.end());
  return {.type = torch::tensor(type, torch::kInt64),
          .features = torch::tensor(table.value)
                          .reshape({nodes, static_cast<int64_t>(table.columns)})
                          .index_select(0, torch::tensor(rows, torch::kInt64)),
          .neighbours = SparseRows(nodes, entries)};
}

Coupling CouplingOf(const Grouping& grouping, const CoarseGraph& graph, std::span<const int32_t> order) {
  Coupling coupling;
  for (const int32_t node : order) {
    const OpId first = graph.grouping.ops_of(MakeId<GroupId>(static_cast<size_t>(node))).front();
    coupling.push_back(Index(grouping.group_of(first)));
  }
  return coupling;
}

// Of what leaves a node, and its ops' shares of their parameters: one that many ops read lies once on a device.
double BytesOf(const Graph& graph, const CoarseGraph& coarse, size_t node) {
  double bytes = static_cast<double>(coarse.quotient.output_bytes[node]);
  for (const OpId op : coarse.grouping.ops_of(MakeId<GroupId>(node))) {
    for (const ParameterId each : graph.parameters_of(op)) {
      bytes += static_cast<double>(graph.parameter_bytes(each)) /
               static_cast<double>(graph.parameter_consumers(each).size());
    }
  }
  return bytes;
}

}  // namespace

GdpTask::GdpTask(const Problem& of, const GdpTaskOptions& options)
    : NodeTask(of, options.colocation),
      order(OrderOf(coarse, options.order)),
      mask(DeviceMask(coarse, order)),
      moves_wanted_(options.moves) {
  GroupingCatalog groupings("grouping");
  RegisterGroupings(groupings);
  const Grouping grouping = groupings.Make("layers", of, {});
  NodeSchedule schedule;
  if (options.features == GdpFeatures::kScheduled) {
    schedule = ScheduleNodes(of, coarse);
    for (const int32_t node : order) scheduled.push_back(schedule.device[static_cast<size_t>(node)]);
  }
  for (const int32_t node : order) bytes.push_back(BytesOf(of.graph(), coarse, static_cast<size_t>(node)));
  input = MakeInput(of, coarse, order, grouping, options.features, schedule);
  if (!options.coupled) return;
  layers = CouplingOf(grouping, coarse, order);
  colocated = CouplingOf(groupings.Make("colocation", of, {}), coarse, order);
}

const MoveSpace& GdpTask::move_space() const {
  std::call_once(once_, [&] { move_space_ = std::make_unique<const MoveSpace>(problem, coarse.grouping); });
  return *move_space_;
}

}  // namespace berth
