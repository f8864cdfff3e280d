// A machine as it really is, in one file: it does not answer now and then, hangs, and is never quite the same. Every
// planner must get on with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cli/catalogs.h"
#include "placement/objective.h"
#include "placement/search.h"
#include "placement/testing.h"
#include "report/run_planners.h"

namespace berth {
namespace {

struct Log {
  std::atomic<int64_t> asked = 0, failed = 0, hung = 0;
  std::atomic<double> least = std::numeric_limits<double>::infinity();
};

class RoughEvaluator : public Evaluator {
 public:
  RoughEvaluator(const EvaluatorContext& context, double noise, std::shared_ptr<Log> log)
      : Evaluator(context.problem),
        inner_(context.evaluators.Make("parallel(io=everywhere)", context.problem)),
        noise_(noise),
        log_(std::move(log)),
        facts_{.model = MeasuredFacts{},
               .deterministic = false,
               .exclusive = true,
               .stops = true,
               .uses_priorities = false} {}
  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override {
    static const std::string name("rough");
    return name;
  }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<Workspace>(); }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    BERTH_CHECK(!busy_.exchange(true), "it is exclusive");
    const Score score = Run(plan, workspace, starts);
    busy_ = false;
    ++log_->asked;
    log_->failed += score.failed() ? 1 : 0;
    log_->least = std::min(log_->least.load(), score.time);
    return score;
  }

  Timeline Trace(const PlanView& plan) const override {
    ++log_->asked;
    return inner_->Trace(plan);
  }

 private:
  Score Run(const PlanView& plan, Workspace& workspace, std::span<double> starts) const {
    Random random = Random(7).Fork(static_cast<uint64_t>(workspace.evaluation));
    if (random.Chance(0.2)) {
      workspace.failure = "the device did not answer";
      return Score::Failed();
    }
    if (random.Chance(0.02)) {
      ++log_->hung;
      while (!workspace.stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      workspace.failure = "stopped";
      return Score::Failed();
    }
    Score score = inner_->ScorePlan(plan, *inner_->NewWorkspace(), starts);
    score.time *= std::exp(noise_ * random.Normal());
    return score;
  }

  std::unique_ptr<Evaluator> inner_;
  double noise_;
  std::shared_ptr<Log> log_;
  EvaluatorFacts facts_;
  mutable std::atomic<bool> busy_ = false;
};

class Rough : public ::testing::TestWithParam<double> {};

// All planners but what is made of others, or of a file.
std::vector<std::unique_ptr<Planner>> SmallPlanners(const Catalogs& all) {
  std::vector<std::unique_ptr<Planner>> planners;
  for (const std::string& name : all.planners.Names()) {
    if (name == "fixed" || name == "best_of") continue;
    planners.push_back(all.planners.MakePlanner(name == "hsdag"     ? "hsdag(hidden=16,imagined=2)"
                                                : name == "placeto" ? "placeto(rounds=2,rollouts=1,epochs=1)"
                                                                    : name));
  }
  return planners;
}

// A problem of `all`'s, with the evaluator `rough` in its catalog.
struct Machine {
  explicit Machine(double noise) {
    all.evaluators.Add(
        {.name = "rough", .sentence = "-", .source = "-"},
        [noise, log = log](const Params&, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
          return std::make_unique<RoughEvaluator>(context, noise, log);
        });
  }

  std::unique_ptr<Evaluator> MakeEvaluator() const {
    return all.evaluators.Make("deadline(seconds=0.02,of=rough)", problem);
  }

  Catalogs all;
  std::shared_ptr<Log> log = std::make_shared<Log>();
  Random random{3};
  Problem problem = testing::RandomProblem(random, {.ops = 9, .devices = 2});
};

TEST_P(Rough, CostsEveryPlannerOneEvaluationPerFailureAndNothingElse) {
  const double noise = GetParam();
  const Machine machine(noise);
  const Problem& problem = machine.problem;
  const std::shared_ptr<Log>& log = machine.log;
  const auto evaluator = machine.MakeEvaluator();
  int answered = 0;
  for (const auto& planner : SmallPlanners(machine.all)) {
    SCOPED_TRACE(planner->name());
    if (planner->Refuses(problem, *evaluator)) continue;
    log->asked = log->failed = 0;
    log->least = std::numeric_limits<double>::infinity();
    const PlanResult result =
        planner->MakePlan({.evaluator = *evaluator, .budget = {.evaluations = 120}, .random = Random(1)});
    ++answered;
    EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
    EXPECT_LE(result.evaluations, 120);
    EXPECT_FALSE(result.optimal);
    EXPECT_FALSE(result.score.failed());
    // A learned planner knows what the same placement took a moment ago, or that it failed.
    EXPECT_GE(result.evaluations, log->asked);
    EXPECT_GE(result.failures, log->failed);
    if (!planner->facts().learned) {
      EXPECT_EQ(result.evaluations, log->asked);
      EXPECT_EQ(result.failures, log->failed);
    }
    if (noise == 0) {
      EXPECT_EQ(result.score.time, log->least) << "the best plan was lost";
    }
  }
  EXPECT_GT(answered, 8);
  EXPECT_GT(log->hung, 0);
}

TEST_P(Rough, IsAskedNoMoreThanABudgetSaysWithAllThatIsReported) {
  const Machine machine(GetParam());
  int answered = 0;
  for (const auto& planner : SmallPlanners(machine.all)) {
    SCOPED_TRACE(planner->name());
    machine.log->asked = 0;
    const auto evaluator = WithObjective(machine.MakeEvaluator(), {.name = "weighted", .latency = 1, .weighted = true});
    if (planner->Refuses(machine.problem, *evaluator)) continue;
    const PlanReport report = RunPlanner({.evaluator = *evaluator,
                                          .bound = LowerBound(*evaluator),
                                          .singles = ScoreSingleDevices(*evaluator),
                                          .budget = {.evaluations = 60}},
                                         *planner);
    ++answered;
    EXPECT_LE(machine.log->asked, 60);
    EXPECT_EQ(report.set_up, 5) << "two devices alone, twice, and the timeline";
    EXPECT_LE(report.result.evaluations + report.set_up, 60);
  }
  EXPECT_GT(answered, 8);
}

INSTANTIATE_TEST_SUITE_P(Noise, Rough, ::testing::Values(0, 0.05));

}  // namespace
}  // namespace berth
