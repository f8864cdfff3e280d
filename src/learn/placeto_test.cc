#include "learn/placeto.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "learn/planners.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

std::unique_ptr<Evaluator> OnParallel(const Problem& problem) {
  return testing::EvaluatorNamed("parallel(io=everywhere)", RegisterParallel, problem);
}

const PlacetoEpisode& AsPlaceto(const std::unique_ptr<Episode>& episode) {
  return static_cast<const PlacetoEpisode&>(*episode);
}

std::vector<Random> Seeds(size_t count, uint64_t first = 1) {
  std::vector<Random> seeds;
  for (size_t i = 0; i < count; ++i) seeds.emplace_back(first + i);
  return seeds;
}

TEST(Placeto, PlaysSideBySideAsOneByOne) {
  Random random(1);
  const Problem problem = testing::RandomProblem(random, {.ops = 20, .devices = 3, .forbidden = 0.3});
  const auto evaluator = OnParallel(problem);
  const PlacetoPolicy policy(problem, {.start = PlacetoOptions::Start::kVarying, .start_times = true}, Random(2));
  const auto task = policy.Prepare(problem);
  testing::OpenSearch search(*evaluator);
  auto seeds = Seeds(5);
  const auto together = policy.Play(*task, search, seeds, {});
  for (size_t i = 0; i < together.size(); ++i) {
    auto one = Seeds(1, 1 + i);
    const auto alone = policy.Play(*task, search, one, {});
    EXPECT_EQ(AsPlaceto(alone[0]).start, AsPlaceto(together[i]).start);
    EXPECT_EQ(AsPlaceto(alone[0]).action, AsPlaceto(together[i]).action);
    EXPECT_EQ(alone[0]->cost, together[i]->cost);
    EXPECT_EQ(alone[0]->start_cost, together[i]->start_cost);
  }
}

TEST(Placeto, RecallsHowLikelyItWasToPlayAsItDid) {
  Random random(2);
  for (const bool ours : {false, true}) {
    const Problem problem = testing::RandomProblem(random, {.ops = 25, .devices = 3, .forbidden = 0.3});
    const auto evaluator = OnParallel(problem);
    const PlacetoPolicy policy(problem,
                               {.order = PlacetoOptions::Order::kShuffled,
                                .start_times = !ours,
                                .relative = ours,
                                .shared = ours,
                                .rounds = ours ? 2 : 0},
                               Random(2));
    const auto task = policy.Prepare(problem);
    testing::OpenSearch search(*evaluator);
    auto seeds = Seeds(2);
    for (const auto& episode : policy.Play(*task, search, seeds, {})) {
      const auto likelihood = testing::RecallOne(policy, *task, *episode);
      ASSERT_EQ(likelihood->log_prob.size(0), std::ssize(episode->log_prob));
      for (size_t i = 0; i < episode->log_prob.size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        EXPECT_NEAR(likelihood->log_prob[at].item<double>(), episode->log_prob[i], 1e-4);
        EXPECT_GE(likelihood->entropy[at].item<double>(), -0.001);
        EXPECT_LE(likelihood->entropy[at].item<double>(), std::log(3));
      }
    }
  }
}

// What an episode says, worked out again from its start and its actions.
TEST(Placeto, EpisodesVisitEachNodeOnceAndCostWhatTheEvaluatorSays) {
  Random random(3);
  for (int round = 0; round < 10; ++round) {
    Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 3, .forbidden = 0.4});
    if (round % 2 == 0) {
      problem = problem.With({.colocate = {{OpId{0}, OpId{7}}, {OpId{3}, OpId{4}, OpId{11}}}});
      bool possible = true;
      for (const auto& group : problem.constraints().colocate) {
        possible &= std::ranges::all_of(group, [&](OpId op) { return problem.can_run(op, DeviceId{0}); });
      }
      ASSERT_TRUE(possible);
    }
    const auto evaluator = OnParallel(problem);
    const PlacetoPolicy policy(problem, {.start = PlacetoOptions::Start::kVarying, .rounds = 2}, Random(2));
    const auto prepared = policy.Prepare(problem);
    const auto& task = static_cast<const PlacetoTask&>(*prepared);
    EXPECT_EQ(task.num_nodes(), round % 2 == 0 ? 9 : 12);
    EXPECT_EQ(std::set<int32_t>(task.order.begin(), task.order.end()).size(), task.order.size());
    testing::OpenSearch search(*evaluator);
    auto seeds = Seeds(2);
    for (const auto& played : policy.Play(task, search, seeds, {})) {
      const auto& episode = AsPlaceto(played);
      std::vector<DeviceId> device(problem.num_ops());
      const auto put = [&](size_t node, DeviceId to) {
        for (const OpId op : task.node_ops[node]) device[Index(op)] = to;
      };
      const auto cost = [&] {
        EXPECT_EQ(FindViolation(problem, {.device = device}), std::nullopt);
        return evaluator->ScorePlan({.device = device}, *evaluator->NewWorkspace()).value();
      };
      for (size_t v = 0; v < episode.start.size(); ++v) put(v, episode.start[v]);
      EXPECT_EQ(episode.start_cost, cost());
      ASSERT_EQ(std::ssize(episode.action), task.num_nodes());
      for (size_t t = 0; t < episode.action.size(); ++t) {
        put(static_cast<size_t>(task.order[t]), episode.action[t]);
        EXPECT_EQ(episode.cost[t], cost());
      }
    }
    EXPECT_EQ(search.evaluations(), 2 * policy.evaluations(task));
  }
}

TEST(Placeto, RunsAPlacementAgainOnlyWhenItChanged) {
  const Problem problem = testing::Chain(6, 2);
  int64_t runs = 0;
  std::set<std::vector<DeviceId>> seen;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
    ++runs;
    seen.emplace(plan.device.begin(), plan.device.end());
    return Score{.time = 1};
  });
  const PlacetoPolicy policy(problem, {}, Random(2));
  const auto task = policy.Prepare(problem);
  testing::OpenSearch search(evaluator);
  auto seeds = Seeds(1);
  policy.Play(*task, search, seeds, {});
  EXPECT_EQ(search.evaluations(), 7);
  EXPECT_EQ(runs, std::ssize(seen)) << "each node is set once, so no placement comes back";
}

TEST(Placeto, AsksOnceWhereOnlyTheEndCounts) {
  const Problem problem = testing::Chain(6, 2);
  const auto evaluator = OnParallel(problem);
  const PlacetoPolicy policy(problem, {.start = PlacetoOptions::Start::kFirst, .every_step = false}, Random(2));
  const auto task = policy.Prepare(problem);
  EXPECT_EQ(policy.evaluations(*task), 1);
  testing::OpenSearch search(*evaluator);
  auto seeds = Seeds(3);
  for (const auto& episode : policy.Play(*task, search, seeds, {})) {
    EXPECT_TRUE(std::isnan(episode->start_cost));
    for (size_t t = 0; t + 1 < episode->cost.size(); ++t) EXPECT_TRUE(std::isnan(episode->cost[t]));
    EXPECT_TRUE(std::isfinite(episode->cost.back()));
  }
  EXPECT_EQ(search.evaluations(), 3);
}

TEST(Placeto, EpisodesStayWithinTheirEvaluations) {
  const Problem problem = testing::Chain(6, 2);
  const auto evaluator = OnParallel(problem);
  const PlacetoPolicy policy(problem, {}, Random(2));
  const auto task = policy.Prepare(problem);
  for (int64_t evaluations = 1; evaluations <= 8; ++evaluations) {
    for (const bool greedy : {false, true}) {
      testing::OpenSearch search(*evaluator);
      auto seeds = Seeds(1);
      const auto episodes = policy.Play(*task, search, seeds, {.greedy = greedy, .evaluations = evaluations});
      EXPECT_EQ(search.evaluations(), std::min<int64_t>(evaluations, 7));
      EXPECT_TRUE(std::isfinite(episodes[0]->cost.back()));
      EXPECT_EQ(episodes[0]->cost.size(),
                greedy || evaluations > 6 ? 6u : static_cast<size_t>(std::max<int64_t>(evaluations - 1, 1)));
    }
  }
}

TEST(Placeto, SortsGroupsThatFormACycle) {
  // op0 -> op1 -> op2 -> op3, where 0 and 2 are one node and 1 and 3 another.
  const Problem problem = testing::Chain(4, 2).With({.colocate = {{OpId{0}, OpId{2}}, {OpId{1}, OpId{3}}}});
  const PlacetoTask task(problem, {}, Random(1));
  ASSERT_EQ(task.num_nodes(), 2);
  EXPECT_EQ(task.graph->relation[0][1].item<int>(), PlacetoGraph::kAncestor | PlacetoGraph::kDescendant);
  EXPECT_EQ(task.graph->depth, 1);
}

TEST(Placeto, GivesACostColumnToEachDeviceWhereAsked) {
  Random random(4);
  const Problem problem = testing::RandomProblem(random, {.ops = 8, .devices = 3, .forbidden = 0.5});
  const PlacetoTask task(problem, {.cost_columns = true}, Random(1));
  ASSERT_EQ(task.columns(), 3 + 4 + 3);
  double largest = 0;
  for (const OpId op : problem.graph().ops()) {
    for (const double time : problem.op_times(op)) largest = std::max(largest, time < kCannotRun ? time : 0.0);
  }
  std::vector<float> features(8 * 10);
  task.WriteFeatures(task.first_start, 0, {}, features.data());
  for (size_t v = 0; v < 8; ++v) {
    for (size_t d = 0; d < 3; ++d) {
      const double time = problem.op_time(task.node_ops[v].front(), MakeId<DeviceId>(d));
      EXPECT_NEAR(features[v * 10 + d], time < kCannotRun ? time / largest : 0, 1e-6);
    }
  }
}

TEST(Placeto, ASharedNetworkTreatsAllDevicesAlikeAndServesAnyNumberOfThem) {
  Random random(6);
  // Devices that are all the same: which one is called which does not matter.
  const Problem two = testing::ForkJoin(13, 2), three = testing::ForkJoin(9, 3);
  const PlacetoOptions options{.start = PlacetoOptions::Start::kVarying, .relative = true, .shared = true, .rounds = 2};
  const PlacetoPolicy policy(two, options, Random(2));
  for (const Problem* problem : {&two, &three}) {
    const auto prepared = policy.Prepare(*problem);
    const auto& task = static_cast<const PlacetoTask&>(*prepared);
    const int64_t m = task.num_devices(), n = task.num_nodes(), d = task.columns();
    std::vector<DeviceId> device, turned;
    for (int64_t v = 0; v < n; ++v) {
      device.push_back(MakeId<DeviceId>(random.Below(static_cast<size_t>(m))));
      turned.push_back(MakeId<DeviceId>((Index(device.back()) + 1) % static_cast<size_t>(m)));
    }
    const auto score = [&](const std::vector<DeviceId>& placed) {
      at::Tensor features = torch::empty({m, n, d});
      task.WriteFeatures(placed, 5, {}, features.data_ptr<float>());
      return policy.network().forward(features, torch::full({m}, task.order[5], torch::kInt64), *task.graph).view({m});
    };
    EXPECT_TRUE(torch::allclose(score(device).roll(1), score(turned), 1e-5, 1e-6));
    EXPECT_FALSE(torch::allclose(score(device), score(device)[0].expand({m})));
  }
}

TEST(Placeto, RelativeTimesDoNotDependOnTheUnit) {
  Random random(7);
  const Problem problem = testing::RandomProblem(random, {.ops = 9, .devices = 2});
  const PlacetoTask task(problem, {.relative = true}, Random(1));
  std::vector<float> features(9 * 7);
  ASSERT_EQ(task.columns(), 7);
  task.WriteFeatures(task.first_start, 0, {}, features.data());
  double mean = 0;
  for (const OpId op : problem.graph().ops()) mean += (problem.op_times(op)[0] + problem.op_times(op)[1]) / 2 / 9;
  for (size_t v = 0; v < 9; ++v) {
    const OpId op = task.node_ops[v].front();
    EXPECT_NEAR(features[v * 7], std::log1p((problem.op_times(op)[0] + problem.op_times(op)[1]) / 2 / mean), 1e-5);
    double sent = 0;
    for (size_t t = problem.graph().first_output(op); t < problem.graph().end_output(op); ++t) {
      sent += (problem.transfer_time(MakeId<TensorId>(t), DeviceId{0}, DeviceId{1}) +
               problem.transfer_time(MakeId<TensorId>(t), DeviceId{1}, DeviceId{0})) /
              2;
    }
    EXPECT_NEAR(features[v * 7 + 1], std::log1p(sent / mean), 1e-5);
  }
}

PlannerCatalog Planners() {
  PlannerCatalog catalog;
  RegisterLearned(catalog);
  return catalog;
}

TEST(PlacetoPlanner, HasThePublishedValuesAsAMode) {
  const PlannerCatalog catalog = Planners();
  EXPECT_EQ(catalog.MakePlanner("placeto(mode=paper)")->name(), "placeto(mode=paper)");
  EXPECT_EQ(catalog.MakePlanner("placeto(mode=paper,reward=log)")->name(), "placeto(mode=paper,reward=log)");
  EXPECT_EQ(catalog.MakePlanner("placeto(workers=2)")->name(), "placeto");
}

TEST(PlacetoPlanner, SaysWhatItCannotDo) {
  const PlannerCatalog catalog = Planners();
  const auto refused = [&](const Problem& problem) {
    return catalog.MakePlanner("placeto")->Refuses(problem, *OnParallel(problem)).value_or("");
  };
  EXPECT_EQ(refused(testing::Chain(3, 1)), "it chooses between devices, and there is only one");
  EXPECT_EQ(refused(testing::Chain(2001, 2)),
            "it can place 2000 groups and not 2001: put ops together, as in on(group=merge,planner=placeto)");
  EXPECT_EQ(refused(testing::Chain(3, 2)), "");
  EXPECT_EQ(refused(testing::Chain(3, 100)), "");
  EXPECT_EQ(
      catalog.MakePlanner("placeto(head=devices)")->Refuses(testing::Chain(3, 61), *OnParallel(testing::Chain(3, 61))),
      "its features would have 66 columns for 61 devices, and it can take 64: use head=shared and costs=mean");
  EXPECT_THROW(catalog.MakePlanner("placeto(runs=5,kept=6)"), Error);
  EXPECT_THROW(catalog.MakePlanner("placeto(credit=terminal,start_times=true)"), Error);
}

// What it learns is more than what it would have drawn anyway.
TEST(PlacetoPlanner, FindsABetterLikeliestPlacementThanItsUntrainedTwin) {
  Random random(5);
  double trained = 0, untrained = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 2});
    const auto evaluator =
        testing::EvaluatorNamed("parallel(contention=none,io=everywhere)", RegisterParallel, problem);
    const auto greedy = [&](const char* rate) {
      const Method method = testing::MethodNamed(fmt::format("placeto(rounds=2,learning_rate={})", rate));
      return testing::CostsOfTraining(method, *evaluator, Random(seed), 6, 1).back();
    };
    trained += std::log(greedy("0.01"));
    untrained += std::log(greedy("0"));
  }
  EXPECT_LT(std::exp((trained - untrained) / 2), 0.8);
}

TEST(PlacetoPlanner, FindsTheOptimumOfAForkAndJoin) {
  // Two devices, transfers take no time: the four branches divide two and two.
  GraphBuilder builder("fork_join");
  builder.AddOp("fork", "Unit", {});
  builder.AddTensor(0, 0);
  builder.AddOp("join", "Unit", {});
  for (size_t i = 0; i < 4; ++i) {
    const size_t op = builder.AddOp("branch", "Unit", {});
    builder.Consume(0, op);
    builder.Consume(builder.AddTensor(op, 0), 1);
  }
  const Problem problem = testing::UnitProblem(builder.Build(), 2);
  const auto evaluator = OnParallel(problem);
  const PlanResult result =
      Planners()
          .MakePlanner("placeto(rounds=2)")
          ->MakePlan({.evaluator = *evaluator, .budget = {.evaluations = 500}, .random = Random(1)});
  EXPECT_EQ(result.score.time, 4);
  EXPECT_LE(result.evaluations, 500);
}

}  // namespace
}  // namespace berth
