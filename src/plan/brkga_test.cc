#include <gtest/gtest.h>

#include "placement/search.h"
#include "placement/testing.h"
#include "plan/planners.h"
#include "plan/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

class Brkga : public ::testing::Test {
 protected:
  Brkga() {
    RegisterParallel(evaluators_);
    RegisterSingle(planners_);
    RegisterHeft(planners_);
    RegisterExhaustive(planners_);
    RegisterBrkga(planners_);
  }

  PlanResult Run(const Evaluator& evaluator, std::string_view planner, int64_t evaluations) const {
    return planners_.MakePlanner(planner)->MakePlan(
        {.evaluator = evaluator, .budget = {.evaluations = evaluations}, .random = Random(3)});
  }

  EvaluatorCatalog evaluators_{"evaluator"};
  PlannerCatalog planners_;
};

TEST_F(Brkga, SearchesTheOrderWithThePlacement) {
  Random random(9);
  int better = 0;
  for (int round = 0; round < 15; ++round) {
    SCOPED_TRACE(round);
    const Problem problem = testing::RandomProblem(random, {.ops = 8, .devices = 2, .zero_lengths = false});
    const auto evaluator = evaluators_.Make("parallel(contention=none,io=everywhere)", problem);
    const double placement = Run(*evaluator, "exhaustive", 1'000'000).score.value();
    const PlanResult order = Run(*evaluator, "exhaustive(space=order)", 1'000'000);
    ASSERT_TRUE(order.optimal);
    for (const char* form : {"brkga", "brkga(start=random,inherit=keys,moves=0)"}) {
      const PlanResult found = Run(*evaluator, form, 5000);
      EXPECT_GE(found.score.value(), order.score.value() * (1 - 1e-12)) << form;
      EXPECT_LE(found.score.value(), placement * (1 + 1e-12)) << form;
      better += found.score.value() < placement * (1 - 1e-9) ? 1 : 0;
    }
  }
  EXPECT_GT(better, 0);
}

TEST_F(Brkga, PlacesWhatFitsBeforeWhatIsFast) {
  Random random(2);
  int tight = 0;
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    const Problem problem = testing::RandomProblem(random, {.ops = 9, .devices = 3, .memory_limits = true});
    const auto evaluator = evaluators_.Make("parallel(io=everywhere)", problem);
    const PlanResult optimum = Run(*evaluator, "exhaustive", 1'000'000);
    if (!optimum.score.fits()) continue;
    const PlanResult one = Run(*evaluator, "brkga(start=random)", 1);
    tight += one.score.fits() ? 0 : 1;
    EXPECT_TRUE(Run(*evaluator, "brkga(start=random)", 4000).score.fits());
  }
  EXPECT_GT(tight, 2);
}

// A network of blocks: its form as published, and with what we added, at equal evaluations.
TEST_F(Brkga, IsBetterWithWholePartsAndMovesThanAsPublished) {
  const Problem problem = testing::ModelProblem("wavenet(stacks=1)", "p100x2", true);
  const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  const double published = Run(*evaluator, "brkga(start=random,inherit=keys,moves=0)", 3000).score.value();
  const double parts = Run(*evaluator, "brkga(start=random,moves=0)", 3000).score.value();
  const double both = Run(*evaluator, "brkga(start=random)", 3000).score.value();
  EXPECT_LT(parts, published);
  EXPECT_LT(both, parts);
}

}  // namespace
}  // namespace berth
