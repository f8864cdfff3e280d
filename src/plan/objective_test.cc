#include "placement/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/presets.h"
#include "placement/bound.h"
#include "placement/energy.h"
#include "placement/testing.h"
#include "plan/planners.h"
#include "plan/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<const Evaluator> MakeEvaluator(const Problem& problem, const std::string& name,
                                               const std::string& objective) {
  EvaluatorCatalog evaluators("evaluator");
  RegisterParallel(evaluators);
  RegisterSerial(evaluators);
  RegisterPipeline(evaluators);
  RegisterPieces(evaluators);
  RegisterPlaceto(evaluators);
  ObjectiveCatalog objectives("objective");
  RegisterObjectives(objectives);
  return WithObjective(evaluators.Make(name, problem), objectives.Make(objective));
}

const std::vector<std::string> kEvaluators = {"parallel(contention=none,io=everywhere)",
                                              "parallel(contention=ports,io=everywhere)",
                                              "serial(io=everywhere)",
                                              "serial(subgraph_overhead=0.25,io=everywhere)",
                                              "placeto",
                                              "pipeline",
                                              "pieces(q=2)"};

std::string WeightedBy(const std::string& evaluator, double time, double energy) {
  return fmt::format("weighted({}={},energy={})", evaluator.starts_with("pipeline") ? "throughput" : "latency", time,
                     energy);
}

Cluster PlacetoCluster(size_t devices) {
  ClusterCatalog clusters("cluster");
  RegisterPlacetoCluster(clusters);
  return clusters.Make(fmt::format("placeto(devices={})", devices));
}

// The same problem on devices that take power, joined by links that the evaluator knows; every other cluster also idles
// for nothing.
Problem WithWatts(const Problem& problem, Random& random, const std::string& evaluator = "") {
  const Cluster cluster = evaluator == "placeto" ? PlacetoCluster(problem.num_devices()) : problem.cluster();
  const bool idles = random.Chance(0.5);
  std::vector<Device> devices;
  std::vector<Link> links;
  for (const DeviceId id : cluster.ids()) {
    devices.push_back(cluster.device(id));
    devices.back().watts_idle = {.value = idles ? 10 * random.Uniform() : 0};
    devices.back().watts_busy = {.value = 10 + 100 * random.Uniform()};
    for (const DeviceId to : cluster.ids())
      links.push_back(id == to ? Link{.bandwidth = {.value = 1}} : cluster.link(id, to));
  }
  OpTimes times{.time = {}, .source = "copy"};
  for (const OpId op : problem.graph().ops()) {
    for (const double time : problem.op_times(op)) times.time.push_back(time);
  }
  Problem::Options options{.seconds_per_unit = random.Chance(0.5) ? 1 : 1e-3, .constraints = problem.constraints()};
  for (const DeviceId id : cluster.ids()) options.memory_limits.push_back(problem.memory_limit(id));
  return Problem(problem.shared_graph(),
                 std::make_shared<const Cluster>(cluster.name(), std::move(devices), std::move(links)),
                 std::move(times), std::move(options));
}

PlanResult PlanWith(const Evaluator& evaluator, const std::string& planner, int64_t evaluations = 0) {
  Budget budget;
  if (evaluations > 0) budget.evaluations = evaluations;
  return testing::SimplePlanners().MakePlanner(planner)->MakePlan(
      {.evaluator = evaluator, .budget = budget, .random = Random(5)});
}

std::vector<DeviceId> RandomPlacement(const Problem& problem, Random& random) {
  std::vector<DeviceId> device;
  for (const OpId op : problem.graph().ops()) {
    do {
      if (device.size() > Index(op)) device.pop_back();
      device.push_back(MakeId<DeviceId>(random.Below(problem.num_devices())));
    } while (!problem.can_run(op, device.back()));
  }
  return device;
}

// Every placement, one after another.
double SlowBest(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const auto workspace = evaluator.NewWorkspace();
  std::vector<DeviceId> device(problem.num_ops(), DeviceId{0});
  double best = kCannotRun;
  for (;;) {
    if (!FindViolation(problem, {.device = device})) {
      const Score score = evaluator.ScorePlan({.device = device}, *workspace);
      if (score.fits()) best = std::min(best, score.value());
    }
    size_t v = 0;
    while (v < device.size() && Index(device[v]) + 1 == problem.num_devices()) device[v++] = DeviceId{0};
    if (v == device.size()) return best;
    device[v] = MakeId<DeviceId>(Index(device[v]) + 1);
  }
}

Problem TwoOps(double idle_watts, double busy_watts) {
  GraphBuilder builder("two");
  for (const char* name : {"a", "b"}) builder.AddOp(name, "Unit", {});
  builder.AddTensor(0, 1);
  builder.AddTensor(1, 1, {}, true);
  builder.Consume(0, 1);
  std::vector<Device> devices(2);
  devices[0] = {.name = "slow", .kind = "cpu", .watts_idle = {.value = 1}, .watts_busy = {.value = 5}};
  devices[1] = {
      .name = "fast", .kind = "gpu", .watts_idle = {.value = idle_watts}, .watts_busy = {.value = busy_watts}};
  const Link link{.latency = {.value = 0}, .bandwidth = {.value = 1}};
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>("pair", std::move(devices), std::vector<Link>(4, link)),
                 {.time = {4, 1, 4, 1}, .source = "given"}, {.seconds_per_unit = 0.5});
}

TEST(Energy, IsBusyWattsWhileComputingAndIdleWattsElse) {
  const Problem problem = TwoOps(2, 50);
  const auto evaluator = MakeEvaluator(problem, "parallel(io=everywhere)", "energy");
  const auto joules = [&](int a, int b) {
    const std::vector<DeviceId> device = {DeviceId{a}, DeviceId{b}};
    const Timeline timeline = evaluator->Trace({.device = device});
    EXPECT_DOUBLE_EQ(Joules(problem, timeline), timeline.score.value());
    return timeline.score.value();
  };
  EXPECT_DOUBLE_EQ(joules(0, 0), 4 * 5 + 4 * 2);                       // four seconds, half a second per unit
  EXPECT_DOUBLE_EQ(joules(1, 1), 1 * 50 + 1 * 1);                      // one second
  EXPECT_DOUBLE_EQ(joules(0, 1), 2 * 5 + 1.5 * 1 + 0.5 * 50 + 3 * 2);  // 4 + 2 to send + 1 units
}

TEST(Objective, LatencyLeavesTheEvaluatorAsItIs) {
  const Problem problem = TwoOps(2, 50);
  const auto evaluator = MakeEvaluator(problem, "parallel(io=everywhere)", "latency");
  EXPECT_EQ(evaluator->facts().objective.name, "latency");
  const std::vector<DeviceId> device(2, DeviceId{1});
  const Score score = evaluator->Trace({.device = device}).score;
  EXPECT_FALSE(score.objective.has_value());
  EXPECT_EQ(score.value(), score.time);
  EXPECT_EQ(MakeEvaluator(problem, "pipeline", "throughput")->facts().objective.name, "throughput");
}

TEST(Objective, DecidesWhichPlanIsBest) {
  // The fast device is the faster one, and the thirstier.
  const Problem problem = TwoOps(1, 100);
  EXPECT_EQ(PlanWith(*MakeEvaluator(problem, "serial(io=everywhere)", "latency"), "exhaustive").plan.device,
            std::vector(2, DeviceId{1}));
  EXPECT_EQ(PlanWith(*MakeEvaluator(problem, "serial(io=everywhere)", "energy"), "exhaustive").plan.device,
            std::vector(2, DeviceId{0}));
}

TEST(Objective, OfWeightsIsOneForTheBestSingleDevice) {
  const Problem problem = TwoOps(2, 50);
  const auto score = [&](const std::string& objective, int device) {
    const auto evaluator = MakeEvaluator(problem, "parallel(io=everywhere)", objective);
    const std::vector<DeviceId> all(2, DeviceId{device});
    return evaluator->Trace({.device = all}).score.value();
  };
  EXPECT_DOUBLE_EQ(score("weighted(latency=3)", 1), 1);
  EXPECT_DOUBLE_EQ(score("weighted(latency=3)", 0), 4);
  EXPECT_DOUBLE_EQ(score("weighted(energy=0.1)", 0), 1);
  EXPECT_DOUBLE_EQ(score("weighted(energy=0.1)", 1), 51.0 / 28);
  EXPECT_DOUBLE_EQ(score("weighted(latency=1,energy=0.25)", 1), (1 + 0.25 * 51 / 28) / 1.25);
  const auto set_up = [&](const std::string& objective) {
    return MakeEvaluator(problem, "parallel(io=everywhere)", objective)->facts().objective.set_up;
  };
  EXPECT_EQ(set_up("weighted(latency=3)"), 2) << "each device alone";
  EXPECT_EQ(set_up("energy"), 0);
}

TEST(Objective, RefusesWhatTheEvaluatorDoesNotSay) {
  const Problem problem = TwoOps(2, 50);
  const auto message = [](const Problem& of, const std::string& evaluator, const std::string& objective) {
    try {
      MakeEvaluator(of, evaluator, objective);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(problem, "parallel(io=everywhere)", "throughput"), HasSubstr("name the evaluator pipeline"));
  EXPECT_THAT(message(problem, "pipeline", "latency"), HasSubstr("ask for throughput"));
  EXPECT_THAT(message(problem, "pipeline", "weighted(latency=1,energy=1)"), HasSubstr("ask for throughput"));
  EXPECT_THAT(message(problem, "serial(io=everywhere)", "weighted"), HasSubstr("all weights are 0"));
  EXPECT_THAT(message(testing::Chain(2, 2), "serial(io=everywhere)", "energy"),
              HasSubstr("the energy of device d0 of uniform is not known"));
  EXPECT_THAT(message(TwoOps(50, 2), "serial(io=everywhere)", "energy"), HasSubstr("2 W busy and 50 W idle"));
  EXPECT_THAT(message(problem, "serial(io=everywhere)", "joules"), HasSubstr("no objective"));
}

TEST(Objective, ScoresTracesAndSessionsAgreeToTheLastBit) {
  Random random(11);
  for (const std::string& name : kEvaluators) {
    for (int round = 0; round < 10; ++round) {
      const Problem problem =
          WithWatts(testing::RandomProblem(random, {.ops = 12, .devices = 3, .forbidden = 0.1}), random, name);
      for (const std::string& objective : {std::string("energy"), WeightedBy(name, 1, 0.2)}) {
        const auto evaluator = MakeEvaluator(problem, name, objective);
        const auto workspace = evaluator->NewWorkspace();
        std::vector<DeviceId> device = RandomPlacement(problem, random);
        const Timeline timeline = evaluator->Trace({.device = device});
        EXPECT_EQ(timeline.score, evaluator->ScorePlan({.device = device}, *workspace));
        EXPECT_THAT(Verify(*evaluator, {.device = device}, timeline), ::testing::IsEmpty());
        if (objective == "energy") {
          EXPECT_NEAR(Joules(problem, timeline), timeline.score.value(), 1e-12 * timeline.score.value());
        }
        const auto workspace_of_session = evaluator->NewWorkspace();
        const auto session = evaluator->NewSession({.device = device}, *workspace_of_session);
        EXPECT_EQ(session->score(), timeline.score);
        for (int move = 0; move < 20; ++move) {
          const auto op = MakeId<OpId>(random.Below(problem.num_ops()));
          const std::vector<DeviceId> other = RandomPlacement(problem, random);
          const Score tried = session->Try(op, other[Index(op)]);
          std::vector<DeviceId> moved(session->device().begin(), session->device().end());
          moved[Index(op)] = other[Index(op)];
          EXPECT_EQ(tried, evaluator->ScorePlan({.device = moved}, *workspace)) << name << " " << objective;
          if (random.Chance(0.5)) session->Commit();
        }
      }
    }
  }
}

TEST(Objective, BoundsHoldForEveryPlacement) {
  Random random(12);
  for (const std::string& name : kEvaluators) {
    for (int round = 0; round < 20; ++round) {
      const testing::RandomProblemOptions shape{
          .ops = 4 + random.Below(4), .devices = 1 + random.Below(3), .forbidden = 0.1};
      const Problem problem = WithWatts(testing::RandomProblem(random, shape), random, name);
      const bool works = std::ranges::any_of(problem.graph().ops(),
                                             [&](OpId op) { return std::ranges::min(problem.op_times(op)) > 0; });
      for (const std::string& objective : {std::string("energy"), WeightedBy(name, 1, 0), WeightedBy(name, 1, 0.5)}) {
        const auto evaluator = MakeEvaluator(problem, name, objective);
        const Bound bound = LowerBound(*evaluator);
        const double best = SlowBest(*evaluator);
        EXPECT_GE(best, bound.value()) << name << " " << objective << ": " << bound.reason;
        if (works) {
          EXPECT_GT(bound.value(), 0) << name << " " << objective;
        }
      }
    }
  }
}

TEST(Objective, BoundCountsTheTimeBetweenSubgraphs) {
  // One subgraph, half a second per unit: both devices idle between its ops, which take no time but on the slow one.
  const double overhead = 0.25;
  for (const double length : {0.0, 4.0}) {
    const Problem two = TwoOps(2, 50);
    const Problem problem(two.shared_graph(), two.shared_cluster(),
                          {.time = {length, kCannotRun, length, kCannotRun}, .source = "given"},
                          {.seconds_per_unit = 0.5});
    const auto evaluator =
        MakeEvaluator(problem, fmt::format("serial(subgraph_overhead={},io=everywhere)", overhead), "energy");
    const double joules = SlowBest(*evaluator);
    EXPECT_NEAR(joules, length * (5 + 2) + overhead * (1 + 2), 1e-12);
    EXPECT_NEAR(LowerBound(*evaluator).value(), joules, 1e-9 * joules);
  }
}

TEST(Objective, BoundOfOneDeviceIsTheEnergyItself) {
  Random random(13);
  const Problem problem = WithWatts(testing::RandomProblem(random, {.ops = 9, .devices = 1}), random);
  for (const std::string name : {"serial(io=everywhere)", "parallel(io=everywhere)"}) {
    const auto evaluator = MakeEvaluator(problem, name, "energy");
    const double joules = PlanWith(*evaluator, "single").score.value();
    EXPECT_NEAR(LowerBound(*evaluator).value(), joules, 1e-9 * joules);
  }
}

// The more energy weighs, the less of it the best plan takes, and the longer it runs.
TEST(Objective, OfWeightsLiesBetweenTimeAndEnergy) {
  Random random(14);
  for (int round = 0; round < 10; ++round) {
    const Problem problem =
        WithWatts(testing::RandomProblem(random, {.ops = 7, .devices = 2, .zero_lengths = false}), random);
    for (const std::string name : {"parallel(contention=none,io=everywhere)", "serial(io=everywhere)"}) {
      double time = 0, joules = kCannotRun;
      std::vector<double> busy(2);
      for (const std::string objective : {"latency", "weighted(latency=1,energy=0.2)", "weighted(latency=1,energy=1)",
                                          "weighted(latency=0.1,energy=1)", "energy"}) {
        const auto evaluator = MakeEvaluator(problem, name, objective);
        const PlanResult best = PlanWith(*evaluator, "exhaustive");
        EXPECT_TRUE(best.optimal);
        const double energy = Joules(problem, best.plan.device, best.score.time, busy);
        EXPECT_GE(best.score.time, time * (1 - 1e-9)) << objective;
        EXPECT_LE(energy, joules * (1 + 1e-9)) << objective;
        time = best.score.time;
        joules = energy;
      }
    }
  }
}

TEST(Objective, OptimaAreClaimedOnlyWhereTheyHold) {
  Random random(15);
  for (int round = 0; round < 8; ++round) {
    const Problem base = testing::RandomProblem(random, {.ops = 6, .devices = 2, .memory_limits = round % 2 == 1});
    for (const std::string& name : kEvaluators) {
      const Problem problem = WithWatts(base, random, name);
      for (const std::string& objective : {std::string("energy"), WeightedBy(name, 1, 0.7)}) {
        const auto evaluator = MakeEvaluator(problem, name, objective);
        const double slow = SlowBest(*evaluator);
        for (const std::string planner :
             {"exhaustive", "exhaustive(space=order)", "mincut", "best_of(heft,local_search)", "annealing", "heft",
              "one_cut", "local_search"}) {
          if (testing::SimplePlanners().MakePlanner(planner)->Refuses(problem, *evaluator)) continue;
          const PlanResult result = PlanWith(*evaluator, planner, 500);
          EXPECT_EQ(result.score.objective.has_value(), true);
          if (!result.optimal) continue;
          EXPECT_LE(result.score.value(), slow * (1 + 1e-9)) << planner << " for " << objective << " under " << name;
          if (planner == "exhaustive") {
            EXPECT_EQ(result.score.value(), slow) << objective << " under " << name;
          }
        }
      }
    }
  }
}

TEST(Objective, MinimumCutsAreExactForSerialEnergyToo) {
  Random random(16);
  int optimal = 0;
  for (int round = 0; round < 30; ++round) {
    const Problem problem = WithWatts(
        testing::RandomProblem(random, {.ops = 7, .devices = 2, .ties = round % 2 == 0, .forbidden = 0.1}), random);
    for (const std::string objective : {"energy", "weighted(latency=1,energy=0.3)", "weighted(latency=2)"}) {
      for (const std::string name : {"serial(io=everywhere)", "serial(io=d0)", "serial(io=d1)"}) {
        const auto evaluator = MakeEvaluator(problem, name, objective);
        const PlanResult cut = PlanWith(*evaluator, "mincut");
        optimal += cut.optimal ? 1 : 0;
        const double best = SlowBest(*evaluator);
        EXPECT_NEAR(cut.score.value(), best, 1e-9 * best) << objective << " under " << name;
      }
    }
  }
  EXPECT_GT(optimal, 0);
}

TEST(Objective, OrdersAreSearchedByTimeWhateverTheObjective) {
  Random random(17);
  for (int round = 0; round < 6; ++round) {
    const Problem problem =
        WithWatts(testing::RandomProblem(random, {.ops = 5, .devices = 2, .zero_lengths = false}), random);
    const auto evaluator = MakeEvaluator(problem, "parallel(contention=ports,io=everywhere)", "energy");
    const PlanResult placed = PlanWith(*evaluator, "exhaustive"),
                     ordered = PlanWith(*evaluator, "exhaustive(space=order)");
    EXPECT_TRUE(ordered.optimal);
    EXPECT_LE(ordered.score.value(), placed.score.value());
    EXPECT_GE(ordered.score.value(), LowerBound(*evaluator).value());
  }
}

TEST(MemoryRule, IsNamedByTheEvaluator) {
  const Problem problem = TwoOps(2, 50);
  const auto rule = [&](const std::string& name) {
    return MemoryRule(MakeEvaluator(problem, name, "energy")->facts());
  };
  EXPECT_EQ(rule("parallel(io=everywhere)"), "berth");
  EXPECT_EQ(rule("serial(io=everywhere)"), "berth");
  EXPECT_EQ(rule("placeto"), "placeto");
  EXPECT_EQ(rule("pieces"), "msr");
  EXPECT_EQ(rule("serial(memory=false,io=everywhere)"), "none");
}

}  // namespace
}  // namespace berth
