#include "learn/judge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "learn/testing.h"
#include "placement/testing.h"

namespace berth {
namespace {

std::vector<DeviceId> On(int32_t a, int32_t b) { return {DeviceId{a}, DeviceId{b}}; }

TEST(Judge, AveragesTheLastRuns) {
  const Problem problem = testing::Chain(2, 2);
  // The runs take 1, 2, 3, ... 10: the last five average 8.
  double run = 0;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView&) { return Score{.time = ++run}; });
  Judge judge(evaluator, {.runs = 10, .kept = 5});
  EXPECT_DOUBLE_EQ(judge.Ask(On(0, 0)).cost, 8);
  EXPECT_EQ(judge.evaluations(), 1);
  const PlanResult found = judge.Take();
  EXPECT_DOUBLE_EQ(found.score.time, 8);
  EXPECT_EQ(found.evaluations, 1);
  EXPECT_TRUE(judge.Take().plan.device.empty()) << "it was taken already";
}

TEST(Judge, AddsSecondsForMemoryThatIsNotThere) {
  Problem::Options options;
  options.seconds_per_unit = 1e-3;
  const Problem problem = testing::UnitProblem(testing::Chain(2, 2).graph(), 2, std::move(options));
  const testing::FakeEvaluator evaluator(
      problem, [](const PlanView&) { return Score{.time = 7, .feasible = false, .excess_bytes = 500'000'000}; });
  Judge judge(evaluator, {.memory_penalty = 2});
  EXPECT_DOUBLE_EQ(judge.Ask(On(0, 0)).cost, 7 + 1000);
}

TEST(Judge, CountsWhatItKnowsAlready) {
  const Problem problem = testing::Chain(2, 2);
  int64_t runs = 0;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
    ++runs;
    return Score{.time = 1.0 + static_cast<double>(plan.device[1])};
  });
  Judge judge(evaluator, {.cache = true});
  EXPECT_EQ(judge.Ask(On(0, 1)).cost, 2);
  EXPECT_EQ(judge.Ask(On(0, 0)).cost, 1);
  EXPECT_EQ(judge.Ask(On(0, 1)).cost, 2);
  judge.Repeat(judge.Ask(On(0, 1)));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(judge.evaluations(), 5);
  const PlanResult found = judge.Take();
  EXPECT_EQ(found.plan.device, On(0, 0));
  EXPECT_EQ(found.evaluations, 5);
}

TEST(Judge, TakesErrorsAndScoresThatAreNotFiniteForFailures) {
  const Problem problem = testing::Chain(2, 2);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView& plan) {
    if (plan.device[0] == DeviceId{1}) throw Error("the device is on fire");
    return Score{.time = std::nan("")};
  });
  Judge judge(evaluator, {});
  EXPECT_TRUE(judge.Ask(On(1, 0)).failed);
  EXPECT_EQ(judge.last_failure(), "the device is on fire");
  const Verdict verdict = judge.Ask(On(0, 0));
  EXPECT_TRUE(verdict.failed);
  EXPECT_TRUE(std::isinf(verdict.cost));
  EXPECT_EQ(judge.failures(), 2);
  EXPECT_TRUE(judge.Take().plan.device.empty());
}

}  // namespace
}  // namespace berth
