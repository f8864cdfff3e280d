#include "learn/gdp_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "placement/testing.h"

namespace berth {
namespace {

// Paths along the edges, by trying them all.
TEST(Levels, AreTheLongestPathsBeforeAndAfter) {
  Random random(8);
  for (int round = 0; round < 20; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 9, .devices = 2});
    const CoarseGraph graph = MakeCoarseGraph(problem, "none");
    const Levels levels = LevelsOf(graph, CoarseTransfers(problem, graph));
    const auto mean_time = [&](size_t node) {
      return (problem.op_time(MakeId<OpId>(node), DeviceId{0}) + problem.op_time(MakeId<OpId>(node), DeviceId{1})) / 2;
    };
    const auto transfer = [&](int64_t bytes) {
      return (problem.transfer_time(bytes, DeviceId{0}, DeviceId{1}) +
              problem.transfer_time(bytes, DeviceId{1}, DeviceId{0})) /
             2;
    };
    const std::function<double(size_t)> before = [&](size_t node) {
      double most = 0;
      for (const auto& edge : graph.quotient.edges) {
        const size_t from = Index(edge.from);
        if (Index(edge.to) == node) most = std::max(most, before(from) + mean_time(from) + transfer(edge.bytes));
      }
      return most;
    };
    const std::function<double(size_t)> after = [&](size_t node) {
      double most = 0;
      for (const auto& edge : graph.quotient.edges) {
        if (Index(edge.from) == node) most = std::max(most, transfer(edge.bytes) + after(Index(edge.to)));
      }
      return most + mean_time(node);
    };
    for (size_t node = 0; node < graph.size(); ++node) {
      EXPECT_NEAR(levels.top[node], before(node), 1e-9 * (1 + before(node)));
      EXPECT_NEAR(levels.bottom[node], after(node), 1e-9 * (1 + after(node)));
    }
  }
}

// Steps of three layers, each of which consumes the step before it and the layer below.
TEST(Sides, AreTheSameAlongALayerAndTellItsNeighboursApart) {
  constexpr size_t kLayers = 3, kSteps = 6;
  GraphBuilder builder("grid");
  const auto op_of = [](size_t layer, size_t step) { return step * kLayers + layer; };
  for (size_t step = 0; step < kSteps; ++step) {
    for (size_t layer = 0; layer < kLayers; ++layer) {
      builder.AddOp(fmt::format("{}.{}", layer, step), "Unit", {});
      builder.AddTensor(op_of(layer, step), 1);
      if (layer > 0) builder.Consume(op_of(layer - 1, step), op_of(layer, step));
      if (step > 0) builder.Consume(op_of(layer, step - 1), op_of(layer, step));
    }
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const std::vector<double> sides = SidesOf(problem, MakeCoarseGraph(problem, "none"));
  std::set<double> of_layers;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    of_layers.insert(std::round(sides[op_of(layer, kLayers - 1 - layer)] * 1e6));
    // Where all layers work at the same time.
    for (size_t step = kLayers - 1 - layer; step + layer < kSteps; ++step) {
      EXPECT_DOUBLE_EQ(sides[op_of(layer, step)], sides[op_of(layer, kLayers - 1 - layer)]);
    }
  }
  EXPECT_EQ(of_layers, (std::set<double>{166667, 500000, 833333}));
}

TEST(Sides, AreSharesOfTheWorkAtTheSameDepth) {
  Random random(9);
  for (int round = 0; round < 20; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 2});
    const Graph& graph = problem.graph();
    const std::vector<double> sides = SidesOf(problem, MakeCoarseGraph(problem, "none"));
    std::vector<OpId> order;  // reversed
    std::set<OpId> seen;
    const std::function<void(OpId)> visit = [&](OpId op) {
      if (!seen.insert(op).second) return;
      for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
        for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) visit(consumer);
      }
      order.push_back(op);
    };
    for (const OpId op : graph.ops()) visit(op);
    const std::function<int(OpId)> depth = [&](OpId op) {
      int most = 0;
      for (const TensorId tensor : graph.inputs_of(op)) most = std::max(most, depth(graph.producer(tensor)) + 1);
      return most;
    };
    double work_of_all = 0;
    const auto work = [&](OpId op) {
      return (problem.op_time(op, DeviceId{0}) + problem.op_time(op, DeviceId{1})) / 2;
    };
    for (const OpId op : graph.ops()) work_of_all += work(op);
    for (size_t i = 0; i < order.size(); ++i) {
      double before = 0, all = 0;
      for (size_t j = 0; j < order.size(); ++j) {
        if (depth(order[j]) != depth(order[i])) continue;
        const double counted = work(order[j]) + 1e-3 * work_of_all / static_cast<double>(graph.num_ops());
        all += counted;
        if (j > i) before += counted;
        if (j == i) before += counted / 2;
      }
      EXPECT_NEAR(sides[Index(order[i])], before / all, 1e-9);
    }
  }
}

}  // namespace
}  // namespace berth
