#include "learn/gdp_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using Devices = std::vector<int64_t>;

// Ops in a row, with so many bytes of weights each, on a fast device, a slow one and one between.
Problem ThreeDevices(std::vector<int64_t> memory, const std::vector<int64_t>& weights = {10, 10, 10, 10}) {
  OpTimes times{.time = {}, .source = "test"};
  for (size_t op = 0; op < weights.size(); ++op) times.time.insert(times.time.end(), {1, 10, 3});
  return Problem(std::make_shared<const Graph>(testing::WeightChain(weights)),
                 std::make_shared<const Cluster>(testing::UniformCluster(3)), std::move(times),
                 {.memory_limits = std::move(memory)});
}

struct Replied {
  double cost = 0;
  Devices device{};
  int64_t evaluations = 0;
};

// What becomes of ten answers of which all but those in `answers` are on the slow device, which is unlikely; the one
// between is less likely than the fast one by `loss`, by op.
Replied Reply(const Problem& problem, const std::map<size_t, Devices>& answers,
              const std::vector<float>& loss = {1, 1, 1, 1}, int64_t budget = 100, double memory_penalty = 1e9) {
  const GdpTask task(problem, {.colocation = "none", .order = "topological", .coupled = false});
  std::vector<float> odds;
  for (size_t op = 0; op < problem.num_ops(); ++op) odds.insert(odds.end(), {0, -50, -loss[op]});
  const GdpAnswers from(task, odds);
  const auto evaluator = testing::EvaluatorNamed("parallel(contention=none,io=everywhere)", RegisterParallel, problem);
  Search search(PlanRequest{.evaluator = *evaluator, .budget = {.evaluations = budget}, .random = Random(1)});
  std::vector<std::unique_ptr<Episode>> episodes;
  for (size_t i = 0; i < GdpAnswers::kMost; ++i) {
    const auto found = answers.find(i);
    episodes.push_back(std::make_unique<Episode>());
    episodes.back()->device = found == answers.end() ? Devices(problem.num_ops(), 1) : found->second;
  }
  const PlayOptions options{.greedy = true, .memory_penalty = memory_penalty};
  GdpReply reply(task, from, search, options, std::move(episodes));
  const std::unique_ptr<Episode> best = reply.Best();
  return {.cost = best->cost.at(0), .device = best->device, .evaluations = search.evaluations()};
}

TEST(GdpReply, IsTheBestOfAllWhereAllFit) {
  const Problem problem = ThreeDevices({100, 100, 100});
  for (size_t i = 0; i < GdpAnswers::kMost; ++i) {
    const Replied reply = Reply(problem, {{i, {0, 0, 0, 0}}});
    EXPECT_EQ(reply.cost, 4) << i;
    EXPECT_EQ(reply.device, Devices({0, 0, 0, 0})) << i;
    EXPECT_EQ(reply.evaluations, 10) << i;
  }
}

// Whatever the order in which they are scored.
TEST(GdpReply, IsTheFirstOfThoseThatCostTheSame) {
  const Problem problem = ThreeDevices({100, 100, 100});
  EXPECT_EQ(Reply(problem, {{4, {0, 0, 0, 2}}, {3, {2, 0, 0, 0}}}).device, Devices({2, 0, 0, 0}));
}

TEST(GdpReply, IsTheBestOfThoseForWhichThereAreEvaluations) {
  const Problem problem = ThreeDevices({100, 100, 100});
  const Replied reply = Reply(problem, {{1, {0, 0, 2, 2}}, {2, {0, 0, 0, 2}}, {9, {0, 0, 0, 0}}}, {1, 1, 1, 1}, 3);
  EXPECT_EQ(reply.cost, 6);
  EXPECT_EQ(reply.evaluations, 3);
}

// What fits is ten times slower than what does not, by one op of four.
TEST(GdpReply, MakesAFastOneFitThoughASlowOneFits) {
  const Replied reply = Reply(ThreeDevices({30, 100, 10}), {{2, {0, 0, 0, 0}}});
  EXPECT_EQ(reply.cost, 6);
  EXPECT_THAT(reply.device, ::testing::UnorderedElementsAre(0, 0, 0, 2));
}

// Then the evaluations are for the other answers, of which the first is the best. What the slow one would become takes
// 12: the odds are for the device between.
TEST(GdpReply, MakesNoneFitThatIsSlowerThanWhatFits) {
  const Replied reply =
      Reply(ThreeDevices({100, 5, 100}), {{2, {0, 0, 0, 2}}, {3, {0, 0, 0, 0}}}, {-10, -10, -10, -10});
  EXPECT_EQ(reply.cost, 4);
  EXPECT_EQ(reply.evaluations, 10);
}

// Even if so small a penalty makes one that does not fit cost less.
TEST(GdpReply, FitsWhereAnyDoes) {
  const Replied reply = Reply(ThreeDevices({30, 100, 10}), {{2, {0, 0, 0, 0}}}, {1, 1, 1, 1}, 100, 0);
  EXPECT_EQ(reply.cost, 6);
}

// To be relieved, the fastest, {0, 0, 0}, first gives up the op of 10 bytes, which takes the room of one of 20, so that
// one of these has to go to the slow device.
const std::vector<int64_t> kWeights = {20, 10, 20}, kMemory = {30, 100, 20};
const std::vector<float> kLoss = {1, 0.1F, 1};

TEST(GdpReply, GoesOnWithTheNextOneWhereTheFastestIsSlowOnceItFits) {
  const Problem problem = ThreeDevices(kMemory, kWeights);
  EXPECT_EQ(Reply(problem, {{0, {0, 0, 0}}}, kLoss).cost, 14);
  const Replied reply = Reply(problem, {{0, {0, 0, 0}}, {4, {2, 0, 2}}}, kLoss);
  EXPECT_EQ(reply.cost, 5);
  EXPECT_EQ(reply.evaluations, 10);
}

TEST(GdpReply, MakesAnswersThatAreAlikeFitOnce) {
  const Devices fast = {0, 0, 0};
  const Replied reply =
      Reply(ThreeDevices(kMemory, kWeights), {{0, fast}, {1, fast}, {2, fast}, {4, fast}, {7, {0, 0, 2}}}, kLoss);
  EXPECT_EQ(reply.cost, 5);
}

}  // namespace
}  // namespace berth
