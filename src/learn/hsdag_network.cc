#include "learn/hsdag_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace berth {
namespace {

at::Tensor Indices(const std::vector<int64_t>& values) { return torch::tensor(values, torch::kInt64); }

// The edges between clusters, without loops.
std::vector<std::pair<int32_t, int32_t>> Between(const LevelGraph& graph, const ParsedClusters& clusters,
                                                 bool directed) {
  std::set<std::pair<int32_t, int32_t>> edges;
  for (const auto& [u, v] : graph.edges) {
    const int32_t a = clusters.of[static_cast<size_t>(u)], b = clusters.of[static_cast<size_t>(v)];
    if (a != b) edges.insert(directed ? std::pair(a, b) : std::pair(std::min(a, b), std::max(a, b)));
  }
  return {edges.begin(), edges.end()};
}

}  // namespace

LevelGraph::LevelGraph(int64_t count, std::vector<std::pair<int32_t, int32_t>> pairs, const HsdagShape& shape)
    : nodes(count), edges(std::move(pairs)) {
  const auto scored = static_cast<int64_t>(edges.size());
  std::vector<int64_t> firsts, seconds;
  for (int64_t e = 0; e < scored; ++e) {
    const auto [u, v] = edges[static_cast<size_t>(e)];
    directions.push_back({u, v, e});
    directions.push_back({v, u, shape.symmetric ? e : e + scored});
    firsts.push_back(u);
    seconds.push_back(v);
  }
  if (!shape.symmetric) {
    for (const auto& [u, v] : edges) firsts.push_back(v), seconds.push_back(u);
  }
  std::ranges::sort(directions);
  scored_from = Indices(firsts);
  scored_to = Indices(seconds);
  // Entries (to, from): a row sums what reaches its node.
  std::vector<std::pair<int32_t, int32_t>> entries;
  for (const auto& [u, v] : edges) {
    entries.emplace_back(v, u);
    if (!shape.directed) entries.emplace_back(u, v);
  }
  plain = std::make_shared<SparseRows>(nodes, entries);
  for (int32_t v = 0; v < nodes; ++v) entries.emplace_back(v, v);
  std::vector<double> degree(static_cast<size_t>(nodes), 0), weight;
  for (const auto& entry : entries) ++degree[static_cast<size_t>(entry.first)];
  std::vector<int64_t> sources, targets;
  for (const auto& [target, source] : entries) {
    weight.push_back(1 / std::sqrt(degree[static_cast<size_t>(target)] * degree[static_cast<size_t>(source)]));
    sources.push_back(source);
    targets.push_back(target);
  }
  normalised = std::make_shared<SparseRows>(nodes, entries, weight);
  from = Indices(sources);
  to = Indices(targets);
}

HsdagNetwork::HsdagNetwork(const HsdagShape& shape, Random random) : shape_(shape) {
  at::Generator generator = MakeGenerator(random);
  const int64_t h = shape.hidden, d = shape.features;
  input1_ = MakeAffine("input1", d, h, generator);
  input_norm1_ = MakeNorm("input_norm1");
  input2_ = MakeAffine("input2", h, h, generator);
  input_norm2_ = MakeNorm("input_norm2");
  for (int64_t i = 0; i < shape.gnn_layers; ++i) gnn1_.push_back(MakeConvolution(fmt::format("gnn1_{}", i), generator));
  gnn1_norm_ = MakeNorm("gnn1_norm");
  gnn2_.push_back(MakeConvolution("gnn2_0", generator));
  gnn2_norm_ = MakeNorm("gnn2_norm");
  edge1_ = MakeAffine("edge1", h, h, generator);
  edge_norm_ = MakeNorm("edge_norm");
  edge2_ = MakeAffine("edge2", h, 1, generator);
  pre_ = MakeAffine("pre", h, h, generator);
  pre_norm_ = MakeNorm("pre_norm");
  post_ = MakeAffine("post", h, h, generator);
  post_norm_ = MakeNorm("post_norm");
  output1_ = MakeAffine("output1", h, h, generator);
  output2_ = MakeAffine("output2", h, d, generator);
  classify1_ = MakeAffine("classify1", d, h, generator);
  classify2_ = MakeAffine("classify2", h, shape.devices, generator);
}

// As torch initialises its own: uniform in +-1 / sqrt(in).
HsdagNetwork::Affine HsdagNetwork::MakeAffine(const std::string& name, int64_t in, int64_t out,
                                              at::Generator& generator) {
  const double range = 1 / std::sqrt(static_cast<double>(in));
  Affine affine;
  affine.weight = register_parameter(name + "_weight", torch::empty({out, in}).uniform_(-range, range, generator));
  affine.bias = register_parameter(name + "_bias", torch::empty({out}).uniform_(-range, range, generator));
  return affine;
}

HsdagNetwork::Affine HsdagNetwork::MakeNorm(const std::string& name) {
  Affine norm;
  norm.weight = register_parameter(name + "_weight", torch::ones({shape_.hidden}));
  norm.bias = register_parameter(name + "_bias", torch::zeros({shape_.hidden}));
  return norm;
}

HsdagNetwork::Convolution HsdagNetwork::MakeConvolution(const std::string& name, at::Generator& generator) {
  const int64_t h = shape_.hidden;
  const auto glorot = [&](const std::string& part, int64_t rows) {
    return NewWeight(*this, name + part, rows, h, generator);
  };
  Convolution layer;
  layer.weight = glorot("_weight", h);
  layer.bias = register_parameter(name + "_bias", torch::zeros({h}));
  if (shape_.encoder == Encoder::kGat) {
    layer.attend_from = glorot("_attend_from", 1);
    layer.attend_to = glorot("_attend_to", 1);
  }
  if (shape_.encoder == Encoder::kGin) {
    layer.weight2 = glorot("_weight2", h);
    layer.bias2 = register_parameter(name + "_bias2", torch::zeros({h}));
  }
  return layer;
}

at::Tensor HsdagNetwork::Normalise(const Affine& norm, const at::Tensor& x) const {
  return torch::layer_norm(x, {shape_.hidden}, norm.weight, norm.bias);
}

at::Tensor HsdagNetwork::Convolve(const Convolution& layer, const LevelGraph& graph, const at::Tensor& x) const {
  switch (shape_.encoder) {
    case Encoder::kGcn:  // Kipf and Welling 2017
      return GatherSum(torch::matmul(x, layer.weight.t()), *graph.normalised) + layer.bias;
    case Encoder::kGin:  // Xu et al. 2019, epsilon 0
      return torch::relu(
          torch::linear(torch::relu(torch::linear(x + GatherSum(x, *graph.plain), layer.weight, layer.bias)),
                        layer.weight2, layer.bias2));
    case Encoder::kGat: {  // Velickovic et al. 2018, one head
      const at::Tensor mapped = torch::matmul(x, layer.weight.t());
      const at::Tensor sent = torch::matmul(mapped, layer.attend_from.t()).squeeze(1);
      const at::Tensor received = torch::matmul(mapped, layer.attend_to.t()).squeeze(1);
      const at::Tensor energy =
          torch::leaky_relu(sent.index_select(0, graph.from) + received.index_select(0, graph.to), 0.2);
      // The largest of each node that receives: those of far clusters may be too far apart for one of all.
      const at::Tensor most = torch::full({graph.nodes}, -std::numeric_limits<float>::infinity(), energy.options())
                                  .scatter_reduce(0, graph.to, energy.detach(), "amax");
      const at::Tensor raised = torch::exp(energy - most.index_select(0, graph.to));
      const at::Tensor total = torch::zeros({graph.nodes}, raised.options()).index_add(0, graph.to, raised);
      const at::Tensor share = raised / total.index_select(0, graph.to);
      return torch::zeros_like(mapped).index_add(0, graph.to, mapped.index_select(0, graph.from) * share.unsqueeze(1)) +
             layer.bias;
    }
  }
  return x;
}

at::Tensor HsdagNetwork::Encode(const std::vector<Convolution>& layers, const Affine& norm, const LevelGraph& graph,
                                const at::Tensor& x, Random* dropout) const {
  at::Tensor z = x;
  for (const Convolution& layer : layers) z = Dropout(torch::relu(Convolve(layer, graph, z)), shape_.dropout, dropout);
  return Normalise(norm, x + z);
}

at::Tensor HsdagNetwork::Score(const at::Tensor& product, Random* dropout) const {
  const at::Tensor hidden = Dropout(
      torch::relu(Normalise(edge_norm_, torch::linear(product, edge1_.weight, edge1_.bias))), shape_.dropout, dropout);
  return torch::sigmoid(torch::linear(hidden, edge2_.weight, edge2_.bias)).squeeze(1);
}

HsdagOutput HsdagNetwork::Forward(const LevelGraph& graph, const at::Tensor& features, Random* dropout,
                                  const std::vector<ParsedClusters>* parsed) const {
  HsdagOutput out;
  at::Tensor h = features;
  for (const auto& [affine, norm] : {std::pair(&input1_, &input_norm1_), std::pair(&input2_, &input_norm2_)}) {
    h = Dropout(torch::relu(Normalise(*norm, torch::linear(h, affine->weight, affine->bias))), shape_.dropout, dropout);
  }
  out.group_of_node.resize(static_cast<size_t>(graph.nodes));
  for (size_t v = 0; v < out.group_of_node.size(); ++v) out.group_of_node[v] = static_cast<int32_t>(v);

  const auto deep_set = [&](const Affine& affine, const Affine& norm, const at::Tensor& x) {
    return Normalise(norm, x + torch::linear(x, affine.weight, affine.bias));
  };
  const LevelGraph* level_graph = &graph;
  std::shared_ptr<const LevelGraph> own;
  for (int64_t level = 0; shape_.levels < 0 || level < shape_.levels; ++level) {
    if (level_graph->edges.empty()) break;
    const at::Tensor z = Encode(gnn1_, gnn1_norm_, *level_graph, h, dropout);
    const at::Tensor score =
        Score(z.index_select(0, level_graph->scored_from) * z.index_select(0, level_graph->scored_to), dropout);
    ParsedClusters clusters;
    if (parsed != nullptr) {
      clusters = (*parsed)[static_cast<size_t>(level)];
    } else {
      const at::Tensor values = score.detach().contiguous();
      const float* value = values.const_data_ptr<float>();
      std::vector<ScoredEdge> scored;
      for (const auto& [from, to, at] : level_graph->directions) scored.push_back({from, to, value[at]});
      const auto nodes = static_cast<int32_t>(level_graph->nodes);
      clusters = shape_.symmetric ? ParseByUnion(nodes, scored) : ParseInSequence(nodes, scored);
    }
    // Pooling: the sum of the members, times the mean score of the inner edges, times their number.
    std::vector<int64_t> of, inner, inner_cluster;
    for (const int32_t cluster : clusters.of) of.push_back(cluster);
    for (const auto& [from, to, at] : level_graph->directions) {
      const int32_t a = clusters.of[static_cast<size_t>(from)];
      if (a != clusters.of[static_cast<size_t>(to)]) continue;
      inner.push_back(at);
      inner_cluster.push_back(a);
    }
    const at::Tensor members = deep_set(pre_, pre_norm_, Encode(gnn2_, gnn2_norm_, *level_graph, h, dropout));
    const at::Tensor pooled =
        deep_set(post_, post_norm_,
                 torch::zeros({clusters.count, shape_.hidden}, members.options()).index_add(0, Indices(of), members));
    // Mean times number is the sum; 1 for a cluster without inner edges.
    at::Tensor factor = torch::zeros({clusters.count}, h.options());
    at::Tensor lonely = torch::ones({clusters.count}, h.options());
    if (!inner.empty()) {
      factor = factor.index_add(0, Indices(inner_cluster), score.index_select(0, Indices(inner)));
      lonely.index_fill_(0, Indices(inner_cluster), 0);
    }
    h = pooled * (factor + lonely).unsqueeze(1);

    for (int32_t& group : out.group_of_node) group = clusters.of[static_cast<size_t>(group)];
    out.kept.push_back(level_graph->normalised);
    out.kept.push_back(level_graph->plain);
    const bool ended = clusters.count == level_graph->nodes || level + 1 == shape_.levels;
    out.parsed.push_back(std::move(clusters));
    if (ended) break;
    own = std::make_shared<const LevelGraph>(out.parsed.back().count,
                                             Between(*level_graph, out.parsed.back(), shape_.directed), shape_);
    level_graph = own.get();
  }
  if (out.parsed.empty()) {
    // Every node is a group of its own.
    h = deep_set(post_, post_norm_, deep_set(pre_, pre_norm_, Encode(gnn2_, gnn2_norm_, *level_graph, h, dropout)));
  }
  h = Dropout(torch::relu(torch::linear(h, output1_.weight, output1_.bias)), shape_.dropout, dropout);
  out.embedding = Dropout(torch::relu(torch::linear(h, output2_.weight, output2_.bias)), shape_.dropout, dropout);
  out.logits = torch::linear(torch::relu(torch::linear(out.embedding, classify1_.weight, classify1_.bias)),
                             classify2_.weight, classify2_.bias);
  return out;
}

}  // namespace berth
