#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "placement/bound.h"
#include "placement/grouping.h"
#include "placement/search.h"
#include "placement/testing.h"
#include "plan/favourites.h"
#include "plan/planners.h"
#include "plan/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

class Auto : public ::testing::Test {
 protected:
  Auto() {
    RegisterGroupings(groupings_);
    RegisterParallel(evaluators_);
    RegisterSerial(evaluators_);
    RegisterSingle(planners_);
    RegisterRoundRobin(planners_);
    RegisterHeft(planners_);
    RegisterOneCut(planners_);
    RegisterLocalSearch(planners_);
    RegisterAnnealing(planners_);
    RegisterExhaustive(planners_);
    RegisterMinCut(planners_);
    RegisterHuman(planners_);
    RegisterSimpleRules(planners_);
    RegisterMetis(planners_);
    RegisterMultilevel(planners_);
    RegisterAuto(planners_);
  }

  PlanResult Run(const Evaluator& evaluator, std::string_view planner, const Budget& budget, int64_t threads = 0) {
    return planners_.MakePlanner(planner)->MakePlan(
        {.evaluator = evaluator, .budget = budget, .random = Random(3), .threads = threads});
  }

  GroupingCatalog groupings_{"grouping"};
  EvaluatorCatalog evaluators_{"evaluator"};
  PlannerCatalog planners_;
};

TEST_F(Auto, IsNoWorseThanAnyRule) {
  for (const char* model : {"rnnlm(layers=2,steps=5)", "nmt(steps=5)", "wavenet(stacks=1)", "chain(ops=20)"}) {
    for (const bool training : {false, true}) {
      const Problem problem = testing::ModelProblem(model, "p100x4", training);
      const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
      const Score found = Run(*evaluator, "auto", {.evaluations = 2000}).score;
      for (const char* rule : {"single", "round_robin", "human", "heft", "heft(rank=optimistic)", "metis", "topo",
                               "equal_layers", "memory_proportional", "first_fit"}) {
        EXPECT_FALSE(Better(Run(*evaluator, rule, {}).score, found)) << rule << " on " << model;
      }
      if (!kHasFavouriteProgram) continue;
      EXPECT_FALSE(Better(Run(*evaluator, "sct(clusters=always,edges=4000)", {}).score, found)) << "sct on " << model;
    }
  }
}

// A schedule of length `length` without idle time, in which each op is on its fastest device: the optimum. Ops are
// numbered by when they start in it, and many tensors arrive just when they are needed.
Problem Planted(Random& random, size_t devices, size_t per_device, double length) {
  struct Task {
    double start, end;
    size_t device;
  };
  std::vector<Task> tasks;
  for (size_t d = 0; d < devices; ++d) {
    std::vector<double> cuts = {0, length};
    while (cuts.size() < per_device + 1) cuts.push_back(random.Uniform(1, length - 1));
    std::ranges::sort(cuts);
    for (size_t i = 0; i < per_device; ++i) tasks.push_back({.start = cuts[i], .end = cuts[i + 1], .device = d});
  }
  std::ranges::sort(tasks, {}, &Task::start);
  GraphBuilder builder("planted");
  std::vector<double> times;
  for (const Task& task : tasks) {
    builder.AddOp("", "Task", {});
    for (size_t d = 0; d < devices; ++d) {
      times.push_back((task.end - task.start) * (d == task.device ? 1 : 1 + random.Uniform(0.2, 1)));
    }
  }
  const double most = 2 * length / static_cast<double>(per_device);
  for (size_t v = 0; v < tasks.size(); ++v) {
    std::vector<size_t> before;
    for (size_t u = 0; u < v; ++u) {
      if (tasks[u].end <= tasks[v].start) before.push_back(u);
    }
    for (size_t count = random.Below(3); count > 0 && !before.empty(); --count) {
      const size_t u = before[random.Below(before.size())];
      const double gap = tasks[v].start - tasks[u].end;
      builder.Consume(builder.AddTensor(u, static_cast<int64_t>(1e6 * std::min(gap, random.Uniform(0, most)))), v);
    }
  }
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>(testing::UniformCluster(devices, 0, 1e6)),
                 {.time = std::move(times), .source = "planted"});
}

TEST_F(Auto, FindsAnOrderWhereEachOpHasItsOwnDevice) {
  Random random(5);
  for (const size_t devices : {4, 8}) {
    const Problem problem = Planted(random, devices, 10, 100);
    const auto evaluator = evaluators_.Make("parallel(contention=none,io=everywhere)", problem);
    EXPECT_GE(Run(*evaluator, "heft", {}).score.time, 105);
    EXPECT_LE(Run(*evaluator, "auto", {.evaluations = 100'000}).score.time, 101);
  }
}

TEST_F(Auto, ProvesTheOptimumOfATinyProblem) {
  Random random(8);
  const Problem problem = testing::RandomProblem(random, {.ops = 8, .devices = 2});
  const auto evaluator = evaluators_.Make("parallel(contention=none,io=everywhere)", problem);
  const PlanResult result = Run(*evaluator, "auto", {.evaluations = 5000});
  EXPECT_TRUE(result.optimal);
  EXPECT_EQ(result.score.time, Run(*evaluator, "exhaustive(space=order,limit=1e18)", {}).score.time);
  ASSERT_TRUE(result.bound) << "reports say what no plan can beat";
  EXPECT_EQ(result.bound->value, result.score.time);
  EXPECT_TRUE(result.bound->HoldsFor(*evaluator));
}

TEST_F(Auto, WithFewEvaluationsLetsEachRuleEnd) {
  const Problem problem = testing::ModelProblem("gnmt(layers=2,steps=4)", "p100x4", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  const double best = Run(*evaluator, "auto", {.evaluations = 195}).score.time;
  for (const char* rule : {"heft", "human", "metis"}) EXPECT_LE(best, Run(*evaluator, rule, {}).score.time) << rule;
}

TEST_F(Auto, EndsAtTheLowerBound) {
  // On one of two like devices a chain takes as long as it must.
  const Problem problem = testing::Chain(40, 2);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  const PlanResult result = Run(*evaluator, "auto", {.evaluations = 1'000'000});
  EXPECT_EQ(result.score.value(), LowerBound(*evaluator).value());
  EXPECT_TRUE(result.optimal);
  ASSERT_TRUE(result.bound);
  EXPECT_EQ(result.bound->value, result.score.value());
  EXPECT_LT(result.evaluations, 1000);
}

TEST_F(Auto, GivesTheSamePlanOnAnyNumberOfThreads) {
  const Problem problem = testing::ModelProblem("gnmt(layers=2,steps=4)", "p100x4", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  for (const int64_t evaluations : {1, 7, 60, 900}) {
    const PlanResult one = Run(*evaluator, "auto", {.evaluations = evaluations}, 1);
    EXPECT_LE(one.evaluations, evaluations);
    for (const int64_t threads : {2, 5}) {
      const PlanResult more = Run(*evaluator, "auto", {.evaluations = evaluations}, threads);
      EXPECT_EQ(more.plan.device, one.plan.device);
      EXPECT_EQ(more.plan.priority, one.plan.priority);
      EXPECT_EQ(more.plan.sequence.has_value(), one.plan.sequence.has_value());
      EXPECT_EQ(more.score.value(), one.score.value());
      EXPECT_EQ(more.evaluations, one.evaluations);
      ASSERT_EQ(more.contributions.size(), one.contributions.size());
      for (size_t i = 0; i < one.contributions.size(); ++i) {
        EXPECT_EQ(more.contributions[i].planner, one.contributions[i].planner);
        EXPECT_EQ(more.contributions[i].score.value(), one.contributions[i].score.value());
        EXPECT_EQ(more.contributions[i].led, one.contributions[i].led);
      }
    }
  }
}

TEST_F(Auto, SaysWhyEachOpIsWhereItIsAndAsksNoMemberForThat) {
  const Problem problem = testing::ModelProblem("nmt(steps=4)", "p100x4", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  for (const char* planner : {"auto", "heft", "human", "metis", "topo", "one_cut", "multilevel", "annealing"}) {
    for (const bool causes : {true, false}) {
      const PlanResult result = planners_.MakePlanner(planner)->MakePlan(
          {.evaluator = *evaluator, .budget = {.evaluations = 300}, .random = Random(3), .causes = causes});
      EXPECT_EQ(result.plan.cause_texts.size() > 1, causes) << planner;
    }
  }
}

TEST_F(Auto, SpendsNearlyAllOfItsEvaluations) {
  const Problem problem = testing::ModelProblem("nmt(steps=4)", "p100x4", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  EXPECT_GT(Run(*evaluator, "auto", {.evaluations = 2000}).evaluations, 1800);
}

TEST_F(Auto, StopsWhenItIsCancelledWithThePlanThatItHas) {
  const Problem problem = testing::ModelProblem("nmt(steps=4)", "p100x4", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  const std::atomic<bool> cancelled = true;
  const PlanResult result = Run(*evaluator, "auto", {.cancelled = &cancelled});
  EXPECT_EQ(result.plan.device.size(), problem.num_ops());
  EXPECT_LT(result.evaluations, 20);
}

TEST_F(Auto, EndsWithAProof) {
  Random random(4);
  const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 2});
  const auto evaluator = evaluators_.Make("serial(io=everywhere)", problem);
  const PlanResult result = Run(*evaluator, "auto", {.evaluations = 5000});
  EXPECT_TRUE(result.optimal);
  const auto last =
      std::ranges::find_if(result.contributions.rbegin(), result.contributions.rend(), &Contribution::led);
  ASSERT_NE(last, result.contributions.rend());
  EXPECT_THAT(last->planner, ::testing::HasSubstr("mincut"));
}

TEST_F(Auto, SaysWhatEachMemberContributed) {
  Random random(4);
  const Problem problem = testing::RandomProblem(random, {.ops = 40, .devices = 3});
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  const PlanResult result = Run(*evaluator, "auto", {.evaluations = 3000});
  int64_t evaluations = 0;
  double best = std::numeric_limits<double>::infinity();
  for (const Contribution& each : result.contributions) {
    evaluations += each.evaluations;
    EXPECT_EQ(each.led, each.score.value() < best) << each.planner;
    best = std::min(best, each.score.value());
  }
  EXPECT_EQ(evaluations, result.evaluations);
  EXPECT_EQ(best, result.score.value());
  EXPECT_TRUE(result.contributions.front().led);
}

}  // namespace
}  // namespace berth
