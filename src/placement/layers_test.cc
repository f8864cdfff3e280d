#include "placement/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::ElementsAre;

// An unrolled network of layers x steps: per step a row of a table, then per layer a join of what comes from below and
// of the layer's last result, a product with the layer's weight, and an element-wise op; then a product with the
// weight of the result. `name` names the ops.
class Unrolled {
 public:
  Unrolled(size_t layers, size_t steps, const std::function<std::string(size_t layer, size_t step)>& name)
      : builder_("unrolled") {
    const size_t table = builder_.AddParameter(4000), result = builder_.AddParameter(4000);
    std::vector<size_t> weights, states(layers);
    for (size_t layer = 0; layer < layers; ++layer) weights.push_back(builder_.AddParameter(1000));
    for (size_t step = 0; step < steps; ++step) {
      const size_t row = Add("", OpClass::kDataMovement, 1);
      builder_.UseParameter(table, row);
      size_t x = builder_.AddTensor(row, 10);
      for (size_t layer = 0; layer < layers; ++layer) {
        const std::string scope = name(layer, step);
        const size_t join = Add(scope, OpClass::kDataMovement, 1), product = Add(scope, OpClass::kMatMul, 20),
                     activation = Add(scope, OpClass::kElementwise, 1);
        builder_.Consume(x, join);
        if (step > 0) builder_.Consume(states[layer], join);
        builder_.Consume(builder_.AddTensor(join, 20), product);
        builder_.UseParameter(weights[layer], product);
        builder_.Consume(builder_.AddTensor(product, 40), activation);
        x = states[layer] = builder_.AddTensor(activation, 10);
        of_layer.resize(layers);
        for (const size_t op : {join, product, activation}) of_layer[layer].push_back(op);
      }
      const size_t last = Add("", OpClass::kMatMul, 20);
      builder_.Consume(x, last);
      builder_.UseParameter(result, last);
      builder_.AddTensor(last, 100, {}, true);
      rows.push_back(row);
      results.push_back(last);
    }
  }

  Problem Build() {
    Graph graph = builder_.Build();
    for (auto& layer : of_layer) Translate(graph, layer);
    Translate(graph, rows);
    Translate(graph, results);
    return testing::UnitProblem(std::move(graph), 2);
  }

  std::vector<std::vector<size_t>> of_layer;  // ids once it is built
  std::vector<size_t> rows, results;

 private:
  size_t Add(const std::string& scope, OpClass op_class, double flops) {
    return builder_.AddOp(scope.empty() ? "" : fmt::format("{}/{}", scope, builder_.num_ops()), "Op",
                          {.flops = flops, .op_class = op_class});
  }
  static void Translate(const Graph& graph, std::vector<size_t>& positions) {
    for (size_t& position : positions) position = Index(graph.op_at_file_position(position));
  }

  GraphBuilder builder_;
};

std::set<int32_t> LayersOf(const Layers& layers, const std::vector<size_t>& ops) {
  std::set<int32_t> found;
  for (const size_t op : ops) found.insert(layers.layer_of[op]);
  return found;
}

void ExpectLayersByWeights(Unrolled network, size_t depth) {
  const Problem problem = network.Build();
  const Layers layers = FindLayers(problem);
  ASSERT_TRUE(layers.recurrent);
  ASSERT_EQ(layers.layers.size(), depth + 2);
  EXPECT_THAT(LayersOf(layers, network.rows), ElementsAre(0));
  EXPECT_EQ(layers.layers.front().kind, LayerKind::kBefore);
  for (size_t layer = 0; layer < depth; ++layer) {
    EXPECT_THAT(LayersOf(layers, network.of_layer[layer]), ElementsAre(layer + 1));
    EXPECT_EQ(layers.layers[layer + 1].kind, LayerKind::kRecurrent);
    EXPECT_EQ(layers.layers[layer + 1].stack, 0);
  }
  EXPECT_THAT(LayersOf(layers, network.results), ElementsAre(depth + 1));
  EXPECT_EQ(layers.layers.back().kind, LayerKind::kAfter);
}

TEST(Layers, OfARecurrentNetworkAreFoundByTheirWeights) {
  ExpectLayersByWeights(
      Unrolled(3, 5, [](size_t layer, size_t step) { return fmt::format("step{}/layer{}", step, layer); }), 3);
}

TEST(Layers, OfARecurrentNetworkDoNotDependOnNames) {
  ExpectLayersByWeights(Unrolled(3, 5, [](size_t, size_t) { return ""; }), 3);
  // Names that look like layers and are steps.
  ExpectLayersByWeights(Unrolled(4, 6, [](size_t, size_t step) { return fmt::format("layer{}", step); }), 4);
}

// `count` runs of five ops, each named by `name`.
Problem Runs(int count, const std::function<std::string(int)>& name) {
  GraphBuilder builder("runs");
  size_t last = 0;
  for (int run = 0; run < count; ++run) {
    for (int i = 0; i < 5; ++i) {
      const size_t op = builder.AddOp(name(run), "Conv", {.flops = 1, .op_class = OpClass::kConv});
      if (op > 0) builder.Consume(last, op);
      // Less leaves a run than goes on within it.
      last = builder.AddTensor(op, i == 4 ? 10 : 100);
    }
  }
  return testing::UnitProblem(builder.Build(), 2);
}

TEST(Layers, OfOtherNetworksAreBlocksByName) {
  const Layers layers = FindLayers(Runs(9, [](int run) { return fmt::format("/net/layer.{}/conv", run); }));
  EXPECT_FALSE(layers.recurrent);
  ASSERT_EQ(layers.layers.size(), 9);
  for (size_t op = 0; op < 45; ++op) EXPECT_EQ(layers.layer_of[op], op / 5);
}

TEST(Layers, WithoutTellingNamesAreCutWhereFewBytesCross) {
  const Layers layers = FindLayers(Runs(20, [](int) { return ""; }));
  ASSERT_GT(layers.layers.size(), 2);
  for (size_t op = 1; op < 100; ++op) {
    if (layers.layer_of[op] != layers.layer_of[op - 1]) {
      EXPECT_EQ(op % 5, 0) << op;
    }
  }
}

TEST(Layers, KeepTogetherWhatMustShareADevice) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = testing::RandomProblem(random);
    const Layers layers = FindLayers(problem);
    ASSERT_EQ(layers.layer_of.size(), problem.num_ops());
    for (const int32_t layer : layers.layer_of) {
      ASSERT_GE(layer, 0);
      ASSERT_LT(layer, static_cast<int32_t>(layers.layers.size()));
    }
    for (const auto& together : problem.constraints().colocate) {
      for (const OpId op : together) {
        EXPECT_EQ(layers.layer_of[Index(op)], layers.layer_of[Index(together.front())]);
      }
    }
  }
}

TEST(ForwardOrder, CountsTheBytesThatCrossAsTheSlowWayDoes) {
  Random random(4);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = testing::RandomProblem(random);
    const ForwardOrder order = MakeForwardOrder(problem);
    ASSERT_EQ(order.crossing.size(), order.ops.size());
    for (size_t cut = 0; cut < order.ops.size(); ++cut) {
      int64_t bytes = 0;
      for (const TensorId tensor : problem.graph().tensors()) {
        const auto before = [&](OpId op) { return order.position_of[Index(op)] < static_cast<int32_t>(cut); };
        const bool producer = before(problem.graph().producer(tensor));
        bool crosses = false;
        for (const OpId op : problem.graph().consumers(tensor)) crosses = crosses || before(op) != producer;
        bytes += crosses ? problem.graph().tensor_bytes(tensor) : 0;
      }
      ASSERT_EQ(order.crossing[cut], bytes) << cut;
    }
  }
}

}  // namespace
}  // namespace berth
