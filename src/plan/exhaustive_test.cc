#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "placement/bound.h"
#include "placement/testing.h"
#include "placement/units.h"
#include "plan/planners.h"
#include "plan/testing.h"

namespace berth {
namespace {

using testing::ForEachPlacement;
using ::testing::HasSubstr;
using testing::MakeSimulator;
using testing::RandomProblem;
using testing::SimplePlanners;
using testing::SlowBest;
using testing::Trial;

// Every sequence of one placement: every order of its ops, and of the transfers that a sequence names.
double SlowBestSequence(const Problem& problem, const Evaluator& evaluator, const std::vector<DeviceId>& device) {
  const auto workspace = evaluator.NewWorkspace();
  Random any(1);
  Sequence sequence = testing::RandomSequence(problem, device, any);
  std::ranges::sort(sequence.ops);
  std::ranges::sort(sequence.transfers);
  double best = kCannotRun;
  do {
    do {
      best = std::min(best, evaluator.ScorePlan({.device = device, .sequence = &sequence}, *workspace).time);
    } while (std::ranges::next_permutation(sequence.transfers).found);
  } while (std::ranges::next_permutation(sequence.ops).found);
  return best;
}

// The same problem on devices of which all but the given ones are equal to device `like`.
Problem WithEqualDevices(const Problem& problem, size_t like, const std::vector<size_t>& but) {
  const auto source = [&](size_t d) { return std::ranges::count(but, d) > 0 ? d : like; };
  const Cluster& cluster = problem.cluster();
  std::vector<Device> devices;
  std::vector<Link> links;
  OpTimes times{.time = {}, .source = "equal"};
  for (const DeviceId id : cluster.ids()) {
    devices.push_back(cluster.device(MakeId<DeviceId>(source(Index(id)))));
    devices.back().name = cluster.device(id).name;
    for (const DeviceId to : cluster.ids()) {
      const size_t from = source(Index(id)), target = source(Index(to));
      // Between equal devices: as from and to the first of the others.
      links.push_back(from == target ? cluster.link(MakeId<DeviceId>(but.front()), MakeId<DeviceId>(like))
                                     : cluster.link(MakeId<DeviceId>(from), MakeId<DeviceId>(target)));
    }
  }
  for (const OpId op : problem.graph().ops()) {
    for (const DeviceId id : cluster.ids())
      times.time.push_back(problem.op_time(op, MakeId<DeviceId>(source(Index(id)))));
  }
  return Problem(problem.shared_graph(), std::make_shared<const Cluster>("equal", std::move(devices), std::move(links)),
                 std::move(times));
}

// Every order of the ops of one placement that a first-come runtime could be made to keep by priorities.
double SlowBestPriorities(const Problem& problem, const Evaluator& evaluator, std::span<const DeviceId> device) {
  const auto workspace = evaluator.NewWorkspace();
  std::vector<double> priority(problem.num_ops());
  std::iota(priority.begin(), priority.end(), 0.0);
  double best = kCannotRun;
  do {
    best = std::min(best, evaluator.ScorePlan({.device = device, .priority = priority}, *workspace).time);
  } while (std::ranges::next_permutation(priority).found);
  return best;
}

TEST(Exhaustive, FindsWhatTryingEverythingFinds) {
  Random random(6);
  for (int round = 0; round < 30; ++round) {
    const Problem problem = RandomProblem(random, {.ops = 1 + random.Below(6),
                                                   .devices = 1 + random.Below(3),
                                                   .ties = round % 2 == 0,
                                                   .memory_limits = round % 3 == 0,
                                                   .forbidden = 0.1});
    const std::string last = fmt::format("io=d{})", problem.num_devices() - 1);
    for (const std::string& evaluator : std::vector<std::string>{
             "parallel(io=everywhere)", "parallel(contention=ports,io=everywhere)", "parallel(contention=egress,io=d0)",
             "parallel(contention=links,io=everywhere)", "serial(io=everywhere)",
             "serial(subgraph_overhead=0.3,io=everywhere)", "parallel(" + last, "parallel(contention=ports," + last,
             "parallel(contention=links," + last, "serial(" + last, "serial(subgraph_overhead=0.3," + last}) {
      const Trial run(problem, evaluator);
      const PlanResult result = run("exhaustive");
      const double slow = SlowBest(problem, *run.evaluator);
      EXPECT_EQ(result.optimal, slow < kCannotRun) << evaluator;
      if (result.optimal) {
        EXPECT_EQ(result.score.time, slow) << evaluator << " round " << round;
      }
    }
  }
}

TEST(Exhaustive, UsesEqualDevicesInOrder) {
  const Problem problem = testing::ForkJoin(4, 3);
  const Trial run(problem, "parallel(io=everywhere)");
  const PlanResult result = run("exhaustive");
  EXPECT_EQ(result.score.time, SlowBest(problem, *run.evaluator));
  EXPECT_LE(result.evaluations, 122);  // 3^6 placements are (3^5 + 1) / 2 up to swaps
}

// Constants take no time to send; the devices are as equal as without.
TEST(Exhaustive, UsesEqualDevicesInOrderWhereSomeTensorsAreConstant) {
  GraphBuilder builder("two chains");
  for (size_t v = 0; v < 4; ++v) builder.AddOp("", "Op", {});
  for (const size_t v : {0, 2}) builder.Consume(builder.AddTensor(v, 1), v + 1);
  builder.MarkConstant(1);
  const Problem problem = testing::UnitProblem(builder.Build(), 3);
  const Trial run(problem, "parallel(io=everywhere)");
  const PlanResult result = run("exhaustive");
  EXPECT_EQ(result.score.time, SlowBest(problem, *run.evaluator));
  EXPECT_LE(result.evaluations, 15);  // 3^4 placements are 14 up to swaps
}

TEST(Exhaustive, FindsTheBestOrder) {
  Random random(7);
  for (int round = 0; round < 25; ++round) {
    const Problem problem = RandomProblem(random, {.ops = 1 + random.Below(5), .devices = 2, .ties = round % 2 == 0});
    for (const char* evaluator : {"parallel(io=everywhere)", "parallel(contention=egress,io=everywhere)",
                                  "parallel(contention=ports,io=everywhere)"}) {
      const Trial run(problem, evaluator);
      const PlanResult ordered = run("exhaustive(space=order)"), placed = run("exhaustive");
      EXPECT_TRUE(ordered.optimal);
      EXPECT_TRUE(ordered.plan.sequence.has_value());
      EXPECT_LE(ordered.score.time, placed.score.time);
      EXPECT_LE(ordered.score.time, SlowBestPriorities(problem, *run.evaluator, placed.plan.device));
      EXPECT_GE(ordered.score.time, LowerBound(*run.evaluator).time);
      for (const char* heft : {"heft", "heft(rank=optimistic)", "heft(contention=none)"}) {
        EXPECT_LE(ordered.score.time, run(heft).score.time) << evaluator << " round " << round;
      }
    }
  }
}

TEST(Exhaustive, FindsTheBestOrderWithInputsOnAHost) {
  Random random(9);
  for (int round = 0; round < 16; ++round) {
    const Problem problem =
        RandomProblem(random, {.ops = 1 + random.Below(4), .devices = 2 + random.Below(2), .ties = round % 2 == 0});
    const size_t host = random.Below(problem.num_devices());
    for (const char* contention : {"none", "egress", "ports"}) {
      const Trial run(problem, fmt::format("parallel(contention={},io=d{})", contention, host));
      SCOPED_TRACE(run.evaluator->name());
      double slow = SlowBest(problem, *run.evaluator);
      ForEachPlacement(problem, [&](const std::vector<DeviceId>& device) {
        slow = std::min(slow, SlowBestSequence(problem, *run.evaluator, device));
      });
      const PlanResult ordered = run("exhaustive(space=order)");
      EXPECT_NEAR(ordered.score.time, slow, 1e-12 * slow);
      // Where transfers queue priorities may do better.
      EXPECT_TRUE(ordered.optimal || std::string_view(contention) != "none");
      if (ordered.optimal) {
        ForEachPlacement(problem, [&](const std::vector<DeviceId>& device) {
          EXPECT_GE(SlowBestPriorities(problem, *run.evaluator, device), ordered.score.time * (1 - 1e-12));
        });
      }
      EXPECT_GE(ordered.score.time, LowerBound(*run.evaluator).time);
    }
  }
}

// Of four devices two are equal to the first; the host is like them or not, and is not the first.
TEST(Exhaustive, UsesEqualDevicesInOrderBesideTheHost) {
  Random random(10);
  int64_t fewer = 0;
  for (int round = 0; round < 12; ++round) {
    const Problem any = RandomProblem(random, {.ops = 4, .devices = 4, .ties = round % 2 == 0});
    const Problem problem = WithEqualDevices(any, 0, {2});
    for (const char* host : {"d1", "d2", "d3"}) {
      for (const char* evaluator :
           {"parallel(contention=none,io={})", "serial(io={})", "parallel(contention=ports,io={})"}) {
        const Trial run(problem, fmt::format(fmt::runtime(evaluator), host));
        const PlanResult result = run("exhaustive");
        SCOPED_TRACE(run.evaluator->name());
        EXPECT_EQ(result.score.time, SlowBest(problem, *run.evaluator));
        fewer += result.evaluations < 256 ? 1 : 0;
      }
    }
    const auto classes = [&](const std::string& name) { return InterchangeableDevices(*MakeSimulator(name, problem)); };
    using ::testing::ElementsAre;
    const DeviceId a{0}, b{1}, c{2}, d{3};
    EXPECT_THAT(classes("serial(io=everywhere)"), ElementsAre(a, a, c, a));
    EXPECT_THAT(classes("serial(io=d0)"), ElementsAre(a, b, c, b));
    EXPECT_THAT(classes("serial(io=d1)"), ElementsAre(a, b, c, a));
    EXPECT_THAT(classes("serial(io=d2)"), ElementsAre(a, a, c, a));
    EXPECT_THAT(classes("serial(io=d3)"), ElementsAre(a, a, c, d));
  }
  EXPECT_GT(fewer, 0);
}

TEST(Exhaustive, FindsAnOrderThatNoFirstComeRunFinds) {
  // Two ops are ready at once on one device; the one of the smaller number should wait, because a long way follows the
  // other.
  GraphBuilder builder("order");
  const std::vector<double> lengths = {3, 1, 5};
  OpTimes times{.time = {}, .source = "test"};
  for (const double length : lengths) {
    builder.AddOp("", "Unit", {});
    times.time.insert(times.time.end(), {length, length});
  }
  builder.Consume(builder.AddTensor(1, 0), 2);
  // Both first ops can run on the first device only, the last on the second only.
  times.time[1] = times.time[3] = times.time[4] = kCannotRun;
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)), std::move(times));
  const Trial run(problem, "parallel(io=everywhere)");
  EXPECT_EQ(run("exhaustive").score.time, 9);
  EXPECT_EQ(run("exhaustive(space=order)").score.time, 6);
  EXPECT_EQ(run("heft").score.time, 6);
}

// Eight ops, each with a weight of which a device holds two: of 65,536 placements 2,520 fit.
TEST(Exhaustive, LeavesOutPlacementsWhoseWeightsDoNotFit) {
  Random random(11);
  GraphBuilder builder("full");
  OpTimes times{.time = {}, .source = "test"};
  for (size_t v = 0; v < 8; ++v) {
    builder.AddOp("", "Op", {});
    builder.UseParameter(builder.AddParameter(5), v);
    for (size_t d = 0; d < 4; ++d) times.time.push_back(random.Uniform(1, 1.1));
  }
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(4)), std::move(times),
                        {.memory_limits = {10, 10, 10, 10}});
  const auto evaluator = MakeSimulator("serial(io=everywhere)", problem);
  Plan start;
  for (size_t v = 0; v < 8; ++v) start.device.push_back(MakeId<DeviceId>(v / 2));
  const PlanResult result =
      SimplePlanners()
          .MakePlanner("exhaustive")
          ->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(1), .start = &start});
  EXPECT_TRUE(result.optimal);
  EXPECT_EQ(result.score.time, SlowBest(problem, *evaluator));
  EXPECT_LE(result.evaluations, 20);  // else hundreds
}

TEST(Exhaustive, GivesUpAfterItsSteps) {
  Random random(9);
  const Problem problem = RandomProblem(random, {.ops = 12, .devices = 3});
  const Trial run(problem, "parallel(contention=ports,io=everywhere)");
  const PlanResult result = run("exhaustive(space=order,limit=1e18,steps=20000)");
  EXPECT_FALSE(result.optimal);
  EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
}

// Its evaluations are spent with the first score, after which only the clock and Ctrl-C end it.
TEST(Exhaustive, EndsWhereItIsStoppedAlsoWithoutEvaluationsLeft) {
  Random random(9);
  const Problem problem = RandomProblem(random, {.ops = 14, .devices = 3});
  const auto evaluator = MakeSimulator("parallel(contention=ports,io=everywhere)", problem);
  const auto planner = SimplePlanners().MakePlanner("exhaustive(space=order,limit=1e18)");
  const PlanResult result =
      planner->MakePlan({.evaluator = *evaluator, .budget = {.evaluations = 1, .seconds = 0.05}, .random = Random(1)});
  EXPECT_FALSE(result.optimal);
  EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
}

TEST(Exhaustive, BeginsWithWhatIsKnown) {
  Random random(10);
  const Problem problem = RandomProblem(random, {.ops = 9, .devices = 2});
  const auto evaluator = MakeSimulator("parallel(io=everywhere)", problem);
  const auto planner = SimplePlanners().MakePlanner("exhaustive(space=order,limit=1e18)");
  const PlanResult from_nothing = planner->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
  const PlanResult from_it =
      planner->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(1), .start = &from_nothing.plan});
  EXPECT_TRUE(from_it.optimal);
  EXPECT_EQ(from_it.score.time, from_nothing.score.time);
  EXPECT_EQ(from_it.evaluations, 1);
}

TEST(Exhaustive, RefusesWhatIsTooLarge) {
  const Problem problem = testing::Chain(40, 2);
  const auto planner = SimplePlanners().MakePlanner("exhaustive");
  EXPECT_THAT(*planner->Refuses(problem, *MakeSimulator("serial(io=everywhere)", problem)),
              HasSubstr("more than 1e+08 plans"));
}

}  // namespace
}  // namespace berth
