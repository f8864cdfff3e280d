#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "learn/gdp_network.h"
#include "learn/node_schedule.h"
#include "learn/planners.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

std::unique_ptr<Evaluator> Simulated(const Problem& problem) {
  return testing::EvaluatorNamed("parallel(contention=none,io=everywhere)", RegisterParallel, problem);
}

Method Gdp(const std::string& parameters) { return testing::MethodNamed(fmt::format("gdp({})", parameters)); }

constexpr const char* kSmall = "hidden=16,heads=2,inner=16,sage=2,layers=1,segment=4";

// A message of each neighbour through the same layer, of which the largest counts per channel; written down once more.
TEST(GdpNetwork, PassesTheLargestMessageOfItsNeighbours) {
  const GdpShape shape{.features = 2,
                       .sage_layers = 2,
                       .refinements = 0,
                       .placer = {.width = 4, .heads = 1, .inner = 4, .layers = 0, .segment = 2, .outputs = 3}};
  const GdpNetwork network(shape, Random(1));
  std::map<std::string, at::Tensor> weight;
  for (const auto& parameter : network.named_parameters()) weight[parameter.key()] = parameter.value().detach();
  const std::vector<std::pair<int32_t, int32_t>> entries = {{0, 1}, {1, 0}, {1, 2}, {2, 1}};  // the last has none
  const GdpInput input{.type = torch::tensor({3, 7, 3, 200}, torch::kInt64),
                       .features = torch::tensor({{0.5, 1.0}, {-1.0, 2.0}, {0.0, 0.25}, {1.5, -0.5}}, torch::kFloat32),
                       .neighbours = SparseRows(4, entries)};
  at::Tensor h = torch::zeros({4, 4});
  for (int64_t v = 0; v < 4; ++v) {
    const at::Tensor row = torch::cat({weight["types"][input.type[v].item<int64_t>()], input.features[v]});
    h[v] = torch::mv(weight["embed"], row) + weight["embed_bias"];
  }
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("sage{}_", layer);
    at::Tensor next = torch::zeros({4, 4});
    for (int64_t v = 0; v < 4; ++v) {
      at::Tensor most = torch::zeros({4});
      bool any = false;
      for (const auto& [to, from] : entries) {
        if (to != v) continue;
        const at::Tensor said =
            torch::sigmoid(torch::mv(weight[prefix + "message"], h[from]) + weight[prefix + "message_bias"]);
        most = any ? torch::maximum(most, said) : said;
        any = true;
      }
      next[v] =
          torch::relu(torch::mv(weight[prefix + "join"], torch::cat({h[v], most})) + weight[prefix + "join_bias"]);
    }
    h = next;
  }
  const at::Tensor expected = torch::mm(h, weight["placer.head"].t()) + weight["placer.head_bias"];
  EXPECT_TRUE(torch::allclose(network.Forward(input, 1), expected, 1e-5, 1e-6));
}

// All of it: messages, gates, attention, odds of devices and of levels of priority. No gradient comes from the passes
// before, so differences are taken with their odds held still; none comes from the segment before either, so with
// several segments only the first one counts, which still hears of the others' nodes through messages and gates.
TEST(GdpNetwork, HasTheGradientThatDifferencesSay) {
  constexpr int64_t kNodes = 7, kFeatures = 3, kDevices = 3, kLevels = 2;
  Random random(2);
  const std::vector<std::pair<int32_t, int32_t>> entries = {{0, 1}, {0, 4}, {1, 0}, {1, 2}, {2, 1}, {2, 3},
                                                            {3, 2}, {3, 6}, {4, 0}, {4, 5}, {5, 4}, {6, 3}};
  const SparseRows neighbours(kNodes, entries);
  // Of these rows of the table the helper looks at a number each.
  const at::Tensor type = torch::tensor({0, 36, 73, 109, 36, 146, 183}, torch::kInt64);
  const at::Tensor features = testing::NormalTensor(random, {kNodes, kFeatures});
  const at::Tensor of_device = testing::NormalTensor(random, {kNodes, kDevices}),
                   of_level = testing::NormalTensor(random, {kNodes, kLevels});
  for (const int64_t refinements : {0, 2}) {
    for (const int64_t segment : {kNodes, int64_t{3}}) {
      GdpShape shape{.features = kFeatures,
                     .sage_layers = 2,
                     .refinements = refinements,
                     .placer = {.width = 6,
                                .heads = 2,
                                .inner = 5,
                                .layers = 2,
                                .segment = segment,
                                .outputs = kDevices + kLevels,
                                .gated = true},
                     .levels = kLevels};
      GdpNetwork network(shape, Random(1));
      if (refinements > 0) shape.features += kDevices + kLevels;  // the odds that are held still
      shape.refinements = 0;
      GdpNetwork last_pass(shape, Random(1));
      network.to(torch::kFloat64);
      const torch::NoGradGuard no_gradient;
      // So that no gate is nearly open, and no odds are nearly even, in all nodes.
      for (const at::Tensor& parameter : network.parameters()) {
        parameter.add_(0.3 * testing::NormalTensor(random, parameter.sizes()));
      }
      // The same numbers, in the same places.
      const auto parameters = network.parameters(), same = last_pass.parameters();
      ASSERT_EQ(parameters.size(), same.size());
      for (size_t i = 0; i < same.size(); ++i) at::Tensor(same[i]).set_data(parameters[i].detach());

      const GdpInput input{.type = type, .features = features, .neighbours = neighbours};
      GdpInput held = input;
      if (refinements > 0) held.features = torch::cat({features, torch::zeros({kNodes, shape.placer.outputs})}, 1);
      for (int64_t pass = 0; pass < refinements; ++pass) {
        const at::Tensor logits = last_pass.Forward(held, 1);
        held.features = torch::cat({features, torch::softmax(logits.narrow(1, 0, kDevices), 1),
                                    torch::softmax(logits.narrow(1, kDevices, kLevels), 1)},
                                   1);
      }
      EXPECT_TRUE(torch::allclose(network.Forward(input, 1), last_pass.Forward(held, 1), 1e-12, 1e-12));
      const auto sum = [&] {
        const at::Tensor logits = at::GradMode::is_enabled() ? network.Forward(input, 1) : last_pass.Forward(held, 1);
        const auto part = [&](const at::Tensor& weight, int64_t first) {
          const at::Tensor odds = torch::log_softmax(logits.narrow(1, first, weight.size(1)), 1) * weight;
          return odds.narrow(0, 0, segment).sum();
        };
        return part(of_device, 0) + part(of_level, kDevices);
      };
      const at::AutoGradMode gradient(true);
      testing::ExpectTheGradientThatDifferencesSay(network, sum, 1e-7, fmt::format("{} {}", refinements, segment));
    }
  }
}

TEST(Gdp, RecallsTheProbabilitiesWithWhichItPlayed) {
  Random random(2);
  const Problem uneven = testing::RandomProblem(random, {.ops = 15, .devices = 3, .forbidden = 0.3});
  const Problem even = testing::ForkJoin(9, 3);
  for (const Problem* problem : {&uneven, &even}) {
    const auto evaluator = Simulated(*problem);
    for (const char* const more :
         {"", ",superposition=true", ",refine=2", ",symmetric=false", ",mode=paper", ",order=depth_first",
          ",order=shuffled", ",priorities=5", ",priorities=2,refine=1", ",features=scheduled"}) {
      const Method method = Gdp(fmt::format("{}{}", kSmall, more));
      const auto policy = method.make_policy(*problem, Random(3));
      const auto task = policy->Prepare(*problem);
      task->class_of = InterchangeableDevices(*evaluator);
      testing::OpenSearch search(*evaluator);
      for (const double share : {0.0, 0.6, 0.9}) {
        std::vector<Random> randoms{Random(1), Random(2), Random(3)};
        const auto episodes = policy->Play(*task, search, randoms, {.share = share});
        std::vector<Played> played;
        for (const auto& episode : episodes) played.push_back({.task = *task, .episode = *episode});
        const auto likelihoods = policy->Recall(played, 1);
        for (size_t e = 0; e < episodes.size(); ++e) {
          ASSERT_EQ(episodes[e]->cost.size(), 1U);
          ASSERT_EQ(likelihoods[e]->log_prob.size(0), std::ssize(episodes[e]->log_prob));
          ASSERT_EQ(likelihoods[e]->entropy.size(0), std::ssize(episodes[e]->step_of));
          for (size_t i = 0; i < episodes[e]->log_prob.size(); ++i) {
            EXPECT_NEAR(likelihoods[e]->log_prob[static_cast<int64_t>(i)].item<float>(), episodes[e]->log_prob[i], 1e-4)
                << more;
          }
          EXPECT_EQ(FindViolation(*problem, search.best().view()), std::nullopt);
        }
      }
    }
  }
}

// What it learns is more than what it would have drawn anyway.
TEST(Gdp, FindsABetterLikeliestPlacementThanItsUntrainedTwin) {
  Random random(5);
  double trained = 0, untrained = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Problem problem = testing::RandomProblem(random, {.ops = 16, .devices = 2});
    const auto evaluator = Simulated(problem);
    const auto greedy = [&](const char* rate) {
      const Method method = Gdp(fmt::format("{},epochs=2,learning_rate={}", kSmall, rate));
      return testing::CostsOfTraining(method, *evaluator, Random(seed), 40, 2).back();
    };
    trained += std::log(greedy("0.005"));
    untrained += std::log(greedy("0"));
  }
  EXPECT_LT(std::exp((trained - untrained) / 3), 0.9);
}

// With more draws than there are placements: all are drawn, each once, and the policy's own answer is the best of them.
TEST(Gdp, DrawsEveryPlacementOnceAndAnswersWithTheBest) {
  Random random(11);
  const Problem problem = testing::RandomProblem(random, {.ops = 6, .devices = 2});
  std::set<std::vector<DeviceId>> drawn;
  double best = std::numeric_limits<double>::infinity();
  const auto simulated = Simulated(problem);
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
    const auto workspace = simulated->NewWorkspace();
    const Score score = simulated->ScorePlan(plan, *workspace, {});
    drawn.emplace(plan.device.begin(), plan.device.end());
    best = std::min(best, score.time);
    return score;
  });
  testing::OpenLearner learner(
      Gdp(fmt::format("{},coupled=false,rollouts=4,restart_every=5,learning_rate=0.005", kSmall)), {evaluator},
      Random(1), 10);
  for (int i = 0; i < 10; ++i) learner.Update(1'000'000, 1);
  EXPECT_EQ(drawn.size(), 40U) << "of 64";
  for (int i = 0; i < 40; ++i) learner.Update(1'000'000, 1);
  EXPECT_EQ(drawn.size(), 64U);
  EXPECT_EQ(learner.Greedy(0, 1).cost, best * problem.seconds_per_unit());
}

TEST(Gdp, TriesTheListSchedulesPlacementFirst) {
  Random random(32);
  for (int round = 0; round < 5; ++round) {
    // The last one's devices are alike, and keep the names that the schedule gives them.
    const Problem problem = round < 4 ? testing::RandomProblem(random, {.ops = 20, .devices = 3, .forbidden = 0.2})
                                      : testing::ForkJoin(9, 3);
    const auto simulated = Simulated(problem);
    std::vector<std::vector<DeviceId>> asked;
    const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
      asked.emplace_back(plan.device.begin(), plan.device.end());
      return simulated->ScorePlan(plan, *simulated->NewWorkspace());
    });
    const auto first = [&](const char* parameters) {
      asked.clear();
      testing::OpenLearner learner(Gdp(fmt::format("{},{}", kSmall, parameters)), {evaluator}, Random(1), 2);
      learner.Update(1'000'000, 1);
      return asked.front();
    };
    std::vector<DeviceId> scheduled;
    for (const int32_t device : ScheduleNodes(problem, MakeCoarseGraph(problem, "none")).device) {
      scheduled.push_back(MakeId<DeviceId>(static_cast<size_t>(device)));
    }
    EXPECT_EQ(first("mode=best,features=scheduled"), scheduled);
    EXPECT_NE(first("mode=best"), scheduled);
  }
}

// The optimum of 64 placements of which the odds alone would not draw enough: made of the best ones so far, with a
// model.
TEST(Gdp, FindsTheOptimumNearTheBestAndLearnsIt) {
  Random random(21);
  int optimal = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Problem problem = testing::RandomProblem(random, {.ops = 10, .devices = 2});
    const auto evaluator = Simulated(problem);
    const auto workspace = evaluator->NewWorkspace();
    double least = std::numeric_limits<double>::infinity();
    for (size_t bits = 0; bits < 1024; ++bits) {
      std::vector<DeviceId> device;
      for (size_t i = 0; i < 10; ++i) device.push_back(MakeId<DeviceId>((bits >> i) & 1));
      least = std::min(least, evaluator->ScorePlan({.device = device}, *workspace).time);
    }
    testing::OpenLearner learner(
        Gdp(fmt::format("{},near=0.75,rollouts=8,epochs=2,restart_every=0,learning_rate=0.005", kSmall)), {*evaluator},
        Random(seed), 30);
    for (int i = 0; i < 30; ++i) learner.Update(1'000'000, 1);
    optimal += learner.Greedy(0, 1).cost < least * problem.seconds_per_unit() * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GE(optimal, 3) << "of 4";
}

// What training begins anew with, and what it remembers, is in a checkpoint, too.
TEST(Gdp, GoesOnFromACheckpointInItsSecondRound) {
  Random random(12);
  const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 2});
  const auto evaluator = Simulated(problem);
  const std::string path = ::testing::TempDir() + "gdp_round";
  const Method method = Gdp(fmt::format("{},restart_every=3", kSmall));
  testing::OpenLearner unbroken(method, {*evaluator}, Random(1), 9), before(method, {*evaluator}, Random(1), 9),
      after(method, {*evaluator}, Random(1), 9);
  std::vector<double> expected, resumed;
  for (int i = 0; i < 9; ++i) expected.push_back(unbroken.Update(1'000'000, 1)->mean_cost);
  for (int i = 0; i < 4; ++i) resumed.push_back(before.Update(1'000'000, 1)->mean_cost);
  before.Save(path);
  after.Load(path, false);
  for (int i = 4; i < 9; ++i) resumed.push_back(after.Update(1'000'000, 1)->mean_cost);
  EXPECT_EQ(resumed, expected);
  EXPECT_EQ(after.Greedy(0, 1).cost, unbroken.Greedy(0, 1).cost);
}

// Of what it answers with: the first placement is that of each op alone, in the third one layers stay together, the
// others share the work among all devices, and the answer is the best of all.
TEST(Gdp, AnswersWithTheBestOfOpsGroupsAndLayers) {
  Random random(13);
  int better = 0, halfway = 0, with_memory = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem = testing::RandomProblem(random, {.ops = 20, .devices = 3, .forbidden = 0.2});
    const auto simulated = Simulated(problem);
    std::vector<std::pair<std::vector<DeviceId>, double>> asked;
    const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
      EXPECT_EQ(FindViolation(problem, plan), std::nullopt);
      const auto workspace = simulated->NewWorkspace();
      const Score score = simulated->ScorePlan(plan, *workspace, {});
      asked.emplace_back(std::vector<DeviceId>(plan.device.begin(), plan.device.end()), score.time);
      return score;
    });
    testing::OpenLearner alone(Gdp(fmt::format("{},coupled=false", kSmall)), {evaluator}, Random(seed), 1),
        together(Gdp(kSmall), {evaluator}, Random(seed), 1);
    const double of_ops = alone.Greedy(0, 1).cost, best = together.Greedy(0, 1).cost;
    ASSERT_EQ(asked.size(), 11U);
    EXPECT_EQ(asked[1], asked[0]);
    double least = asked[1].second;
    for (size_t i = 2; i < asked.size(); ++i) least = std::min(least, asked[i].second);
    EXPECT_EQ(best, least * problem.seconds_per_unit());
    EXPECT_LE(best, of_ops);
    better += best < of_ops ? 1 : 0;
    const auto differs = [&](size_t i, size_t j) { return asked[1 + i].first != asked[1 + j].first ? 1 : 0; };
    halfway += differs(3, 1) * differs(3, 5);  // groups, half of the way to all devices busy
    with_memory += differs(8, 6);              // layers, with the memory shared as well
    GroupingCatalog groupings("grouping");
    RegisterGroupings(groupings);
    const Grouping layers = groupings.Make("layers", problem, {});
    for (size_t group = 0; group < layers.num_groups(); ++group) {
      // The only device on which a layer is split is one that some of its ops cannot use.
      const auto ops = layers.ops_of(MakeId<GroupId>(group));
      const auto device_of = [&](OpId op) { return asked[3].first[Index(op)]; };
      const bool anywhere =
          std::ranges::all_of(ops, [&](OpId op) { return std::ranges::max(problem.op_times(op)) < kCannotRun; });
      if (!anywhere) continue;
      for (const OpId op : ops) EXPECT_EQ(device_of(op), device_of(ops.front()));
    }
    // Within fewer evaluations it asks for fewer.
    asked.clear();
    const double of_two = together.Greedy(0, 1, 2).cost;
    ASSERT_EQ(asked.size(), 2U);
    EXPECT_EQ(of_two, std::min(asked[0].second, asked[1].second) * problem.seconds_per_unit());
  }
  EXPECT_GT(better, 0);
  EXPECT_GT(halfway, 0);
  EXPECT_GT(with_memory, 0);
}

// Twelve ops with weights of 90 MB on devices of 1000, 100 and 100: at least ten of them must be on the first, which
// no equal shares give, and not all can be.
TEST(Gdp, AnswersWithAPlacementThatFitsWhereOpsCanLeaveTheDevicesThatAreTooFull) {
  const Problem problem = testing::UnitProblem(testing::WeightChain(std::vector<int64_t>(12, 90'000'000)), 3,
                                               {.memory_limits = {1'000'000'000, 100'000'000, 100'000'000}});
  const auto evaluator = Simulated(problem);
  int first_fits = 0;
  for (const char* form : {"", ",priorities=3"}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      testing::OpenLearner learner(Gdp(fmt::format("{}{}", kSmall, form)), {*evaluator}, Random(seed), 1);
      // The chain takes 12 wherever it is; each GB too much counts as 2.
      const double of_six = learner.Greedy(0, 1, 6).cost;
      first_fits += of_six < 12.01 ? 1 : 0;
      EXPECT_EQ(learner.Greedy(0, 1).cost, 12) << seed;
    }
  }
  EXPECT_LT(first_fits, 10);
}

// As many as are half of a batch, so that training on a graph that it has not seen begins with what it has learned
// elsewhere.
TEST(Gdp, ScoresItsAnswersFirstAndOnce) {
  Random random(15);
  const Problem problem = testing::RandomProblem(random, {.ops = 60, .devices = 3});
  const auto simulated = Simulated(problem);
  std::vector<std::vector<DeviceId>> asked;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
    const auto workspace = simulated->NewWorkspace();
    asked.emplace_back(plan.device.begin(), plan.device.end());
    return simulated->ScorePlan(plan, *workspace, {});
  });
  testing::OpenLearner learner(Gdp(fmt::format("{},symmetric=false,learning_rate=0", kSmall)), {evaluator}, Random(1),
                               9);
  learner.Greedy(0, 1);
  const auto answers = std::exchange(asked, {});
  ASSERT_EQ(answers.size(), 10U);
  learner.Update(1'000'000, 1);
  const std::set<std::vector<DeviceId>> drawn(asked.begin(), asked.end());
  EXPECT_EQ(drawn.size(), asked.size()) << "each once";
  for (const auto& answer : std::span(answers).first(8)) EXPECT_TRUE(drawn.contains(answer));
  EXPECT_EQ(asked.front(), answers.front());
  asked.clear();
  learner.Update(1'000'000, 1);
  for (const auto& plan : asked) EXPECT_FALSE(drawn.contains(plan)) << "known placements are not scored again";
}

// A policy that has made up its mind draws the same again and again, and beside it other placements where the odds of a
// part of the batch are flattened; at the end of a round it draws from its odds as they are.
TEST(Gdp, DrawsPartOfABatchFromFlatterOddsAtFirst) {
  Random random(14);
  const Problem problem = testing::RandomProblem(random, {.ops = 10, .devices = 2});
  const auto simulated = Simulated(problem);
  std::set<std::vector<DeviceId>> drawn;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
    drawn.emplace(plan.device.begin(), plan.device.end());
    return simulated->ScorePlan(plan, *simulated->NewWorkspace(), {});
  });
  const std::string path = ::testing::TempDir() + "gdp_sure";
  const std::string plain = fmt::format("{},near=0,coupled=false,distinct=false,restart_every=0", kSmall);
  testing::OpenLearner sure(Gdp(plain + ",learning_rate=0.02,entropy=0,entropy_end=0"), {evaluator}, Random(1), 60);
  for (int i = 0; i < 60; ++i) sure.Update(1'000'000, 1);
  sure.Save(path);
  const auto count = [&](const char* more, int64_t updates, int64_t of) {
    testing::OpenLearner learner(Gdp(plain + ",learning_rate=0" + more), {evaluator}, Random(1), of);
    learner.Load(path, true);
    for (int64_t i = 0; i < updates; ++i) {
      drawn.clear();
      learner.Update(1'000'000, 1);
    }
    return drawn.size();
  };
  EXPECT_LE(count("", 1, 100), 4U);
  const auto as_they_are = drawn;
  EXPECT_GE(count(",temperature=1000", 1, 100), 8U);
  EXPECT_TRUE(std::ranges::any_of(drawn, [&](const auto& placement) { return as_they_are.contains(placement); }));
  EXPECT_LE(count(",temperature=1000", 100, 100), 4U);
}

// Four leaves and the head of a chain share a device, the chain has another: first come, first served runs the head
// last.
Problem LateHead() {
  GraphBuilder builder("late_head");
  const auto add = [&](const std::string& name) {
    const size_t op = builder.AddOp(name, "Unit", {});
    builder.AddTensor(op, 0, {}, true);
    return op;
  };
  for (int leaf = 0; leaf < 4; ++leaf) add(fmt::format("leaf{}", leaf));
  size_t last = add("head");
  for (int link = 0; link < 4; ++link) {
    const size_t next = add(fmt::format("link{}", link));
    builder.Consume(last, next);
    last = next;
  }
  OpTimes times{.time = {}, .source = "unit"};
  for (int op = 0; op < 9; ++op) {
    times.time.push_back(op < 5 ? 1 : kCannotRun);
    times.time.push_back(op < 5 ? kCannotRun : 1);
  }
  return Problem(std::make_shared<const Graph>(builder.Build()),
                 std::make_shared<const Cluster>(testing::UniformCluster(2)), std::move(times));
}

TEST(Gdp, LearnsWhichOpsAreUrgentWhereTheOrderDecides) {
  const Problem problem = LateHead();
  const auto evaluator = Simulated(problem);
  const auto answer = [&](const char* parameters) {
    testing::OpenLearner learner(Gdp(fmt::format("{},learning_rate=0.005,restart_every=0{}", kSmall, parameters)),
                                 {*evaluator}, Random(1), 20);
    for (int i = 0; i < 20; ++i) learner.Update(1'000'000, 1);
    const Plan best = learner.search(0).best();
    return std::pair(learner.Greedy(0, 1).cost, best.priority.size());
  };
  EXPECT_EQ(answer(""), std::pair(9.0 * problem.seconds_per_unit(), size_t{0}));
  EXPECT_EQ(answer(",priorities=3"), std::pair(5.0 * problem.seconds_per_unit(), problem.num_ops()));
}

TEST(Gdp, GoesOnFromACheckpointWithItsPriorities) {
  const Problem problem = LateHead();
  const auto evaluator = Simulated(problem);
  const std::string path = ::testing::TempDir() + "gdp_priorities";
  const Method method = Gdp(fmt::format("{},priorities=3,near=0.5", kSmall));
  testing::OpenLearner before(method, {*evaluator}, Random(1), 8), after(method, {*evaluator}, Random(1), 8);
  for (int i = 0; i < 4; ++i) before.Update(1'000'000, 1);
  before.Save(path);
  after.Load(path, false);
  EXPECT_EQ(after.search(0).best().priority, before.search(0).best().priority);
  EXPECT_EQ(after.search(0).best().priority.size(), problem.num_ops());
  for (int i = 4; i < 8; ++i) {
    EXPECT_EQ(after.Update(1'000'000, 1)->mean_cost, before.Update(1'000'000, 1)->mean_cost);
  }
}

TEST(Gdp, RefusesPrioritiesWhereTheyChangeNothing) {
  Random random(15);
  const Problem problem = testing::RandomProblem(random, {.ops = 6, .devices = 2});
  const auto serial = testing::EvaluatorNamed("serial", RegisterSerial, problem);
  EXPECT_NE(WhyNot(Gdp("priorities=4"), problem, *serial), std::nullopt);
  EXPECT_EQ(WhyNot(Gdp("priorities=4"), problem, *Simulated(problem)), std::nullopt);
  EXPECT_EQ(WhyNot(Gdp(""), problem, *serial), std::nullopt);
}

TEST(Gdp, GivesTheSameBytesOnAnyNumberOfThreads) {
  Random random(6);
  // With a model of costs, and with too many nodes for one.
  for (const size_t ops : {20U, 60U}) {
    const Problem problem = testing::RandomProblem(random, {.ops = ops, .devices = 3});
    const auto evaluator = Simulated(problem);
    const auto costs = [&](int64_t threads) {
      return testing::CostsOfTraining(Gdp(kSmall), *evaluator, Random(1), 6, threads);
    };
    const std::vector<double> alone = costs(1);
    EXPECT_EQ(alone, costs(2));
    EXPECT_EQ(alone, costs(5));
  }
}

// Where no model chooses, each placement near the best is made of the best so far, that of the same update, too: then
// one update finds a new best one again and again.
TEST(Gdp, ClimbsWithinAnUpdateWhereNoModelChooses) {
  Random random(16);
  const Problem problem = testing::RandomProblem(random, {.ops = 60, .devices = 2});
  const std::vector<DeviceId> wanted = testing::RandomPlacement(problem, random);
  double best = std::numeric_limits<double>::infinity();
  int records = 0;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
    Score score{.time = 1};
    for (size_t op = 0; op < plan.device.size(); ++op) score.time += plan.device[op] == wanted[op] ? 0 : 1;
    if (score.time < best) {
      best = score.time;
      ++records;
    }
    return score;
  });
  testing::OpenLearner learner(Gdp(fmt::format("{},coupled=false,rollouts=64,near=1,learning_rate=0", kSmall)),
                               {evaluator}, Random(1), 2);
  learner.Update(1'000'000, 1);
  const double first = best;
  records = 0;
  learner.Update(1'000'000, 1);
  EXPECT_GE(records, 6);
  EXPECT_LE(best, first - 6);
}

TEST(Gdp, ServesGraphsOfOtherSizesWithTheSamePolicy) {
  Random random(7);
  const Problem small = testing::RandomProblem(random, {.ops = 10, .devices = 2}),
                large = testing::RandomProblem(random, {.ops = 30, .devices = 2}), other = testing::Chain(4, 3);
  const auto on_small = Simulated(small), on_large = Simulated(large), on_other = Simulated(other);
  testing::OpenLearner learner(Gdp(fmt::format("{},superposition=true", kSmall)), {*on_small, *on_large}, Random(1), 4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(learner.Update(1'000'000, 2).has_value());
  EXPECT_THAT(
      [&] { testing::OpenLearner(Gdp(kSmall), {*on_small, *on_other}, Random(1), 1); },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("its policy is for 2 devices, the cluster of graph ")));
}

TEST(Gdp, ChangesTheLayersOfSuperpositionAlone) {
  Random random(7);
  const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 2});
  const auto evaluator = Simulated(problem);
  Method method = Gdp(fmt::format("{},superposition=true,learns=superposition,learning_rate=0.01", kSmall));
  std::shared_ptr<Policy> policy;
  method.make_policy = [&, make = method.make_policy](const Problem& of, const Random& drawn) {
    policy = make(of, drawn);
    return policy;
  };
  testing::OpenLearner learner(method, {*evaluator}, Random(1), 3);
  std::map<std::string, at::Tensor> before;
  for (const auto& each : policy->named_parameters()) before[each.key()] = each.value().detach().clone();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(learner.Update(1'000'000, 1).has_value());
  int changed = 0;
  for (const auto& each : policy->named_parameters()) {
    const bool gate = each.key().find("gate") != std::string::npos;
    EXPECT_EQ(torch::equal(before.at(each.key()), each.value()), !gate) << each.key();
    changed += gate;
  }
  EXPECT_EQ(changed, 4);  // the gates' weights and bias, and those of the norm after them in the one layer
}

TEST(Gdp, RefusesParametersThatContradictOneAnother) {
  EXPECT_THROW(Gdp("learns=superposition"), Error);
  EXPECT_THROW(Gdp("hidden=30,heads=4"), Error);
  EXPECT_THROW(Gdp("layers=0,superposition=true"), Error);
  EXPECT_THROW(Gdp("priorities=1"), Error);
  EXPECT_NO_THROW(Gdp("layers=0"));
}

}  // namespace
}  // namespace berth
