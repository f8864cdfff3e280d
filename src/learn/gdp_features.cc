#include "learn/gdp_features.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "moves/rank.h"

namespace berth {
namespace {

constexpr size_t kShapeColumns = 4, kNeighbourColumns = 8, kSizeColumns = 8;
// Two of levels, two of the layer, two of sides, one of the transfer; and two for each device.
constexpr size_t kTimeColumns = 7;

std::vector<double> MeanTimes(const CoarseGraph& graph) {
  std::vector<double> mean(graph.size(), 0);
  for (size_t node = 0; node < graph.size(); ++node) {
    double devices = 0;
    for (size_t d = 0; d < graph.num_devices; ++d) {
      const double time = graph.quotient.time[node * graph.num_devices + d];
      if (time < kCannotRun) mean[node] += time, ++devices;
    }
    if (devices > 0) mean[node] /= devices;
  }
  return mean;
}

// The shape of a node's last output, where the file says one.
std::span<const int64_t> ShapeOf(const Graph& ops, const CoarseGraph& graph, size_t node) {
  const OpId last = graph.grouping.ops_of(MakeId<GroupId>(node)).back();
  if (ops.first_output(last) == ops.end_output(last)) return {};
  return ops.tensor_shape(MakeId<TensorId>(ops.first_output(last)));
}

void AddShapes(const Problem& problem, const CoarseGraph& graph, FeatureColumns& columns) {
  for (size_t k = 0; k < kShapeColumns; ++k) {
    std::vector<double> column(graph.size(), 0);
    for (size_t node = 0; node < graph.size(); ++node) {
      const auto shape = ShapeOf(problem.graph(), graph, node);
      if (k < shape.size()) column[node] = std::log1p(static_cast<double>(shape[k]));
    }
    columns.Add(fmt::format("shape:{}", k), std::move(column));
  }
}

// As shares of the whole order; -1 where there are no more.
void AddNeighbours(const CoarseGraph& graph, std::span<const int32_t> order, FeatureColumns& columns) {
  std::vector<double> position(graph.size());
  for (size_t i = 0; i < order.size(); ++i) {
    position[static_cast<size_t>(order[i])] = static_cast<double>(i) / static_cast<double>(order.size());
  }
  std::vector<std::vector<double>> column(kNeighbourColumns, std::vector<double>(graph.size(), -1));
  for (size_t node = 0; node < graph.size(); ++node) {
    size_t k = 0;
    for (const auto* side : {&graph.parents[node], &graph.children[node]}) {
      for (const int32_t other : *side) {
        if (k < kNeighbourColumns) column[k++][node] = position[static_cast<size_t>(other)];
      }
    }
  }
  for (size_t k = 0; k < kNeighbourColumns; ++k) columns.Add(fmt::format("neighbour:{}", k), std::move(column[k]));
}

void AddSizes(const Problem& problem, const CoarseGraph& graph, FeatureColumns& columns) {
  const Graph& ops = problem.graph();
  const auto add = [&](const char* name, const auto& value) {
    std::vector<double> column;
    for (size_t node = 0; node < graph.size(); ++node) column.push_back(std::log1p(static_cast<double>(value(node))));
    columns.Add(name, std::move(column));
  };
  const auto sum = [&](size_t node, const auto& of_op) {
    double whole = 0;
    for (const OpId op : graph.grouping.ops_of(MakeId<GroupId>(node))) whole += of_op(op);
    return whole;
  };
  add("rank", [&](size_t node) { return ShapeOf(ops, graph, node).size(); });
  add("output_bytes", [&](size_t node) { return graph.quotient.output_bytes[node]; });
  add("flops", [&](size_t node) { return sum(node, [&](OpId op) { return ops.work(op).flops; }); });
  add("parameter_bytes", [&](size_t node) {
    return sum(node, [&](OpId op) {
      double bytes = 0;
      for (const ParameterId each : ops.parameters_of(op)) bytes += static_cast<double>(ops.parameter_bytes(each));
      return bytes;
    });
  });
  add("ops", [&](size_t node) { return graph.grouping.ops_of(MakeId<GroupId>(node)).size(); });
  add("in_degree", [&](size_t node) { return graph.parents[node].size(); });
  add("out_degree", [&](size_t node) { return graph.children[node].size(); });
  add("backward",
      [&](size_t node) { return ops.is_backward(graph.grouping.ops_of(MakeId<GroupId>(node)).front()) ? 1 : 0; });
}

// Ops of the forward pass so that each stands before what consumes it and a path stays together. Ids are such an order
// without the paths.
std::vector<OpId> DepthFirstOps(const Graph& graph) {
  std::vector<OpId> order;
  std::vector<uint8_t> seen(graph.num_ops(), 0);
  struct Step {
    OpId op;
    size_t tensor, consumer;  // which is next
  };
  std::vector<Step> path;
  const auto enter = [&](OpId op) {
    if (graph.is_backward(op) || seen[Index(op)] != 0) return;
    seen[Index(op)] = 1;
    path.push_back({op, graph.first_output(op), 0});
  };
  for (const OpId root : graph.ops()) {
    enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      if (step.tensor == graph.end_output(step.op)) {
        order.push_back(step.op);
        path.pop_back();
        continue;
      }
      const auto consumers = graph.consumers(MakeId<TensorId>(step.tensor));
      if (step.consumer == consumers.size()) {
        ++step.tensor;
        step.consumer = 0;
      } else {
        enter(consumers[step.consumer++]);
      }
    }
  }
  std::ranges::reverse(order);
  return order;
}

// Of the layer that a node is in: the mean of its nodes' top levels, its share of the work, and the mean of its nodes'
// sides.
void AddLayers(const CoarseGraph& graph, const Grouping& layers, std::span<const double> top,
               std::span<const double> side, std::span<const double> time, FeatureColumns& columns) {
  std::vector<double> level(layers.num_groups(), 0), sides = level, work = level, count = level;
  std::vector<double> of_level, of_work, of_side;
  const auto layer_of = [&](size_t node) {
    return Index(layers.group_of(graph.grouping.ops_of(MakeId<GroupId>(node)).front()));
  };
  double whole = 1e-30;
  for (size_t node = 0; node < graph.size(); ++node) {
    level[layer_of(node)] += top[node];
    sides[layer_of(node)] += side[node];
    work[layer_of(node)] += time[node];
    whole += time[node];
    ++count[layer_of(node)];
  }
  for (size_t node = 0; node < graph.size(); ++node) {
    of_level.push_back(level[layer_of(node)] / count[layer_of(node)]);
    of_side.push_back(sides[layer_of(node)] / count[layer_of(node)]);
    of_work.push_back(work[layer_of(node)] / whole);
  }
  columns.Add("layer_level", std::move(of_level));
  columns.Add("layer_side", std::move(of_side));
  columns.Add("layer_work", std::move(of_work));
}

// Levels as shares of the longest path, times as logarithms of shares of the mean, so that graphs of any size look
// alike.
void AddTimes(const Problem& problem, const CoarseGraph& graph, const Grouping& layers, FeatureColumns& columns) {
  const CoarseTransfers transfers(problem, graph);
  Levels levels = LevelsOf(graph, transfers);
  double longest = 1e-30;
  for (size_t node = 0; node < graph.size(); ++node)
    longest = std::max(longest, levels.top[node] + levels.bottom[node]);
  for (double& level : levels.top) level /= longest;
  for (double& level : levels.bottom) level /= longest;
  const std::vector<double> times = MeanTimes(graph);
  double mean = 0;
  for (const double time : times) mean += time / static_cast<double>(graph.size());
  if (mean <= 0) mean = 1;
  std::vector<double> sides = SidesOf(problem, graph);
  AddLayers(graph, layers, levels.top, sides, times, columns);
  columns.Add("side", std::move(sides));
  columns.Add("top_level", std::move(levels.top));
  columns.Add("bottom_level", std::move(levels.bottom));
  for (size_t d = 0; d < graph.num_devices; ++d) {
    std::vector<double> time(graph.size(), 0), cannot(graph.size(), 0);
    for (size_t node = 0; node < graph.size(); ++node) {
      const double own = graph.quotient.time[node * graph.num_devices + d];
      if (own < kCannotRun) {
        time[node] = std::log(std::max(own / mean, 1e-6));
      } else {
        cannot[node] = 1;
      }
    }
    columns.Add(fmt::format("time:{}", d), std::move(time));
    columns.Add(fmt::format("cannot_run:{}", d), std::move(cannot));
  }
  std::vector<double> transfer;
  for (size_t node = 0; node < graph.size(); ++node) {
    transfer.push_back(std::log(std::max(transfers.MeanOfNode(node) / mean, 1e-6)));
  }
  columns.Add("transfer", std::move(transfer));
}

void AddSchedule(const CoarseGraph& graph, const NodeSchedule& schedule, FeatureColumns& columns) {
  for (size_t d = 0; d < graph.num_devices; ++d) {
    std::vector<double> there;
    for (const int32_t device : schedule.device) there.push_back(static_cast<size_t>(device) == d ? 1 : 0);
    columns.Add(fmt::format("scheduled:{}", d), std::move(there));
  }
  columns.Add("scheduled_start", schedule.start);
}

}  // namespace

Levels LevelsOf(const CoarseGraph& graph, const CoarseTransfers& transfers) {
  Levels levels{.top = std::vector<double>(graph.size(), 0), .bottom = MeanTimes(graph)};
  const std::vector<double> time = levels.bottom;
  std::vector<size_t> position(graph.size());
  for (size_t i = 0; i < graph.topological.size(); ++i) position[static_cast<size_t>(graph.topological[i])] = i;
  std::vector<std::vector<std::pair<size_t, double>>> children(graph.size());
  for (size_t edge = 0; edge < graph.quotient.edges.size(); ++edge) {
    const size_t from = Index(graph.quotient.edges[edge].from), to = Index(graph.quotient.edges[edge].to);
    if (position[from] < position[to]) children[from].emplace_back(to, transfers.MeanOfEdge(edge));
  }
  for (const int32_t each : graph.topological) {
    const auto node = static_cast<size_t>(each);
    for (const auto& [child, transfer] : children[node]) {
      levels.top[child] = std::max(levels.top[child], levels.top[node] + time[node] + transfer);
    }
  }
  for (size_t i = graph.topological.size(); i-- > 0;) {
    const auto node = static_cast<size_t>(graph.topological[i]);
    for (const auto& [child, transfer] : children[node]) {
      levels.bottom[node] = std::max(levels.bottom[node], time[node] + transfer + levels.bottom[child]);
    }
  }
  return levels;
}

std::vector<double> SidesOf(const Problem& problem, const CoarseGraph& graph) {
  const Graph& ops = problem.graph();
  std::vector<double> work;
  double least = 0;
  for (const OpId op : ops.ops()) {
    work.push_back(MeanTime(problem.op_times(op)));
    least += 1e-3 * work.back() / static_cast<double>(ops.num_ops());
  }
  // Ops that take no time count a little, so that they have a side, too.
  for (double& each : work) each += least > 0 ? least : 1;
  std::vector<size_t> depth(ops.num_ops(), 0);
  std::vector<double> at_depth(ops.num_ops(), 0);
  for (const OpId op : ops.ops()) {
    if (ops.is_backward(op)) continue;
    for (const TensorId tensor : ops.inputs_of(op)) {
      depth[Index(op)] = std::max(depth[Index(op)], depth[Index(ops.producer(tensor))] + 1);
    }
    at_depth[depth[Index(op)]] += work[Index(op)];
  }
  std::vector<double> before(ops.num_ops(), 0), sum(graph.size(), 0), weight(graph.size(), 0);
  for (const OpId op : DepthFirstOps(ops)) {
    const double own = work[Index(op)];
    double& first = before[depth[Index(op)]];
    const auto node = Index(graph.grouping.group_of(op));
    sum[node] += own * (first + own / 2) / at_depth[depth[Index(op)]];
    weight[node] += own;
    first += own;
  }
  for (size_t node = 0; node < graph.size(); ++node) sum[node] = weight[node] > 0 ? sum[node] / weight[node] : 0.5;
  return sum;
}

FeatureTable MakeGdpFeatures(const Problem& problem, const CoarseGraph& graph, GdpFeatures which,
                             std::span<const int32_t> order, const Grouping& layers, const NodeSchedule& schedule) {
  FeatureColumns columns(graph.size());
  AddShapes(problem, graph, columns);
  if (which == GdpFeatures::kRecalled) {
    AddNeighbours(graph, order, columns);
  } else {
    AddSizes(problem, graph, columns);
    AddTimes(problem, graph, layers, columns);
    if (which == GdpFeatures::kScheduled) AddSchedule(graph, schedule, columns);
  }
  columns.Normalise();
  FeatureTable table = columns.Finish();
  BERTH_CHECK(table.columns == NumGdpFeatures(which, graph.num_devices));
  return table;
}

size_t NumGdpFeatures(GdpFeatures which, size_t devices) {
  if (which == GdpFeatures::kRecalled) return kShapeColumns + kNeighbourColumns;
  const size_t extended = kShapeColumns + kSizeColumns + kTimeColumns + 2 * devices;
  return which == GdpFeatures::kScheduled ? extended + devices + 1 : extended;
}

}  // namespace berth
