// Summaries, explanations and comparisons against what can be counted by hand or scored again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "placement/single_devices.h"
#include "placement/testing.h"
#include "placement/wrappers.h"
#include "report/comparison.h"
#include "report/explanation.h"
#include "report/json.h"
#include "report/model_page.h"
#include "report/notes.h"
#include "report/summary.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

EvaluatorCatalog Simulators() {
  EvaluatorCatalog catalog{"evaluator"};
  RegisterParallel(catalog);
  RegisterSerial(catalog);
  RegisterParts(catalog);
  RegisterWrappers(catalog);
  return catalog;
}

PlanReport Report(const Evaluator& evaluator, const std::string& name, std::vector<DeviceId> device) {
  PlanResult result;
  result.plan.device = std::move(device);
  result.plan.SetCause("given");
  result.evaluations = 1;
  PlanReport report = MakePlanReport(evaluator, name, std::move(result), LowerBound(evaluator));
  const SingleDevices singles = ScoreSingleDevices(evaluator);
  report.single_device_time = singles.times();
  report.single_device_spread = singles.spreads();
  return report;
}

TEST(SingleDevices, AskOnceForEachDeviceThatMayHaveAll) {
  const Problem chain = testing::Chain(3, 3);
  // The second device cannot run the second op.
  OpTimes times{.time = {1, 1, 2, 1, kCannotRun, 2, 1, 1, 2}, .source = "test"};
  const Problem problem(chain.shared_graph(), chain.shared_cluster(), std::move(times));
  const EvaluatorCatalog catalog = Simulators();
  const SingleDevices singles = ScoreSingleDevices(*catalog.Make("serial(io=everywhere)", problem));
  EXPECT_THAT(singles.times(), ElementsAre(3, kCannotRun, 6));
  EXPECT_EQ(singles.evaluations(), 2);
}

TEST(PlanReport, CountsWhatWasScoredBesideTheSearch) {
  const Problem problem = testing::Chain(3, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("parallel(io=everywhere)", problem);
  const PlanReport report = Report(*evaluator, "given", {DeviceId{0}, DeviceId{0}, DeviceId{0}});
  EXPECT_EQ(report.set_up, 1) << "its timeline";
  PlanResult walked = report.result;
  walked.set_up = 5;
  EXPECT_EQ(MakePlanReport(*evaluator, "given", walked, {}).set_up, 6);
  EXPECT_EQ(PlanJson(*evaluator, report).at("set_up_evaluations"), 1);
}

TEST(PlanReport, CallsNoPlanFasterThanTheNoiseOfItsRunsAllows) {
  const Problem problem = testing::Chain(3, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("repeat(runs=5,keep=5,of=noisy(share=0.2,of=parallel(io=everywhere)))", problem);
  const std::vector<DeviceId> alone(3, DeviceId{1}), split = {DeviceId{0}, DeviceId{0}, DeviceId{1}};
  PlanReport one = Report(*evaluator, "one", alone), two = Report(*evaluator, "two", split);
  for (PlanReport* report : {&one, &two}) report->timeline.score = evaluator->Trace(report->result.plan.view()).score;
  ASSERT_GT(one.timeline.score.spread, 0);
  EXPECT_THAT(PlanPage(*evaluator, one), HasSubstr("none: this plan is d1 alone"));
  PlanReport close = two;
  close.timeline.score.time = *std::ranges::min_element(close.single_device_time) * 0.999;
  EXPECT_THAT(PlanPage(*evaluator, close), HasSubstr("the difference is within the noise of the runs"));
  PlanReport clear = two;
  clear.timeline.score.time = 1e-3;
  clear.timeline.score.spread = 0;
  EXPECT_THAT(PlanPage(*evaluator, clear), HasSubstr("the fastest single device"));
}

TEST(Comparison, DeclaresNoWinnerWithinTheNoise) {
  const Problem problem = testing::Chain(3, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("repeat(runs=5,keep=5,of=noisy(share=0.2,of=parallel(io=everywhere)))", problem);
  std::vector<ComparisonRow> rows = {
      {.report = Report(*evaluator, "rule", std::vector<DeviceId>(3, DeviceId{1})), .simple = true},
      {.report = Report(*evaluator, "search", {DeviceId{0}, DeviceId{0}, DeviceId{1}}), .simple = false}};
  for (ComparisonRow& row : rows) {
    row.report.timeline.score = evaluator->Trace(row.report.result.plan.view()).score;
    ASSERT_GT(row.report.timeline.score.spread, 0.01);
  }
  rows[0].report.timeline.score.time = 1.001;
  rows[1].report.timeline.score.time = 1;
  const Comparison comparison = MakeComparison(*evaluator, std::move(rows), {});
  EXPECT_THAT(
      Verdict(problem, comparison),
      HasSubstr("search is fastest with 1.00 s, but that is within the noise of the runs: the simple rule rule"));
  EXPECT_THAT(ComparisonTable(problem, comparison), HasSubstr("within the noise"));
}

TEST(Summary, TheCriticalPathIsAChainFromTheStartToTheEnd) {
  const EvaluatorCatalog catalog = Simulators();
  Random random(11);
  for (int i = 0; i < 60; ++i) {
    const Problem problem = testing::RandomProblem(random, {.ties = i % 2 == 0});
    for (const char* name :
         {"parallel(contention=none,io=everywhere)", "parallel(contention=ports,io=everywhere)", "parallel(io=d0)"}) {
      const auto evaluator = catalog.Make(name, problem);
      const std::vector<DeviceId> device = testing::RandomPlacement(problem, random);
      const Timeline timeline = evaluator->Trace({.device = device});
      const RunSummary summary = Summarize(problem, timeline);
      if (timeline.score.time == 0) continue;
      ASSERT_FALSE(summary.path.empty());
      EXPECT_EQ(summary.path.front().start, 0);
      EXPECT_EQ(summary.path.back().end, timeline.score.time);
      for (size_t s = 1; s < summary.path.size(); ++s)
        EXPECT_EQ(summary.path[s].start, summary.path[s - 1].end) << name;
      EXPECT_NEAR(summary.path_other, 0, 1e-9 * timeline.score.time);
    }
  }
}

TEST(Summary, CountsWhatEachDeviceDoes) {
  const Problem problem = testing::Chain(3, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("parallel(io=everywhere)", problem);
  const PlanReport report = Report(*evaluator, "given", {DeviceId{0}, DeviceId{1}, DeviceId{1}});
  const RunSummary& summary = report.summary;
  EXPECT_EQ(summary.makespan, 4);
  EXPECT_EQ(summary.devices[0].busy, 1);
  EXPECT_EQ(summary.devices[1].busy, 2);
  EXPECT_EQ(summary.devices[0].bytes_out, 1);
  EXPECT_EQ(summary.devices[1].bytes_in, 1);
  EXPECT_EQ(summary.transfers, 1);
  EXPECT_EQ(summary.path.size(), 4u);
  EXPECT_EQ(summary.path_transfers, 1);
  EXPECT_EQ(summary.busiest(), 1u);
  EXPECT_THAT(DescribeLimit(problem, summary), HasSubstr("dependencies between ops (even the busiest device, d1, "
                                                         "computes only 50 %"));
}

TEST(Summary, OfDevicesInTurnsSaysThatTheyTakeTurns) {
  const Problem problem = testing::Chain(3, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("serial(io=everywhere)", problem);
  const PlanReport report = Report(*evaluator, "given", {DeviceId{0}, DeviceId{1}, DeviceId{1}});
  EXPECT_THAT(DescribeLimit(problem, report.summary), HasSubstr("devices that take turns ("));
  const auto with_overhead = catalog.Make("serial(subgraph_overhead=1,io=everywhere)", problem);
  const PlanReport alone = Report(*with_overhead, "given", {DeviceId{0}, DeviceId{0}, DeviceId{0}});
  EXPECT_EQ(DescribeLimit(problem, alone.summary), "d0, which computes 75 % of the time");
}

TEST(Summary, OfARunThatTellsNoTimesSaysWhy) {
  const Problem problem = testing::Chain(3, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("serial(io=everywhere)", problem);
  PlanReport report = Report(*evaluator, "given", {DeviceId{0}, DeviceId{1}, DeviceId{1}});
  report.timeline.untold_because = "the runtime tells no times";
  report.summary = Summarize(problem, report.timeline);
  EXPECT_EQ(DescribeLimit(problem, report.summary), "something that is not known: the runtime tells no times");
  EXPECT_THAT(DeviceTable(problem, report), ::testing::Not(HasSubstr("%")));
}

TEST(Explanation, EveryAlternativeIsTheScoreWithThatOpMoved) {
  const EvaluatorCatalog catalog = Simulators();
  Random random(5);
  for (int i = 0; i < 10; ++i) {
    const Problem problem = testing::RandomProblem(random, {.ops = 20, .forbidden = 0.2});
    const auto evaluator = catalog.Make("parallel(contention=ports,io=everywhere)", problem);
    const auto workspace = evaluator->NewWorkspace();
    const Plan plan{.device = testing::RandomPlacement(problem, random)};
    std::vector<OpId> ops;
    for (const OpId op : problem.graph().ops()) ops.push_back(op);
    const Explanation explanation = Explain(*evaluator, plan, ops);
    ASSERT_EQ(explanation.ops.size(), problem.num_ops());
    for (const auto& [op, alternatives] : explanation.ops) {
      EXPECT_EQ(alternatives.size(), problem.num_devices() - 1);
      for (const Alternative& alternative : alternatives) {
        EXPECT_EQ(alternative.can_run, problem.can_run(op, alternative.device));
        if (!alternative.can_run) continue;
        std::vector<DeviceId> moved = plan.device;
        moved[Index(op)] = alternative.device;
        EXPECT_EQ(alternative.score, evaluator->ScorePlan({.device = moved}, *workspace));
      }
    }
  }
}

TEST(Explanation, AMoveIsAllowedWhereItsPlacementIs) {
  const EvaluatorCatalog catalog = Simulators();
  Random random(6);
  int ruled_out = 0;
  for (int i = 0; i < 20; ++i) {
    const Problem free = testing::RandomProblem(random, {.ops = 12, .devices = 3, .forbidden = 0.1});
    const Plan plan{.device = testing::RandomPlacement(free, random)};
    // Rules that the plan keeps.
    Constraints rules;
    const auto op = [&] { return MakeId<OpId>(random.Below(free.num_ops())); };
    for (int k = 0; k < 6; ++k) {
      const OpId a = op(), b = op();
      if (a == b) continue;
      if (plan.device[Index(a)] == plan.device[Index(b)]) {
        rules.colocate.push_back({a, b});
      } else {
        rules.separate.emplace_back(a, b);
      }
    }
    for (const TensorId tensor : free.graph().tensors()) {
      const DeviceId from = MakeId<DeviceId>(random.Below(3)), to = MakeId<DeviceId>(random.Below(3));
      if (from == to) continue;
      rules.forbidden_transfers = {{tensor, from, to}};
      if (FindViolation(free.With(rules), plan.view())) rules.forbidden_transfers.clear();
    }
    const Problem problem = free.With(rules);
    ASSERT_EQ(FindViolation(problem, plan.view()), std::nullopt);
    const auto evaluator = catalog.Make("serial(io=everywhere)", problem);
    const auto all = problem.graph().ops();
    const Explanation explanation = Explain(*evaluator, plan, std::vector<OpId>(all.begin(), all.end()));
    for (const auto& [moved_op, alternatives] : explanation.ops) {
      for (const Alternative& alternative : alternatives) {
        std::vector<DeviceId> moved = plan.device;
        moved[Index(moved_op)] = alternative.device;
        EXPECT_EQ(alternative.allowed, !FindViolation(problem, {.device = moved}));
        ruled_out += alternative.can_run && !alternative.allowed ? 1 : 0;
      }
    }
  }
  EXPECT_GT(ruled_out, 50);
}

TEST(Explanation, AKernelMovesWholeSoThatNothingIsSentWithinIt) {
  const Graph graph = testing::Chain(3, 2).graph();
  Kernel kernel{.ops = {OpId{0}, OpId{1}}, .apart = {1, 1, 1, 1}};
  OpTimes times{.time = {2, 2, 0, 0, 1, 1}, .kernels = {kernel}, .source = "test"};
  Constraints rules;
  const DeviceId a{0}, b{1};
  rules.forbidden_transfers = {{TensorId{0}, a, b}, {TensorId{0}, b, a}};
  const Problem problem(std::make_shared<const Graph>(graph),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)), std::move(times),
                        {.constraints = rules});
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("serial(io=everywhere)", problem);
  const Plan plan{.device = {a, a, a}};
  const Explanation explanation = Explain(*evaluator, plan, {OpId{0}, OpId{1}, OpId{2}});
  for (const auto& [op, alternatives] : explanation.ops) {
    for (const Alternative& alternative : alternatives) EXPECT_TRUE(alternative.allowed) << Index(op);
  }
}

TEST(Comparison, SortsByScoreAndFindsTheBestSimpleRule) {
  const Problem problem = testing::ForkJoin(4, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("parallel(contention=none,io=everywhere)", problem);
  const DeviceId a{0}, b{1};
  std::vector<ComparisonRow> rows;
  rows.push_back({.report = Report(*evaluator, "one", {a, a, a, a, a, a}), .simple = true});
  rows.push_back({.report = Report(*evaluator, "bad", {a, b, b, b, b, a}), .simple = false});
  rows.push_back({.report = Report(*evaluator, "good", {a, a, a, a, b, a}), .simple = false});
  const Comparison comparison = MakeComparison(*evaluator, std::move(rows), {{"shy", "it is shy"}});
  EXPECT_EQ(comparison.winner().report.planner, "good");
  EXPECT_EQ(comparison.best_simple()->report.planner, "one");
  EXPECT_EQ(comparison.single_device_time(), (std::vector<double>{6, 6}));
  const std::string table = ComparisonTable(problem, comparison);
  EXPECT_THAT(table, HasSubstr("◀ fastest"));
  EXPECT_THAT(table, HasSubstr("vs d0"));
  EXPECT_THAT(table, Not(HasSubstr("vs d1")));  // as fast as d0
  EXPECT_THAT(table, HasSubstr("no plan by shy: it is shy"));
  const std::string verdict = Verdict(problem, comparison);
  EXPECT_THAT(
      verdict,
      HasSubstr("good is fastest with 5.00 s: 1.20x the speed of the best simple rule, one, which takes 6.00 s."));
  EXPECT_THAT(verdict, HasSubstr("moves 1 of 6 ops from d0 to d1 (1 Unit)"));
}

// What `compare` says of a plan beside a simple rule's, which takes longer.
std::string VerdictBesideRule(const Problem& problem, const std::vector<DeviceId>& rule,
                              const std::vector<DeviceId>& good) {
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("parallel(contention=none,io=everywhere)", problem);
  std::vector<ComparisonRow> rows;
  rows.push_back({.report = Report(*evaluator, "rule", rule), .simple = true});
  rows.push_back({.report = Report(*evaluator, "good", good), .simple = false});
  const Comparison comparison = MakeComparison(*evaluator, std::move(rows), {});
  EXPECT_EQ(comparison.winner().report.planner, "good");
  return Verdict(problem, comparison);
}

// Which of two devices that are alike has which half is no difference.
TEST(Comparison, CountsNoOpAsMovedThatIsOnAnotherDeviceOfTheSameKind) {
  const DeviceId a{0}, b{1};
  EXPECT_THAT(VerdictBesideRule(testing::ForkJoin(4, 2), {a, a, a, a, a, a}, {b, b, b, b, a, b}),
              HasSubstr("moves 1 of 6 ops from d0 to d1 (1 Unit)"));
}

// Of thirteen ops four are on the first device in both plans, four on the second, and five on the first in the rule
// alone: to swap the devices for these five would leave fewer where they were.
TEST(Comparison, LeavesNamesOfDevicesWhereNoSwapKeepsMoreOpsInPlace) {
  std::vector<DeviceId> rule, good;
  for (int v = 0; v < 13; ++v) {
    rule.push_back(DeviceId{v >= 3 && v < 12 ? 0 : 1});
    good.push_back(DeviceId{v >= 3 && v < 7 ? 0 : 1});
  }
  EXPECT_THAT(VerdictBesideRule(testing::ForkJoin(11, 2), rule, good), HasSubstr("moves 5 of 13 ops from d0 to d1"));
}

TEST(Comparison, AProofSharpensTheBoundOfAll) {
  const Problem problem = testing::ForkJoin(4, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("serial(io=everywhere)", problem);
  const DeviceId a{0}, b{1};
  PlanResult proven;
  proven.plan.device.assign(6, a);
  proven.optimal = true;
  proven.bound = {.value = 6, .problem = problem.fingerprint(), .evaluator = evaluator->name(), .objective = "latency"};
  std::vector<ComparisonRow> rows;
  rows.push_back({.report = Report(*evaluator, "split", {a, a, a, a, b, a}), .simple = false});
  rows.push_back({.report = MakePlanReport(*evaluator, "oracle", std::move(proven), {}), .simple = false});
  const Comparison comparison = MakeComparison(*evaluator, std::move(rows), {});
  EXPECT_EQ(comparison.rows[0].report.gap(), 0);
  EXPECT_DOUBLE_EQ(comparison.rows[1].report.gap(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(comparison.rows[1].report.most_saved(), 0.25);
  EXPECT_THAT(Verdict(problem, comparison), HasSubstr("proven by oracle"));
}

TEST(PlanReport, AProofCountsForWhatItWasMadeOfAlone) {
  const Problem problem = testing::ForkJoin(4, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("serial(io=everywhere)", problem);
  const ProvenBound proven{
      .value = 5, .problem = problem.fingerprint(), .evaluator = evaluator->name(), .objective = "latency"};
  const auto bound_with = [&](const ProvenBound& bound) {
    PlanResult result;
    result.plan.device.assign(6, DeviceId{0});
    result.bound = bound;
    return MakePlanReport(*evaluator, "oracle", std::move(result), {.time = 2, .reason = "known"}).bound;
  };
  EXPECT_EQ(bound_with(proven).time, 5);
  EXPECT_EQ(bound_with(proven).reason, "proven by oracle");
  ProvenBound of_groups = proven, of_another = proven, of_energy = proven, weak = proven;
  Constraints together;
  together.colocate = {{OpId{0}, OpId{1}}};
  of_groups.problem = problem.With(together).fingerprint();
  of_another.evaluator = "parallel";
  of_energy.objective = "energy";
  weak.value = 1;
  for (const ProvenBound& bound : {of_groups, of_another, of_energy, weak}) {
    EXPECT_EQ(bound_with(bound).time, 2);
    EXPECT_EQ(bound_with(bound).reason, "known");
  }
}

TEST(Json, NamesThatAreNotUtf8AreStillJson) {
  GraphBuilder builder("g\xff");
  builder.AddOp("x\xfe\"", "T", {});
  const Problem problem = testing::UnitProblem(builder.Build(), 1);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("parallel(io=everywhere)", problem);
  const PlanReport report = Report(*evaluator, "given", {DeviceId{0}});
  EXPECT_EQ(Json::parse(DumpJson(SimulationJson(*evaluator, report))).at("score_seconds"), 1.0);
  EXPECT_EQ(Json::parse(DumpJson(GraphJson(problem.graph()))).at("ops"), 1);
  EXPECT_THAT(ModelPage(problem.graph()), HasSubstr("g\xEF\xBF\xBD\n"));
}

TEST(Comparison, OfWhatDiffersInTheLastDigitsAloneTheFirstWins) {
  const Problem problem = testing::Chain(6, 2);
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("parallel(io=everywhere)", problem);
  const DeviceId a{0};
  for (const double more : {1e-14, 1e-6}) {
    std::vector<ComparisonRow> rows;
    rows.push_back({.report = Report(*evaluator, "asked first", {a, a, a, a, a, a}), .simple = true});
    rows.push_back({.report = Report(*evaluator, "asked later", {a, a, a, a, a, a}), .simple = true});
    rows.front().report.timeline.score.time *= 1 + more;
    EXPECT_EQ(MakeComparison(*evaluator, std::move(rows), {}).winner().report.planner,
              more < 1e-9 ? "asked first" : "asked later");
  }
}

TEST(Notes, CountGuesses) {
  const Problem problem = testing::Chain(2, 2);
  const ProvenanceCount count = CountProvenance(problem.cluster());
  EXPECT_EQ(count.guess, count.all());
  const EvaluatorCatalog catalog = Simulators();
  const auto evaluator = catalog.Make("parallel(io=everywhere)", problem);
  EXPECT_THAT(HonestyNotes(*evaluator).front(), HasSubstr(" guessed, "));
}

TEST(Notes, SayThatCutsAreFreeWhereTheClusterSaysNothingOfThem) {
  const Problem problem = testing::Chain(2, 2);
  const EvaluatorCatalog catalog = Simulators();
  EXPECT_THAT(HonestyNotes(*catalog.Make("parts", problem)), Contains(HasSubstr("`berth calibrate` measures it")));
  EXPECT_THAT(HonestyNotes(*catalog.Make("serial(io=everywhere)", problem)),
              Not(Contains(HasSubstr("berth calibrate"))));
}

}  // namespace
}  // namespace berth
