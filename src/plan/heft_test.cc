#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "moves/list_scheduler.h"
#include "moves/rank.h"
#include "placement/testing.h"
#include "plan/favourites.h"
#include "plan/planners.h"
#include "plan/testing.h"

namespace berth {
namespace {

PlanResult Answer(const Problem& problem, std::string_view planner, const Budget& budget = {}) {
  static const PlannerCatalog planners = [] {
    PlannerCatalog all;
    RegisterHeft(all);
    RegisterHuman(all);
    return all;
  }();
  return testing::AnswerOf(planners, planner, problem, "ports", budget);
}

// ETF as its paper has it, and SCT where there are favourites: before each step every ready op is asked for on every
// device.
class SlowEarliest {
 public:
  SlowEarliest(const Units& units, const ListRules& rules, std::vector<OpId> favourite)
      : units_(units),
        problem_(units.problem()),
        rank_(UpwardRank(problem_)),
        favourite_(std::move(favourite)),
        schedule_(problem_, rules.contention, false, rules.io_host),
        device_(problem_.num_ops(), DeviceId{-1}),
        last_(problem_.num_devices(), OpId{-1}),
        everywhere_(problem_.num_ops(), -1) {
    for (size_t placed = 0; placed < problem_.num_ops(); ++placed) Step();
  }

  const std::vector<DeviceId>& device() const { return device_; }
  const PartialSchedule& schedule() const { return schedule_; }

 private:
  bool IsReady(OpId op) const {
    return !schedule_.placed(op) && std::ranges::all_of(problem_.graph().inputs_of(op), [&](TensorId tensor) {
      return schedule_.placed(problem_.graph().producer(tensor));
    });
  }
  bool MayBe(OpId op, DeviceId device) const {
    if (device_[Index(op)] != DeviceId{-1}) return device_[Index(op)] == device;
    return units_.can_run(units_.unit_of(op), device);
  }
  // The favourite for which the device is kept.
  OpId KeptFor(DeviceId device) {
    if (favourite_.empty() || last_[Index(device)] == OpId{-1}) return OpId{-1};
    const OpId child = favourite_[Index(last_[Index(device)])];
    if (child == OpId{-1} || !IsReady(child) || !MayBe(child, device)) return OpId{-1};
    const double here = schedule_.Find(child, device).start;
    for (const DeviceId other : problem_.cluster().ids()) {
      if (MayBe(child, other) && schedule_.Find(child, other).start < here) return OpId{-1};
    }
    return child;
  }

  void Step() {
    for (const OpId op : problem_.graph().ops()) {
      if (!IsReady(op) || everywhere_[Index(op)] >= 0) continue;
      for (const DeviceId device : problem_.cluster().ids()) {
        if (!MayBe(op, device)) continue;
        everywhere_[Index(op)] = std::max(everywhere_[Index(op)], schedule_.Find(op, device).least_arrival);
      }
    }
    std::vector<OpId> kept_for;
    for (const DeviceId device : problem_.cluster().ids()) kept_for.push_back(KeptFor(device));
    std::tuple<double, double, OpId, int, DeviceId> best{kCannotRun, 0, OpId{-1}, 0, DeviceId{-1}};
    for (const OpId op : problem_.graph().ops()) {
      if (!IsReady(op)) continue;
      for (const DeviceId device : problem_.cluster().ids()) {
        if (!MayBe(op, device)) continue;
        double start = schedule_.Find(op, device).start;
        const OpId kept = kept_for[Index(device)];
        const int row = kept == OpId{-1} ? 1 : kept == op ? 0 : 2;
        if (row == 2) start = std::max(start, everywhere_[Index(op)]);
        best = std::min(best, std::tuple(start, -rank_[Index(op)], op, row, device));
      }
    }
    const auto& [start, urgency, op, row, chosen] = best;
    units_.Put(device_, units_.unit_of(op), chosen);
    schedule_.Place(op, chosen);
    last_[Index(chosen)] = op;
  }

  const Units& units_;
  const Problem& problem_;
  const std::vector<double> rank_;
  const std::vector<OpId> favourite_;
  PartialSchedule schedule_;
  std::vector<DeviceId> device_;
  std::vector<OpId> last_;
  std::vector<double> everywhere_;
};

// Pairs of ops that must share a device, where no other constraints are.
Problem WithPairs(const Problem& problem, Random& random) {
  Problem::Options options;
  std::vector<OpId> ops(problem.graph().ops().begin(), problem.graph().ops().end());
  random.Shuffle(std::span(ops));
  for (size_t i = 0; i + 1 < ops.size() / 2; i += 2) options.constraints.colocate.push_back({ops[i], ops[i + 1]});
  OpTimes times{.time = {}, .source = "random"};
  for (const OpId op : problem.graph().ops()) {
    for (const double time : problem.op_times(op)) times.time.push_back(time);
  }
  return Problem(problem.shared_graph(), problem.shared_cluster(), std::move(times), std::move(options));
}

TEST(ListScheduler, EarliestTaskFirstIsThatOfTheSlowWay) {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    const bool together = round % 5 == 0;
    const Problem drawn = testing::RandomProblem(
        random, {.ops = 3 + random.Below(40), .ties = round % 2 == 0, .forbidden = together ? 0 : 0.1});
    const Problem problem = together ? WithPairs(drawn, random) : drawn;
    const Units units(problem);
    const std::vector<OpId> favourite = round % 4 < 2 ? std::vector<OpId>{} : HeaviestFavourites(units).child;
    for (const Contention contention : {Contention::kNone, Contention::kEgress, Contention::kPorts}) {
      for (const bool host : {false, true}) {
        const ListRules rules{.contention = contention, .io_host = host ? std::optional(DeviceId{0}) : std::nullopt};
        ListScheduler scheduler(units, Urgency::kEarliest, favourite);
        const PartialSchedule schedule = scheduler.Run(rules, nullptr);
        const SlowEarliest slow(units, rules, favourite);
        ASSERT_EQ(scheduler.device(), slow.device()) << round;
        for (const OpId op : problem.graph().ops()) ASSERT_EQ(schedule.start(op), slow.schedule().start(op)) << round;
      }
    }
  }
}

TEST(ListScheduler, KeepsADeviceForAFavouriteChild) {
  // After op 0 its device could run op 3 at once, for two units, and the other one much later; op 0's favourite child,
  // op 2, waits for a tensor of op 1, which is elsewhere.
  GraphBuilder builder("awake");
  for (size_t v = 0; v < 4; ++v) builder.AddOp("", "Op", {.flops = 1});
  builder.Consume(builder.AddTensor(0, 3), 2);
  builder.Consume(builder.AddTensor(0, 3), 3);
  builder.Consume(builder.AddTensor(1, 1), 2);
  builder.AddTensor(2, 0);
  builder.AddTensor(3, 0);
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)),
                        {.time = {1, 1, 1, 1, 1, 1, 2, 2}, .source = "test"});
  const Units units(problem);
  const auto start_of_child = [&](std::vector<OpId> favourite) {
    ListScheduler scheduler(units, Urgency::kEarliest, std::move(favourite));
    const PartialSchedule schedule = scheduler.Run({}, nullptr);
    return std::pair(schedule.device(OpId{2}) == schedule.device(OpId{0}), schedule.start(OpId{2}));
  };
  EXPECT_EQ(start_of_child({OpId{2}, OpId{-1}, OpId{-1}, OpId{-1}}), std::pair(true, 2.0));
  EXPECT_EQ(start_of_child({}).second, 3);
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
  for (const char* planner : {"heft", "etf", "sct(favourites=heaviest)"}) {
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

// Why they are there: the gradients of one weight are summed in one place, and are larger than all else.
TEST(Clusters, HoldTheStepsOfALayerTogetherInTraining) {
  const Problem problem = testing::ModelProblem("rnnlm(layers=4,steps=6)", "p100x4", true);
  const Units units(problem);
  double work = 0;
  for (size_t unit = 0; unit < units.size(); ++unit) work += units.time(unit, units.fastest(unit));
  const Clusters clusters(units, 1, work / 3);
  std::map<std::string, std::set<size_t>> of_layer;
  for (const OpId op : problem.graph().ops()) {
    const std::string_view name = problem.graph().op_name(op);
    const size_t layer = name.find("/layer");
    if (problem.graph().is_backward(op) || layer == std::string_view::npos) continue;
    of_layer[std::string(name.substr(layer, 7))].insert(clusters.cluster_of(op));
  }
  ASSERT_EQ(of_layer.size(), 4);
  std::set<size_t> all;
  for (const auto& [layer, found] : of_layer) {
    EXPECT_EQ(found.size(), 1) << layer;
    all.insert(found.begin(), found.end());
  }
  EXPECT_EQ(all.size(), 4);
}

// The first op of a unit weighs nothing, the second more than the faster device holds.
TEST(Heft, CountsTheMemoryOfAllOpsThatMustShareADevice) {
  GraphBuilder builder("unit");
  for (const char* name : {"a", "b"}) builder.AddOp(name, "Unit", {});
  builder.Consume(builder.AddTensor(0, 1), 1);
  builder.AddTensor(1, 1, {}, true);
  builder.UseParameter(builder.AddParameter(100), 1);
  std::vector<Device> devices;
  for (const double memory : {60, 1000}) {
    devices.push_back({.name = fmt::format("d{}", devices.size()), .kind = "cpu", .memory = Quantity{.value = memory}});
  }
  const Link link{.bandwidth = {.value = 1}};
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>("two", std::move(devices), std::vector<Link>(4, link)),
                        OpTimes{.time = {1, 2, 1, 2}, .source = "unit"},
                        {.constraints = {.colocate = {{OpId{0}, OpId{1}}}}});
  const PlanResult result = Answer(problem, "heft");
  EXPECT_TRUE(result.score.fits());
  EXPECT_EQ(result.plan.device[0], DeviceId{1});
}

}  // namespace
}  // namespace berth
