#include "learn/hdp_features.h"

#include <algorithm>
#include <string>

#include "learn/gdp_features.h"
#include "learn/hsdag_features.h"

namespace berth {
namespace {

// Of the released code: so many outputs, each of so many dimensions, and so many neighbours, two columns each.
constexpr size_t kOutputs = 5, kDimensions = 5, kNeighbours = 10;

// Of a node's last op, dimension by dimension; `pad` where there are fewer.
std::vector<double> Shapes(const Graph& ops, OpId op, double pad) {
  std::vector<double> shapes(kOutputs * kDimensions, pad);
  const auto first = static_cast<size_t>(ops.first_output(op)), end = static_cast<size_t>(ops.end_output(op));
  for (size_t output = 0; output < std::min(end - first, kOutputs); ++output) {
    const auto shape = ops.tensor_shape(MakeId<TensorId>(first + output));
    for (size_t k = 0; k < std::min(shape.size(), kDimensions); ++k) {
      shapes[output * kDimensions + k] = static_cast<double>(shape[k]);
    }
  }
  return shapes;
}

OpId LastOp(const CoarseGraph& graph, int32_t node) {
  return graph.grouping.ops_of(MakeId<GroupId>(static_cast<size_t>(node))).back();
}

// As the code numbers them: types in the order in which they occur.
std::vector<size_t> TypesOf(const Problem& problem, const CoarseGraph& graph, std::span<const int32_t> order,
                            std::vector<std::string>& names) {
  const Graph& ops = problem.graph();
  std::vector<int64_t> number(ops.op_types().size(), -1);
  std::vector<size_t> types;
  for (const int32_t node : order) {
    const OpId op = LastOp(graph, node);
    int64_t& own = number[ops.op_type_index(op)];
    if (own < 0) {
      own = std::ssize(names);
      names.emplace_back(ops.op_type(op));
    }
    types.push_back(static_cast<size_t>(own));
  }
  return types;
}

void ReadAsTheCode(const Problem& problem, const CoarseGraph& graph, bool slip, HdpInput& input) {
  const size_t nodes = input.order.size();
  const std::vector<size_t> types = TypesOf(problem, graph, input.order, input.types);
  const size_t num_types = input.types.size();
  std::vector<std::vector<std::pair<int32_t, int32_t>>> neighbours(nodes);  // position, 1 for a child, -1 for a parent
  for (const auto& [from, to] : input.edges) {
    neighbours[static_cast<size_t>(from)].emplace_back(to, 1);
    neighbours[static_cast<size_t>(to)].emplace_back(from, -1);
  }
  input.ops.columns = 1 + kOutputs * kDimensions + 2 * kNeighbours;
  input.group_columns = num_types + kOutputs * kDimensions;
  input.scaled = true;
  for (size_t i = 0; i < nodes; ++i) {
    const OpId op = LastOp(graph, input.order[i]);
    input.ops.value.push_back(static_cast<float>(types[i]));
    for (const double each : Shapes(problem.graph(), op, -1)) input.ops.value.push_back(static_cast<float>(each));
    for (size_t k = 0; k < kNeighbours; ++k) {
      const auto [other, way] = k < neighbours[i].size() ? neighbours[i][k] : std::pair<int32_t, int32_t>();
      input.ops.value.push_back(static_cast<float>(other));
      input.ops.value.push_back(static_cast<float>(way));
    }
    std::vector<float> together(input.group_columns, 0);
    together[types[i]] = 1;
    const std::vector<double> shapes = Shapes(problem.graph(), op, 0);
    for (size_t k = 0; k < shapes.size(); ++k) together[(slip ? 0 : num_types) + k] += static_cast<float>(shapes[k]);
    input.of_group.insert(input.of_group.end(), together.begin(), together.end());
  }
}

void ReadExtended(const Problem& problem, const CoarseGraph& graph, HdpInput& input) {
  GroupingCatalog groupings("grouping");
  RegisterGroupings(groupings);
  const FeatureTable types = MakeHsdagFeatures(problem, graph,
                                               {.in_degree = false,
                                                .out_degree = false,
                                                .fractal = false,
                                                .position = 0,
                                                .shape = false,
                                                .fixed = true,
                                                .normalised = true});
  const FeatureTable others =
      MakeGdpFeatures(problem, graph, GdpFeatures::kExtended, input.order, groupings.Make("layers", problem, {}));
  const size_t devices = graph.num_devices;
  std::vector<double> whole(devices, 1e-30);
  for (const int32_t node : input.order) {
    for (size_t d = 0; d < devices; ++d) {
      const double time = graph.quotient.time[static_cast<size_t>(node) * devices + d];
      if (time < kCannotRun) whole[d] += time;
    }
  }
  input.ops.columns = types.columns + others.columns;
  input.averaged = input.ops.columns;
  input.group_columns = input.averaged + 1 + devices;
  for (const int32_t node : input.order) {
    const auto row = static_cast<size_t>(node);
    const auto take = [&](const FeatureTable& table, std::vector<float>& to) {
      const auto from = table.value.begin() + static_cast<std::ptrdiff_t>(row * table.columns);
      to.insert(to.end(), from, from + static_cast<std::ptrdiff_t>(table.columns));
    };
    for (std::vector<float>* to : {&input.ops.value, &input.of_group}) {
      take(types, *to);
      take(others, *to);
    }
    input.of_group.push_back(1 / static_cast<float>(input.order.size()));
    for (size_t d = 0; d < devices; ++d) {
      const double time = graph.quotient.time[row * devices + d];
      input.of_group.push_back(time < kCannotRun ? static_cast<float>(time / whole[d]) : 0);
    }
  }
}

}  // namespace

HdpInput MakeHdpInput(const Problem& problem, const CoarseGraph& graph, HdpFeatures which) {
  HdpInput input;
  for (const int32_t node : graph.topological) {
    int64_t can = 0;
    for (const DeviceId device : problem.cluster().ids()) can += graph.can_run(static_cast<size_t>(node), device);
    if (can > 1) input.order.push_back(node);
  }
  if (input.order.empty()) input.order = graph.topological;
  std::vector<int32_t> position(graph.size(), -1);
  for (size_t i = 0; i < input.order.size(); ++i) {
    position[static_cast<size_t>(input.order[i])] = static_cast<int32_t>(i);
  }
  for (const Quotient::Edge& edge : graph.quotient.edges) {
    const int32_t from = position[Index(edge.from)], to = position[Index(edge.to)];
    if (from >= 0 && to >= 0) input.edges.emplace_back(from, to);
  }
  if (which == HdpFeatures::kExtended) {
    ReadExtended(problem, graph, input);
  } else {
    ReadAsTheCode(problem, graph, which == HdpFeatures::kSlip, input);
  }
  return input;
}

size_t NumGroupColumns(const HdpInput& input, size_t groups) { return 2 * groups + input.group_columns; }

std::vector<float> GroupFeatures(const HdpInput& input, std::span<const int64_t> group, size_t groups) {
  const size_t columns = NumGroupColumns(input, groups);
  std::vector<float> rows(groups * columns, 0), size(groups, 0);
  for (const auto& [from, to] : input.edges) {
    const auto a = static_cast<size_t>(group[static_cast<size_t>(from)]),
               b = static_cast<size_t>(group[static_cast<size_t>(to)]);
    if (a == b) continue;
    ++rows[a * columns + b];
    ++rows[b * columns + groups + a];
  }
  for (size_t i = 0; i < group.size(); ++i) {
    const auto g = static_cast<size_t>(group[i]);
    ++size[g];
    for (size_t k = 0; k < input.group_columns; ++k) {
      rows[g * columns + 2 * groups + k] += input.of_group[i * input.group_columns + k];
    }
  }
  for (size_t g = 0; g < groups; ++g) {
    const std::span row = std::span(rows).subspan(g * columns, columns);
    const std::span divided = input.scaled ? row : row.first(2 * groups);
    const float most = *std::ranges::max_element(divided);
    for (float& each : divided) each /= most + 1;
    for (float& each : row.subspan(2 * groups, input.averaged)) each /= std::max(size[g], 1.0F);
  }
  return rows;
}

}  // namespace berth
