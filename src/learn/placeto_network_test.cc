#include "learn/placeto_network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "cluster/presets.h"
#include "import/readers.h"
#include "learn/placeto.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using Numbers = std::vector<double>;
using Edge = std::pair<int32_t, int32_t>;

std::vector<Edge> RandomEdges(Random& random, int32_t nodes, double share) {
  std::vector<Edge> edges;
  for (int32_t a = 0; a < nodes; ++a) {
    for (int32_t b = a + 1; b < nodes; ++b) {
      if (random.Chance(share)) edges.emplace_back(a, b);
    }
  }
  return edges;
}

// The network by plain loops over nodes, as the paper has it. Layers are read in the order of the parameters.
class SlowNetwork {
 public:
  SlowNetwork(const PlacetoNetwork& network, std::vector<Edge> edges, size_t nodes)
      : shape_(network.shape()), edges_(std::move(edges)), nodes_(nodes) {
    for (const at::Tensor& parameter : network.parameters()) parameters_.push_back(parameter.detach());
  }

  Numbers Logits(const std::vector<Numbers>& features, size_t current) const {
    std::vector<Numbers> x;
    for (const Numbers& row : features) x.push_back(Layers(row, 16, 3));
    const auto down = Pass(x, 0, [](const Edge& edge) { return edge; });
    const auto up = Pass(x, 8, [](const Edge& edge) { return Edge(edge.second, edge.first); });
    std::vector<Numbers> embedding;
    for (size_t v = 0; v < nodes_; ++v) {
      embedding.push_back(down[v]);
      embedding.back().insert(embedding.back().end(), up[v].begin(), up[v].end());
    }
    const std::set<size_t> after = Reached(current, [](const Edge& edge) { return edge; });
    const std::set<size_t> before = Reached(current, [](const Edge& edge) { return Edge(edge.second, edge.first); });
    Numbers z;
    const auto pool = [&](size_t layer, const auto& is_in) {
      Numbers sum(2 * static_cast<size_t>(shape_.columns));
      double count = 0;
      for (size_t v = 0; v < nodes_; ++v) {
        if (!is_in(v)) continue;
        const Numbers f = Relu(Layers(embedding[v], layer, 2));
        for (size_t k = 0; k < sum.size(); ++k) sum[k] += f[k];
        ++count;
      }
      for (double& value : sum) value /= shape_.mean ? std::max(count, 1.0) : 1.0;
      const Numbers g = Relu(Layers(sum, layer + 4, 2));
      z.insert(z.end(), g.begin(), g.end());
    };
    if (!shape_.three_sets) {
      pool(22, [](size_t) { return true; });
      return Layers(z, 30, 3);
    }
    pool(22, [&](size_t v) { return v != current && before.contains(v); });
    pool(30, [&](size_t v) { return v != current && after.contains(v); });
    pool(38, [&](size_t v) { return v != current && !before.contains(v) && !after.contains(v); });
    z.insert(z.end(), embedding[current].begin(), embedding[current].end());
    return Layers(z, 46, 3);
  }

 private:
  static Numbers Relu(Numbers row) {
    for (double& value : row) value = std::max(value, 0.0);
    return row;
  }

  // `count` affine layers from parameter `first` on, ReLU between them.
  Numbers Layers(Numbers x, size_t first, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      const auto weight = parameters_[first + 2 * i].accessor<double, 2>();
      const auto bias = parameters_[first + 2 * i + 1].accessor<double, 1>();
      Numbers y;
      for (int64_t o = 0; o < weight.size(0); ++o) {
        y.push_back(bias[o]);
        for (int64_t k = 0; k < weight.size(1); ++k) y.back() += weight[o][k] * x[static_cast<size_t>(k)];
      }
      x = i + 1 < count ? Relu(y) : y;
    }
    return x;
  }

  template <typename Turn>
  std::vector<Numbers> Pass(const std::vector<Numbers>& x0, size_t layer, const Turn& turn) const {
    const auto updated = [&](const std::vector<Numbers>& x, size_t v) {
      Numbers sum(x0[v].size());
      bool any = false;
      for (const Edge& edge : edges_) {
        const auto [from, to] = turn(edge);
        if (static_cast<size_t>(to) != v) continue;
        any = true;
        const Numbers f = Relu(Layers(x[static_cast<size_t>(from)], layer, 2));
        for (size_t k = 0; k < sum.size(); ++k) sum[k] += f[k];
      }
      if (!any) return x0[v];
      Numbers g = Relu(Layers(sum, layer + 4, 2));
      for (size_t k = 0; k < g.size(); ++k) g[k] += x0[v][k];
      return g;
    };
    std::vector<Numbers> x = x0;
    if (shape_.rounds == 0) {
      // In the order of the edges' direction: a node's neighbours are final before it.
      const bool forward = turn({0, 1}).first == 0;
      for (size_t i = 0; i < nodes_; ++i) {
        const size_t v = forward ? i : nodes_ - 1 - i;
        x[v] = updated(x, v);
      }
      return x;
    }
    for (int64_t round = 0; round < shape_.rounds; ++round) {
      std::vector<Numbers> next;
      for (size_t v = 0; v < nodes_; ++v) next.push_back(updated(x, v));
      x = next;
    }
    return x;
  }

  template <typename Turn>
  std::set<size_t> Reached(size_t start, const Turn& turn) const {
    std::set<size_t> seen;
    const std::function<void(size_t)> visit = [&](size_t v) {
      for (const Edge& edge : edges_) {
        const auto [from, to] = turn(edge);
        if (static_cast<size_t>(from) == v && seen.insert(static_cast<size_t>(to)).second)
          visit(static_cast<size_t>(to));
      }
    };
    visit(start);
    return seen;
  }

  PlacetoShape shape_;
  std::vector<Edge> edges_;
  size_t nodes_;
  std::vector<at::Tensor> parameters_;
};

void ExpectLikeLoops(const PlacetoShape& shape, std::span<const Edge> edges, int64_t nodes, Random& random) {
  const PlacetoNetwork network(shape, random.Fork(1));
  {
    const torch::NoGradGuard no_gradient;
    for (at::Tensor parameter : network.parameters())
      parameter.copy_(testing::NormalTensor(random, parameter.sizes()) * 0.4);
  }
  const PlacetoGraph graph(nodes, edges);
  const at::Tensor features = testing::NormalTensor(random, {3, nodes, shape.columns});
  at::Tensor current = torch::empty({3}, torch::kInt64);
  for (int64_t b = 0; b < 3; ++b) {
    current.data_ptr<int64_t>()[b] = static_cast<int64_t>(random.Below(static_cast<size_t>(nodes)));
  }
  const at::Tensor logits = network.forward(features, current, graph);
  const SlowNetwork slow(network, {edges.begin(), edges.end()}, static_cast<size_t>(nodes));
  for (int64_t b = 0; b < 3; ++b) {
    std::vector<Numbers> rows;
    for (int64_t v = 0; v < nodes; ++v) {
      const double* row = features.data_ptr<double>() + (b * nodes + v) * shape.columns;
      rows.emplace_back(row, row + shape.columns);
    }
    const Numbers expected = slow.Logits(rows, static_cast<size_t>(current[b].item<int64_t>()));
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_NEAR(logits[b][static_cast<int64_t>(k)].item<double>(), expected[k], 1e-9 * (1 + std::abs(expected[k])));
    }
  }
}

TEST(PlacetoNetwork, EqualsPlainLoopsOnRandomGraphs) {
  Random random(3);
  for (int round = 0; round < 24; ++round) {
    const auto nodes = static_cast<int32_t>(1 + random.Below(12));
    const auto edges = RandomEdges(random, nodes, random.Uniform(0, 0.6));
    SCOPED_TRACE(round);
    ExpectLikeLoops({.columns = 5,
                     .outputs = 3,
                     .rounds = static_cast<int64_t>(random.Below(4)),
                     .three_sets = round % 4 != 0,
                     .mean = round % 3 == 0,
                     .type = torch::kFloat64},
                    edges, nodes, random);
  }
}

TEST(PlacetoNetwork, HasTheGradientThatDifferencesSay) {
  Random random(5);
  const std::vector<Edge> edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {1, 5}};
  const PlacetoGraph graph(6, edges);
  for (const bool three_sets : {true, false}) {
    const PlacetoNetwork network({.columns = 4,
                                  .outputs = 3,
                                  .rounds = 2,
                                  .three_sets = three_sets,
                                  .mean = !three_sets,
                                  .type = torch::kFloat64},
                                 Random(1));
    {
      // Biases of 0 would be where ReLU has two slopes: a node without ancestors sums up nothing.
      const torch::NoGradGuard no_gradient;
      for (at::Tensor parameter : network.parameters())
        parameter.copy_(testing::NormalTensor(random, parameter.sizes()) * 0.4);
    }
    const at::Tensor features = testing::NormalTensor(random, {3, 6, 4}),
                     weight = testing::NormalTensor(random, {3, 3});
    const at::Tensor current = torch::tensor({0, 3, 5}, torch::kInt64);
    const auto sum = [&] { return (torch::log_softmax(network.forward(features, current, graph), 1) * weight).sum(); };
    testing::ExpectTheGradientThatDifferencesSay(network, sum, 1e-6, three_sets ? "three sets" : "all nodes");
  }
}

TEST(PlacetoNetwork, TakesNodesOfACycleForEachOthersAncestorsAndDescendants) {
  Random random(4);
  for (int round = 0; round < 12; ++round) {
    const auto nodes = static_cast<int32_t>(2 + random.Below(8));
    std::set<Edge> edges;
    for (int32_t k = 0; k < 2 * nodes; ++k) {
      const Edge edge(random.Below(static_cast<size_t>(nodes)), random.Below(static_cast<size_t>(nodes)));
      if (edge.first != edge.second) edges.insert(edge);
    }
    ExpectLikeLoops({.columns = 4, .outputs = 2, .rounds = 3, .type = torch::kFloat64},
                    std::vector<Edge>(edges.begin(), edges.end()), nodes, random);
  }
}

TEST(PlacetoNetwork, HasAsManyWeightsAsPublished) {
  const auto count = [](int64_t devices) {
    const PlacetoNetwork network({.columns = 5 + devices, .outputs = devices}, Random(1));
    int64_t sum = 0;
    for (const at::Tensor& parameter : network.parameters()) sum += parameter.numel();
    return sum;
  };
  EXPECT_EQ(count(2), 15'962);
  EXPECT_EQ(count(4), 26'338);
  EXPECT_EQ(count(8), 54'842);
}

// Weights by formula: tensor i, element e of the layer's input x output matrix.
void FillByFormula(const PlacetoNetwork& network) {
  const torch::NoGradGuard no_gradient;
  double tensor = 0;
  for (at::Tensor parameter : network.parameters()) {
    const at::Tensor e = torch::arange(parameter.numel(), torch::kFloat64);
    const at::Tensor values = 0.5 * torch::sin(1.7 * tensor + 2.3 * e + 0.1);
    parameter.copy_(parameter.dim() == 2 ? values.view({parameter.size(1), parameter.size(0)}).t() : values);
    ++tensor;
  }
}

nlohmann::json Reference() {
  const std::string path = BERTH_SHARED_DIR "/data/placeto/policy_network_reference.json";
  return std::filesystem::exists(path) ? ReadJson(path) : nlohmann::json();
}

std::string GraphFile(const nlohmann::json& reference) {
  return fmt::format("{}/data/placeto/graphs/{}.json", BERTH_SHARED_DIR, reference["graph"].get<std::string>());
}

TEST(PlacetoNetwork, EqualsTheReferenceInDoublePrecision) {
  const nlohmann::json all = Reference();
  if (all.is_null()) GTEST_SKIP() << "no ../shared/data/placeto";
  for (const auto& reference : all["cases"]) {
    SCOPED_TRACE(reference["graph"].get<std::string>());
    const nlohmann::json file = ReadJson(GraphFile(reference));
    std::set<Edge> edges;
    for (const auto& edge : file["edges"]) edges.emplace(edge[0].get<int32_t>(), edge[1].get<int32_t>());
    const auto nodes = file["nodes"].get<std::vector<nlohmann::json>>().size();
    const PlacetoGraph graph(static_cast<int64_t>(nodes), std::vector<Edge>(edges.begin(), edges.end()));
    const int64_t devices = reference["n_devs"];
    const PlacetoNetwork network(
        {.columns = 5 + devices, .outputs = devices, .rounds = reference["k"].get<int64_t>(), .type = torch::kFloat64},
        Random(1));
    FillByFormula(network);
    for (const auto& each : reference["cases"]) {
      Numbers flat;
      for (const Numbers& row : each["features"].get<std::vector<Numbers>>())
        flat.insert(flat.end(), row.begin(), row.end());
      const at::Tensor features =
          torch::tensor(flat, torch::kFloat64).view({1, static_cast<int64_t>(nodes), 5 + devices});
      const at::Tensor logits = network.forward(features, torch::tensor({each["cur"].get<int64_t>()}), graph);
      const at::Tensor log_prob = torch::log_softmax(logits, 1);
      const at::Tensor entropy = -(log_prob.exp() * torch::log(log_prob.exp() + 1e-3)).sum();
      for (int64_t k = 0; k < devices; ++k) {
        const auto at = static_cast<size_t>(k);
        EXPECT_NEAR(logits[0][k].item<double>(), each["logits"][at].get<double>(), 1e-9);
        EXPECT_NEAR(log_prob[0][k].item<double>(), each["log_prob"][at].get<double>(), 1e-9);
      }
      EXPECT_NEAR(entropy.item<double>(), each["entropy"].get<double>(), 1e-12);
      const auto gradients = torch::autograd::grad({log_prob[0][0]}, network.parameters(), {}, {}, false, true);
      double squares = 0;
      for (size_t i = 0; i < gradients.size(); ++i) {
        const double expected = each["grad_logp0_per_tensor_sum"][i];
        const double sum = gradients[i].defined() ? gradients[i].sum().item<double>() : 0;
        EXPECT_NEAR(sum, expected, 1e-8 * (1 + std::abs(expected))) << "tensor " << i;
        if (gradients[i].defined()) squares += gradients[i].square().sum().item<double>();
      }
      EXPECT_NEAR(std::sqrt(squares) / each["grad_logp0_l2"].get<double>(), 1, 1e-9);
    }
  }
}

TEST(PlacetoTask, MakesTheFeaturesOfTheReference) {
  const nlohmann::json all = Reference();
  if (all.is_null()) GTEST_SKIP() << "no ../shared/data/placeto";
  ClusterCatalog clusters("cluster");
  RegisterPlacetoCluster(clusters);
  EvaluatorCatalog evaluators("evaluator");
  RegisterPlaceto(evaluators);
  for (const auto& reference : all["cases"]) {
    SCOPED_TRACE(reference["graph"].get<std::string>());
    const size_t devices = reference["n_devs"];
    const Problem problem =
        ReadPlaceto(ReadFile(GraphFile(reference)), "graph")
            .On(std::make_shared<const Cluster>(clusters.Make(fmt::format("placeto(devices={})", devices))));
    const auto evaluator = evaluators.Make("placeto", problem);
    const PlacetoTask task(problem, {.start_times = true}, Random(1));
    std::vector<DeviceId> device(problem.num_ops());
    std::vector<size_t> position(problem.num_ops());
    for (size_t p = 0; p < device.size(); ++p) {
      const OpId op = problem.graph().op_at_file_position(p);
      device[Index(op)] = DeviceId{reference["placement"][p].get<int32_t>()};
      position[Index(op)] = p;
    }
    std::vector<double> starts(problem.num_ops());
    evaluator->ScorePlan({.device = device}, *evaluator->NewWorkspace(), starts);
    for (const auto& each : reference["cases"]) {
      const size_t step = each["cur"];
      ASSERT_EQ(position[Index(task.node_ops[static_cast<size_t>(task.order[step])].front())], step);
      std::vector<float> features(problem.num_ops() * static_cast<size_t>(task.columns()));
      task.WriteFeatures(device, static_cast<int64_t>(step), starts, features.data());
      for (size_t v = 0; v < problem.num_ops(); ++v) {
        const Numbers expected = each["features"][position[v]];
        ASSERT_EQ(std::ssize(expected), task.columns());
        for (size_t k = 0; k < expected.size(); ++k) {
          EXPECT_NEAR(features[v * expected.size() + k], expected[k], 1e-6 * (1 + std::abs(expected[k])))
              << "node " << v << ", column " << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace berth
