#include "learn/gdp_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "placement/testing.h"

namespace berth {
namespace {

std::vector<float> RandomOdds(const GdpTask& task, Random& random) {
  std::vector<float> odds;
  for (size_t i = 0; i < task.order.size() * task.problem.num_devices(); ++i) {
    const bool allowed = task.mask.const_data_ptr<float>()[i] == 0;
    odds.push_back(allowed ? static_cast<float>(random.Normal()) * 3 : -1e9F);
  }
  return odds;
}

// The largest sum of times on one device.
double Busiest(const GdpTask& task, const std::vector<int64_t>& device) {
  std::vector<double> load(task.problem.num_devices(), 0);
  for (size_t i = 0; i < device.size(); ++i) {
    const auto node = static_cast<size_t>(task.order[i]);
    load[static_cast<size_t>(device[i])] +=
        task.coarse.quotient.time[node * load.size() + static_cast<size_t>(device[i])];
  }
  return std::ranges::max(load);
}

TEST(GdpAnswer, GivesAGroupTheDeviceWhoseOddsHaveTheLargestProduct) {
  const Problem problem = testing::Chain(4, 2);
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  const std::vector<float> odds = {-1, -2, -3, -1, -1, -9, -4, -1};
  EXPECT_THAT(GroupOdds(task, odds, {}).Likeliest(), ::testing::ElementsAre(0, 1, 0, 1));
  const Coupling halves = {0, 0, 1, 1}, crossed = {0, 1, 1, 0};
  EXPECT_THAT(GroupOdds(task, odds, halves).Likeliest(), ::testing::ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(GroupOdds(task, odds, crossed).Likeliest(), ::testing::ElementsAre(1, 0, 0, 1));
}

// A policy that is sure of the first device for all ops says by how much, and half of them go to the other: those of
// which it is the least sure.
TEST(GdpAnswer, KeepsTheOrderOfItsOddsWhereItKeepsTwoDevicesBusy) {
  Random random(1);
  for (const size_t ops : {2U, 10U, 60U, 300U}) {
    const Problem problem = testing::Chain(ops, 2);
    const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
    std::vector<size_t> rank(ops);
    std::iota(rank.begin(), rank.end(), 0);
    random.Shuffle(std::span(rank));
    std::vector<float> odds;
    for (size_t i = 0; i < ops; ++i) {
      odds.push_back(0);
      odds.push_back(-20 - static_cast<float>(rank[i]) / static_cast<float>(ops));
    }
    const GroupOdds groups(task, odds, {});
    EXPECT_THAT(groups.Likeliest(), ::testing::Each(0));
    const std::vector<int64_t> device = groups.Balanced();
    const auto moved = static_cast<size_t>(std::ranges::count(device, 1));
    EXPECT_NEAR(static_cast<double>(moved), static_cast<double>(ops) / 2, 0.03 * static_cast<double>(ops));
    for (size_t i = 0; i < ops; ++i) EXPECT_EQ(device[i] == 1, rank[i] < moved) << i;
  }
}

// Where groups hold ops that are first in no node, as where a grouping lies within larger units.
TEST(GdpAnswer, TakesNoNoticeOfNumbersWithoutNodes) {
  const Problem problem = testing::Chain(30, 3);
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  std::vector<float> odds;
  Coupling dense, gaps;
  for (size_t i = 0; i < task.order.size(); ++i) {
    const auto later = static_cast<float>(i);
    odds.insert(odds.end(), {0, -5 - 0.01F * later, -6 - 0.02F * later});  // sure of the first device
    dense.push_back(i / 3);
    gaps.push_back(2 * (i / 3) + 1);
  }
  const GroupOdds as_dense(task, odds, dense), with_gaps(task, odds, gaps);
  EXPECT_EQ(with_gaps.Likeliest(), as_dense.Likeliest());
  EXPECT_EQ(with_gaps.Balanced(), as_dense.Balanced());
  EXPECT_LT(Busiest(task, with_gaps.Balanced()), Busiest(task, with_gaps.Likeliest()));
}

TEST(GdpAnswer, NeverMakesADeviceBusierThanTheLikeliestPlacementDoes) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    const Problem problem =
        testing::RandomProblem(random, {.ops = 1 + random.Below(40), .devices = 1 + random.Below(4), .forbidden = 0.2});
    const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = true});
    const std::vector<float> odds = RandomOdds(task, random);
    for (const Coupling& coupling : {Coupling(), task.layers}) {
      const GroupOdds groups(task, odds, coupling);
      const std::vector<int64_t> likeliest = groups.Likeliest(), balanced = groups.Balanced();
      for (size_t i = 0; i < balanced.size(); ++i) {
        const auto node = static_cast<size_t>(task.order[i]);
        EXPECT_TRUE(task.coarse.can_run(node, MakeId<DeviceId>(static_cast<size_t>(balanced[i]))));
      }
      if (!coupling.empty()) continue;
      EXPECT_LE(Busiest(task, balanced), Busiest(task, likeliest));
    }
  }
}

}  // namespace
}  // namespace berth
