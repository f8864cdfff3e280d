#include "report/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "placement/testing.h"
#include "report/plan_report.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// a -> b, each two units on either device, a tensor of one byte between them that takes one unit; one weight of five
// bytes.
Problem Pair() {
  GraphBuilder builder("pair");
  for (const char* name : {"a", "b"}) builder.AddOp(name, "Unit", {});
  builder.AddTensor(0, 1, "middle");
  builder.AddTensor(1, 1, "end", true);
  builder.Consume(0, 1);
  const size_t weight = builder.AddParameter(5, "weight");
  builder.UseParameter(weight, 1);
  std::vector<Device> devices(2);
  devices[0] = {.name = "one", .kind = "cpu", .watts_idle = {.value = 1}, .watts_busy = {.value = 5}};
  devices[1] = {.name = "two", .kind = "gpu", .watts_idle = {.value = 2}, .watts_busy = {.value = 9}};
  const Link link{.latency = {.value = 0}, .bandwidth = {.value = 1}};
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>("pair", std::move(devices), std::vector<Link>(4, link)),
                 {.time = {2, 2, 2, 2}, .source = "given"});
}

struct Trial {
  Problem problem = Pair();
  std::unique_ptr<Evaluator> evaluator;
  PlanReport report;

  explicit Trial(const std::string& name = "parallel(io=everywhere)") {
    EvaluatorCatalog catalog("evaluator");
    RegisterParallel(catalog);
    RegisterPipeline(catalog);
    evaluator = catalog.Make(name, problem);
    PlanResult result{.plan = {.device = {DeviceId{0}, DeviceId{1}}}, .evaluations = 1};
    report = MakePlanReport(*evaluator, "given", std::move(result), LowerBound(*evaluator));
  }

  LimitResult operator()(const Limits& limits) const { return CheckLimits(*evaluator, report, limits).at(1); }
};

TEST(Limits, AreReadWithUnits) {
  EXPECT_EQ(ParseShare("5%"), 0.05);
  EXPECT_EQ(ParseShare("0.05"), 0.05);
  EXPECT_EQ(ParseShare("0"), 0);
  EXPECT_THROW(ParseShare("five"), Error);
  EXPECT_THROW(ParseShare("-1%"), Error);
  EXPECT_THROW(ParseShare(""), Error);
  EXPECT_EQ(ParseMemoryLimit("gpu0=4GiB").device, "gpu0");
  EXPECT_EQ(ParseMemoryLimit("gpu0=4GiB").bytes, int64_t{4} << 30);
  EXPECT_EQ(ParseMemoryLimit("4GiB").device, "");
  EXPECT_THROW(ParseMemoryLimit("=4GiB"), Error);
  EXPECT_THROW(ParseMemoryLimit("gpu0=lots"), Error);
}

TEST(Limits, OfLatencySayByHowMuchAndWhatLimitsTheRun) {
  const Trial trial;  // 2 + 1 + 2
  const LimitResult held = trial({.seconds = 8});
  EXPECT_TRUE(held.held);
  EXPECT_EQ(held.value, 5);
  EXPECT_THAT(held.text, HasSubstr("3.00 s (38 %) below 8.00 s"));
  EXPECT_TRUE(trial({.seconds = 5}).held);
  const LimitResult missed = trial({.seconds = 4.5});
  EXPECT_FALSE(missed.held);
  EXPECT_THAT(missed.reason, HasSubstr("limited by"));
  EXPECT_THAT(trial({.seconds = 1}).reason, HasSubstr("no plan takes less than 4.00 s"));
}

TEST(Limits, OfMemoryNameWhatFillsThePeak) {
  const Trial trial;
  const LimitResult held = trial({.memory = {{.device = "one", .bytes = 1}}});
  EXPECT_TRUE(held.held);
  EXPECT_EQ(held.text, "1 B, exactly the limit");
  const LimitResult missed = trial({.memory = {{.device = "two", .bytes = 6}}});  // the weight, a copy and the output
  EXPECT_FALSE(missed.held);
  EXPECT_EQ(missed.value, 7);
  EXPECT_EQ(missed.device, "two");
  EXPECT_THAT(missed.reason, AllOf(HasSubstr("weight"), HasSubstr("middle")));
  EXPECT_EQ(CheckLimits(*trial.evaluator, trial.report, {.memory = {{.device = "", .bytes = 6}}}).size(), 3);
  EXPECT_THROW(trial({.memory = {{.device = "three", .bytes = 6}}}), Error);
  EXPECT_THROW(Trial("parallel(memory=false,io=everywhere)")({.memory = {{.device = "", .bytes = 6}}}), Error);
}

TEST(Limits, OfTransfersNameTheLargest) {
  const Trial trial;
  EXPECT_TRUE(trial({.transfers = 1}).held);
  const LimitResult missed = trial({.transfers = 0});
  EXPECT_FALSE(missed.held);
  EXPECT_THAT(missed.reason, HasSubstr("middle from one to two (1 B)"));
}

TEST(Limits, OfEnergySayWhatEachDeviceTakes) {
  const Trial trial;
  const double joules = 2 * 5 + 3 * 1 + 2 * 9 + 3 * 2;
  EXPECT_TRUE(trial({.joules = joules}).held);
  const LimitResult missed = trial({.joules = 30});
  EXPECT_FALSE(missed.held);
  EXPECT_DOUBLE_EQ(missed.value, joules);
  EXPECT_THAT(missed.reason, HasSubstr("two takes 18.0 J computing and 6.00 J idle"));
}

TEST(Limits, OfTheGapSayTheBound) {
  const Trial trial;  // nothing is faster than 4
  EXPECT_TRUE(trial({.gap = 0.25}).held);
  EXPECT_THAT(trial({.gap = 0.25}).text, "latency is 25 % above its lower bound, the limit is 25 %");
  const LimitResult missed = trial({.gap = 0.2});
  EXPECT_FALSE(missed.held);
  EXPECT_NEAR(missed.value, 0.25, 1e-12);
  EXPECT_THAT(missed.reason, HasSubstr("latency is 5.00 s, and its lower bound 4.00 s"));
}

TEST(Limits, APlanThatDoesNotFitHoldsNothing) {
  Trial trial;
  const auto all = [&] { return CheckLimits(*trial.evaluator, trial.report, {}); };
  EXPECT_TRUE(AllHeld(all()));
  EXPECT_THAT(LimitLines(all()), HasSubstr("held    fits"));
  trial.report.timeline.score.outcome = Outcome::kTooBig;
  trial.report.timeline.infeasible_because = "two lacks memory";
  EXPECT_FALSE(AllHeld(all()));
  EXPECT_THAT(LimitLines(all()), HasSubstr("MISSED  fits: it does not: two lacks memory"));
}

TEST(Limits, APlanThatCouldNotBeScoredIsNotSaidToBeTooBig) {
  Trial trial;
  trial.report.timeline.score = Score::Failed();
  trial.report.timeline.infeasible_because = "no answer within 5 s";
  const auto results = CheckLimits(*trial.evaluator, trial.report, {.seconds = 1, .joules = 1});
  EXPECT_FALSE(AllHeld(results));
  EXPECT_EQ(LimitLines(results), "MISSED  fits: not known, since the plan could not be scored: no answer within 5 s\n");
  const std::string page = PlanPage(*trial.evaluator, trial.report);
  EXPECT_THAT(page, HasSubstr("none: the plan could not be scored"));
  EXPECT_THAT(page, HasSubstr("Why: no answer within 5 s"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr("fit")));
}

TEST(Limits, OfEnergyAreMissedWhereNobodyTellsWhatDevicesDo) {
  Trial trial;
  trial.report.timeline.untold_because = "the runtime tells no times";
  const LimitResult missed = trial({.joules = 1e9});
  EXPECT_FALSE(missed.held);
  EXPECT_EQ(missed.reason, "the runtime tells no times");
}

TEST(Limits, AreInTheJson) {
  const Trial trial;
  const auto results =
      CheckLimits(*trial.evaluator, trial.report, {.seconds = 1, .memory = {{.device = "two", .bytes = 9}}});
  const Json json = CheckJson(*trial.evaluator, trial.report, results);
  EXPECT_EQ(json.at("passed"), false);
  EXPECT_EQ(json.at("limits").size(), 3);
  EXPECT_EQ(json.at("limits")[1].at("limit"), "latency");
  EXPECT_EQ(json.at("limits")[1].at("held"), false);
  EXPECT_EQ(json.at("limits")[1].at("most"), 1.0);
  EXPECT_EQ(json.at("limits")[2].at("device"), "two");
  EXPECT_EQ(json.at("memory_rule"), "berth");
  EXPECT_EQ(json.at("objective"), "latency");
}

}  // namespace
}  // namespace berth
