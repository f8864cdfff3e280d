#include "placement/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace berth {
namespace {

using ::testing::HasSubstr;

TEST(Budget, ReadsEvaluationsSecondsOrBoth) {
  EXPECT_EQ(Budget::Parse("200evals").evaluations, 200);
  EXPECT_EQ(Budget::Parse("10s").seconds, 10);
  const Budget both = Budget::Parse("200evals, 500ms");
  EXPECT_EQ(both.evaluations, 200);
  EXPECT_EQ(both.seconds, 0.5);
  EXPECT_EQ(both.ToString(), "200evals,0.5s");
}

TEST(Budget, RefusesWhatIsNone) {
  for (const char* text : {"evals", "0evals", "-3evals", "10", "1.5evals", "0s", "soon", "10s,"}) {
    try {
      Budget::Parse(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("200evals,10s")) << text;
    }
  }
}

TEST(Better, PutsFittingBeforeFastAndLessExcessBeforeLessTime) {
  const Score fits{.time = 9}, fast{.time = 1, .feasible = false, .excess_bytes = 5},
      near{.time = 7, .feasible = false, .excess_bytes = 1};
  EXPECT_TRUE(Better(fits, fast));
  EXPECT_FALSE(Better(fast, fits));
  EXPECT_TRUE(Better(near, fast));
  EXPECT_TRUE(Better({.time = 1}, fits));
  EXPECT_FALSE(Better(fits, fits));
}

// One op per device: the time of op 0's device number, plus one.
class ToyEvaluator : public Evaluator {
 public:
  using Evaluator::Evaluator;
  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<Workspace>(); }
  Score ScorePlan(const PlanView& plan, Workspace&, std::span<double>) const override {
    return {.time = static_cast<double>(Index(plan.device[0])) + 1};
  }
  Timeline Trace(const PlanView& plan) const override {
    Workspace workspace;
    return {.score = ScorePlan(plan, workspace, {})};
  }
  // Search is tested with plain evaluations here.
  std::unique_ptr<Session> NewSession(const PlanView&) const override { return nullptr; }

 private:
  EvaluatorFacts facts_;
  std::string name_ = "toy";
};

class SearchTest : public ::testing::Test {
 protected:
  static Problem MakeProblem() {
    GraphBuilder builder("one");
    builder.AddOp("op", "X", {.flops = 1});
    std::vector<Device> devices(3);
    for (size_t d = 0; d < devices.size(); ++d) devices[d].name = std::to_string(d);
    Link link;
    link.bandwidth.value = 1;
    return Problem(std::make_shared<Graph>(builder.Build()),
                   std::make_shared<Cluster>("three", devices, std::vector<Link>(9, link)), {.time = {1, 1, 1}});
  }

  Problem problem_ = MakeProblem();
  ToyEvaluator evaluator_{problem_};
  PlanRequest request_{.problem = problem_, .evaluator = evaluator_, .budget = {.evaluations = 3}, .random = Random(1)};
};

TEST_F(SearchTest, KeepsTheBestAndCountsEveryEvaluation) {
  Search search(request_);
  for (const int device : {1, 0, 2}) {
    EXPECT_FALSE(search.Done());
    search.Evaluate(PlanView{.device = std::vector{static_cast<DeviceId>(device)}}, "tried");
  }
  EXPECT_TRUE(search.Done());
  const PlanResult result = search.Finish();
  EXPECT_EQ(result.plan.device, std::vector{DeviceId{0}});
  EXPECT_EQ(result.plan.cause_of(OpId{0}), "tried");
  EXPECT_EQ(result.score.time, 1);
  EXPECT_EQ(result.evaluations, 3);
}

TEST_F(SearchTest, AllowsOneEvaluationWhateverTheBudget) {
  const std::atomic<bool> cancelled = true;
  request_.budget = {.evaluations = 100, .seconds = 0, .cancelled = &cancelled};
  Search search(request_);
  EXPECT_FALSE(search.Done());
  search.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "");
  EXPECT_TRUE(search.Done());
}

TEST_F(SearchTest, GivesTheRestOfItsBudgetAway) {
  Search search(request_);
  search.Evaluate(PlanView{.device = std::vector{DeviceId{2}}}, "mine");
  const PlanRequest rest = search.Remaining(5);
  EXPECT_EQ(rest.budget.evaluations, 2);
  search.Adopt({.plan = {.device = {DeviceId{0}}}, .score = {.time = 1}, .evaluations = 2});
  EXPECT_TRUE(search.Done());
  EXPECT_EQ(search.best().device, std::vector{DeviceId{0}});
}

TEST_F(SearchTest, FindsWhatMakesAPlanNoPlan) {
  const auto violation = [&](PlanView plan) { return FindViolation(problem_, plan).value_or("none"); };
  EXPECT_EQ(violation({.device = std::vector{DeviceId{2}}}), "none");
  EXPECT_THAT(violation({.device = {}}), HasSubstr("places 0 ops, the model has 1"));
  EXPECT_THAT(violation({.device = std::vector{DeviceId{3}}}), HasSubstr("the cluster has 3"));
  EXPECT_THAT(violation({.device = std::vector{DeviceId{-1}}}), HasSubstr("device -1"));
  EXPECT_THAT(violation({.device = std::vector{DeviceId{0}}, .priority = std::vector{0.0 / 0.0}}),
              HasSubstr("no number"));
  const Sequence empty;
  EXPECT_THAT(violation({.device = std::vector{DeviceId{0}}, .sequence = &empty}), HasSubstr("0 of 1 ops"));
}

TEST(Plan, StoresEachCauseOnce) {
  Plan plan{.device = {DeviceId{0}, DeviceId{1}, DeviceId{0}}};
  plan.SetCause(OpId{0}, "fast there");
  plan.SetCause(OpId{2}, "fast there");
  EXPECT_EQ(plan.cause_of(OpId{0}), "fast there");
  EXPECT_EQ(plan.cause_of(OpId{1}), "");
  EXPECT_EQ(plan.cause_of(OpId{2}), "fast there");
  EXPECT_EQ(plan.cause_texts.size(), 2u);
}

}  // namespace
}  // namespace berth
