#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "placement/grouping.h"
#include "placement/testing.h"
#include "plan/planners.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::HasSubstr;

class On : public ::testing::Test {
 protected:
  On() {
    RegisterGroupings(groupings_);
    RegisterParallel(evaluators_);
    RegisterSingle(planners_);
    RegisterRandom(planners_);
    RegisterLocalSearch(planners_);
    RegisterExhaustive(planners_);
    RegisterOn(planners_, groupings_);
  }

  PlanResult Run(const Problem& problem, std::string_view planner) {
    const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
    return planners_.MakePlanner(planner)->MakePlan(
        {.evaluator = *evaluator, .budget = {.evaluations = 500}, .random = Random(1)});
  }

  GroupingCatalog groupings_{"grouping"};
  EvaluatorCatalog evaluators_{"evaluator"};
  PlannerCatalog planners_;
};

TEST_F(On, PlacesEachGroupOnOneDeviceAndScoresTheWholeGraph) {
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 30, .devices = 3});
    for (const char* group : {"colocation(rule=code)", "chain(most=4)", "fusion", "merge(size=5)"}) {
      const PlanResult result = Run(problem, fmt::format("on(group={},planner=local_search)", group));
      const Grouping grouping = groupings_.Make(group, problem, {});
      for (const OpId op : problem.graph().ops()) {
        const OpId first = grouping.ops_of(grouping.group_of(op)).front();
        ASSERT_EQ(result.plan.device[Index(op)], result.plan.device[Index(first)]) << group;
      }
      const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
      EXPECT_EQ(evaluator->Trace(result.plan.view()).score, result.score);
      EXPECT_THAT(result.note, HasSubstr(fmt::format("30 ops in {} groups", grouping.num_groups())));
    }
  }
}

TEST_F(On, OneGroupIsTheBestSingleDevice) {
  Random random(2);
  const Problem problem = testing::RandomProblem(random, {.ops = 20, .devices = 3});
  const PlanResult result = Run(problem, "on(group=merge(size=1),planner=exhaustive)");
  EXPECT_EQ(result.score, Run(problem, "single").score);
  EXPECT_FALSE(result.optimal) << "a plan that splits the group may be better";
}

// Each group agrees with each constraint, and no two devices keep three groups apart, but two groups.
TEST_F(On, LeavesOneGroupWhereConstraintsContradictThemTogether) {
  const Problem problem =
      testing::Chain(6, 2).With({.separate = {{OpId{0}, OpId{2}}, {OpId{3}, OpId{4}}, {OpId{5}, OpId{1}}}});
  for (const char* const inner : {"local_search", "random", "single"}) {
    const PlanResult result = Run(problem, fmt::format("on(group=chain(most=2),planner={})", inner));
    EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt) << inner;
    EXPECT_THAT(result.note, HasSubstr("6 ops in 3 groups; constraints split 1 of them")) << inner;
  }
}

TEST_F(On, LeavesGroupsThatConstraintsForbid) {
  Random random(3);
  const Problem problem =
      testing::RandomProblem(random, {.ops = 12, .devices = 2}).With({.separate = {{OpId{0}, OpId{11}}}});
  const PlanResult result = Run(problem, "on(group=merge(size=1),planner=random)");
  EXPECT_NE(result.plan.device[0], result.plan.device[11]);
  EXPECT_THAT(result.note, HasSubstr("constraints split 1 of them"));
}

TEST_F(On, ListsTheGroupingsForAWrongName) {
  try {
    planners_.MakePlanner("on(group=colocate)");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("colocation"));
  }
}

}  // namespace
}  // namespace berth
