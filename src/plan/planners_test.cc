#include "plan/planners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/file.h"
#include "placement/bound.h"
#include "placement/testing.h"
#include "placement/units.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::HasSubstr;
using testing::RandomProblem;

const PlannerCatalog& Planners() {
  static const PlannerCatalog catalog = [] {
    PlannerCatalog all;
    RegisterSingle(all);
    RegisterRandom(all);
    RegisterRoundRobin(all);
    RegisterFixed(all);
    RegisterHeft(all);
    RegisterOneCut(all);
    RegisterLocalSearch(all);
    RegisterAnnealing(all);
    RegisterExhaustive(all);
    RegisterMinCut(all);
    RegisterBestOf(all);
    return all;
  }();
  return catalog;
}

std::unique_ptr<Evaluator> MakeEvaluator(const std::string& name, const Problem& problem) {
  static const EvaluatorCatalog catalog = [] {
    EvaluatorCatalog all("evaluator");
    RegisterParallel(all);
    RegisterSerial(all);
    return all;
  }();
  return catalog.Make(name, problem);
}

struct Trial {
  const Problem& problem;
  std::unique_ptr<Evaluator> evaluator;

  Trial(const Problem& p, const std::string& name) : problem(p), evaluator(MakeEvaluator(name, p)) {}

  PlanResult operator()(const std::string& planner, int64_t evaluations = 0, uint64_t seed = 1) const {
    Budget budget;
    if (evaluations > 0) budget.evaluations = evaluations;
    return Planners().MakePlanner(planner)->MakePlan(
        {.evaluator = *evaluator, .budget = budget, .random = Random(seed)});
  }
};

// Every placement that breaks no rule, one after another.
template <typename Visit>
void ForEachPlacement(const Problem& problem, Visit visit) {
  std::vector<DeviceId> device(problem.num_ops(), DeviceId{0});
  for (;;) {
    if (!FindViolation(problem, {.device = device})) visit(device);
    size_t v = 0;
    while (v < device.size() && Index(device[v]) + 1 == problem.num_devices()) device[v++] = DeviceId{0};
    if (v == device.size()) return;
    device[v] = MakeId<DeviceId>(Index(device[v]) + 1);
  }
}

double SlowBest(const Problem& problem, const Evaluator& evaluator) {
  const auto workspace = evaluator.NewWorkspace();
  double best = kCannotRun;
  ForEachPlacement(problem, [&](const std::vector<DeviceId>& device) {
    const Score score = evaluator.ScorePlan({.device = device}, *workspace);
    if (score.fits()) best = std::min(best, score.time);
  });
  return best;
}

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

Problem Classic() {
  // Topcuoglu, Hariri and Wu 2002, figure 2 and table 1.
  constexpr double kTimes[10][3] = {{14, 16, 9}, {13, 19, 18}, {11, 13, 19}, {13, 8, 17},  {12, 13, 10},
                                    {13, 16, 9}, {7, 15, 11},  {5, 11, 14},  {18, 12, 20}, {21, 7, 16}};
  constexpr int kEdges[15][3] = {{1, 2, 18}, {1, 3, 12}, {1, 4, 9},   {1, 5, 11},  {1, 6, 14},
                                 {2, 8, 19}, {2, 9, 16}, {3, 7, 23},  {4, 8, 27},  {4, 9, 23},
                                 {5, 9, 13}, {6, 8, 15}, {7, 10, 17}, {8, 10, 11}, {9, 10, 13}};
  GraphBuilder builder("classic");
  OpTimes times{.time = {}, .source = "published"};
  for (const auto& row : kTimes) {
    builder.AddOp("", "Task", {});
    times.time.insert(times.time.end(), std::begin(row), std::end(row));
  }
  for (const auto& [from, to, bytes] : kEdges) {
    builder.Consume(builder.AddTensor(static_cast<size_t>(from - 1), bytes), static_cast<size_t>(to - 1));
  }
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>(testing::UniformCluster(3)), std::move(times));
}

TEST(Single, TriesTheDeviceWithTheLeastWorkFirst) {
  Random random(3);
  const Problem problem = RandomProblem(random, {.ops = 30, .devices = 4});
  const Trial trial(problem, "parallel");
  EXPECT_EQ(trial("single", 1).score.time, trial("single").score.time);
}

TEST(Heft, FindsThePublishedScheduleOfItsPaper) {
  const Problem problem = Classic();
  const Trial run(problem, "parallel(io=everywhere)");
  EXPECT_EQ(run("heft(order=sequence)").score.time, 80);
  EXPECT_LE(run("heft").score.time, 80);
  EXPECT_LE(LowerBound(*run.evaluator).time, 73);
}

TEST(Heft, FindsThePublishedScheduleOfCriticalPathsOnAProcessor) {
  // The same paper, figure 3(b).
  const Problem problem = Classic();
  EXPECT_EQ(Trial(problem, "parallel(io=everywhere)")("heft(rank=critical,order=sequence)").score.time, 86);
}

TEST(Heft, SaysWhyEachOpIsWhereItIs) {
  const Problem problem = Classic();
  const Plan plan = Trial(problem, "parallel(io=everywhere)")("heft").plan;
  for (const OpId op : problem.graph().ops()) EXPECT_FALSE(plan.cause_of(op).empty());
}

TEST(Heft, KeepsItsScheduleWhenTheEvaluatorKeepsTheOrder) {
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    const Problem problem = RandomProblem(random, {.ties = round % 2 == 0, .forbidden = 0.1});
    const std::string last = fmt::format("parallel(contention=ports,io=d{})", problem.num_devices() - 1);
    for (const std::string& evaluator :
         {std::string("parallel(io=everywhere)"), std::string("parallel(contention=egress,io=everywhere)"),
          std::string("parallel(contention=ports,io=everywhere)"), std::string("parallel(contention=egress,io=d0)"),
          last}) {
      for (const char* planner :
           {"heft(order=sequence)", "heft(order=sequence,rank=optimistic)", "heft(order=sequence,insertion=false)",
            "heft(order=sequence,contention=none)", "heft(order=sequence,rank=critical)", "etf(order=sequence)",
            "sct(order=sequence,favourites=heaviest)", "heft(order=sequence,clusters=always)"}) {
        const PlanResult result = Trial(problem, evaluator)(planner);
        EXPECT_TRUE(result.score.fits()) << planner << " under " << evaluator;
        EXPECT_LT(result.score.time, kCannotRun);
      }
    }
  }
}

TEST(Heft, LeavesDevicesThatWouldOverflow) {
  GraphBuilder builder("memory");
  for (int v = 0; v < 4; ++v) {
    builder.UseParameter(builder.AddParameter(60), builder.AddOp("", "Unit", {}));
    if (v > 0) builder.Consume(builder.AddTensor(static_cast<size_t>(v - 1), 0), static_cast<size_t>(v));
  }
  Problem::Options options;
  options.memory_limits = {130, 130};
  const Problem problem = testing::UnitProblem(builder.Build(), 2, std::move(options));
  EXPECT_TRUE(Trial(problem, "parallel(io=everywhere)")("heft").score.fits());
}

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
  EXPECT_THAT(*Planners().MakePlanner("mincut")->Refuses(three, *MakeEvaluator("serial(io=everywhere)", three)),
              HasSubstr("the cluster has 3"));
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
    const auto classes = [&](const std::string& name) { return InterchangeableDevices(*MakeEvaluator(name, problem)); };
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
  const auto evaluator = MakeEvaluator("serial(io=everywhere)", problem);
  Plan start;
  for (size_t v = 0; v < 8; ++v) start.device.push_back(MakeId<DeviceId>(v / 2));
  const PlanResult result =
      Planners()
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

TEST(Exhaustive, BeginsWithWhatIsKnown) {
  Random random(10);
  const Problem problem = RandomProblem(random, {.ops = 9, .devices = 2});
  const auto evaluator = MakeEvaluator("parallel(io=everywhere)", problem);
  const auto planner = Planners().MakePlanner("exhaustive(space=order,limit=1e18)");
  const PlanResult from_nothing = planner->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(1)});
  const PlanResult from_it =
      planner->MakePlan({.evaluator = *evaluator, .budget = {}, .random = Random(1), .start = &from_nothing.plan});
  EXPECT_TRUE(from_it.optimal);
  EXPECT_EQ(from_it.score.time, from_nothing.score.time);
  EXPECT_EQ(from_it.evaluations, 1);
}

TEST(Exhaustive, RefusesWhatIsTooLarge) {
  const Problem problem = testing::Chain(40, 2);
  const auto planner = Planners().MakePlanner("exhaustive");
  EXPECT_THAT(*planner->Refuses(problem, *MakeEvaluator("serial(io=everywhere)", problem)),
              HasSubstr("more than 1e+08 plans"));
}

TEST(OneCut, TriesEveryCutOfEveryPair) {
  Random random(8);
  for (int round = 0; round < 20; ++round) {
    const Problem problem = RandomProblem(random, {.ops = 12, .devices = 3});
    for (const char* name : {"parallel(contention=ports,io=everywhere)", "serial(io=everywhere)"}) {
      const Trial run(problem, name);
      const auto workspace = run.evaluator->NewWorkspace();
      double best = kCannotRun;
      for (size_t p = 0; p < 3; ++p) {
        for (size_t q = 0; q < 3; ++q) {
          for (size_t cut = 0; cut <= 12; ++cut) {
            std::vector<DeviceId> device(12, MakeId<DeviceId>(q));
            std::fill_n(device.begin(), cut, MakeId<DeviceId>(p));
            best = std::min(best, run.evaluator->ScorePlan({.device = device}, *workspace).time);
          }
        }
      }
      EXPECT_EQ(run("one_cut").score.time, best);
    }
  }
}

TEST(OneCut, RefinesAGridWhenTheBudgetIsSmall) {
  // The first half is fast on one device, the second half on the other.
  GraphBuilder builder("halves");
  OpTimes times{.time = {}, .source = "test"};
  for (size_t v = 0; v < 1000; ++v) {
    builder.AddOp("", "Unit", {});
    if (v > 0) builder.Consume(builder.AddTensor(v - 1, 1), v);
    if (v < 437) {
      times.time.insert(times.time.end(), {1, 3});
    } else {
      times.time.insert(times.time.end(), {3, 1});
    }
  }
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)), std::move(times));
  const PlanResult result = Trial(problem, "serial(io=everywhere)")("one_cut", 60);
  EXPECT_EQ(result.score.time, 1001);
  EXPECT_LE(result.evaluations, 60);
}

TEST(Single, TriesEveryDeviceAndFallsBackWhereOneCannotRun) {
  GraphBuilder builder("fallback");
  for (int v = 0; v < 3; ++v) builder.AddOp("", "Unit", {});
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2)),
                        {.time = {5, 1, 5, 1, 5, kCannotRun}, .source = "test"});
  const Trial run(problem, "serial(io=everywhere)");
  EXPECT_EQ(run("single").score.time, 7);
  EXPECT_EQ(run("single(device=0)").score.time, 15);
  EXPECT_EQ(run("single(device=d1)").plan.cause_of(OpId{2}), "may not run on d1");
  EXPECT_THROW(run("single(device=d7)"), Error);
}

TEST(RandomPlanner, DrawsAsOftenAsTheBudgetAllows) {
  const Problem problem = testing::Chain(5, 3);
  EXPECT_EQ(Trial(problem, "serial(io=everywhere)")("random").evaluations, 100);
  EXPECT_EQ(Trial(problem, "serial(io=everywhere)")("random(bias=true)", 7).evaluations, 7);
}

class SearchQuality : public ::testing::TestWithParam<const char*> {};

TEST_P(SearchQuality, FindsTheOptimumOfSmallProblems) {
  Random random(9);
  int found = 0, rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    const Problem problem = RandomProblem(random, {.ops = 9, .devices = 2});
    for (const char* evaluator : {"serial(io=everywhere)", "parallel(contention=ports,io=everywhere)"}) {
      const Trial run(problem, evaluator);
      const double best = run("exhaustive").score.time;
      const double score = run(GetParam(), 2000).score.time;
      EXPECT_GE(score, best * (1 - 1e-12));
      EXPECT_LE(score, run("single").score.time);
      found += score <= best * (1 + 1e-12);
    }
  }
  EXPECT_GE(found, 2 * rounds - 4);
}

INSTANTIATE_TEST_SUITE_P(Searches, SearchQuality,
                         ::testing::Values("local_search", "annealing", "best_of(one_cut,local_search)"));

TEST(LocalSearch, BeginsWhereTheRequestSays) {
  const Problem problem = testing::Chain(6, 2);
  const Trial run(problem, "serial(io=everywhere)");
  const Plan start{.device = std::vector<DeviceId>(6, DeviceId{1})};
  const PlanResult result =
      Planners()
          .MakePlanner("local_search")
          ->MakePlan({.evaluator = *run.evaluator, .budget = {.evaluations = 1}, .random = Random(1), .start = &start});
  EXPECT_EQ(result.plan.device, start.device);
}

// One device is too small for all, and a plan that fits takes longer.
TEST(Searches, SayOfAStartThatDidNotFitThatItDidNot) {
  GraphBuilder builder("memory");
  for (size_t v = 0; v < 4; ++v) {
    builder.UseParameter(builder.AddParameter(60), builder.AddOp("", "Unit", {}));
    if (v > 0) builder.Consume(builder.AddTensor(v - 1, 1000), v);
  }
  Problem::Options options;
  options.memory_limits = {2150, 2150};
  OpTimes times{.time = std::vector<double>(8, 1.0), .source = "unit"};
  const Problem problem(std::make_shared<const Graph>(builder.Build()),
                        std::make_shared<const Cluster>(testing::UniformCluster(2, 0, 1e4)), std::move(times),
                        std::move(options));
  const std::vector<DeviceId> one(4, DeviceId{0});
  const Plan start{.device = one};
  const Trial run(problem, "serial(io=everywhere)");
  ASSERT_FALSE(run.evaluator->ScorePlan(start.view(), *run.evaluator->NewWorkspace()).fits());
  for (const char* planner : {"local_search", "annealing"}) {
    const PlanResult result = Planners().MakePlanner(planner)->MakePlan(
        {.evaluator = *run.evaluator, .budget = {.evaluations = 300}, .random = Random(1), .start = &start});
    EXPECT_TRUE(result.score.fits()) << planner;
    EXPECT_THAT(result.note, HasSubstr("the first plan did not fit into memory")) << planner;
  }
}

TEST(Searches, KeepApartWhatMustBe) {
  Random random(10);
  const Problem free = RandomProblem(random, {.ops = 12, .devices = 3});
  Problem::Options options;
  options.constraints.separate = {{OpId{0}, OpId{1}}, {OpId{1}, OpId{2}}, {OpId{0}, OpId{2}}, {OpId{5}, OpId{9}}};
  options.constraints.colocate = {{OpId{2}, OpId{5}}};
  OpTimes times{.time = {}, .source = "copy"};
  for (const OpId op : free.graph().ops()) {
    for (const double t : free.op_times(op)) times.time.push_back(t);
  }
  const Problem problem(free.shared_graph(), free.shared_cluster(), std::move(times), std::move(options));
  const Trial run(problem, "parallel(io=everywhere)");
  const double best = SlowBest(problem, *run.evaluator);
  EXPECT_EQ(run("exhaustive").score.time, best);
  for (const char* planner : {"single", "round_robin", "random", "heft", "local_search", "annealing"}) {
    const PlanResult result = run(planner, 500);
    EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt) << planner;
    // heft brings an order, too.
    if (std::string_view(planner) != "heft") {
      EXPECT_GE(result.score.time, best) << planner;
    }
  }
  for (const char* planner : {"one_cut", "mincut"}) {
    EXPECT_TRUE(Planners().MakePlanner(planner)->Refuses(problem, *run.evaluator).has_value()) << planner;
  }
}

TEST(Searches, RefuseConstraintsThatContradictOneAnother) {
  const Problem free = testing::Chain(4, 2);
  Problem::Options options;
  options.constraints.separate = {{OpId{0}, OpId{1}}, {OpId{1}, OpId{2}}, {OpId{0}, OpId{2}}};
  const Problem problem(free.shared_graph(), free.shared_cluster(),
                        {.time = std::vector<double>(8, 1), .source = "unit"}, std::move(options));
  const auto evaluator = MakeEvaluator("parallel(io=everywhere)", problem);
  for (const char* planner : {"single", "heft", "random", "local_search", "exhaustive"}) {
    EXPECT_THAT(Planners().MakePlanner(planner)->Refuses(problem, *evaluator).value_or("nothing"),
                HasSubstr("separate"))
        << planner;
  }
}

TEST(BestOf, NamesTheWinnerAndItsRefusals) {
  const Problem problem = testing::ForkJoin(4, 3);
  const Trial run(problem, "parallel(io=everywhere)");
  const PlanResult result = run("best_of(heft,mincut)");
  ASSERT_EQ(result.contributions.size(), 2u);
  EXPECT_EQ(result.contributions[0].planner, "single");
  EXPECT_EQ(result.contributions[1].planner, "heft");
  EXPECT_TRUE(result.contributions[1].led);
  EXPECT_THAT(result.note, HasSubstr("mincut refused: it places on two devices, the cluster has 3"));
  EXPECT_EQ(Planners().MakePlanner("best_of(heft,local_search(restarts=1))")->name(),
            "best_of(heft,local_search(restarts=1))");
  EXPECT_LE(run("best_of(heft,one_cut)").score.time, run("heft").score.time);
  EXPECT_THROW(Planners().MakePlanner("best_of"), Error);
}

TEST(BestOf, GivesWhatIsLeftToTheLast) {
  Random random(11);
  const Problem problem = RandomProblem(random, {.ops = 30, .devices = 2});
  EXPECT_EQ(Trial(problem, "parallel(io=everywhere)")("best_of(heft,local_search)", 500).evaluations, 500);
  EXPECT_EQ(Trial(problem, "parallel(io=everywhere)")("best_of(heft,local_search)", 1).evaluations, 1);
}

TEST(Fixed, ReadsAListOfDevices) {
  const Problem problem = testing::Chain(3, 2);
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("berth-fixed-{}.txt", ::getpid());
  const auto run = [&](std::string_view text) {
    WriteFile(path, text);
    return Trial(problem, "serial(io=everywhere)")(fmt::format("fixed(file=\"{}\")", path)).plan.device;
  };
  const std::vector<DeviceId> expected = {DeviceId{0}, DeviceId{1}, DeviceId{1}};
  EXPECT_EQ(run("0,1,1"), expected);
  EXPECT_EQ(run("d0 d1\nd1\n"), expected);
  EXPECT_EQ(run("[0, 1, 1]"), expected);
  EXPECT_THROW(run("0,1"), Error);
  EXPECT_THROW(run("0,1,1,1"), Error);
  EXPECT_THROW(run("0,1,2"), Error);
  std::filesystem::remove(path);
  EXPECT_THROW(Planners().MakePlanner("fixed"), Error);
}

}  // namespace
}  // namespace berth
