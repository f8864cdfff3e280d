#include "plan/coarsening.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::ElementsAre;

// By definition: takes away groups that nothing is sent to, until there are none.
bool HasCycle(const Graph& graph, std::span<const int32_t> label) {
  std::set<std::pair<int32_t, int32_t>> edges;
  for (const TensorId tensor : graph.tensors()) {
    const int32_t from = label[Index(graph.producer(tensor))];
    for (const OpId consumer : graph.consumers(tensor)) {
      if (label[Index(consumer)] != from) edges.emplace(from, label[Index(consumer)]);
    }
  }
  while (!edges.empty()) {
    std::set<int32_t> fed;
    for (const auto& [from, to] : edges) fed.insert(to);
    if (std::erase_if(edges, [&](const auto& edge) { return !fed.contains(edge.first); }) == 0) return true;
  }
  return false;
}

TEST(Coarsening, MakesNoCycles) {
  Random random(12);
  size_t levels = 0;
  for (int i = 0; i < 60; ++i) {
    const Problem problem = testing::RandomProblem(random, {.ops = 60, .devices = 2});
    const Units units(problem);
    const Coarsening coarsening(units, 2, {});
    levels += coarsening.size() - 1;
    for (size_t level = 0; level < coarsening.size(); ++level) {
      ASSERT_FALSE(HasCycle(problem.graph(), coarsening.Labels(level))) << "level " << level;
    }
  }
  EXPECT_GE(levels, 120);
}

TEST(Coarsening, JoinsWholeGroupsOfTheLevelBefore) {
  Random random(13);
  for (int i = 0; i < 20; ++i) {
    const Problem free = testing::RandomProblem(random, {.ops = 60, .devices = 3});
    Constraints constraints;
    constraints.colocate = {{OpId{3}, OpId{9}, OpId{40}}, {OpId{4}, OpId{41}}};
    const Problem problem = free.With(std::move(constraints));
    const Units units(problem);
    const Coarsening coarsening(units, 4, {});
    ASSERT_EQ(coarsening.num_groups(0), units.size());
    ASSERT_GT(coarsening.size(), 1);
    for (size_t level = 0; level < coarsening.size(); ++level) {
      const std::vector<int32_t> fine = coarsening.Labels(level);
      EXPECT_EQ(std::set<int32_t>(fine.begin(), fine.end()).size(), coarsening.num_groups(level));
      EXPECT_EQ(fine[3], fine[40]);
      EXPECT_EQ(fine[4], fine[41]);
      if (level + 1 == coarsening.size()) break;
      EXPECT_LT(coarsening.num_groups(level + 1), coarsening.num_groups(level));
      const std::vector<int32_t> coarse = coarsening.Labels(level + 1);
      std::map<int32_t, int32_t> parent;
      for (size_t v = 0; v < fine.size(); ++v) {
        EXPECT_EQ(parent.try_emplace(fine[v], coarse[v]).first->second, coarse[v]);
      }
    }
  }
}

// A group has at most half of what a device does where all devices share the work, or is a single unit.
TEST(Coarsening, LeavesWorkToShare) {
  Random random(14);
  for (int i = 0; i < 20; ++i) {
    const Problem problem = testing::RandomProblem(random, {.ops = 60, .devices = 3});
    const Units units(problem);
    const Coarsening coarsening(units, 1, {});
    const std::vector<int32_t> label = coarsening.Labels(coarsening.size() - 1);
    std::map<int32_t, std::pair<double, int>> groups;
    double all = 0;
    for (const OpId op : problem.graph().ops()) {
      const double work = std::ranges::min(problem.op_times(op));
      groups[label[Index(op)]].first += work;
      ++groups[label[Index(op)]].second;
      all += work;
    }
    for (const auto& [group, sums] : groups) {
      if (sums.second > 1) {
        EXPECT_LE(sums.first, all / 6 * (1 + 1e-9));
      }
    }
  }
}

TEST(Coarsening, JoinsWhatIsCostlyToPart) {
  GraphBuilder builder("chain");
  for (size_t v = 0; v < 8; ++v) builder.AddOp("", "Unit", {});
  for (size_t v = 0; v < 7; ++v) builder.Consume(builder.AddTensor(v, v % 2 == 1 ? 1000 : 1), v + 1);
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2, 0, 1)),
                        {.time = std::vector<double>(16, 1), .source = "test"});
  const Units units(problem);
  const Coarsening coarsening(units, 5, {});
  // A group may have the work of two.
  ASSERT_EQ(coarsening.size(), 2);
  EXPECT_THAT(coarsening.Labels(1), ElementsAre(0, 1, 1, 2, 2, 3, 3, 4));
}

TEST(Coarsening, StopsWhenItIsTold) {
  Random random(15);
  const Problem problem = testing::RandomProblem(random, {.ops = 60, .devices = 3});
  const Units units(problem);
  EXPECT_EQ(Coarsening(units, 2, [] { return true; }).size(), 1);
}

}  // namespace
}  // namespace berth
