// Bounds against optima that are searched for in full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "import/training.h"
#include "placement/bound.h"
#include "placement/testing.h"
#include "plan/planners.h"
#include "sim/simulators.h"

namespace berth {
namespace {

const EvaluatorCatalog& Evaluators() {
  static const EvaluatorCatalog* const all = [] {
    auto* catalog = new EvaluatorCatalog("evaluator");
    RegisterParallel(*catalog);
    return catalog;
  }();
  return *all;
}

const PlannerCatalog& Planners() {
  static const PlannerCatalog* const all = [] {
    auto* catalog = new PlannerCatalog;
    RegisterExhaustive(*catalog);
    return catalog;
  }();
  return *all;
}

// Of all placements and orders, if it can be found in time.
std::optional<double> Optimum(const Evaluator& evaluator) {
  const PlanResult result =
      Planners()
          .MakePlanner("exhaustive(space=order)")
          ->MakePlan({.evaluator = evaluator, .budget = {.evaluations = 20'000}, .random = Random(1)});
  if (!result.optimal) return std::nullopt;
  return result.score.time;
}

// By what the bound says it is.
std::map<std::string, int> HoldsOn(const Problem& problem) {
  std::map<std::string, int> reasons;
  for (const char* const name :
       {"parallel(contention=none,io=everywhere)", "parallel(contention=ports,io=everywhere)"}) {
    const auto evaluator = Evaluators().Make(name, problem);
    const std::optional<double> optimum = Optimum(*evaluator);
    if (!optimum) continue;
    const Bound bound = LowerBound(*evaluator);
    EXPECT_LE(bound.time, *optimum) << name << ": " << bound.reason;
    ++reasons[bound.reason];
  }
  return reasons;
}

TEST(Bound, IsNoMoreThanTheOptimumOfGroupsThatShareADevice) {
  Random random(21);
  std::map<std::string, int> reasons;
  for (int round = 0; round < 300; ++round) {
    const Problem base = testing::RandomProblem(random, {.ops = 4 + random.Below(4),
                                                         .devices = 2 + random.Below(2),
                                                         .ties = round % 2 == 0,
                                                         .forbidden = round % 5 == 0 ? 0.1 : 0});
    Constraints constraints;
    for (size_t groups = random.Below(3); groups > 0; --groups) {
      std::vector<OpId> group;
      for (const OpId op : base.graph().ops()) {
        if (random.Chance(0.4)) group.push_back(op);
      }
      if (group.size() > 1) constraints.colocate.push_back(std::move(group));
    }
    for (const auto& [reason, count] : HoldsOn(base.With(constraints))) reasons[reason] += count;
  }
  int proven = 0;
  for (const auto& [reason, count] : reasons) proven += count;
  EXPECT_GT(proven, 500);
  // Each kind of bound is the largest somewhere.
  EXPECT_EQ(reasons.size(), 4) << ::testing::PrintToString(reasons);
}

TEST(Bound, IsNoMoreThanTheOptimumOfStepsOfTraining) {
  Random random(22);
  int proven = 0;
  for (int round = 0; round < 150; ++round) {
    // Two or three layers, of which some share a weight: gradients are summed.
    GraphBuilder builder("forward");
    const size_t layers = 2 + random.Below(2);
    const size_t input = builder.AddInput(64), shared = builder.AddParameter(16);
    for (size_t v = 0; v < layers; ++v) {
      builder.AddOp("layer" + std::to_string(v), "MatMul", {.flops = 1});
      const size_t tensor = builder.AddTensor(v, 64, {}, v + 1 == layers);
      if (random.Chance(0.7)) builder.UseParameter(shared, v);
      if (v == 0 || random.Chance(0.3)) builder.UseInput(input, v);
      if (v > 0) builder.Consume(random.Chance(0.7) ? tensor - 1 : 0, v);
    }
    TrainingGraph step = MakeTrainingGraph(builder.Build(), Optimizer::kSgd);
    const size_t devices = 2, ops = step.graph.num_ops();
    std::vector<double> times;
    for (size_t i = 0; i < ops * devices; ++i) times.push_back(random.Uniform(0.1, 2));
    const Problem problem =
        Problem(std::make_shared<const Graph>(std::move(step.graph)),
                std::make_shared<const Cluster>(testing::UniformCluster(devices, 0.05, random.Uniform(50, 500))),
                {.time = std::move(times), .source = "test"})
            .With({.colocate = std::move(step.colocate)});
    for (const auto& [reason, count] : HoldsOn(problem)) proven += count;
  }
  EXPECT_GT(proven, 200);
}

}  // namespace
}  // namespace berth
