#include "plan/planners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "placement/bound.h"
#include "placement/testing.h"
#include "placement/units.h"
#include "plan/testing.h"

namespace berth {
namespace {

using ::testing::HasSubstr;
using testing::MakeSimulator;
using testing::RandomProblem;
using testing::SimplePlanners;
using testing::SlowBest;
using testing::Trial;

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
  EXPECT_EQ(run("single", 1).score.time, 7) << "the first tried is the faster one, though one op cannot be there";
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
      SimplePlanners()
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
    const PlanResult result = SimplePlanners().MakePlanner(planner)->MakePlan(
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
    EXPECT_TRUE(SimplePlanners().MakePlanner(planner)->Refuses(problem, *run.evaluator).has_value()) << planner;
  }
}

TEST(Searches, RefuseConstraintsThatContradictOneAnother) {
  const Problem free = testing::Chain(4, 2);
  Problem::Options options;
  options.constraints.separate = {{OpId{0}, OpId{1}}, {OpId{1}, OpId{2}}, {OpId{0}, OpId{2}}};
  const Problem problem(free.shared_graph(), free.shared_cluster(),
                        {.time = std::vector<double>(8, 1), .source = "unit"}, std::move(options));
  const auto evaluator = MakeSimulator("parallel(io=everywhere)", problem);
  for (const char* planner : {"single", "heft", "random", "local_search", "exhaustive"}) {
    EXPECT_THAT(SimplePlanners().MakePlanner(planner)->Refuses(problem, *evaluator).value_or("nothing"),
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
  EXPECT_EQ(SimplePlanners().MakePlanner("best_of(heft,local_search(restarts=1))")->name(),
            "best_of(heft,local_search(restarts=1))");
  EXPECT_LE(run("best_of(heft,one_cut)").score.time, run("heft").score.time);
  EXPECT_THROW(SimplePlanners().MakePlanner("best_of"), Error);
}

TEST(BestOf, KeepsWhatOthersFoundWhereAMemberThrows) {
  const Problem problem = testing::Chain(4, 2);
  PlannerCatalog planners = SimplePlanners();
  testing::AddBreaking(planners, "it broke");
  const auto evaluator = MakeSimulator("parallel(io=everywhere)", problem);
  const PlanRequest request{.evaluator = *evaluator, .budget = {.evaluations = 50}, .random = Random(1)};
  for (const char* name : {"best_of(breaking,heft)", "best_of(heft,breaking)"}) {
    const PlanResult result = planners.MakePlanner(name)->MakePlan(request);
    EXPECT_TRUE(result.score.fits()) << name;
    EXPECT_THAT(result.note, HasSubstr("breaking failed: it broke")) << name;
  }
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
  EXPECT_THROW(SimplePlanners().MakePlanner("fixed"), Error);
}

}  // namespace
}  // namespace berth
