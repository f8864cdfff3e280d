#include "plan/favourites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "moves/list_scheduler.h"
#include "placement/testing.h"
#include "plan/planners.h"
#include "plan/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

PlanResult Answer(const Problem& problem, std::string_view planner, const Budget& budget = {}) {
  static const PlannerCatalog planners = [] {
    PlannerCatalog all;
    RegisterHeft(all);
    RegisterExhaustive(all);
    return all;
  }();
  return testing::AnswerOf(planners, planner, problem, "none", budget);
}

// Ops that take one time unit, and edges with the time of their tensor, on devices that are alike.
Problem Unit(size_t ops, const std::vector<std::tuple<size_t, size_t, int64_t>>& edges) {
  GraphBuilder builder("edges");
  for (size_t v = 0; v < ops; ++v) builder.AddOp("", "Op", {.flops = 1});
  for (const auto& [from, to, bytes] : edges) builder.Consume(builder.AddTensor(from, bytes), to);
  return testing::UnitProblem(builder.Build(), 2);
}

void ExpectNoSecondFavourites(const Problem& problem, const std::vector<OpId>& child) {
  ASSERT_EQ(child.size(), problem.num_ops());
  std::vector<size_t> parents(problem.num_ops(), 0);
  for (const OpId op : problem.graph().ops()) {
    const OpId favourite = child[Index(op)];
    if (favourite == OpId{-1}) continue;
    EXPECT_EQ(++parents[Index(favourite)], 1);
    EXPECT_TRUE(std::ranges::any_of(problem.graph().inputs_of(favourite),
                                    [&](TensorId tensor) { return problem.graph().producer(tensor) == op; }));
  }
}

TEST(Favourites, AreTheHeaviestWithoutAProgram) {
  const Problem problem = Unit(4, {{0, 1, 3}, {0, 2, 5}, {1, 3, 2}, {2, 3, 4}});
  EXPECT_THAT(HeaviestFavourites(Units(problem)).child, ::testing::ElementsAre(OpId{2}, OpId{-1}, OpId{3}, OpId{-1}));
}

TEST(Favourites, KnowEachPairOnceAndNoneOfAUnit) {
  GraphBuilder builder("pairs");
  for (size_t v = 0; v < 3; ++v) builder.AddOp("", "Op", {.flops = 1});
  builder.Consume(builder.AddTensor(0, 2), 1);
  builder.Consume(builder.AddTensor(0, 7), 1);
  builder.Consume(builder.AddTensor(0, 0), 2);
  builder.Consume(builder.AddTensor(1, 4), 2);
  Problem::Options options;
  options.constraints.colocate = {{OpId{1}, OpId{2}}};
  const Problem problem = testing::UnitProblem(builder.Build(), 2, std::move(options));
  const std::vector<FavouriteEdge> edges = FavouriteEdges(Units(problem));
  ASSERT_EQ(edges.size(), 1);
  EXPECT_EQ(edges[0].from, OpId{0});
  EXPECT_EQ(edges[0].to, OpId{1});
  EXPECT_EQ(edges[0].time, 7);
}

TEST(Favourites, AreNeverTwoWhateverIsRounded) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 3 + random.Below(30), .devices = 3});
    const Units units(problem);
    const std::vector<FavouriteEdge> edges = FavouriteEdges(units);
    std::vector<double> x;
    for (size_t e = 0; e < edges.size(); ++e) x.push_back(random.Uniform());
    ExpectNoSecondFavourites(problem, RoundFavourites(problem.num_ops(), edges, x));
    ExpectNoSecondFavourites(problem, HeaviestFavourites(units).child);
  }
}

TEST(Sct, SaysWhenItHasNoProgramToAsk) {
  const Problem problem = Unit(2, {{0, 1, 1}});
  EXPECT_EQ(Answer(problem, "sct(favourites=heaviest)").note, "");
  PlannerCatalog planners;
  RegisterHeft(planners);
  EvaluatorCatalog evaluators("evaluator");
  RegisterParallel(evaluators);
  const auto evaluator = evaluators.Make("parallel", problem);
  EXPECT_EQ(planners.MakePlanner("sct")->Refuses(problem, *evaluator).has_value(), !kHasFavouriteProgram);
}

#if BERTH_HAS_HIGHS

// Ops that take 1 to 2 and transfers of at most 1, on as many like devices as ops.
Problem SmallCommunication(Random& random, size_t ops) {
  constexpr double kBandwidth = 1e6;
  GraphBuilder builder("small communication times");
  std::vector<double> times;
  for (size_t v = 0; v < ops; ++v) {
    builder.AddOp("", "Op", {});
    const double time = random.Uniform(1, 2);
    times.insert(times.end(), ops, time);
  }
  for (size_t v = 1; v < ops; ++v) {
    for (size_t u = 0; u < v; ++u) {
      if (!random.Chance(0.5)) continue;
      builder.Consume(builder.AddTensor(u, static_cast<int64_t>(kBandwidth * random.Uniform(0.1, 1))), v);
    }
  }
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>(testing::UniformCluster(ops, 0, kBandwidth)),
                 {.time = std::move(times), .source = "random"});
}

// The longest path, where edges to favourites take no time: what a schedule takes with a device for each op that is no
// favourite.
double LongestPath(const Problem& problem, const std::vector<FavouriteEdge>& edges, const std::vector<OpId>& child) {
  std::vector<double> start(problem.num_ops(), 0);
  double longest = 0;
  for (const OpId op : problem.graph().ops()) {
    const double end = start[Index(op)] + problem.op_time(op, DeviceId{0});
    longest = std::max(longest, end);
    for (const auto& [from, to, time] : edges) {
      if (from == op) start[Index(to)] = std::max(start[Index(to)], end + (child[Index(op)] == to ? 0 : time));
    }
  }
  return longest;
}

// The shortest of all choices of favourites.
double BestOfAllChoices(const Problem& problem, const std::vector<FavouriteEdge>& edges, size_t next,
                        std::vector<OpId>& child) {
  if (next == edges.size()) return LongestPath(problem, edges, child);
  double best = BestOfAllChoices(problem, edges, next + 1, child);
  const auto& [from, to, time] = edges[next];
  if (child[Index(from)] == OpId{-1} && std::ranges::find(child, to) == child.end()) {
    child[Index(from)] = to;
    best = std::min(best, BestOfAllChoices(problem, edges, next + 1, child));
    child[Index(from)] = OpId{-1};
  }
  return best;
}

TEST(FavouriteProgram, KeepsTheLongestPathTogether) {
  // 0 -> 1 -> 2 takes three if nothing is sent; then 3 has to wait for the tensor of 0, and ends at three, too.
  const Problem problem = Unit(4, {{0, 1, 1}, {1, 2, 1}, {0, 3, 1}});
  const auto found = FavouritesByProgram(Units(problem), {});
  ASSERT_TRUE(found);
  EXPECT_NEAR(*found->relaxed_makespan, 3, 1e-6);
  EXPECT_THAT(found->child, ::testing::ElementsAre(OpId{1}, OpId{2}, OpId{-1}, OpId{-1}));
}

TEST(FavouriteProgram, DividesWhatADiamondMustSend) {
  // x01 + x02 >= 1 and x13 + x23 >= 1: of the two paths, of 3 + x01 + x13 and 3 + x02 + x23, one takes at least 4.
  const Problem problem = Unit(4, {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 3, 1}});
  const auto found = FavouritesByProgram(Units(problem), {});
  ASSERT_TRUE(found);
  EXPECT_NEAR(*found->relaxed_makespan, 4, 1e-6);
}

TEST(FavouriteProgram, SendsLittleBesideTheLongestPath) {
  // A chain of ten, and beside it an op with two consumers, of which either may wait.
  std::vector<std::tuple<size_t, size_t, int64_t>> edges;
  for (size_t v = 1; v < 10; ++v) edges.emplace_back(v - 1, v, 1);
  edges.emplace_back(10, 11, 1);
  edges.emplace_back(10, 12, 3);
  const Problem problem = Unit(13, edges);
  const auto found = FavouritesByProgram(Units(problem), {});
  ASSERT_TRUE(found);
  EXPECT_NEAR(*found->relaxed_makespan, 10, 1e-6);
  EXPECT_EQ(found->child[10], OpId{12});
}

TEST(FavouriteProgram, HasNoSecondFavourites) {
  Random random(4);
  for (int round = 0; round < 60; ++round) {
    const Problem problem = testing::RandomProblem(random, {.ops = 3 + random.Below(40), .ties = round % 2 == 0});
    const auto found = FavouritesByProgram(Units(problem), {});
    ASSERT_TRUE(found);
    ExpectNoSecondFavourites(problem, found->child);
  }
}

TEST(FavouriteProgram, IsWithinTheBoundOfItsPaper) {
  Random random(5);
  for (int round = 0; round < 40; ++round) {
    const Problem problem = SmallCommunication(random, 3 + random.Below(4));
    const Units units(problem);
    const std::vector<FavouriteEdge> edges = FavouriteEdges(units);
    const auto found = FavouritesByProgram(units, {});
    ASSERT_TRUE(found);
    // With small communication times the best choice of favourites is the best plan on any number of devices.
    std::vector<OpId> none(problem.num_ops(), OpId{-1});
    const double best = BestOfAllChoices(problem, edges, 0, none);
    const PlanResult exact = Answer(problem, "exhaustive(space=order,limit=1e18)");
    ASSERT_TRUE(exact.optimal);
    EXPECT_NEAR(exact.score.time, best, 1e-9 * best);
    EXPECT_LE(*found->relaxed_makespan, best * (1 + 1e-6));

    double longest = 0, shortest = kCannotRun;
    for (const FavouriteEdge& edge : edges) longest = std::max(longest, edge.time);
    for (const OpId op : problem.graph().ops()) shortest = std::min(shortest, problem.op_time(op, DeviceId{0}));
    const double rho = longest / shortest;
    const double factor = (2 + 2 * rho) / (2 + rho) * (1 + 1e-6);
    EXPECT_LE(LongestPath(problem, edges, found->child), factor * *found->relaxed_makespan);
    ListScheduler scheduler(units, Urgency::kEarliest, found->child);
    EXPECT_LE(scheduler.Run({}, nullptr).makespan(), factor * best);
    EXPECT_LE(Answer(problem, "sct").score.time, factor * best);
  }
}

TEST(FavouriteProgram, EndsWhenItIsTold) {
  const Problem problem = testing::ModelProblem("layered(ops=600)", "p100x4", false);
  EXPECT_FALSE(FavouritesByProgram(Units(problem), [] { return true; }).has_value());
  const PlanResult result = Answer(problem, "sct", {.seconds = 1e-3});
  EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
  EXPECT_THAT(result.note, ::testing::HasSubstr("did not end in half of the time"));
}

TEST(FavouriteProgram, IsLeftOutWhereATransferTakesTooLongForItsDigits) {
  const Problem unit = Unit(2, {{0, 1, 10'000'000'000'000}});
  const Problem problem(unit.shared_graph(), unit.shared_cluster(),
                        {.time = {1e-6, 1e-6, 1e-6, 1e-6}, .source = "test"});
  EXPECT_FALSE(FavouritesByProgram(Units(problem), {}).has_value());
}

TEST(FavouriteProgram, IsLeftOutWhereItIsTooLarge) {
  const Problem problem = testing::ModelProblem("layered(ops=25100)", "p100x4", false);
  ASSERT_GT(FavouriteEdges(Units(problem)).size(), kMostProgramEdges);
  EXPECT_THAT(Answer(problem, "sct(order=priority)").note, ::testing::HasSubstr("too large"));
}

#endif

}  // namespace
}  // namespace berth
