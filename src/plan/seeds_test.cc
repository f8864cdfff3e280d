#include "plan/seeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "placement/testing.h"
#include "placement/wrapper.h"
#include "plan/planners.h"
#include "plan/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

// What planners promise that begin with seeds and search with many plans at once.
class SeededPlanners : public ::testing::TestWithParam<const char*> {
 protected:
  SeededPlanners() {
    RegisterParallel(evaluators_);
    RegisterSerial(evaluators_);
    RegisterSingle(planners_);
    RegisterRoundRobin(planners_);
    RegisterHeft(planners_);
    RegisterHuman(planners_);
    RegisterSimpleRules(planners_);
    RegisterMetis(planners_);
    RegisterExhaustive(planners_);
    RegisterBrkga(planners_);
    RegisterCrossEntropy(planners_);
  }

  PlanResult Run(const Evaluator& evaluator, std::string_view planner, const Budget& budget, int64_t threads = 0,
                 const Plan* start = nullptr) const {
    return planners_.MakePlanner(planner)->MakePlan(
        {.evaluator = evaluator, .budget = budget, .random = Random(3), .start = start, .threads = threads});
  }
  std::string With(std::string_view parameters) const { return fmt::format("{}({})", GetParam(), parameters); }

  EvaluatorCatalog evaluators_{"evaluator"};
  PlannerCatalog planners_;
};

INSTANTIATE_TEST_SUITE_P(Planners, SeededPlanners, ::testing::Values("brkga", "cross_entropy"));

// Counts what it is asked, and what of that is no plan.
struct Watching : Wrapper {
  Watching(std::shared_ptr<const Evaluator> inner, const Problem& constrained)
      : Wrapper("watching", std::move(inner)), constrained_(constrained) {}
  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    ++asked;
    if (FindViolation(constrained_, plan)) ++wrong;
    return Wrapper::ScorePlan(plan, workspace, starts);
  }

  const Problem& constrained_;
  mutable std::atomic<int64_t> asked = 0, wrong = 0;
};

TEST_P(SeededPlanners, FindTheOptimumOfTinyProblems) {
  Random random(12);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const Problem problem = testing::RandomProblem(
        random,
        {.ops = 6, .devices = 2 + static_cast<size_t>(round % 2), .memory_limits = round % 3 == 0, .forbidden = 0.2});
    const auto evaluator = evaluators_.Make(round % 2 == 0 ? "parallel(io=everywhere)" : "serial", problem);
    const PlanResult optimum = Run(*evaluator, "exhaustive", {});
    for (const char* start : {"rules", "random"}) {
      const PlanResult found =
          Run(*evaluator, With(fmt::format("order=first_come,start={}", start)), {.evaluations = 6000});
      EXPECT_EQ(found.score.fits(), optimum.score.fits());
      if (!optimum.score.fits()) continue;
      EXPECT_LE(found.score.value(), optimum.score.value() * (1 + 1e-12)) << start;
    }
  }
}

TEST_P(SeededPlanners, ScoreNothingThatBreaksAConstraint) {
  Random random(5);
  int rounds = 0;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const Problem free = testing::RandomProblem(random, {.ops = 24, .devices = 3, .forbidden = 0.2});
    Problem::Options options;
    options.constraints.colocate = {{OpId{1}, OpId{5}, OpId{9}}, {OpId{2}, OpId{20}}};
    options.constraints.separate = {{OpId{1}, OpId{3}}, {OpId{3}, OpId{7}}};
    if (round % 2 == 0) {
      options.constraints.forbidden_transfers = {{TensorId{0}, DeviceId{0}, DeviceId{1}}};
    }
    OpTimes times{.time = {}, .source = "copy"};
    for (const OpId op : free.graph().ops()) {
      for (const double time : free.op_times(op)) times.time.push_back(time);
    }
    const Problem problem(free.shared_graph(), free.shared_cluster(), std::move(times), std::move(options));
    if (Units(problem).contradiction()) continue;
    ++rounds;
    const Watching watching(evaluators_.Make("parallel(io=everywhere)", problem), problem);
    for (const char* start : {"rules", "random"}) {
      const PlanResult result =
          Run(watching, With(fmt::format("start={}", start)), {.evaluations = 700}, 1 + round % 3);
      EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
    }
    EXPECT_EQ(watching.asked, 1400);
    EXPECT_EQ(watching.wrong, 0);
  }
  EXPECT_GE(rounds, 4);
}

TEST_P(SeededPlanners, GiveTheSamePlanOnAnyNumberOfThreads) {
  const Problem problem = testing::ModelProblem("gnmt(layers=2,steps=4)", "p100x4", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  for (const char* parameters : {"start=rules", "start=random,order=first_come"}) {
    for (const int64_t evaluations : {1, 7, 60, 900}) {
      const PlanResult one = Run(*evaluator, With(parameters), {.evaluations = evaluations}, 1);
      EXPECT_EQ(one.evaluations, evaluations);
      for (const int64_t threads : {2, 4}) {
        const PlanResult more = Run(*evaluator, With(parameters), {.evaluations = evaluations}, threads);
        EXPECT_EQ(more.plan, one.plan);
        EXPECT_EQ(more.score, one.score);
        EXPECT_EQ(more.note, one.note);
      }
    }
  }
}

TEST_P(SeededPlanners, BeginWithThePlacementsOfAllRules) {
  for (const char* model : {"rnnlm(layers=2,steps=5)", "nmt(steps=5)", "wavenet(stacks=1)"}) {
    const Problem problem = testing::ModelProblem(model, "p100x4", true);
    const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
    const Score found = Run(*evaluator, With("order=first_come"), {.evaluations = 400}).score;
    for (const auto& rule : MakeRules(planners_)) {
      const Plan plan = rule->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(3)}).plan;
      const Score bare = evaluator->ScorePlan({.device = plan.device}, *evaluator->NewWorkspace());
      EXPECT_FALSE(Better(bare, found)) << rule->name() << " on " << model;
    }
  }
}

TEST_P(SeededPlanners, GoOnFromTheStartThatTheyAreGiven) {
  const Problem problem = testing::ModelProblem("nmt(steps=4)", "p100x4", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  const Plan start = Run(*evaluator, "human", {}).plan;
  const PlanResult first = Run(*evaluator, With("start=simple"), {.evaluations = 1}, 1, &start);
  EXPECT_EQ(first.plan.device, start.device);
  const PlanResult found = Run(*evaluator, With("start=simple"), {.evaluations = 2000}, 1, &start);
  EXPECT_TRUE(Better(found.score, first.score));
}

TEST_P(SeededPlanners, StopWhenTheyAreCancelledWithThePlanThatTheyHave) {
  const Problem problem = testing::ModelProblem("nmt(steps=4)", "p100x4", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  const std::atomic<bool> cancelled = true;
  const PlanResult result = Run(*evaluator, GetParam(), {.cancelled = &cancelled});
  EXPECT_EQ(result.plan.device.size(), problem.num_ops());
  EXPECT_LT(result.evaluations, 20);
}

TEST_P(SeededPlanners, EndByThemselvesWithoutABudget) {
  const Problem problem = testing::ForkJoin(4, 2);
  const auto evaluator = evaluators_.Make("parallel(io=everywhere)", problem);
  for (const char* rounds : {"generations=3", "batches=3"}) {
    if (std::string_view(rounds).starts_with("gen") != (std::string_view(GetParam()) == "brkga")) continue;
    EXPECT_LT(Run(*evaluator, With(rounds), {}).evaluations, 600);
  }
}

}  // namespace
}  // namespace berth
