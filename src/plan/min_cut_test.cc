#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "placement/bound.h"
#include "placement/testing.h"
#include "plan/planners.h"
#include "plan/testing.h"

namespace berth {
namespace {

using ::testing::HasSubstr;
using testing::MakeSimulator;
using testing::RandomProblem;
using testing::SimplePlanners;
using testing::SlowBest;
using testing::Trial;

TEST(MinCut, EqualsExhaustiveOnEverySmallProblem) {
  Random random(4);
  for (int round = 0; round < 150; ++round) {
    const bool ties = round % 2 == 0;
    const Problem problem = RandomProblem(
        random, {.ops = 1 + random.Below(11), .devices = 2, .ties = ties, .forbidden = round % 3 == 0 ? 0.2 : 0});
    for (const char* evaluator : {"serial(io=everywhere)", "serial(io=d0)", "serial(io=d1)"}) {
      const Trial run(problem, evaluator);
      const PlanResult cut = run("mincut"), best = run("exhaustive");
      EXPECT_TRUE(cut.optimal && best.optimal);
      EXPECT_NEAR(cut.score.time, best.score.time, 1e-12 * best.score.time) << evaluator << " round " << round;
      EXPECT_GE(cut.score.time, LowerBound(*run.evaluator).time);
    }
  }
}

TEST(MinCut, OfWhatTakesNoTimeOnOneDeviceIsThatDevice) {
  for (const size_t free : {0, 1}) {
    GraphBuilder builder("views");
    OpTimes times{.time = {}, .source = "drawn"};
    for (size_t v = 0; v < 10; ++v) {
      builder.AddOp("", "Reshape", {});
      if (v > 0) builder.Consume(builder.AddTensor(v - 1, 8), v);
      for (size_t d = 0; d < 2; ++d) times.time.push_back(d == free ? 0 : 0.3 * static_cast<double>(v % 3));
    }
    const Problem problem(std::make_shared<const Graph>(builder.Build()),
                          std::make_shared<const Cluster>(testing::UniformCluster(2)), std::move(times));
    const PlanResult result = Trial(problem, "serial(io=everywhere)")("mincut");
    EXPECT_EQ(result.score.value(), 0);
    EXPECT_TRUE(result.optimal);
  }
}

TEST(MinCut, KeepsTogetherWhatMustBe) {
  Random random(5);
  for (int round = 0; round < 40; ++round) {
    const Problem free = RandomProblem(random, {.ops = 9, .devices = 2});
    Problem::Options options;
    options.constraints.colocate = {{OpId{0}, OpId{3}, OpId{5}}, {OpId{5}, OpId{7}}};
    OpTimes times{.time = {}, .source = "copy"};
    for (const OpId op : free.graph().ops()) {
      for (const double t : free.op_times(op)) times.time.push_back(t);
    }
    const Problem problem(free.shared_graph(), free.shared_cluster(), std::move(times), std::move(options));
    const Trial run(problem, "serial(io=everywhere)");
    const PlanResult cut = run("mincut"), best = run("exhaustive");
    EXPECT_EQ(FindViolation(problem, cut.plan.view()), std::nullopt);
    EXPECT_NEAR(cut.score.time, best.score.time, 1e-12 * best.score.time);
    EXPECT_NEAR(best.score.time, SlowBest(problem, *run.evaluator), 1e-12);
  }
}

TEST(MinCut, PaysATensorOnceHoweverManyConsumers) {
  // The fork is only fast on one device, its ten consumers only on the other; sending once is worth it, ten times is
  // not.
  GraphBuilder builder("fan");
  OpTimes times{.time = {1, 50}, .source = "test"};
  builder.AddOp("", "Unit", {});
  const size_t tensor = builder.AddTensor(0, 30);
  for (size_t v = 1; v <= 10; ++v) {
    builder.Consume(tensor, builder.AddOp("", "Unit", {}));
    times.time.insert(times.time.end(), {11, 1});
  }
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)), std::move(times));
  EXPECT_EQ(Trial(problem, "serial(io=everywhere)")("mincut").score.time, 1 + 30 + 10);
}

TEST(MinCut, SaysWhenItIsOnlyAStart) {
  const Problem problem = testing::Chain(4, 2);
  EXPECT_FALSE(Trial(problem, "serial(subgraph_overhead=0.5,io=everywhere)")("mincut").optimal);
  EXPECT_FALSE(Trial(problem, "parallel(io=everywhere)")("mincut").optimal);
  const Problem three = testing::Chain(4, 3);
  EXPECT_THAT(*SimplePlanners().MakePlanner("mincut")->Refuses(three, *MakeSimulator("serial(io=everywhere)", three)),
              HasSubstr("the cluster has 3"));
}

}  // namespace
}  // namespace berth
