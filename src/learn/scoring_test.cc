#include "learn/scoring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "learn/testing.h"
#include "placement/testing.h"

namespace berth {
namespace {

std::vector<DeviceId> On(int32_t a, int32_t b) { return {DeviceId{a}, DeviceId{b}}; }

TEST(Scoring, AveragesTheLastRuns) {
  const Problem problem = testing::Chain(2, 2);
  // The runs take 1, 2, 3, ... 10: the last five average 8.
  double run = 0;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView&) { return Score{.time = ++run}; });
  const auto scoring = ForLearning(evaluator, {.runs = 10, .kept = 5});
  testing::OpenSearch search(*scoring);
  const Score score = search.Evaluate({.device = On(0, 0)}, "");
  EXPECT_DOUBLE_EQ(CostOf(problem, score, 2), 8);
  EXPECT_EQ(score.runs, 5);
  EXPECT_DOUBLE_EQ(score.spread, 4);
  EXPECT_EQ(search.evaluations(), 1);
}

TEST(Scoring, AddsSecondsForMemoryThatIsNotThere) {
  Problem::Options options;
  options.seconds_per_unit = 1e-3;
  const Problem problem = testing::UnitProblem(testing::Chain(2, 2).graph(), 2, std::move(options));
  const Score score{.time = 7, .outcome = Outcome::kTooBig, .excess_bytes = 500'000'000};
  EXPECT_DOUBLE_EQ(CostOf(problem, score, 2), 7 + 1000);
  // It fails where the penalty is infinite, and what fits does not.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(CostOf(problem, score, kInfinity), kInfinity);
  EXPECT_EQ(CostOf(problem, Score{.time = 7}, kInfinity), 7);
}

TEST(Scoring, WhatBreaksARuleCostsMore) {
  const Problem problem = testing::Chain(2, 2);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Score broken{.time = 10, .outcome = Outcome::kImpossible};
  EXPECT_DOUBLE_EQ(CostOf(problem, broken, 2), 11);
  EXPECT_EQ(CostOf(problem, broken, kInfinity), kInfinity);
}

TEST(Scoring, CountsWhatItKnowsAlready) {
  const Problem problem = testing::Chain(2, 2);
  int64_t runs = 0;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
    ++runs;
    return Score{.time = 1.0 + static_cast<double>(plan.device[1])};
  });
  const auto scoring = ForLearning(evaluator, {.cache = true});
  testing::OpenSearch search(*scoring);
  EXPECT_EQ(search.Evaluate({.device = On(0, 1)}, "").time, 2);
  EXPECT_EQ(search.Evaluate({.device = On(0, 0)}, "").time, 1);
  EXPECT_EQ(search.Evaluate({.device = On(0, 1)}, "").time, 2);
  search.Repeat({.time = 2});
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(search.evaluations(), 4);
  EXPECT_EQ(search.best().device, On(0, 0));
}

TEST(Scoring, TakesErrorsAndScoresThatAreNotFiniteForFailures) {
  const Problem problem = testing::Chain(2, 2);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView& plan) {
    if (plan.device[0] == DeviceId{1}) throw Error("the device is on fire");
    return Score{.time = std::nan("")};
  });
  const auto scoring = ForLearning(evaluator, {});
  testing::OpenSearch search(*scoring);
  EXPECT_TRUE(search.Evaluate({.device = On(1, 0)}, "").failed());
  EXPECT_EQ(search.last_failure(), "the device is on fire");
  const Score score = search.Evaluate({.device = On(0, 0)}, "");
  EXPECT_TRUE(score.failed());
  EXPECT_TRUE(std::isinf(CostOf(problem, score, 2)));
  EXPECT_EQ(search.failures(), 2);
}

TEST(Scoring, RefusesASingleDeviceWhereAsked) {
  const Problem problem = testing::Chain(2, 2);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView&) { return Score{.time = 1}; });
  const auto scoring = ForLearning(evaluator, {.reject_single_device = true});
  testing::OpenSearch search(*scoring);
  EXPECT_TRUE(search.Evaluate({.device = On(1, 1)}, "").failed());
  EXPECT_FALSE(search.Evaluate({.device = On(1, 0)}, "").failed());
}

}  // namespace
}  // namespace berth
