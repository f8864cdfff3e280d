#include "learn/gdp_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

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
    const std::vector<int64_t> device = groups.Likeliest(groups.Balance(Load::kTime), 1);
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
  EXPECT_EQ(with_gaps.Likeliest(with_gaps.Balance(Load::kTime), 1),
            as_dense.Likeliest(as_dense.Balance(Load::kTime), 1));
  EXPECT_LT(Busiest(task, with_gaps.Likeliest(with_gaps.Balance(Load::kTime), 1)),
            Busiest(task, with_gaps.Likeliest()));
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
      const std::vector<int64_t> likeliest = groups.Likeliest(),
                                 balanced = groups.Likeliest(groups.Balance(Load::kTime), 1);
      for (size_t i = 0; i < balanced.size(); ++i) {
        const auto node = static_cast<size_t>(task.order[i]);
        EXPECT_TRUE(task.coarse.can_run(node, MakeId<DeviceId>(static_cast<size_t>(balanced[i]))));
      }
      if (!coupling.empty()) continue;
      EXPECT_LE(Busiest(task, balanced), Busiest(task, likeliest));
    }
  }
}

// A chain of ops that take the same time, of which the first half makes nearly all bytes; a policy that is sure of the
// first device, and the least sure of the last ops.
TEST(GdpAnswer, SharesBytesAsWellWhereItIsAsked) {
  constexpr size_t kOps = 40;
  GraphBuilder builder("half");
  for (size_t v = 0; v < kOps; ++v) {
    builder.AddOp(fmt::format("op{}", v), "Unit", {});
    builder.AddTensor(v, v < kOps / 2 ? 99 : 1, {}, v + 1 == kOps);
    if (v > 0) builder.Consume(v - 1, v);
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  std::vector<float> odds;
  for (size_t v = 0; v < kOps; ++v) odds.insert(odds.end(), {0, -9 + 0.01F * static_cast<float>(v)});
  const GroupOdds groups(task, odds, {});
  const auto bytes_on_first = [&](const std::vector<int64_t>& device) {
    return std::count(device.begin(), device.begin() + kOps / 2, 0);  // of those with many
  };
  EXPECT_EQ(bytes_on_first(groups.Likeliest(groups.Balance(Load::kTime), 1)), 20)
      << "the last ops go to the second device";
  const std::vector<int64_t> shared = groups.Likeliest(groups.Balance(Load::kTimeAndBytes), 1);
  EXPECT_LT(bytes_on_first(shared), 18);
  EXPECT_GT(bytes_on_first(shared), 2);
}

TEST(GdpAnswer, PutsAllOnTheDeviceWithTheMostWorkWhereItIsAskedForOne) {
  GraphBuilder builder("one long op");
  for (size_t v = 0; v < 4; ++v) {
    builder.AddOp(fmt::format("op{}", v), "Unit", {});
    builder.AddTensor(v, 1, {}, v == 3);
    if (v > 0) builder.Consume(v - 1, v);
  }
  // Device 0 has one op, which is longer than the three of device 1; device 0 cannot run the last of these.
  OpTimes times{.time = {9, 9, 1, 1, 1, 1, kCannotRun, 1}, .source = "test"};
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)), std::move(times));
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  const std::vector<float> odds = {0, -1, -1, 0, -1, 0, -1e9F, 0};
  EXPECT_THAT(GroupOdds(task, odds, {}).OnOneDevice(), ::testing::ElementsAre(0, 0, 0, 1));
}

// 300 ops of which a policy is sure that they belong on the first device, of each one more than of the one before.
TEST(GdpAnswer, MovesMoreOpsTheStrongerThePricesAre) {
  const Problem problem = testing::Chain(300, 2);
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  std::vector<float> odds;
  for (size_t v = 0; v < 300; ++v) odds.insert(odds.end(), {0, -0.01F * static_cast<float>(v + 1)});
  const GroupOdds groups(task, odds, {});
  const Prices prices = groups.Balance(Load::kTimeAndBytes);
  const auto moved = [&](double strength) {
    const std::vector<int64_t> device = groups.Likeliest(prices, strength);
    return std::ranges::count(device, 1);
  };
  EXPECT_EQ(moved(0), 0);
  EXPECT_NEAR(static_cast<double>(moved(0.5)), 75, 8);
  EXPECT_NEAR(static_cast<double>(moved(1)), 150, 8);
}

// A parameter that all ops read lies once on each device: a group that holds all of them has its bytes once.
TEST(GdpAnswer, CountsAParameterOnceForAllThatReadIt) {
  GraphBuilder builder("shared");
  const size_t weight = builder.AddParameter(1'000'000, "weight");
  for (size_t v = 0; v < 30; ++v) {
    builder.AddOp(fmt::format("op{}", v), "Unit", {});
    builder.AddTensor(v, v < 10 ? 1 : 100'000, {}, v == 29);
    if (v > 0) builder.Consume(v - 1, v);
    if (v < 10) builder.UseParameter(weight, v);
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  std::vector<float> odds;
  Coupling thirds;
  for (size_t v = 0; v < 30; ++v) {
    odds.insert(odds.end(), {0, -5 - 0.1F * static_cast<float>(v / 10)});
    thirds.push_back(v / 10);
  }
  const GroupOdds groups(task, odds, thirds);
  const Prices prices = groups.Balance(Load::kTimeAndBytes);
  // Each third has a third of the time. The first has 1 MB of weights, the second 1 MB of tensors, and the last 0.9 MB,
  // since nobody reads the last tensor.
  const double bytes = 1.0 + 1.0 + 0.9;
  EXPECT_NEAR(prices.loads[0], 1.0 / 3 + 1.0 / bytes, 0.001);
  EXPECT_NEAR(prices.loads[2], 1.0 / 3 + 1.0 / bytes, 0.001);
  EXPECT_NEAR(prices.loads[4], 1.0 / 3 + 0.9 / bytes, 0.001);
}

// A chain of ops without tensors to keep, each with weights of its own; `memory` by device.
Problem Weights(const std::vector<int64_t>& bytes, const std::vector<int64_t>& memory) {
  return testing::UnitProblem(testing::WeightChain(bytes), memory.size(), {.memory_limits = memory});
}

std::vector<DeviceMemory> MemoryOf(const GdpTask& task, const std::vector<int64_t>& device) {
  std::vector<DeviceId> placement(task.problem.num_ops());
  task.Place(task.order, device, placement);
  return testing::EvaluatorNamed("parallel(contention=none,io=everywhere)", RegisterParallel, task.problem)
      ->Trace({.device = placement})
      .memory;
}

std::vector<int64_t> Relieve(const GdpTask& task, const GroupOdds& groups, const std::vector<int64_t>& device,
                             const Prices& prices) {
  std::vector<DeviceId> placement(task.problem.num_ops());
  task.Place(task.order, device, placement);
  return groups.Relieve(device, placement, MemoryOf(task, device), prices);
}

Prices None(const GdpTask& task, size_t groups) {
  const size_t devices = task.problem.num_devices();
  return {.price = std::vector<double>(devices, 0), .loads = std::vector<double>(groups * devices, 0)};
}

// 15 bytes are lacking. Sure of the first device; the least loss is that of the first op, which frees little, and the
// least per byte that of the third, which frees far more than is lacking. The second device is likelier than the third,
// and has no room.
TEST(GdpAnswer, MovesTheOpThatFreesAByteAtTheLeastLossToADeviceWithRoom) {
  const Problem problem = Weights({5, 20, 60, 10}, {80, 5, 70});
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  const std::vector<float> odds = {0, -9, -1, 0, -1.5, -2, 0, -2, -2.5, 0, -8, -9};
  const std::vector<int64_t> all_on_first = {0, 0, 0, 0};
  EXPECT_THAT(Relieve(task, GroupOdds(task, odds, {}), all_on_first, None(task, 4)),
              ::testing::ElementsAre(0, 2, 0, 0));
  const Coupling pairs = {0, 1, 1, 0};  // the second pair is too large for any device
  EXPECT_THAT(Relieve(task, GroupOdds(task, odds, pairs), all_on_first, None(task, 2)),
              ::testing::ElementsAre(2, 0, 0, 2));
  // A device that is dear for what it would get.
  Prices prices = None(task, 4);
  prices.price[2] = 1;
  for (const size_t op : {1, 2, 3}) prices.loads[op * 3 + 2] = 50;
  EXPECT_EQ(Relieve(task, GroupOdds(task, odds, {}), all_on_first, prices)[0], 2);
}

TEST(GdpAnswer, MovesNothingWhereAllFitsOrNoDeviceHasRoom) {
  const std::vector<float> odds(12, 0);
  const std::vector<int64_t> all_on_first = {0, 0, 0, 0};
  for (const std::vector<int64_t>& memory : {std::vector<int64_t>{60, 5, 30}, {45, 5, 9}}) {
    const Problem problem = Weights({10, 20, 20, 10}, memory);
    const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
    EXPECT_THAT(Relieve(task, GroupOdds(task, odds, {}), all_on_first, None(task, 4)), ::testing::IsEmpty());
  }
}

// The first two ops are one group; the policy would rather have it on the second device, where one of them cannot run.
TEST(GdpAnswer, MovesNoGroupToADeviceThatCannotRunAllOfIt) {
  OpTimes times{.time = {1, kCannotRun, 1, 1, 1, 1}, .source = "test"};
  const Problem problem(std::make_shared<const Graph>(testing::WeightChain({10, 10, 10})),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)), std::move(times),
                        {.memory_limits = {25, 100}});
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  const std::vector<float> odds = {0, -1e9F, -20, 0, 0, -5};
  const std::vector<int64_t> all_on_first = {0, 0, 0};
  EXPECT_THAT(Relieve(task, GroupOdds(task, odds, std::vector<size_t>{0, 0, 1}), all_on_first, None(task, 2)),
              ::testing::ElementsAre(0, 0, 1));
}

// Each tensor is made by an op and read by the next, so that none leaves with one op alone; the first leaves with both.
TEST(GdpAnswer, CountsATensorForTheGroupThatMakesAndReadsIt) {
  GraphBuilder builder("chain");
  for (size_t v = 0; v < 3; ++v) {
    builder.AddOp(fmt::format("op{}", v), "Unit", {});
    builder.AddTensor(v, v == 2 ? 0 : 50, {}, v == 2);
    if (v > 0) builder.Consume(v - 1, v);
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 2, {.memory_limits = {75, 200}});
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  const std::vector<float> odds(6, 0);
  const std::vector<int64_t> all_on_first = {0, 0, 0};
  EXPECT_THAT(Relieve(task, GroupOdds(task, odds, {}), all_on_first, None(task, 3)), ::testing::IsEmpty());
  EXPECT_THAT(Relieve(task, GroupOdds(task, odds, std::vector<size_t>{0, 0, 1}), all_on_first, None(task, 2)),
              ::testing::ElementsAre(1, 1, 0));
}

// What an op holds while it runs, and a copy of what another device made, leave with the op.
TEST(GdpAnswer, CountsWorkspaceAndCopiesForTheOpThatUsesThem) {
  for (const bool workspace : {false, true}) {
    GraphBuilder builder("pair");
    builder.AddOp("maker", "Unit", {});
    builder.AddOp("reader", "Unit", {.workspace_bytes = workspace ? 50 : 0});
    builder.AddTensor(0, workspace ? 0 : 50);
    builder.AddTensor(1, 0, {}, true);
    builder.Consume(0, 1);
    const Problem problem = testing::UnitProblem(builder.Build(), 3, {.memory_limits = {100, 40, 100}});
    const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
    const std::vector<float> odds = {0, 0, 0, -2, 0, -1};
    EXPECT_THAT(Relieve(task, GroupOdds(task, odds, {}), {0, 1}, None(task, 2)), ::testing::ElementsAre(0, 2));
  }
}

// Weights that two ops read lie there as long as one of them does.
TEST(GdpAnswer, CountsOnlyWhatNoOtherOpOfTheDeviceNeeds) {
  GraphBuilder builder("shared");
  const size_t both = builder.AddParameter(100, "both"), own = builder.AddParameter(10, "own");
  for (size_t v = 0; v < 3; ++v) {
    builder.AddOp(fmt::format("op{}", v), "Unit", {});
    builder.AddTensor(v, 0, {}, v == 2);
    if (v > 0) builder.Consume(v - 1, v);
  }
  builder.UseParameter(both, 0);
  builder.UseParameter(both, 1);
  builder.UseParameter(own, 2);
  const Problem problem = testing::UnitProblem(builder.Build(), 2, {.memory_limits = {105, 200}});
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  const std::vector<float> odds = {0, -1, 0, -1, 0, -50};
  const std::vector<int64_t> all_on_first = {0, 0, 0};
  EXPECT_THAT(Relieve(task, GroupOdds(task, odds, {}), all_on_first, None(task, 3)), ::testing::ElementsAre(0, 0, 1));
  const Coupling readers = {0, 0, 1};
  EXPECT_THAT(Relieve(task, GroupOdds(task, odds, readers), all_on_first, None(task, 2)),
              ::testing::ElementsAre(1, 1, 0));
}

// Where weights are all that devices hold, what is foreseen is what comes: no device becomes too full, the lack shrinks
// with each call, and at the end no op can move that would help.
TEST(GdpAnswer, LacksLessMemoryWithEachCall) {
  Random random(3);
  int fitted = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<int64_t> bytes(1 + random.Below(30)), memory(1 + random.Below(4)), device(bytes.size());
    for (int64_t& each : bytes) each = 1 + static_cast<int64_t>(random.Below(50));
    for (int64_t& each : memory) each = static_cast<int64_t>(random.Below(500));
    const Problem problem = Weights(bytes, memory);
    const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
    const std::vector<float> odds = RandomOdds(task, random);
    const GroupOdds ops(task, odds, {});
    for (int64_t& each : device) each = static_cast<int64_t>(random.Below(memory.size()));
    const auto lacks = [&](const std::vector<int64_t>& placement) {
      std::vector<int64_t> lack;
      const std::vector<DeviceMemory> held = MemoryOf(task, placement);
      for (size_t d = 0; d < memory.size(); ++d) {
        lack.push_back(std::max(held[d].peak_bytes - memory[d], int64_t{0}));
      }
      return lack;
    };
    std::vector<int64_t> lack = lacks(device);
    const bool fit_before = std::ranges::count(lack, 0) == std::ssize(lack);
    while (true) {
      const std::vector<int64_t> relieved = Relieve(task, ops, device, None(task, bytes.size()));
      if (relieved.empty()) break;
      const std::vector<int64_t> less = lacks(relieved);
      for (size_t d = 0; d < lack.size(); ++d) EXPECT_LE(less[d], lack[d]);
      ASSERT_LT(std::reduce(less.begin(), less.end()), std::reduce(lack.begin(), lack.end()));
      device = relieved;
      lack = less;
    }
    const std::vector<DeviceMemory> held = MemoryOf(task, device);
    for (size_t v = 0; v < bytes.size(); ++v) {
      if (lack[static_cast<size_t>(device[v])] == 0) continue;
      for (size_t d = 0; d < memory.size(); ++d)
        EXPECT_GT(held[d].peak_bytes + bytes[static_cast<size_t>(task.order[v])], memory[d]);
    }
    fitted += !fit_before && std::ranges::count(lack, 0) == std::ssize(lack) ? 1 : 0;
  }
  EXPECT_GT(fitted, 5);
}

}  // namespace
}  // namespace berth
