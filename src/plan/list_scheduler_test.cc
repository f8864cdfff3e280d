#include "plan/list_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "placement/testing.h"
#include "plan/planners.h"
#include "plan/rank.h"
#include "plan/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

PlanResult Answer(const Problem& problem, std::string_view planner, const Budget& budget = {}) {
  static const PlannerCatalog planners = [] {
    PlannerCatalog all;
    RegisterHeft(all);
    RegisterHuman(all);
    return all;
  }();
  EvaluatorCatalog evaluators("evaluator");
  RegisterParallel(evaluators);
  const auto evaluator = evaluators.Make("parallel(contention=ports,io=everywhere)", problem);
  return planners.MakePlanner(planner)->MakePlan({.evaluator = *evaluator, .budget = budget, .random = Random(1)});
}

// ETF as its paper has it: before each step every ready op is asked for on every device.
std::vector<DeviceId> SlowEarliest(const Problem& problem, const Units& units) {
  const std::vector<double> rank = UpwardRank(problem);
  PartialSchedule schedule(problem, Contention::kNone, false);
  std::vector<DeviceId> device(problem.num_ops(), DeviceId{-1});
  for (size_t placed = 0; placed < problem.num_ops(); ++placed) {
    std::tuple<double, double, OpId, DeviceId> best{kCannotRun, 0, OpId{-1}, DeviceId{-1}};
    for (const OpId op : problem.graph().ops()) {
      const auto is_placed = [&](TensorId tensor) { return schedule.placed(problem.graph().producer(tensor)); };
      if (schedule.placed(op) || !std::ranges::all_of(problem.graph().inputs_of(op), is_placed)) continue;
      for (const DeviceId each : problem.cluster().ids()) {
        if (device[Index(op)] != DeviceId{-1} && device[Index(op)] != each) continue;
        if (!units.can_run(units.unit_of(op), each)) continue;
        best = std::min(best, std::tuple(schedule.Find(op, each).start, -rank[Index(op)], op, each));
      }
    }
    const auto& [start, urgency, op, chosen] = best;
    units.Put(device, units.unit_of(op), chosen);
    schedule.Place(op, chosen);
  }
  return device;
}

TEST(ListScheduler, EarliestTaskFirstIsThatOfTheSlowWay) {
  Random random(1);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 3 + random.Below(25), .ties = round % 2 == 0});
    const Units units(problem);
    ListScheduler scheduler(units, Urgency::kEarliest);
    scheduler.Run({.insertion = false}, nullptr);
    ASSERT_EQ(scheduler.device(), SlowEarliest(problem, units)) << round;
  }
}

TEST(ListScheduler, PutsAClusterOnOneDevice) {
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 3 + random.Below(25)});
    const Units units(problem);
    const Clusters clusters(units, 0.5, 1e9);
    for (const Urgency urgency : {Urgency::kUpward, Urgency::kOptimistic, Urgency::kCritical, Urgency::kEarliest}) {
      ListScheduler scheduler(units, urgency);
      const PartialSchedule schedule = scheduler.Run({.contention = Contention::kPorts}, &clusters);
      for (const OpId op : problem.graph().ops()) {
        ASSERT_TRUE(schedule.placed(op));
        for (const OpId other : problem.graph().ops()) {
          if (clusters.cluster_of(op) == clusters.cluster_of(other)) {
            ASSERT_EQ(schedule.device(op), schedule.device(other));
          }
        }
      }
    }
  }
}

TEST(ListScheduler, GivesEachDeviceOneOfManyEqualClusters) {
  // Pairs of ops that are dear to part, all ready at once: by the end of its first op alone a pair would never wait.
  GraphBuilder builder("pairs");
  for (size_t pair = 0; pair < 6; ++pair) {
    const size_t a = builder.AddOp("", "Op", {.flops = 1}), b = builder.AddOp("", "Op", {.flops = 1});
    builder.Consume(builder.AddTensor(a, 100), b);
    builder.AddTensor(b, 0);
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 3);
  const Units units(problem);
  const Clusters clusters(units, 1, 2);
  ASSERT_EQ(clusters.size(), 6);
  ListScheduler scheduler(units, Urgency::kUpward);
  EXPECT_EQ(scheduler.Run({}, &clusters).makespan(), 4);
}

TEST(Heft, IsNotFarFromTheExpertOnStepsOfTraining) {
  for (const char* model : {"rnnlm(layers=4,steps=8)", "gnmt(layers=2,steps=6)", "nmt(steps=8)", "wavenet(stacks=1)"}) {
    const Problem problem = testing::ModelProblem(model, "p100x4", true);
    EXPECT_LT(Answer(problem, "heft").score.value(), 1.5 * Answer(problem, "human").score.value()) << model;
  }
}

TEST(Heft, HasAPlanWhenTheTimeIsOverBeforeItsScheduleIs) {
  const Problem problem = testing::ModelProblem("nmt(steps=8)", "p100x4", true);
  for (const char* planner : {"heft", "etf"}) {
    const PlanResult result = Answer(problem, planner, {.seconds = 0});
    EXPECT_EQ(result.evaluations, 1);
    EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
  }
}

TEST(Heft, KeepsItsPlansWhereNothingMustShareADevice) {
  const Problem problem = testing::ModelProblem("nmt(steps=8)", "p100x4", false);
  EXPECT_EQ(Answer(problem, "heft").plan.device, Answer(problem, "heft(clusters=never)").plan.device);
  EXPECT_LE(Answer(problem, "heft(clusters=always)").score.value(), Answer(problem, "heft").score.value());
}

}  // namespace
}  // namespace berth
