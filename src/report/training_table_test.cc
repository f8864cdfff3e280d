#include "report/training_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "placement/testing.h"
#include "plan/planners.h"
#include "report/controls.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<const Evaluator> Simulator(const Problem& problem, const std::string& name) {
  EvaluatorCatalog catalog{"evaluator"};
  RegisterSerial(catalog);
  RegisterParallel(catalog);
  return catalog.Make(name, problem);
}

TEST(Sparkline, ShowsNumbersAsBars) {
  const double nan = std::nan("");
  EXPECT_EQ(Sparkline(std::vector<double>{4, 3, 2, 1}, 10), "█▆▃▁");
  EXPECT_EQ(Sparkline(std::vector<double>{4, 4, 1, 1}, 2), "█▁");
  EXPECT_EQ(Sparkline(std::vector<double>{2, nan, 1}, 10), "█▁");
  EXPECT_EQ(Sparkline(std::vector<double>{7, 7}, 10), "▁▁");
  EXPECT_EQ(Sparkline(std::vector<double>{nan}, 10), "");
}

TEST(Controls, AreThoseOfTheCatalogAndTheCutWhereItIsTheOptimum) {
  PlannerCatalog planners;
  RegisterRandom(planners);
  RegisterLocalSearch(planners);
  RegisterMinCut(planners);
  const Problem two = testing::Chain(3, 2), three = testing::Chain(3, 3);
  EXPECT_THAT(ControlPlanners(*Simulator(two, "serial(io=everywhere)"), planners),
              ElementsAre("random", "random(bias=true)", "local_search", "mincut"));
  EXPECT_THAT(ControlPlanners(*Simulator(three, "serial(io=everywhere)"), planners),
              ElementsAre("random", "random(bias=true)", "local_search"));
  EXPECT_THAT(ControlPlanners(*Simulator(two, "parallel(io=everywhere)"), planners),
              Not(::testing::Contains("mincut")));
}

TEST(TrainingTable, HasAColumnForEachControlThatWasAskedAndNoneForOthers) {
  const Problem problem = testing::Chain(3, 2);
  const auto evaluator = Simulator(problem, "serial(io=everywhere)");
  const auto result = [&](const std::vector<DeviceId>& device) {
    const auto workspace = evaluator->NewWorkspace();
    return PlanResult{
        .plan = {.device = device}, .score = evaluator->ScorePlan({.device = device}, *workspace), .evaluations = 9};
  };
  const auto report = [&](const std::string& planner, const std::vector<DeviceId>& device) {
    return ComparisonRow{.report = MakePlanReport(*evaluator, planner, result(device), {})};
  };
  const std::vector<DeviceId> together(3, DeviceId{0}), apart = {DeviceId{0}, DeviceId{1}, DeviceId{1}};
  std::vector<TrainingRow> rows;
  rows.push_back({.model = "chain",
                  .evaluator = *evaluator,
                  .first_cost = 4,
                  .best = result(together),
                  .greedy_cost = 4,
                  .greedy = result(apart),
                  .controls = MakeComparison(
                      *evaluator, {report("random", apart), report("single(device=\"d1\")", together)}, {})});
  // Nothing was drawn, and nothing answered.
  rows.push_back({.model = "empty",
                  .evaluator = *evaluator,
                  .first_cost = std::nan(""),
                  .greedy_cost = std::numeric_limits<double>::infinity()});
  const std::string table = TrainingTable(rows, false);
  EXPECT_THAT(table, AllOf(HasSubstr("random"), HasSubstr("one device"), Not(HasSubstr("climbing"))));
  EXPECT_THAT(table, AllOf(HasSubstr("chain"), HasSubstr("empty")));
  const Json json = TrainingJson(rows);
  EXPECT_EQ(json.at(0).at("best_seconds"), 3);
  EXPECT_EQ(json.at(0).at("controls").size(), 2u);
  EXPECT_TRUE(json.at(1).at("best_seconds").is_null());
  EXPECT_TRUE(json.at(1).at("greedy_cost").is_null());
  EXPECT_FALSE(json.at(1).contains("controls"));
}

}  // namespace
}  // namespace berth
