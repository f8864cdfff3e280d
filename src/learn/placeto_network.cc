#include "learn/placeto_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "learn/message_passing.h"

namespace berth {
namespace {

using Edges = std::span<const std::pair<int32_t, int32_t>>;

SparseRows Rows(int64_t nodes, Edges edges, bool parents) {
  std::vector<std::pair<int32_t, int32_t>> entries;
  for (const auto& [from, to] : edges) entries.push_back(parents ? std::pair(to, from) : std::pair(from, to));
  std::ranges::sort(entries);
  return SparseRows(nodes, entries);
}

// Bit u of row v: u is reached from v. Edges that follow the order of nodes are done with in one pass.
std::vector<std::vector<uint64_t>> Reached(int64_t nodes, const SparseRows::Half& children) {
  const auto n = static_cast<size_t>(nodes);
  std::vector<std::vector<uint64_t>> reached(n, std::vector<uint64_t>((n + 63) / 64));
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t v = n; v-- > 0;) {
      for (auto p = static_cast<size_t>(children.start[v]); p < static_cast<size_t>(children.start[v + 1]); ++p) {
        const auto child = static_cast<size_t>(children.column[p]);
        for (size_t w = 0; w < reached[v].size(); ++w) {
          const uint64_t more = reached[child][w] | (w == child / 64 ? uint64_t{1} << child % 64 : 0);
          changed |= (more & ~reached[v][w]) != 0 && child < v;
          reached[v][w] |= more;
        }
      }
    }
  }
  return reached;
}

}  // namespace

std::string PlacetoShape::ToString() const {
  return fmt::format("placeto with {} columns, {} devices, {}, {} of {}", columns,
                     outputs == 1 ? "any number of" : std::to_string(outputs),
                     rounds == 0 ? "a full sweep" : fmt::format("{} rounds", rounds), mean ? "means" : "sums",
                     three_sets ? "three sets" : "all nodes");
}

PlacetoGraph::PlacetoGraph(int64_t nodes, Edges edges)
    : parents(Rows(nodes, edges, true)), children(Rows(nodes, edges, false)) {
  const auto reached = Reached(nodes, children.forward());
  relation = torch::zeros({nodes, nodes}, torch::kUInt8);
  uint8_t* to = relation.data_ptr<uint8_t>();
  const auto reaches = [&](size_t v, size_t u) { return (reached[v][u / 64] >> (u % 64) & 1) != 0; };
  std::vector<int64_t> level(static_cast<size_t>(nodes));
  for (size_t v = 0; v < level.size(); ++v) {
    for (size_t u = 0; u < level.size(); ++u, ++to) {
      if (u == v) continue;
      *to = static_cast<uint8_t>((reaches(u, v) ? kAncestor : 0) | (reaches(v, u) ? kDescendant : 0));
      if (*to == 0) *to = kParallel;
    }
    const auto& half = parents.forward();
    for (auto p = static_cast<size_t>(half.start[v]); p < static_cast<size_t>(half.start[v + 1]); ++p) {
      const auto parent = static_cast<size_t>(half.column[p]);
      if (parent < v) level[v] = std::max(level[v], level[parent] + 1);
    }
    depth = std::max(depth, level[v]);
  }
}

PlacetoNetwork::Aggregator PlacetoNetwork::MakeAggregator(const std::string& name, int64_t width,
                                                          const at::Generator& generator) {
  const int64_t sizes[] = {width, width, width};
  Aggregator made{.f = std::make_shared<Mlp>(sizes, generator, shape_.type),
                  .g = std::make_shared<Mlp>(sizes, generator, shape_.type)};
  register_module(name + "_f", made.f);
  register_module(name + "_g", made.g);
  return made;
}

PlacetoNetwork::PlacetoNetwork(const PlacetoShape& shape, Random random) : shape_(shape) {
  const at::Generator generator = MakeGenerator(random);
  const int64_t d = shape.columns;
  down_ = MakeAggregator("down", d, generator);
  up_ = MakeAggregator("up", d, generator);
  node_ = register_module("node", std::make_shared<Mlp>(std::vector<int64_t>{d, d, d, d}, generator, shape.type));
  if (shape.three_sets) {
    ancestors_ = MakeAggregator("ancestors", 2 * d, generator);
    descendants_ = MakeAggregator("descendants", 2 * d, generator);
    parallel_ = MakeAggregator("parallel", 2 * d, generator);
  } else {
    all_ = MakeAggregator("all", 2 * d, generator);
  }
  const int64_t z = shape.three_sets ? 8 * d : 2 * d;
  classifier_ = register_module(
      "classifier", std::make_shared<Mlp>(std::vector<int64_t>{z, 2 * z, z, shape.outputs}, generator, shape.type));
}

at::Tensor PlacetoNetwork::Pool(const at::Tensor& x, const Aggregator& by, const at::Tensor& members) const {
  at::Tensor sum = torch::bmm(members.unsqueeze(1), torch::relu(by.f->forward(x))).squeeze(1);
  if (shape_.mean) sum = sum / members.sum(1, true).clamp_min(1);
  return torch::relu(by.g->forward(sum));
}

at::Tensor PlacetoNetwork::forward(const at::Tensor& features, const at::Tensor& current,
                                   const PlacetoGraph& graph) const {
  const int64_t batch = features.size(0), nodes = features.size(1);
  const int64_t rounds = shape_.rounds > 0 ? shape_.rounds : graph.depth;
  const at::Tensor x = node_->forward(features);
  const auto pass = [&](const Aggregator& by, const SparseRows& rows) {
    std::vector<at::Tensor> layers = by.f->parameters();
    for (const at::Tensor& parameter : by.g->parameters()) layers.push_back(parameter);
    return PassMessages(x, layers, rows, rounds);
  };
  const at::Tensor embedding = torch::cat({pass(down_, graph.parents), pass(up_, graph.children)}, 2);
  if (!shape_.three_sets) {
    return classifier_->forward(Pool(embedding, all_, torch::ones({batch, nodes}, shape_.type)));
  }
  const at::Tensor relation = graph.relation.index_select(0, current);
  const auto members = [&](PlacetoGraph::Relation kind) { return relation.bitwise_and(kind).ne(0).to(shape_.type); };
  const at::Tensor own = embedding.index({torch::arange(batch), current});
  return classifier_->forward(torch::cat({Pool(embedding, ancestors_, members(PlacetoGraph::kAncestor)),
                                          Pool(embedding, descendants_, members(PlacetoGraph::kDescendant)),
                                          Pool(embedding, parallel_, members(PlacetoGraph::kParallel)), own},
                                         1));
}

}  // namespace berth
