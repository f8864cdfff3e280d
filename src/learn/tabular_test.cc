#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "learn/planners.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

std::unique_ptr<Evaluator> OnSerial(const Problem& problem) {
  return testing::EvaluatorNamed("serial(io=everywhere)", RegisterSerial, problem);
}

Method Tabular(const std::string& parameters = "") {
  return testing::MethodNamed(fmt::format("tabular({})", parameters));
}

// The same graph on machines of another speed.
Problem Slower(const Problem& problem) {
  OpTimes times{.time = {}, .source = "test"};
  for (const OpId op : problem.graph().ops()) {
    for (const double time : problem.op_times(op)) times.time.push_back(3 * time + 1);
  }
  return Problem(problem.shared_graph(), problem.shared_cluster(), std::move(times));
}

TEST(Tabular, FindsTheOptimumOfASmallProblem) {
  Random random(2);
  const Problem problem = testing::RandomProblem(random, {.ops = 8, .devices = 2});
  const auto evaluator = OnSerial(problem);
  const auto workspace = evaluator->NewWorkspace();
  double best = std::numeric_limits<double>::infinity();
  for (size_t bits = 0; bits < size_t{1} << 8; ++bits) {
    std::vector<DeviceId> device;
    for (size_t op = 0; op < 8; ++op) device.push_back(MakeId<DeviceId>(bits >> op & 1));
    best = std::min(best, evaluator->ScorePlan({.device = device}, *workspace).value());
  }
  PlannerCatalog planners;
  RegisterLearned(planners);
  const PlanResult result = planners.MakePlanner("tabular")->MakePlan(
      {.evaluator = *evaluator, .budget = {.evaluations = 1500}, .random = Random(1)});
  EXPECT_NEAR(result.score.value(), best, 1e-9 * best);
  EXPECT_LE(result.evaluations, 1500);
}

// A batch of episodes of two tasks is what they are one after another: likelihoods, and the gradient of a whole update.
TEST(Tabular, RecallsManyEpisodesOfSeveralTasksAtOnce) {
  Random random(3);
  const Problem problem = testing::RandomProblem(random, {.ops = 7, .devices = 3, .forbidden = 0.2});
  const Problem slower = Slower(problem);
  const auto evaluator = OnSerial(problem), other = OnSerial(slower);
  const Method method = Tabular("rollouts=5,workers=3");
  const std::shared_ptr<Policy> policy = method.make_policy(problem, Random(1));
  {
    const torch::NoGradGuard no_gradient;
    for (const at::Tensor& parameter : policy->parameters()) {
      parameter.copy_(torch::arange(parameter.numel(), torch::kFloat32).reshape(parameter.sizes()) * 0.05);
    }
  }
  testing::OpenSearch search(*evaluator), other_search(*other);
  std::vector<LearnCase> cases;
  cases.emplace_back(search, *policy, method.scoring);
  cases.emplace_back(other_search, *policy, method.scoring);
  const std::vector<Memory> none;
  const std::vector<std::unique_ptr<Critic>> no_critics;
  Alone one_rank;
  Player player(method, *policy, cases, none, no_critics, one_rank);
  std::vector<Play> plays = player.PlayUpdate(0, 0, 0, 1'000, 1, Random(4), {}).all;
  ASSERT_EQ(plays.size(), 3U);
  std::vector<Played> all;
  for (Play& play : plays) {
    ASSERT_EQ(play.episodes.size(), 5U);
    for (const auto& episode : play.episodes) {
      play.weight.push_back({0.5 + static_cast<double>(all.size())});
      all.push_back({.task = *cases[play.index].task, .episode = *episode});
    }
  }
  EXPECT_NE(&all.front().task, &all[5].task) << "the second worker plays on the second case";
  const auto together = policy->Recall(all, 1);
  ASSERT_EQ(together.size(), 15U);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto alone = testing::RecallOne(*policy, all[i].task, all[i].episode);
    EXPECT_TRUE(torch::equal(alone->log_prob, together[i]->log_prob));
    EXPECT_TRUE(torch::equal(alone->entropy, together[i]->entropy));
    for (size_t d = 0; d < all[i].episode.log_prob.size(); ++d) {
      EXPECT_EQ(alone->log_prob[static_cast<int64_t>(d)].item<float>(), all[i].episode.log_prob[d]);
    }
  }
  const UpdateRule rule(method.rule);
  const EpisodeLoss loss = [&](const Play& play, size_t episode, const Likelihood& likelihood) {
    return rule.Loss(likelihood, *play.episodes[episode], play.weight[episode], 0.01);
  };
  const auto batched = GradientOf(*policy, cases, plays, 100, loss, 2, one_rank, {});
  at::Tensor sum;
  for (const Play& play : plays) {
    for (size_t i = 0; i < play.episodes.size(); ++i) {
      const auto alone = testing::RecallOne(*policy, *cases[play.index].task, *play.episodes[i]);
      const at::Tensor gradient = torch::autograd::grad({loss(play, i, *alone)}, policy->parameters())[0];
      sum = sum.defined() ? sum + gradient : gradient;
    }
  }
  EXPECT_TRUE(torch::allclose(batched->by_parameter[0], sum, 1e-4, 1e-5));
  EXPECT_GT(batched->norm, 0);
}

TEST(Tabular, GoesOnFromACheckpointAsIfNothingHadHappened) {
  Random random(5);
  const Problem problem = testing::RandomProblem(random, {.ops = 9, .devices = 2}), slower = Slower(problem);
  const auto evaluator = OnSerial(problem), other = OnSerial(slower);
  const testing::Evaluators cases = {*evaluator, *other};
  const auto path = [](const char* name) { return ::testing::TempDir() + "berth-tabular-" + name; };
  testing::OpenLearner unbroken(Tabular(), cases, Random(1), 6), before(Tabular(), cases, Random(1), 6),
      after(Tabular(), cases, Random(1), 6);
  for (int i = 0; i < 6; ++i) unbroken.Update(1'000, 2);
  for (int i = 0; i < 2; ++i) before.Update(1'000, 1);
  before.Save(path("half"));
  after.Load(path("half"), false);
  for (int i = 0; i < 4; ++i) after.Update(1'000, 1);
  unbroken.Save(path("unbroken"));
  after.Save(path("resumed"));
  EXPECT_TRUE(ReadFile(path("unbroken")) == ReadFile(path("resumed"))) << "the bytes differ";
}

TEST(Tabular, ServesOtherGraphsByTheTypesOfTheirOps) {
  const Problem problem = testing::Chain(4, 2), fork = testing::ForkJoin(4, 2);
  const auto evaluator = OnSerial(problem), on_fork = OnSerial(fork);
  EXPECT_THROW(testing::OpenLearner(Tabular(), {*evaluator, *on_fork}, Random(1), 1), Error);
  EXPECT_NO_THROW(testing::OpenLearner(Tabular("rows=type"), {*evaluator, *on_fork}, Random(1), 1));
  const Problem alone = testing::Chain(3, 1);
  EXPECT_EQ(WhyNot(Tabular(), alone, *OnSerial(alone)), "it chooses between devices, and there is only one");
}

// A memory serves any policy that decides a device per node.
TEST(Tabular, AnswersWithTheBestItDrewWhereItImitatesThat) {
  Random random(13);
  const Problem problem = testing::RandomProblem(random, {.ops = 10, .devices = 2});
  const auto evaluator = OnSerial(problem);
  const auto play = [&](const char* parameters) {
    testing::OpenLearner learner(Tabular(parameters), {*evaluator}, Random(1), 40);
    double drawn = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 40; ++i) drawn = std::min(drawn, learner.Update(1'000'000, 1)->best_cost);
    return learner.Greedy(0, 1).cost / drawn;
  };
  EXPECT_LE(play("memory=1,imitation=20,learning_rate=0.3"), 1);
  EXPECT_GT(play("memory=1,imitation=20,learning_rate=0"), 1);
}

TEST(Tabular, SaysWhatItCannotRemember) {
  Random random(14);
  const Problem problem = testing::RandomProblem(random, {.ops = 5, .devices = 2});
  const auto evaluator = OnSerial(problem);
  EXPECT_THROW(testing::OpenLearner(Tabular("distinct=true"), {*evaluator}, Random(1), 1), Error);
}

}  // namespace
}  // namespace berth
