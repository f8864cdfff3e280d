#include "placement/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "placement/testing.h"
#include "placement/wrapper.h"
#include "placement/wrappers.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Better, PutsFittingBeforeFastAndLessExcessBeforeLessTime) {
  const Score fits{.time = 9}, fast{.time = 1, .outcome = Outcome::kTooBig, .excess_bytes = 5},
      near{.time = 7, .outcome = Outcome::kTooBig, .excess_bytes = 1};
  EXPECT_TRUE(Better(fits, fast));
  EXPECT_FALSE(Better(fast, fits));
  EXPECT_TRUE(Better(near, fast));
  EXPECT_TRUE(Better({.time = 1}, fits));
  EXPECT_FALSE(Better(fits, fits));
  EXPECT_TRUE(Better(near, {.time = 1, .outcome = Outcome::kImpossible}));
  EXPECT_TRUE(Better(fast, Score::Failed()));
  EXPECT_FALSE(Better(Score::Failed(), fast));
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
  PlanRequest request_{.evaluator = evaluator_, .budget = {.evaluations = 3}, .random = Random(1)};
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

TEST_F(SearchTest, BeginsNoScoreThatItsSecondsAreTooFewFor) {
  class Slow : public ToyEvaluator {
   public:
    using ToyEvaluator::ToyEvaluator;
    Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      return ToyEvaluator::ScorePlan(plan, workspace, starts);
    }
  };
  const Slow slow(problem_);
  const Budget budget{.seconds = 0.1};
  Search search({.evaluator = slow, .budget = budget, .random = Random(1)});
  EXPECT_FALSE(search.Done());
  search.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "tried");
  EXPECT_TRUE(search.Done());
  EXPECT_GE(search.seconds_per_evaluation(), 0.06);
  EXPECT_EQ(HowItEnded(budget, search.Finish()), SearchEnd::kClock);
}

TEST_F(SearchTest, RemembersWhatCutAPartOfItShort) {
  const Budget whole{.evaluations = 100, .seconds = 1000};
  const auto ended = [&](const std::vector<PlanResult>& parts) {
    Search search({.evaluator = evaluator_, .budget = whole, .random = Random(1)});
    search.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "tried");
    for (const PlanResult& part : parts) search.Adopt(part, {.evaluations = 10, .seconds = 1});
    return HowItEnded(whole, search.Finish());
  };
  const PlanResult all = {.evaluations = 3}, counted = {.evaluations = 10},
                   late = {.evaluations = 3, .wall_seconds = 2};
  EXPECT_EQ(ended({all}), SearchEnd::kItself);
  EXPECT_EQ(ended({counted, all}), SearchEnd::kEvaluations);
  EXPECT_EQ(ended({late, counted}), SearchEnd::kClock);
  EXPECT_EQ(ended({counted, late}), SearchEnd::kClock);
  // Where the budget has no such limit, the limit was the planner's own.
  EXPECT_EQ(HowItEnded({}, {.evaluations = 10, .cut_by = SearchEnd::kEvaluations}), SearchEnd::kItself);
}

TEST_F(SearchTest, AsksForNoTimesWhereTheBudgetHasNoSeconds) {
  Search search(request_);
  search.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "tried");
  EXPECT_EQ(search.seconds_per_evaluation(), 0);
}

TEST_F(SearchTest, KnowsFromOthersHowLongAScoreTakes) {
  request_.budget.seconds = 100;
  Search search(request_);
  search.Adopt(
      {.plan = {.device = {DeviceId{0}}}, .score = {.time = 1}, .evaluations = 1, .seconds_per_evaluation = 200});
  EXPECT_EQ(search.seconds_per_evaluation(), 200);
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

// --- Evaluators that fail, differ from run to run, and are asked from several threads ------------------------------

// Fails on devices that it is told; times are 1 and the evaluation's number in thousandths where it is not repeatable.
class FragileEvaluator : public ToyEvaluator {
 public:
  FragileEvaluator(const Problem& problem, DeviceId broken, bool deterministic)
      : ToyEvaluator(problem), broken_(broken), facts_{.deterministic = deterministic} {}
  const EvaluatorFacts& facts() const override { return facts_; }
  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double>) const override {
    if (plan.device[0] == broken_) {
      workspace.failure = fmt::format("device {} is on fire", Index(broken_));
      return Score::Failed();
    }
    const double noise = facts_.deterministic ? 0 : static_cast<double>(workspace.evaluation) / 1000;
    return {.time = static_cast<double>(Index(plan.device[0])) + 1 + noise};
  }

 private:
  DeviceId broken_;
  EvaluatorFacts facts_;
};

TEST_F(SearchTest, LosesNothingToAPlanThatFails) {
  const FragileEvaluator evaluator(problem_, DeviceId{0}, true);
  Search search({.evaluator = evaluator, .budget = {.evaluations = 4}, .random = Random(1)});
  for (const int device : {0, 2, 0, 1}) {
    EXPECT_FALSE(search.Done());
    const Score score = search.Evaluate(PlanView{.device = std::vector{static_cast<DeviceId>(device)}}, "tried");
    EXPECT_EQ(score.failed(), device == 0);
  }
  EXPECT_TRUE(search.Done());
  const PlanResult result = search.Finish();
  EXPECT_EQ(result.plan.device, std::vector{DeviceId{1}});
  EXPECT_EQ(result.failures, 2);
  EXPECT_EQ(result.failure, "device 0 is on fire");
}

TEST_F(SearchTest, SaysThatEveryPlanFailed) {
  const FragileEvaluator evaluator(problem_, DeviceId{0}, true);
  Search search({.evaluator = evaluator, .budget = {.evaluations = 4}, .random = Random(1)});
  search.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "tried");
  const PlanResult result = search.Finish(true);
  EXPECT_TRUE(result.score.failed());
  EXPECT_FALSE(result.optimal);
}

TEST_F(SearchTest, AsksAgainForWhatLooksBestWhereScoresDiffer) {
  const FragileEvaluator evaluator(problem_, DeviceId{2}, false);
  Search search({.evaluator = evaluator, .budget = {.evaluations = 9}, .random = Random(1)});
  const Score first = search.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "tried");  // numbers 0 and 1
  EXPECT_DOUBLE_EQ(first.time, 1.0005);
  EXPECT_EQ(first.runs, 2);
  EXPECT_NEAR(first.spread, 0.001, 1e-12);
  const Score second = search.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "again");  // number 2: no better
  EXPECT_DOUBLE_EQ(second.time, 1.002);
  EXPECT_EQ(search.evaluations(), 3);
  EXPECT_DOUBLE_EQ(search.best_score().time, 1.0005);
  EXPECT_FALSE(search.Finish(true).optimal) << "nothing is proven of noise";
}

TEST_F(SearchTest, ScoresManyPlansAsOneAfterAnotherOnAnyNumberOfThreads) {
  const FragileEvaluator evaluator(problem_, DeviceId{2}, false);
  std::vector<std::vector<DeviceId>> devices;
  for (int i = 0; i < 40; ++i) devices.push_back({DeviceId{(i * 7) % 3}});
  std::vector<PlanView> plans;
  for (const auto& device : devices) plans.push_back({.device = device});
  std::vector<std::vector<Score>> all;
  for (const int64_t threads : {1, 2, 3, 7}) {
    Search search({.evaluator = evaluator, .budget = {.evaluations = 31}, .random = Random(1), .threads = threads});
    std::vector<Score> scores(plans.size());
    EXPECT_EQ(search.EvaluateAll(plans, scores, "batch"), 31u);
    EXPECT_EQ(search.evaluations(), 31) << "what looks best was asked for again beyond the budget";
    EXPECT_TRUE(search.Done());
    EXPECT_EQ(search.failures(), 10);
    EXPECT_EQ(search.best().device, std::vector{DeviceId{0}});
    all.push_back(std::move(scores));
  }
  EXPECT_TRUE(all[0] == all[1] && all[0] == all[2] && all[0] == all[3]);
}

TEST_F(SearchTest, StopsWithinABatch) {
  const std::vector<DeviceId> device{DeviceId{0}};
  const std::vector<PlanView> plans(20, PlanView{.device = device});
  Search search({.evaluator = evaluator_, .budget = {}, .random = Random(1), .threads = 1});
  std::vector<Score> scores(plans.size());
  int asked = 0;
  EXPECT_EQ(search.EvaluateAll(plans, scores, "batch", [&] { return ++asked > 5; }), 6u);
  EXPECT_EQ(search.evaluations(), 6);
}

TEST_F(SearchTest, LendsNumbersThatNobodyElseHas) {
  const FragileEvaluator evaluator(problem_, DeviceId{2}, false);
  const PlanRequest request{.evaluator = evaluator, .budget = {}, .random = Random(1)};
  Search search(request);
  const Lease one = search.Lend(3), two = search.Lend(5);
  EXPECT_EQ(one.first, 0);
  EXPECT_EQ(two.first, 3);
  PlanRequest of_two = request;
  of_two.first_evaluation = two.first;
  Search worker(of_two);
  EXPECT_DOUBLE_EQ(worker.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "").time, 1.0035);
  search.Adopt(worker.Found());
  EXPECT_EQ(search.evaluations(), 2);
  EXPECT_EQ(search.Lend(1).first, 8);
}

TEST_F(SearchTest, GivesNoNumberAgainThatAnAdoptedResultHasSkipped) {
  const PlanRequest request{.evaluator = evaluator_, .budget = {}, .random = Random(1)};
  Search search(request), member(search.Remaining(1));
  member.Lend(5);  // of which nobody uses any
  member.Evaluate(PlanView{.device = std::vector{DeviceId{0}}}, "");
  search.Adopt(member.Found());
  EXPECT_EQ(search.evaluations(), 1);
  EXPECT_EQ(search.next_number(), 6);
}

TEST_F(SearchTest, CountsWhatAPlannerWithoutAPlanHadAskedFor) {
  Search search(request_);
  search.AdoptFailure(Error("it has not asked"));
  EXPECT_EQ(search.evaluations(), 0);
  search.AdoptFailure(FailedSearch(
      Error("all failed"), {.plan = {.device = {DeviceId{0}}}, .evaluations = 3, .failures = 3, .failure = "why"}));
  EXPECT_EQ(search.evaluations(), 3);
  EXPECT_EQ(search.failures(), 3);
  EXPECT_EQ(search.last_failure(), "why");
  EXPECT_FALSE(search.has_best());
  EXPECT_TRUE(search.Done());
}

// --- Walks ----------------------------------------------------------------------------------------------------------

TEST(Walk, KeepsWhatItTakesWhenThatIsTheBest) {
  const Problem problem = testing::Chain(3, 2);
  // The number of ops on device 0, plus one.
  class Counting : public ToyEvaluator {
   public:
    using ToyEvaluator::ToyEvaluator;
    Score ScorePlan(const PlanView& plan, Workspace&, std::span<double>) const override {
      return {.time = 1.0 + static_cast<double>(std::ranges::count(plan.device, DeviceId{0}))};
    }
  };
  const Counting evaluator(problem);
  Search search({.evaluator = evaluator, .budget = {}, .random = Random(1)});
  const std::vector<DeviceId> start(3, DeviceId{0});
  search.Evaluate({.device = start}, "start");
  Walk walk(search, {.device = start}, "walked");
  EXPECT_EQ(search.evaluations(), 1) << "a simulator's first score of a walk is set-up";
  EXPECT_EQ(walk.Try(OpId{1}, DeviceId{1}).time, 3);
  EXPECT_EQ(search.best_score().time, 4) << "it was only tried";
  walk.Take();
  EXPECT_EQ(search.best_score().time, 3);
  EXPECT_EQ(search.best().cause_of(OpId{0}), "walked");
  EXPECT_THAT(walk.device(), ElementsAre(DeviceId{0}, DeviceId{1}, DeviceId{0}));
  EXPECT_EQ(search.evaluations(), 2);
  EXPECT_EQ(search.Finish().set_up, 1);
  EXPECT_DEATH(walk.Take(), "nothing was tried since");
}

// --- Wrappers -------------------------------------------------------------------------------------------------------

// Wrappers, and `toy` to be wrapped.
EvaluatorCatalog WrappedToys() {
  EvaluatorCatalog catalog("evaluator");
  RegisterWrappers(catalog);
  catalog.Add({.name = "toy", .sentence = "-", .source = "-"},
              [](const Params&, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
                return std::make_unique<ToyEvaluator>(context.problem);
              });
  return catalog;
}

TEST_F(SearchTest, ADeadlineIsRefusedWhereNothingCanBeStopped) {
  const EvaluatorCatalog catalog = WrappedToys();
  try {
    catalog.Make("deadline(seconds=1,of=toy)", problem_);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "deadline: toy cannot be stopped while it works; leave the deadline out");
  }
  EXPECT_THROW(catalog.Make("repeat(runs=2,keep=3,of=toy)", problem_), Error);
  const auto nested = catalog.Make("repeat(runs=4,keep=2,of=cached(of=toy))", problem_);
  EXPECT_EQ(nested->ScorePlan({.device = std::vector{DeviceId{1}}}, *nested->NewWorkspace()).runs, 2);
  EXPECT_EQ(catalog.Make(nested->name(), problem_)->name(), nested->name());
}

TEST_F(SearchTest, DoesNotTakeARememberedScoreForASecondMeasurement) {
  const EvaluatorCatalog catalog = WrappedToys();
  for (const auto& [name, runs] : {std::pair("noisy(of=toy)", 2), std::pair("cached(of=noisy(of=toy))", 1),
                                   std::pair("noisy(of=cached(of=toy))", 2)}) {
    const auto evaluator = catalog.Make(name, problem_);
    Search search({.evaluator = *evaluator, .budget = {.evaluations = 9}, .random = Random(1)});
    EXPECT_EQ(search.Evaluate(PlanView{.device = std::vector{DeviceId{1}}}, "tried").runs, runs) << name;
    EXPECT_EQ(search.evaluations(), runs) << name;
  }
}

TEST_F(SearchTest, CheckedEvaluatorsFailWhereTheyDisagree) {
  EvaluatorCatalog catalog("evaluator");
  RegisterWrappers(catalog);
  for (const bool broken : {false, true}) {
    catalog.Add({.name = broken ? "broken" : "toy", .sentence = "-", .source = "-"},
                [broken](const Params&, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
                  if (!broken) return std::make_unique<ToyEvaluator>(context.problem);
                  return std::make_unique<FragileEvaluator>(context.problem, DeviceId{1}, false);
                });
  }
  const auto same = catalog.Make("checked(a=toy,b=toy)", problem_);
  EXPECT_EQ(same->ScorePlan({.device = std::vector{DeviceId{2}}}, *same->NewWorkspace()).time, 3);
  const auto checked = catalog.Make("checked(a=toy,b=broken,tolerance=0.001)", problem_);
  const auto workspace = checked->NewWorkspace();
  workspace->evaluation = 500;
  EXPECT_TRUE(checked->ScorePlan({.device = std::vector{DeviceId{2}}}, *workspace).failed());
  EXPECT_EQ(workspace->failure, "toy says 3, and toy says 3.5");
  workspace->evaluation = 0;
  EXPECT_EQ(checked->ScorePlan({.device = std::vector{DeviceId{2}}}, *workspace).time, 3);
  EXPECT_TRUE(checked->ScorePlan({.device = std::vector{DeviceId{1}}}, *workspace).failed());
  EXPECT_EQ(workspace->failure, "device 1 is on fire");
}

}  // namespace
}  // namespace berth
