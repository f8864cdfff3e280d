#include "plan/partition_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "placement/testing.h"
#include "plan/testing.h"

namespace berth {
namespace {

TEST(PartitionGraph, HasEachEdgeTwiceWithTheSameTie) {
  const Problem problem = testing::ModelProblem("gnmt(layers=2,steps=4)", "p100x4", true);
  const Units units(problem);
  const PartitionGraph graph(units);
  ASSERT_EQ(graph.firsts().size(), graph.size() + 1);
  std::map<std::pair<int32_t, int32_t>, int32_t> tie;
  for (size_t unit = 0; unit < graph.size(); ++unit) {
    for (auto k = static_cast<size_t>(graph.firsts()[unit]); k < static_cast<size_t>(graph.firsts()[unit + 1]); ++k) {
      EXPECT_NE(graph.neighbours()[k], static_cast<int32_t>(unit));
      EXPECT_GE(graph.ties()[k], 1);
      tie[{static_cast<int32_t>(unit), graph.neighbours()[k]}] = graph.ties()[k];
    }
  }
  ASSERT_FALSE(tie.empty());
  for (const auto& [pair, time] : tie) EXPECT_EQ((tie.at({pair.second, pair.first})), time);
}

TEST(PartitionGraph, StaysWithin32Bits) {
  const Problem problem = testing::ModelProblem("rnnlm(layers=2,steps=6)", "p100x2", true);
  const Units units(problem);
  const PartitionGraph graph(units);
  for (const std::vector<int32_t>* weights : {&graph.ties(), &graph.times(), &graph.bytes()}) {
    const int64_t sum = std::accumulate(weights->begin(), weights->end(), int64_t{0});
    EXPECT_GT(sum, 100'000'000);
    EXPECT_LT(sum, INT32_MAX);
  }
}

TEST(PartitionGraph, GivesEachDeviceTheShareOfItsSpeed) {
  const Problem problem = testing::ModelProblem("lstm_grid(layers=6,steps=12)", "cpu_gpu", false);
  const Units units(problem);
  const PartitionGraph graph(units);
  ASSERT_EQ(graph.work_shares().size(), 2);
  EXPECT_NEAR(graph.work_shares()[0] + graph.work_shares()[1], 1, 1e-12);
  EXPECT_EQ(problem.cluster().device(graph.devices().front()).name, "gpu");
  EXPECT_GT(graph.work_shares()[0], graph.work_shares()[1]);
}

}  // namespace
}  // namespace berth
