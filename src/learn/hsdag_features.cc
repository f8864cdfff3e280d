#include "learn/hsdag_features.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "learn/coarse_transfers.h"

namespace berth {
namespace {

void AddTypes(const Problem& problem, const CoarseGraph& graph, bool fixed, FeatureColumns& columns) {
  const Graph& ops = problem.graph();
  std::vector<size_t> column_of;
  std::vector<std::string> names;
  for (const std::string& type : ops.op_types()) {
    column_of.push_back(fixed ? Hasher().Add(type).value() % kTypeColumns : names.size());
    names.push_back(type);
  }
  if (fixed) {
    names.clear();
    for (size_t i = 0; i < kTypeColumns; ++i) names.push_back(fmt::format("#{}", i));
  }
  std::vector<std::vector<double>> share(names.size(), std::vector<double>(graph.size()));
  for (size_t node = 0; node < graph.size(); ++node) {
    const auto members = graph.grouping.ops_of(MakeId<GroupId>(node));
    for (const OpId op : members) {
      share[column_of[ops.op_type_index(op)]][node] += 1 / static_cast<double>(members.size());
    }
  }
  for (size_t i = 0; i < names.size(); ++i) columns.Add("type:" + names[i], share[i]);
}

// pos = 1, 2, ... in topological order; column 2i is sin(pos / 10000^(2i/d)), column 2i+1 its cosine.
void AddPosition(const CoarseGraph& graph, int64_t width, FeatureColumns& columns) {
  std::vector<double> position(graph.size());
  for (size_t i = 0; i < graph.size(); ++i) {
    position[static_cast<size_t>(graph.topological[i])] = static_cast<double>(i + 1);
  }
  if (width == 1) return columns.Add("position", position);
  for (int64_t k = 0; k < width; ++k) {
    std::vector<double> column(graph.size());
    const double rate = std::pow(10000.0, -static_cast<double>(k - k % 2) / static_cast<double>(width));
    for (size_t v = 0; v < graph.size(); ++v) {
      column[v] = k % 2 == 0 ? std::sin(position[v] * rate) : std::cos(position[v] * rate);
    }
    columns.Add(fmt::format("position:{}", k), column);
  }
}

void AddShape(const Problem& problem, const CoarseGraph& graph, FeatureColumns& columns) {
  constexpr size_t kShapeSizes = 4;
  const Graph& ops = problem.graph();
  for (size_t k = 0; k < kShapeSizes; ++k) {
    std::vector<double> column(graph.size());
    for (size_t node = 0; node < graph.size(); ++node) {
      const OpId last = graph.grouping.ops_of(MakeId<GroupId>(node)).back();
      if (ops.first_output(last) == ops.end_output(last)) continue;
      const auto shape = ops.tensor_shape(MakeId<TensorId>(ops.first_output(last)));
      if (k < shape.size()) column[node] = static_cast<double>(shape[k]);
    }
    columns.Add(fmt::format("shape:{}", k), column);
  }
}

// Logarithms of shares of the whole, so that problems of any size look alike.
void AddCosts(const Problem& problem, const CoarseGraph& graph, FeatureColumns& columns) {
  double whole = 0;
  for (const double time : graph.quotient.time) {
    if (time < kCannotRun) whole += time / static_cast<double>(problem.num_devices());
  }
  if (whole <= 0) whole = 1;
  const auto log_share = [&](double time) { return std::log(std::max(time / whole, 1e-9)); };
  for (const DeviceId device : problem.cluster().ids()) {
    std::vector<double> column(graph.size());
    for (size_t node = 0; node < graph.size(); ++node) {
      const double time = graph.quotient.time[node * graph.num_devices + static_cast<size_t>(Index(device))];
      column[node] = time < kCannotRun ? log_share(time) : 0;
    }
    columns.Add(fmt::format("time:{}", Index(device)), column);
  }
  const CoarseTransfers transfers(problem, graph);
  for (const DeviceId from : problem.cluster().ids()) {
    for (const DeviceId to : problem.cluster().ids()) {
      if (from == to) continue;
      std::vector<double> column(graph.size());
      for (size_t node = 0; node < graph.size(); ++node) column[node] = log_share(transfers.OfNode(node, from, to));
      columns.Add(fmt::format("transfer:{}>{}", Index(from), Index(to)), column);
    }
  }
}

}  // namespace

std::vector<double> FractalDimensions(const CoarseGraph& graph) {
  // Beyond so many visits, what is near decides: in a graph of 100,000 nodes the nearest 2,000 of each.
  constexpr size_t kMostVisits = 200'000'000;
  const size_t most = kMostVisits / std::max<size_t>(graph.size(), 1);
  std::vector<double> dimension(graph.size(), 0);
  std::vector<int32_t> distance(graph.size(), -1);
  std::vector<int32_t> queue;
  for (size_t from = 0; from < graph.size(); ++from) {
    for (const int32_t seen : queue) distance[static_cast<size_t>(seen)] = -1;
    queue = {static_cast<int32_t>(from)};
    distance[from] = 0;
    double within = 0, points = 0, sum_r = 0, sum_n = 0, sum_rr = 0, sum_rn = 0;
    const auto add_point = [&](int32_t radius) {
      const double r = std::log(radius), n = std::log(within);
      ++points, sum_r += r, sum_n += n, sum_rr += r * r, sum_rn += r * n;
    };
    for (size_t i = 0; i < queue.size(); ++i) {
      const auto v = static_cast<size_t>(queue[i]);
      // All nodes of one distance are counted before its point is made.
      if (i > 0) {
        ++within;
        if (i + 1 == queue.size() || distance[static_cast<size_t>(queue[i + 1])] > distance[v]) {
          // The queue may still grow by nodes of the next distance only.
          add_point(distance[v]);
          if (i >= most) break;
        }
      }
      for (const int32_t child : graph.children[v]) {
        if (distance[static_cast<size_t>(child)] >= 0) continue;
        distance[static_cast<size_t>(child)] = distance[v] + 1;
        queue.push_back(child);
      }
    }
    const double spread = points * sum_rr - sum_r * sum_r;
    if (points >= 2 && spread > 0) dimension[from] = (points * sum_rn - sum_r * sum_n) / spread;
  }
  return dimension;
}

FeatureTable MakeHsdagFeatures(const Problem& problem, const CoarseGraph& graph, const FeatureBlocks& blocks,
                               bool with_fractal) {
  FeatureColumns columns(graph.size());
  if (blocks.type) AddTypes(problem, graph, blocks.fixed, columns);
  std::vector<size_t> in, out;
  for (size_t v = 0; v < graph.size(); ++v) {
    in.push_back(graph.parents[v].size());
    out.push_back(graph.children[v].size());
  }
  const auto add_degrees = blocks.fixed ? &FeatureColumns::AddRanges : &FeatureColumns::AddOneHot;
  if (blocks.in_degree) (columns.*add_degrees)("in_degree", in);
  if (blocks.out_degree) (columns.*add_degrees)("out_degree", out);
  if (blocks.fractal) {
    columns.Add("fractal", with_fractal ? FractalDimensions(graph) : std::vector<double>(graph.size()));
  }
  if (blocks.position > 0) AddPosition(graph, blocks.position, columns);
  if (blocks.shape) AddShape(problem, graph, columns);
  if (blocks.costs) AddCosts(problem, graph, columns);
  if (blocks.normalised) columns.Normalise();
  return columns.Finish();
}

}  // namespace berth
