#include "placement/bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "placement/testing.h"

namespace berth {
namespace {

// Bounds ask an evaluator for its problem and for what it is, never for a score.
class Asked : public Evaluator {
 public:
  Asked(const Problem& problem, EvaluatorFacts facts) : Evaluator(problem), facts_(facts) {}
  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override { return nullptr; }
  Score ScorePlan(const PlanView&, Workspace&, std::span<double>) const override { return {}; }
  Timeline Trace(const PlanView&) const override { return {}; }

 private:
  EvaluatorFacts facts_;
  std::string name_ = "asked";
};

Bound ParallelBound(const Problem& problem) { return LowerBound(Asked(problem, {})); }
Bound SerialBound(const Problem& problem, double overhead = 0) {
  return LowerBound(Asked(problem, {.model = SerialFacts{.subgraph_overhead = overhead}}));
}

Problem Costs(GraphBuilder& builder, std::vector<double> times, size_t devices, double latency) {
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>(testing::UniformCluster(devices, latency, 1e9)),
                 {.time = std::move(times), .source = "test"});
}

TEST(Bound, IsTheWholeChain) {
  EXPECT_EQ(ParallelBound(testing::Chain(5, 3)).time, 5);
  EXPECT_EQ(SerialBound(testing::Chain(5, 3)).time, 5);
}

TEST(Bound, SharesWorkAmongDevices) {
  GraphBuilder builder("independent");
  for (int v = 0; v < 12; ++v) builder.AddOp("", "Unit", {});
  const Problem problem = testing::UnitProblem(builder.Build(), 3);
  const Bound bound = ParallelBound(problem);
  EXPECT_NEAR(bound.time, 4, 1e-9);
  EXPECT_LE(bound.time, 4);
  EXPECT_EQ(bound.reason, "work ideally spread over the devices");
}

TEST(Bound, WeighsUnequalDevices) {
  // Half of the ops are fast on one device, half on the other: dividing the least times by two would give half of it.
  GraphBuilder two("two");
  for (int v = 0; v < 20; ++v) two.AddOp("", "Unit", {});
  std::vector<double> times;
  for (int v = 0; v < 20; ++v) times.insert(times.end(), {1, 3});
  // All on the first takes 20; x of them on the second: max(20 - x, 3 x) = 15.
  EXPECT_NEAR(ParallelBound(Costs(two, times, 2, 0)).time, 15, 1e-6);
  GraphBuilder three("three");
  for (int v = 0; v < 20; ++v) three.AddOp("", "Unit", {});
  times.clear();
  for (int v = 0; v < 20; ++v) times.insert(times.end(), {1, 3, kCannotRun});
  EXPECT_NEAR(ParallelBound(Costs(three, times, 3, 0)).time, 15, 0.3);
}

TEST(Bound, CountsTransfersThatCannotBeAvoided) {
  // Each op is fast on another device, and the way between costs 2.
  GraphBuilder builder("pair");
  for (int v = 0; v < 2; ++v) builder.AddOp("", "Unit", {});
  builder.Consume(builder.AddTensor(0, 0), 1);
  const Problem problem = Costs(builder, {1, 9, 9, 1}, 2, 2);
  EXPECT_EQ(ParallelBound(problem).time, 4);
  EXPECT_EQ(SerialBound(problem).time, 2);
}

TEST(Bound, CountsASubgraphPerComponent) {
  GraphBuilder builder("parts");
  for (int v = 0; v < 4; ++v) builder.AddOp("", "Unit", {});
  builder.Consume(builder.AddTensor(0, 1), 1);
  EXPECT_EQ(SerialBound(testing::UnitProblem(builder.Build(), 2), 0.5).time, 4 + 3 * 0.5);
}

TEST(Bound, SaysWhenItKnowsNone) {
  const Problem problem = testing::Chain(2, 2);
  EXPECT_EQ(LowerBound(Asked(problem, {.model = MeasuredFacts{}})).time, 0);
}

TEST(Gap, IsAShareOfTheLowerBound) {
  EXPECT_EQ(Gap(4, 2), 1);
  EXPECT_EQ(Gap(5, 4), 0.25);
  EXPECT_EQ(Gap(3, 3), 0);
  EXPECT_EQ(Gap(0, 0), 0);
  EXPECT_TRUE(std::isinf(Gap(1, 0)));
}

TEST(MostSaved, IsAShareOfTheScore) {
  EXPECT_EQ(MostSaved(4, 3), 0.25);
  EXPECT_EQ(MostSaved(3, 3), 0);
  EXPECT_EQ(MostSaved(0, 0), 0);
  EXPECT_EQ(MostSaved(1, 0), 1);
}

}  // namespace
}  // namespace berth
