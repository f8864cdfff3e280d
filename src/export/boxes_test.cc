#include "export/boxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "export/columns.h"
#include "placement/testing.h"

namespace berth {
namespace {

// Each op in one box, arrows as the tensors of the graph demand, none of them backwards.
void ExpectSound(const Boxes& boxes, const Graph& graph) {
  std::vector<size_t> seen(graph.num_ops());
  for (size_t box = 0; box < boxes.size(); ++box) {
    EXPECT_FALSE(boxes.ops[box].empty());
    EXPECT_TRUE(std::ranges::is_sorted(boxes.ops[box]));
    for (const OpId op : boxes.ops[box]) {
      EXPECT_EQ(boxes.of_op[Index(op)], box);
      ++seen[Index(op)];
    }
  }
  EXPECT_THAT(seen, ::testing::Each(1u));
  std::set<std::pair<size_t, size_t>> arrows;
  for (const TensorId tensor : graph.tensors()) {
    for (const OpId consumer : graph.consumers(tensor)) {
      const size_t from = boxes.of_op[Index(graph.producer(tensor))], to = boxes.of_op[Index(consumer)];
      if (from != to) arrows.emplace(from, to);
    }
  }
  EXPECT_THAT(boxes.arrows, ::testing::ElementsAreArray(arrows));
  for (const auto& [from, to] : boxes.arrows) EXPECT_LT(from, to);
}

bool OneDeviceEach(const Boxes& boxes, const std::vector<DeviceId>& device) {
  return std::ranges::all_of(boxes.ops, [&](const std::vector<OpId>& ops) {
    return std::ranges::all_of(ops, [&](OpId op) { return device[Index(op)] == device[Index(ops.front())]; });
  });
}

TEST(Boxes, KeepToTheirLimitsWithoutArrowsBack) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const Problem problem = testing::RandomProblem(random, {.ops = 5 + static_cast<size_t>(i) / 2});
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
    ExpectSound(BoxPerOp(problem.graph()), problem.graph());
    for (const size_t most : {2, 5, 20}) {
      const Boxes boxes = FoldOps(problem.graph(), device, most, 3 * most);
      EXPECT_LE(boxes.size(), most);
      EXPECT_LE(boxes.arrows.size(), 3 * most);
      ExpectSound(boxes, problem.graph());
    }
  }
}

TEST(Boxes, AreOfOneDeviceAndOfAboutOneSizeWhereThatIsEnough) {
  const Problem problem = testing::Chain(1000, 2);
  std::vector<DeviceId> device(1000);
  for (size_t i = 0; i < 1000; ++i) device[i] = MakeId<DeviceId>(i / 100 % 2);
  const Boxes boxes = FoldOps(problem.graph(), device, 50, 100);
  EXPECT_TRUE(OneDeviceEach(boxes, device));
  EXPECT_LE(boxes.size(), 50u);
  for (const std::vector<OpId>& ops : boxes.ops) EXPECT_LE(ops.size(), 2u * 1000 / 50);
}

TEST(Boxes, BranchesThatAreAlikeComeTogether) {
  const Problem problem = testing::ForkJoin(400, 2);
  const std::vector<DeviceId> device(problem.num_ops());
  const Boxes boxes = FoldOps(problem.graph(), device, 20, 60);
  EXPECT_LE(boxes.size(), 20u);
  EXPECT_GT(boxes.size(), 5u);
  ExpectSound(boxes, problem.graph());
}

TEST(Boxes, FoldManyOpsInLittleTime) {
  const Problem problem = testing::Chain(200'000, 2);
  std::vector<DeviceId> device(problem.num_ops());
  for (size_t i = 0; i < device.size(); ++i) device[i] = MakeId<DeviceId>(i % 2);
  EXPECT_LE(FoldOps(problem.graph(), device, 120, 200).size(), 120u);
}

TEST(Columns, HoldEachBoxOnceAndNoArrowLeadsUp) {
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    const Problem problem = testing::RandomProblem(random, {.ops = 1 + static_cast<size_t>(i)});
    const Boxes boxes = BoxPerOp(problem.graph());
    const std::vector<Column> columns = ArrangeInColumns(boxes, std::vector<double>(boxes.size(), 100), 50);
    std::vector<size_t> layer_of(boxes.size(), 0), seen(boxes.size());
    size_t layers = 0;
    for (const Column& column : columns) {
      EXPECT_FALSE(column.layers.empty());
      for (const auto& layer : column.layers) {
        ++layers;
        for (const size_t box : layer) {
          layer_of[box] = layers;
          ++seen[box];
        }
      }
    }
    EXPECT_THAT(seen, ::testing::Each(1u));
    for (const auto& [from, to] : boxes.arrows) EXPECT_LT(layer_of[from], layer_of[to]);
  }
}

TEST(Columns, BreakALongChainAndStackAWideFan) {
  const Problem chain = testing::Chain(186, 2), fan = testing::ForkJoin(26, 2);
  const auto shape = [](const Problem& problem) {
    const Boxes boxes = BoxPerOp(problem.graph());
    return ArrangeInColumns(boxes, std::vector<double>(boxes.size(), 110), 50);
  };
  EXPECT_GT(shape(chain).size(), 5u);
  for (const Column& column : shape(fan)) {
    for (const auto& layer : column.layers) EXPECT_LE(layer.size(), 10u);
  }
}

}  // namespace
}  // namespace berth
