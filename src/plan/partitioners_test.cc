#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "placement/testing.h"
#include "plan/planners.h"
#include "plan/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

class Partitioner : public ::testing::TestWithParam<const char*> {
 protected:
  Partitioner() {
    RegisterMetis(planners_);
#if BERTH_HAS_SCOTCH
    RegisterScotch(planners_);
#endif
    RegisterParallel(evaluators_);
  }
  void SetUp() override {
    if (planners_.Find(GetParam()) == nullptr) GTEST_SKIP() << GetParam() << " is not in this build";
  }
  PlanResult Partition(const Problem& problem) const {
    const auto evaluator = evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
    return planners_.MakePlanner(GetParam())->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
  }

  PlannerCatalog planners_;
  EvaluatorCatalog evaluators_{"evaluator"};
};

INSTANTIATE_TEST_SUITE_P(Catalog, Partitioner, ::testing::Values("metis", "scotch"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Partitioner, CutsWhereLittleIsSent) {
  // Four dense parts side by side, each op feeding all later ones of its part, and one small tensor between neighbours.
  GraphBuilder builder("parts");
  for (size_t part = 0; part < 4; ++part) {
    for (size_t i = 0; i < 12; ++i) {
      const size_t op = builder.AddOp("", "Op", {.flops = 1});
      for (size_t before = 0; before < i; ++before) {
        builder.Consume(builder.AddTensor(12 * part + before, 100), op);
      }
      if (i == 11 && part > 0) builder.Consume(builder.AddTensor(12 * part - 1, 1), op);
    }
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 4);
  const PlanResult result = Partition(problem);
  std::set<DeviceId> all;
  for (size_t part = 0; part < 4; ++part) {
    std::set<DeviceId> devices;
    for (size_t i = 0; i < 12; ++i) devices.insert(result.plan.device[12 * part + i]);
    EXPECT_EQ(devices.size(), 1) << part;
    all.insert(devices.begin(), devices.end());
  }
  EXPECT_EQ(all.size(), 4);
  EXPECT_EQ(result.evaluations, std::string_view(GetParam()) == "metis" ? 8 : 4);
}

TEST_P(Partitioner, GivesTheSlowerDeviceLess) {
  const Problem problem = testing::ModelProblem("lstm_grid(layers=6,steps=12)", "cpu_gpu", false);
  const PlanResult result = Partition(problem);
  const auto cpu = problem.cluster().Find("cpu");
  const auto on_cpu = std::ranges::count(result.plan.device, cpu);
  EXPECT_LT(on_cpu * 3, static_cast<std::ptrdiff_t>(problem.num_ops()));
}

TEST_P(Partitioner, SaysNothingAboutDevicesWithoutMemory) {
  for (const std::vector<int64_t>& limits : {std::vector<int64_t>{1000, 0}, {1000, 0, 0, 0, 0, 0, 0, 0}}) {
    GraphBuilder builder("chain");
    for (size_t v = 0; v < 20; ++v) {
      const size_t op = builder.AddOp("", "Op", {});
      builder.UseParameter(builder.AddParameter(10), op);
      if (v > 0) builder.Consume(builder.AddTensor(v - 1, 1), v);
    }
    const Problem problem = testing::UnitProblem(builder.Build(), limits.size(), {.memory_limits = limits});
    ::testing::internal::CaptureStdout();
    const PlanResult result = Partition(problem);
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");  // METIS prints what it takes for mistakes
    EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
  }
}

TEST_P(Partitioner, AnswersTheSameEachTime) {
  const Problem problem = testing::ModelProblem("gnmt(layers=2,steps=4)", "p100x4", true);
  const PlanResult first = Partition(problem), second = Partition(problem);
  EXPECT_EQ(first.plan.device, second.plan.device);
  EXPECT_EQ(FindViolation(problem, first.plan.view()), std::nullopt);
}

}  // namespace
}  // namespace berth
