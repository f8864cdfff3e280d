#include "plan/sequence_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::ElementsAre;

class SequenceWalkTest : public ::testing::Test {
 protected:
  SequenceWalkTest() { RegisterParallel(evaluators_); }
  EvaluatorCatalog evaluators_{"evaluator"};
};

// Whatever moves, no device waits for ever, and what the search keeps is a plan with the score that it says.
TEST_F(SequenceWalkTest, NeverContradictsItself) {
  Random random(6);
  for (const char* name : {"parallel(contention=none,io=everywhere)", "parallel(contention=egress,io=0)",
                           "parallel(contention=ports,io=everywhere)", "parallel(contention=ports,io=1)",
                           "parallel(contention=links,io=everywhere)"}) {
    const Problem problem = testing::RandomProblem(random, {.ops = 30, .devices = 3});
    const auto evaluator = evaluators_.Make(name, problem);
    Search search({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
    const std::vector<DeviceId> start = testing::RandomPlacement(problem, random);
    search.Evaluate({.device = start}, "start");
    SequenceWalk walk(search, {.device = start}, "walk");
    for (int i = 0; i < 300; ++i) {
      const auto op = MakeId<OpId>(random.Below(problem.num_ops())),
                 other = MakeId<OpId>(random.Below(problem.num_ops()));
      const std::pair<OpId, DeviceId> move(op, MakeId<DeviceId>(random.Below(3)));
      const std::pair<OpId, double> priority(other, random.Uniform(-5, 40));
      PlanChange change{.priorities = std::span(&priority, 1)};
      if (random.Chance(0.5) && problem.can_run(op, move.second)) change.moves = std::span(&move, 1);
      const Score score = walk.TryChange(change);
      ASSERT_FALSE(score.failed());
      ASSERT_NE(score.outcome, Outcome::kImpossible) << name;
      if (!random.Chance(0.5)) continue;
      walk.Take();
      ASSERT_EQ(walk.score().value(), score.value());
    }
    const Plan& best = search.best();
    ASSERT_EQ(FindViolation(problem, best.view()), std::nullopt);
    EXPECT_EQ(evaluator->Trace(best.view()).score.value(), search.best_score().value());
  }
}

// a takes 1 and b 2 on one device, c 10 on the other after b: first come first served, and by any priorities that do
// not say so, a runs first.
TEST_F(SequenceWalkTest, PutsAnOpBeforeAnother) {
  GraphBuilder builder("three");
  for (const char* name : {"a", "b", "c"}) builder.AddOp(name, "Op", {});
  builder.Consume(builder.AddTensor(1, 0), 2);
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2, 0, 1)),
                        {.time = {1, 1, 2, 2, 10, 10}, .source = "test"});
  const auto evaluator = evaluators_.Make("parallel(contention=none,io=everywhere)", problem);
  Search search({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
  const std::vector<DeviceId> device = {DeviceId{0}, DeviceId{0}, DeviceId{1}};
  search.Evaluate({.device = device}, "start");
  SequenceWalk walk(search, {.device = device}, "walk");
  EXPECT_EQ(walk.score().time, 13);
  EXPECT_THAT(walk.priority(), ElementsAre(2, 1, 0));
  const std::pair<OpId, double> before(OpId{1}, 2.5);
  EXPECT_EQ(walk.TryChange({.priorities = std::span(&before, 1)}).time, 12);
  EXPECT_EQ(walk.score().time, 13);  // not taken
  walk.Take();
  EXPECT_EQ(walk.score().time, 12);
  std::vector<double> starts(3);
  walk.Starts(starts);
  EXPECT_THAT(starts, ElementsAre(2, 0, 2));
  EXPECT_THAT(search.best().sequence->ops, ElementsAre(OpId{1}, OpId{0}, OpId{2}));
}

}  // namespace
}  // namespace berth
