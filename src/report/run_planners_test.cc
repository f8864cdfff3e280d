#include "report/run_planners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "placement/objective.h"
#include "placement/testing.h"
#include "placement/wrapper.h"
#include "plan/planners.h"
#include "plan/testing.h"
#include "report/controls.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A simulator that passes for a machine: counts how often it is asked, for scores and timelines.
class Machine : public Wrapper {
 public:
  explicit Machine(const Problem& problem) : Wrapper("machine", Simulator(problem)) { facts_.model = MeasuredFacts{}; }

  static std::unique_ptr<const Evaluator> Simulator(const Problem& problem) {
    EvaluatorCatalog catalog{"evaluator"};
    RegisterParallel(catalog);
    return catalog.Make("parallel(io=everywhere)", problem);
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    ++asked;
    return Wrapper::ScorePlan(plan, workspace, starts);
  }
  Timeline Trace(const PlanView& plan) const override {
    ++asked;
    return Wrapper::Trace(plan);
  }

  mutable std::atomic<int64_t> asked = 0;
};

PlannerCatalog Planners() {
  PlannerCatalog planners;
  RegisterSingle(planners);
  RegisterOneCut(planners);
  RegisterRandom(planners);
  RegisterLocalSearch(planners);
  RegisterAnnealing(planners);
  RegisterMinCut(planners);
  RegisterHuman(planners);
  RegisterMetis(planners);
  return planners;
}

Conditions Of(const Evaluator& evaluator, Budget budget) {
  return {.evaluator = evaluator,
          .bound = LowerBound(evaluator),
          .singles = ScoreSingleDevices(evaluator),
          .budget = budget};
}

std::vector<std::string> Names(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const ComparisonRow& row : comparison.rows) names.push_back(row.report.planner);
  std::ranges::sort(names);
  return names;
}

TEST(RunPlanner, SaysUnderWhatConditionsItRan) {
  const Problem problem = testing::ForkJoin(4, 2);
  const auto evaluator = Machine::Simulator(problem);
  Conditions conditions = Of(*evaluator, {.evaluations = 30});
  conditions.seed = 7;
  conditions.constraints = {"pin fork d0"};
  std::string told;
  conditions.progress = [&](const std::string& planner) {
    return [&told, planner](const Progress&) { told = planner; };
  };
  const PlanReport report = RunPlanner(conditions, *Planners().MakePlanner("random"));
  EXPECT_EQ(report.planner, "random");
  EXPECT_EQ(report.seed, 7u);
  EXPECT_EQ(report.budget, "30evals");
  EXPECT_EQ(report.ended, SearchEnd::kEvaluations);
  EXPECT_THAT(report.constraints, ElementsAre("pin fork d0"));
  EXPECT_EQ(report.bound.time, conditions.bound.time);
  EXPECT_THAT(report.single_device_time, ElementsAre(6, 6));
  EXPECT_EQ(told, "random");
  // A simulator's set-up is counted, and free.
  EXPECT_EQ(report.result.evaluations, 30);
  EXPECT_EQ(report.set_up, 3) << "each of two devices alone, and the timeline";
}

TEST(RunPlanner, AsksAMachineNoMoreThanItsBudgetSays) {
  const Problem problem = testing::ForkJoin(4, 3);
  for (const bool weighted : {false, true}) {
    for (const char* planner : {"single", "random", "local_search", "annealing"}) {
      SCOPED_TRACE(planner);
      auto made = std::make_unique<Machine>(problem);
      const Machine& machine = *made;
      const auto evaluator = WithObjective(std::move(made), {.name = "weighted", .latency = 1, .weighted = weighted});
      EXPECT_EQ(evaluator->facts().objective.set_up, weighted ? 3 : 0);
      const PlanReport report = RunPlanner(Of(*evaluator, {.evaluations = 40}), *Planners().MakePlanner(planner));
      EXPECT_EQ(report.budget, "40evals");
      EXPECT_EQ(report.set_up, weighted ? 7 : 4);
      EXPECT_EQ(machine.asked, report.result.evaluations + report.set_up);
      EXPECT_LE(machine.asked, 40);
      if (planner != std::string("single")) {
        EXPECT_EQ(machine.asked, 40);
        EXPECT_EQ(report.ended, SearchEnd::kEvaluations);
      }
    }
  }
}

TEST(RunPlanner, RefusesABudgetThatAMachineNeedsForTheReportAlone) {
  const Problem problem = testing::Chain(3, 2);
  const Machine machine(problem);
  const auto planner = Planners().MakePlanner("random");
  try {
    RunPlanner(Of(machine, {.evaluations = 3}), *planner);
    FAIL() << "it should have thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "budget 3evals: of machine, 3 evaluations go into what plans are compared with and what is reported; "
                 "give at least 4evals");
  }
  EXPECT_EQ(RunPlanner(Of(machine, {.evaluations = 4}), *planner).result.evaluations, 1);
}

TEST(ComparePlanners, RunsTheSimpleRulesFirstAndEachPlannerOnce) {
  const Problem problem = testing::ForkJoin(4, 3);  // whose devices are all alike
  const auto evaluator = Machine::Simulator(problem);
  const Comparison comparison =
      ComparePlanners(Of(*evaluator, {.evaluations = 50}), Planners(), {"random", "local_search", "random", "mincut"});
  EXPECT_THAT(Names(comparison), ElementsAre(HasSubstr("human"), HasSubstr("local_search"), HasSubstr("metis"),
                                             HasSubstr("one_cut"), "random", "single(device=d0)"));
  EXPECT_EQ(comparison.refusals.size(), 1u);
  EXPECT_EQ(comparison.refusals[0].first, "mincut");
  EXPECT_THAT(comparison.single_device_time(), ElementsAre(6, 6, 6));
  for (const ComparisonRow& row : comparison.rows) EXPECT_LE(row.report.result.evaluations, 50);
  EXPECT_EQ(comparison.best_simple()->simple, true);
}

TEST(ComparePlanners, LeavesOutWhatComesAfterAnInterrupt) {
  const Problem problem = testing::ForkJoin(4, 2);
  const auto evaluator = Machine::Simulator(problem);
  std::atomic<bool> cancelled = false;
  Conditions conditions = Of(*evaluator, {.evaluations = 50, .cancelled = &cancelled});
  conditions.progress = [&](const std::string& planner) -> ProgressCallback {
    if (planner == "random") cancelled = true;
    return {};
  };
  const Comparison comparison = ComparePlanners(conditions, Planners(), {"random", "local_search", "annealing"});
  EXPECT_EQ(comparison.rows.size(), 5u) << "the rules and random";
  ASSERT_EQ(comparison.refusals.size(), 2u);
  EXPECT_THAT(comparison.refusals[1].first, HasSubstr("annealing"));
  EXPECT_EQ(comparison.refusals[1].second, "the comparison was stopped before it began");
}

// Gives up after some scores, as where the time is over.
class Tiring : public Machine {
 public:
  Tiring(const Problem& problem, int64_t lasts) : Machine(problem), lasts_(lasts) {}
  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    Score score = Machine::ScorePlan(plan, workspace, starts);
    if (asked <= lasts_) return score;
    workspace.failure = "tired";
    return Score::Failed();
  }

 private:
  int64_t lasts_;
};

TEST(ComparePlanners, KeepsWhatOthersFoundWhereOneScoresNothing) {
  const Problem problem = testing::ForkJoin(4, 2);
  const Tiring evaluator(problem, 60);
  const Comparison comparison =
      ComparePlanners(Of(evaluator, {.evaluations = 30}), Planners(), {"random", "annealing"});
  EXPECT_FALSE(comparison.rows.empty());
  ASSERT_FALSE(comparison.refusals.empty());
  EXPECT_THAT(comparison.refusals.back().first, HasSubstr("annealing"));
  EXPECT_THAT(comparison.refusals.back().second, HasSubstr("could be scored by machine; the last one: tired"));
}

TEST(ComparePlanners, KeepsWhatOthersFoundWhereOneThrows) {
  const Problem problem = testing::ForkJoin(4, 2);
  const auto evaluator = Machine::Simulator(problem);
  PlannerCatalog planners = Planners();
  testing::AddBreaking(planners, "breaking: it broke");
  const Comparison comparison =
      ComparePlanners(Of(*evaluator, {.evaluations = 30}), planners, {"breaking", "annealing"});
  EXPECT_THAT(Names(comparison), ::testing::Contains("annealing"));
  ASSERT_FALSE(comparison.refusals.empty());
  EXPECT_EQ(comparison.refusals.back(), std::pair(std::string("breaking"), std::string("it broke")));
}

// Of devices that compute alike, the thriftier one is not left out where energy counts.
TEST(ComparePlanners, TriesEachDeviceThatMayBeBetterAlone) {
  const Problem problem = testing::ForkJoin(4, 2);
  std::vector<Device> devices;
  std::vector<Link> links;
  for (const DeviceId a : problem.cluster().ids()) {
    devices.push_back(problem.cluster().device(a));
    devices.back().watts_busy.value = 10 - 4 * static_cast<double>(Index(a));
    devices.back().watts_idle.value = 1;
    for (const DeviceId b : problem.cluster().ids()) links.push_back(problem.cluster().link(a, b));
  }
  OpTimes times{.time = {}, .source = "test"};
  for (const OpId op : problem.graph().ops()) std::ranges::copy(problem.op_times(op), std::back_inserter(times.time));
  const Problem with_watts(problem.shared_graph(), std::make_shared<Cluster>("two", devices, links), std::move(times));
  const auto singles = [&](const Evaluator& evaluator) {
    const std::vector<std::string> names = Names(ComparePlanners(Of(evaluator, {.evaluations = 30}), Planners(), {}));
    return std::ranges::count_if(names, [](const std::string& name) { return name.starts_with("single("); });
  };
  EXPECT_EQ(singles(*Machine::Simulator(with_watts)), 1);
  EXPECT_EQ(singles(*WithObjective(Machine::Simulator(with_watts), {.name = "energy", .energy = 1})), 2);
}

TEST(ComparePlanners, SaysWhyNobodyAnswers) {
  const Problem problem = testing::ForkJoin(4, 2);
  const auto evaluator = Machine::Simulator(problem);
  PlannerCatalog none;
  class Shy : public Planner {
   public:
    explicit Shy(std::string name) : name_(std::move(name)) {}
    const std::string& name() const override { return name_; }
    std::optional<std::string> Refuses(const Problem&, const Evaluator&) const override { return "it is shy"; }
    PlanResult MakePlan(const PlanRequest&) override { return {}; }

   private:
    std::string name_;
  };
  for (const char* name : {"one_cut", "human", "metis"}) {
    none.Add({.name = name, .sentence = "-", .source = "-"},
             [](const Params& params, const PlannerCatalog&) { return std::make_unique<Shy>(params.canonical()); });
  }
  none.Add({.name = "single", .sentence = "-", .source = "-", .parameters = {{.name = "device", .sentence = "-"}}},
           [](const Params& params, const PlannerCatalog&) { return std::make_unique<Shy>(params.canonical()); });
  EXPECT_THAT([&] { ComparePlanners(Of(*evaluator, {}), none, {}); },
              ThrowsMessage<Error>(HasSubstr("no planner answers this problem; single(device=d0): it is shy")));
}

TEST(RunControls, GivesEachAsManyEvaluationsAsTheLearnedOneHad) {
  const Problem problem = testing::ForkJoin(4, 2);
  const auto simulator = Machine::Simulator(problem);
  const Machine machine(problem);
  for (const Evaluator* evaluator : {simulator.get(), static_cast<const Evaluator*>(&machine)}) {
    const Conditions conditions = Of(*evaluator, {.evaluations = 1000});
    PlanReport learned = RunPlanner(conditions, *Planners().MakePlanner("annealing"));
    learned.planner = "learned";
    const Comparison controls = RunControls(conditions, Planners(), 25, &learned);
    EXPECT_THAT(Names(controls), ::testing::Contains("learned"));
    for (const ComparisonRow& row : controls.rows) {
      SCOPED_TRACE(row.report.planner);
      if (row.report.planner == "learned" || row.simple) continue;
      EXPECT_EQ(row.report.result.evaluations, 25);
    }
    ASSERT_NE(FindControl(controls, kControls[0]), nullptr);
  }
}

TEST(RunControls, EndsWhenItsSecondsAreOver) {
  const Problem problem = testing::ForkJoin(4, 2);
  const auto simulator = Machine::Simulator(problem);
  const Conditions conditions = Of(*simulator, {.evaluations = 10});
  const PlanReport learned = RunPlanner(conditions, *Planners().MakePlanner("annealing"));
  const int64_t endless = int64_t{1} << 40;
  size_t searches = 0;
  for (const ComparisonRow& row : RunControls(conditions, Planners(), endless, &learned, 1e-3).rows) {
    if (row.report.planner == learned.planner || row.simple) continue;
    EXPECT_EQ(row.report.ended, SearchEnd::kClock) << row.report.planner;
    ++searches;
  }
  EXPECT_GT(searches, 2u);
}

}  // namespace
}  // namespace berth
