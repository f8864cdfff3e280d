#include <gtest/gtest.h>

#include "placement/search.h"
#include "placement/testing.h"
#include "plan/planners.h"
#include "sim/simulators.h"

namespace berth {
namespace {

class CrossEntropy : public ::testing::Test {
 protected:
  CrossEntropy() {
    RegisterSerial(evaluators_);
    RegisterCrossEntropy(planners_);
    RegisterRandom(planners_);
  }

  PlanResult Run(const Evaluator& evaluator, std::string_view planner, int64_t evaluations) const {
    return planners_.MakePlanner(planner)->MakePlan(
        {.evaluator = evaluator, .budget = {.evaluations = evaluations}, .random = Random(3)});
  }

  EvaluatorCatalog evaluators_{"evaluator"};
  PlannerCatalog planners_;
};

// 60 ops that exchange nothing, each with a device of its own: all at once, its odds are learned one by one.
TEST_F(CrossEntropy, FindsTheFastestDeviceOfEachOp) {
  constexpr size_t kOps = 60, kDevices = 4;
  Random random(8);
  GraphBuilder builder("apart");
  OpTimes times{.time = {}, .source = "drawn"};
  double optimum = 0;
  for (size_t v = 0; v < kOps; ++v) {
    builder.AddOp("", "Task", {});
    const size_t fast = random.Below(kDevices);
    for (size_t d = 0; d < kDevices; ++d) times.time.push_back(d == fast ? 1 : 1 + random.Uniform(1, 2));
    optimum += 1;
  }
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(kDevices)), std::move(times));
  const auto evaluator = evaluators_.Make("serial", problem);
  EXPECT_GT(Run(*evaluator, "random", 6000).score.value(), 1.5 * optimum);
  EXPECT_DOUBLE_EQ(Run(*evaluator, "cross_entropy(start=random)", 6000).score.value(), optimum);
  // As published, in batches large enough for so many ops; smoothed, it needs no more.
  EXPECT_DOUBLE_EQ(Run(*evaluator, "cross_entropy(start=random,keep=false,samples=400)", 12'000).score.value(),
                   optimum);
  EXPECT_DOUBLE_EQ(Run(*evaluator, "cross_entropy(start=random,keep=false,step=0.5)", 6000).score.value(), optimum);
}

// With all odds even it is nothing but the null.
TEST_F(CrossEntropy, DrawsEvenlyWhereNothingIsLearned) {
  Random random(4);
  const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 3, .forbidden = 0.3});
  const auto evaluator = evaluators_.Make("serial", problem);
  const PlanResult still = Run(*evaluator, "cross_entropy(start=random,step=0)", 3000);
  const PlanResult mixed = Run(*evaluator, "cross_entropy(start=random,mix=1)", 3000);
  EXPECT_EQ(still.score, mixed.score);
  EXPECT_EQ(still.plan.device, mixed.plan.device);
}

}  // namespace
}  // namespace berth
