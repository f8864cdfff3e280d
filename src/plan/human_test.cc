#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "placement/search.h"
#include "placement/testing.h"
#include "placement/units.h"
#include "plan/contiguous.h"
#include "plan/planners.h"
#include "plan/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

class Rules : public ::testing::Test {
 protected:
  Rules() {
    RegisterParallel(evaluators_);
    RegisterSingle(planners_);
    RegisterHuman(planners_);
    RegisterSimpleRules(planners_);
  }

  std::unique_ptr<Evaluator> Ports(const Problem& problem) const {
    return evaluators_.Make("parallel(contention=ports,io=everywhere)", problem);
  }
  PlanResult Run(const Problem& problem, std::string_view planner) {
    const auto evaluator = Ports(problem);
    return planners_.MakePlanner(planner)->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
  }

  EvaluatorCatalog evaluators_{"evaluator"};
  PlannerCatalog planners_;
};

// The devices of all ops of the forward pass whose name contains `part`.
std::set<DeviceId> DevicesOf(const Problem& problem, const Plan& plan, std::string_view part) {
  std::set<DeviceId> devices;
  for (const OpId op : problem.graph().ops()) {
    if (problem.graph().op_name(op).find(part) != std::string_view::npos) devices.insert(plan.device[Index(op)]);
  }
  return devices;
}

TEST_F(Rules, HumanPutsEachRecurrentLayerOnItsOwnDevice) {
  const Problem problem = testing::ModelProblem("rnnlm(layers=4,steps=6)", "p100x4", true);
  const PlanResult result = Run(problem, "human");
  std::set<DeviceId> all;
  for (const char* layer : {"layer0/", "layer1/", "layer2/", "layer3/"}) {
    const std::set<DeviceId> devices = DevicesOf(problem, result.plan, layer);
    EXPECT_EQ(devices.size(), 1) << layer;
    all.insert(devices.begin(), devices.end());
  }
  EXPECT_EQ(all.size(), 4);
  EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
}

TEST_F(Rules, HumanPutsTwoLayersPerDeviceWhereThereAreMore) {
  const Problem problem = testing::ModelProblem("rnnlm(layers=4,steps=6)", "p100x2", true);
  const PlanResult result = Run(problem, "human");
  EXPECT_EQ(DevicesOf(problem, result.plan, "layer0/"), DevicesOf(problem, result.plan, "layer1/"));
  EXPECT_EQ(DevicesOf(problem, result.plan, "layer2/"), DevicesOf(problem, result.plan, "layer3/"));
}

// All layouts that cut the order of ops at one place between two devices, the slow way.
TEST_F(Rules, HumanIsNoWorseThanContiguousPartsNorThanOneDevice) {
  Random random(5);
  for (int round = 0; round < 40; ++round) {
    testing::RandomProblemOptions options{.devices = 2 + random.Below(3)};
    const Problem problem = testing::RandomProblem(random, options);
    const auto evaluator = Ports(problem);
    const PlanResult result = Run(problem, "human");
    ASSERT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
    const auto workspace = evaluator->NewWorkspace();
    const Layers layers = FindLayers(problem);
    const std::vector<DeviceId> devices = FastestDevices(problem);
    for (const Cuts cuts : {Cuts::kAnywhere, Cuts::kLayers}) {
      const std::vector<DeviceId> device = Units(problem).Legal(Contiguous(problem, layers).EqualWork(devices, cuts));
      const Score score = evaluator->ScorePlan({.device = device}, *workspace);
      EXPECT_FALSE(Better(score, result.score));
    }
    EXPECT_FALSE(Better(Run(problem, "single").score, result.score));
  }
}

TEST_F(Rules, ContiguousPartsHaveEqualWorkAsNearAsOpsAllow) {
  Random random(6);
  for (int round = 0; round < 40; ++round) {
    const Problem problem = testing::Chain(5 + random.Below(40), 1 + random.Below(5));
    const Layers layers = FindLayers(problem);
    const Contiguous contiguous(problem, layers);
    std::vector<DeviceId> devices(problem.cluster().ids().begin(), problem.cluster().ids().end());
    const std::vector<DeviceId> placement = contiguous.EqualWork(devices, Cuts::kAnywhere);
    ASSERT_TRUE(std::ranges::is_sorted(placement));
    std::vector<size_t> count(problem.num_devices(), 0);
    for (const DeviceId device : placement) ++count[Index(device)];
    const auto [least, most] = std::ranges::minmax(count);
    EXPECT_LE(most - least, 1) << "all ops of a chain take as long";
  }
}

TEST_F(Rules, FirstFitFillsOneDeviceAfterAnother) {
  Problem::Options options;
  options.memory_limits = {3, 3, 3};
  GraphBuilder builder("chain");
  for (int op = 0; op < 9; ++op) {
    builder.AddOp("", "Op", {.flops = 1});
    builder.UseParameter(builder.AddParameter(1), static_cast<size_t>(op));
    if (op > 0) builder.Consume(static_cast<size_t>(op) - 1, static_cast<size_t>(op));
    builder.AddTensor(static_cast<size_t>(op), 0);
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 3, std::move(options));
  const PlanResult result = Run(problem, "first_fit");
  const auto gpu = [](int d) { return static_cast<DeviceId>(d); };
  EXPECT_THAT(result.plan.device,
              ::testing::ElementsAre(gpu(0), gpu(0), gpu(0), gpu(1), gpu(1), gpu(1), gpu(2), gpu(2), gpu(2)));
  EXPECT_THAT(Run(problem, "memory_proportional").plan.device, result.plan.device);
}

}  // namespace
}  // namespace berth
