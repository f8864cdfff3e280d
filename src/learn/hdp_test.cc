#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "learn/hdp_features.h"
#include "learn/hdp_network.h"
#include "learn/planners.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Evaluator> ParallelFor(const Problem& problem) {
  return testing::EvaluatorNamed("parallel(contention=none,io=everywhere)", RegisterParallel, problem);
}

Method Hdp(const std::string& parameters) { return testing::MethodNamed(fmt::format("hdp({})", parameters)); }

constexpr const char* kSmallHdp = "nodes=ops,hidden=8,groups=5,grouper_hidden=8";

// Three ops on a line, of which the last two become one group.
HdpInput Line() {
  HdpInput input;
  input.order = {0, 1, 2};
  input.edges = {{0, 1}, {0, 2}, {1, 2}};
  input.of_group = {1, 10, 2, 20, 5, 60};
  input.group_columns = 2;
  return input;
}

TEST(HdpFeatures, OfAGroupAreItsEdgesAndWhatItsOpsHaveTogether) {
  HdpInput input = Line();
  const std::vector<int64_t> group = {2, 0, 0};
  input.scaled = true;  // each row over one more than its largest number
  EXPECT_THAT(GroupFeatures(input, group, 3),
              ElementsAre(0, 0, 0, 0, 0, 2 / 81.F, 7 / 81.F, 80 / 81.F,  // 2 edges from the last group
                          0, 0, 0, 0, 0, 0, 0, 0,                        // nobody's
                          2 / 11.F, 0, 0, 0, 0, 0, 1 / 11.F, 10 / 11.F));
  input.scaled = false;
  input.averaged = 1;
  EXPECT_THAT(GroupFeatures(input, group, 3), ElementsAre(0, 0, 0, 0, 0, 2 / 3.F, 3.5F, 80,  //
                                                          0, 0, 0, 0, 0, 0, 0, 0,            //
                                                          2 / 3.F, 0, 0, 0, 0, 0, 1, 10));
}

TEST(HdpFeatures, SlipWhereTheCodeDoes) {
  const Problem problem = testing::Chain(3, 2);
  const CoarseGraph graph = MakeCoarseGraph(problem, "none");
  const HdpInput code = MakeHdpInput(problem, graph, HdpFeatures::kCode),
                 slip = MakeHdpInput(problem, graph, HdpFeatures::kSlip);
  EXPECT_EQ(code.ops.columns, 46U);
  EXPECT_EQ(code.ops.value, slip.ops.value);
  ASSERT_EQ(code.group_columns, slip.group_columns);
  const size_t types = code.group_columns - 25;
  for (size_t op = 0; op < 3; ++op) {
    for (size_t k = 0; k < code.group_columns; ++k) {
      const auto at = [&](const HdpInput& input, size_t column) {
        return input.of_group[op * code.group_columns + column];
      };
      const float type = k < types ? at(code, k) : 0, shape = k < 25 ? at(code, types + k) : 0;
      EXPECT_EQ(at(slip, k), type + shape) << op << " " << k;
    }
  }
  // The middle one: its number, no shapes, one before and one after.
  const std::vector<float> middle(code.ops.value.begin() + 46, code.ops.value.begin() + 2 * 46);
  EXPECT_EQ(std::vector<float>(middle.begin() + 26, middle.begin() + 31), (std::vector<float>{0, -1, 2, 1, 0}));
}

TEST(HdpFeatures, LeaveOutWhatOnlyOneDeviceCanRun) {
  Random random(4);
  const Problem problem = testing::RandomProblem(random, {.ops = 30, .devices = 2, .forbidden = 0.5});
  const CoarseGraph graph = MakeCoarseGraph(problem, "none");
  const HdpInput input = MakeHdpInput(problem, graph, HdpFeatures::kExtended);
  EXPECT_LT(input.order.size(), graph.size());
  for (const int32_t node : input.order) {
    EXPECT_TRUE(graph.can_run(static_cast<size_t>(node), DeviceId{0}));
    EXPECT_TRUE(graph.can_run(static_cast<size_t>(node), DeviceId{1}));
  }
}

// The likelihood of a grouping and a placement against differences, in double precision, for the form of the code and
// for ours.
TEST(HdpNetwork, HasTheGradientThatDifferencesSay) {
  for (const bool ours : {false, true}) {
    HdpNetwork network({.features = 3,
                        .groups = 4,
                        .grouper_hidden = 5,
                        .placer = {.features = 6,
                                   .devices = 3,
                                   .hidden = 4,
                                   .bidirectional = true,
                                   .tanh_constant = 1.5,
                                   .temperature = 2,
                                   .embedded = ours,
                                   .gate_biases = ours,
                                   .aligned = ours}},
                       Random(1));
    network.to(torch::kFloat64);
    Random random(2);
    const auto numbers = [&](at::IntArrayRef sizes) { return testing::NormalTensor(random, sizes); };
    const at::Tensor ops = numbers({5, 3}), read = numbers({2, 4, 6}), noise = 0.3 * numbers({2, 4, 3});
    const at::Tensor group = torch::tensor({{0, 1, 3, 3, 2}, {1, 1, 0, 2, 2}}, torch::kInt64);
    const at::Tensor device = torch::tensor({{0, 1, 2, 1}, {2, 2, 0, 1}}, torch::kInt64);
    const auto likelihood = [&] {
      const RnnNetwork& placer = network.placer();
      return network.Group(ops).gather(1, group.t()).sum() +
             placer.All(placer.Read(read), device, torch::zeros({4, 3}), noise).gather(2, device.unsqueeze(2)).sum();
    };
    testing::ExpectTheGradientThatDifferencesSay(network, likelihood, 1e-7, ours ? "ours" : "as in the code");
  }
}

TEST(Hdp, RecallsTheProbabilitiesWithWhichItPlayed) {
  Random random(2);
  const Problem uneven = testing::RandomProblem(random, {.ops = 15, .devices = 3, .forbidden = 0.3});
  const Problem even = testing::ForkJoin(9, 3);
  for (const Problem* problem : {&uneven, &even}) {
    const auto evaluator = ParallelFor(*problem);
    for (const char* const more :
         {"", ",mode=code", ",mode=paper", ",groupings=2", ",symmetric=false,aligned=false,ordered=false"}) {
      const Method method = Hdp(fmt::format("{}{}", kSmallHdp, more));
      const auto policy = method.make_policy(*problem, Random(3));
      const auto task = policy->Prepare(*problem);
      task->class_of = InterchangeableDevices(*evaluator);
      for (const int64_t update : {0, 600, 800}) {
        testing::OpenSearch search(*evaluator);
        std::vector<Random> randoms{Random(1), Random(2), Random(3)};
        const auto episodes =
            policy->Play(*task, search, randoms, {.share = static_cast<double>(update) / 1000, .update = update});
        EXPECT_EQ(search.evaluations(), 3);
        std::vector<Played> played;
        for (const auto& episode : episodes) played.push_back({.task = *task, .episode = *episode});
        const auto likelihoods = policy->Recall(played, 1);
        for (size_t e = 0; e < episodes.size(); ++e) {
          ASSERT_EQ(episodes[e]->cost.size(), 1U);
          ASSERT_EQ(likelihoods[e]->log_prob.size(0), std::ssize(episodes[e]->log_prob));
          for (size_t i = 0; i < episodes[e]->log_prob.size(); ++i) {
            EXPECT_NEAR(likelihoods[e]->log_prob[static_cast<int64_t>(i)].item<float>(), episodes[e]->log_prob[i], 1e-4)
                << more << update;
          }
        }
        EXPECT_EQ(FindViolation(*problem, search.best().view()), std::nullopt);
      }
    }
  }
}

// How many different placements there are among those that are drawn of one grouping.
size_t Different(const Policy& policy, const Problem& problem, const Evaluator& evaluator, int64_t update) {
  const auto task = policy.Prepare(problem);
  testing::OpenSearch search(evaluator);
  std::vector<Random> randoms;
  for (uint64_t i = 0; i < 12; ++i) randoms.emplace_back(i);
  std::set<std::vector<float>> drawn;
  for (const auto& episode : policy.Play(*task, search, randoms, {.update = update})) drawn.insert(episode->log_prob);
  return drawn.size();
}

TEST(Hdp, EndsItsNoiseAndItsDrawingWhenItIsTold) {
  const Problem problem = testing::ForkJoin(9, 2);
  const auto evaluator = ParallelFor(problem);
  const auto policy = Hdp(fmt::format("{},groupings=1,noise=0.5,noise_until=20,sample_until=10", kSmallHdp))
                          .make_policy(problem, Random(3));
  EXPECT_EQ(Different(*policy, problem, *evaluator, 9), 12U);
  EXPECT_EQ(Different(*policy, problem, *evaluator, 19), 12U) << "the same devices perhaps, with noise in the logits";
  EXPECT_EQ(Different(*policy, problem, *evaluator, 20), 1U);
}

TEST(Hdp, WritesDevicesThatMayBeSwappedInTheirOrder) {
  const Problem problem = testing::ForkJoin(9, 3);
  const auto evaluator = ParallelFor(problem);
  const auto policy = Hdp(kSmallHdp).make_policy(problem, Random(3));
  const auto task = policy->Prepare(problem);
  const size_t grouped = task->units.size();
  for (const bool known : {false, true}) {
    if (known) task->class_of = {DeviceId{0}, DeviceId{0}, DeviceId{0}};
    testing::OpenSearch search(*evaluator);
    std::vector<Random> randoms{Random(1)};
    const auto episodes = policy->Play(*task, search, randoms, {});
    // The first group can only have the first device.
    EXPECT_EQ(std::exp(episodes[0]->log_prob[grouped]) == 1, known);
    EXPECT_LT(std::exp(episodes[0]->log_prob.back()), 1);
  }
}

// What it learns is more than what it would have drawn anyway.
TEST(Hdp, FindsABetterLikeliestPlacementThanItsUntrainedTwin) {
  Random random(5);
  double trained = 0, untrained = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Problem problem = testing::RandomProblem(random, {.ops = 16, .devices = 2});
    const auto evaluator = ParallelFor(problem);
    const auto greedy = [&](const char* rate) {
      const Method method = Hdp(fmt::format("{},learning_rate={}", kSmallHdp, rate));
      return testing::CostsOfTraining(method, *evaluator, Random(seed), 40, 2).back();
    };
    trained += std::log(greedy("0.01"));
    untrained += std::log(greedy("0"));
  }
  EXPECT_LT(std::exp((trained - untrained) / 3), 0.9);
}

TEST(Hdp, GivesTheSameBytesOnAnyNumberOfThreads) {
  Random random(6);
  const Problem problem = testing::RandomProblem(random, {.ops = 40, .devices = 3});
  const auto evaluator = ParallelFor(problem);
  for (const char* const mode : {"best", "code", "paper"}) {
    const Method method = Hdp(fmt::format("mode={},{}", mode, kSmallHdp));
    const auto costs = [&](int64_t threads) {
      return testing::CostsOfTraining(method, *evaluator, Random(1), 6, threads);
    };
    const std::vector<double> alone = costs(1);
    EXPECT_EQ(alone, costs(2)) << mode;
    EXPECT_EQ(alone, costs(5)) << mode;
  }
}

TEST(Hdp, ServesOtherGraphsWhereColumnsMeanTheSame) {
  const Problem small = testing::Chain(6, 2), large = testing::ForkJoin(9, 2), other = testing::Chain(6, 3);
  const auto on_small = ParallelFor(small), on_large = ParallelFor(large), on_other = ParallelFor(other);
  testing::OpenLearner learner(Hdp(kSmallHdp), {*on_small, *on_large}, Random(1), 4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(learner.Update(1'000'000, 2).has_value());
  EXPECT_THAT([&] { testing::OpenLearner(Hdp(kSmallHdp), {*on_small, *on_other}, Random(1), 1); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("its policy is for 2 devices")));
}

// As many op types, which are others, or come in another order.
TEST(Hdp, RefusesOtherOpTypesWhereItReadsThemByNumber) {
  const auto chain = [](const std::vector<const char*>& types) {
    GraphBuilder builder("types");
    for (size_t i = 0; i < types.size(); ++i) {
      builder.AddOp("", types[i], {.flops = 1});
      if (i > 0) builder.Consume(builder.AddTensor(i - 1, 4), i);
    }
    return testing::UnitProblem(builder.Build(), 2);
  };
  const Problem conv = chain({"Conv", "Relu", "Conv", "Relu"}), longer = chain({"Conv", "Relu", "Relu"}),
                other = chain({"MatMul", "Relu", "Relu"}), swapped = chain({"Relu", "Conv", "Conv"});
  const std::string small = kSmallHdp;
  const auto code = Hdp(small + ",features=code").make_policy(conv, Random(1));
  EXPECT_NO_THROW(code->Prepare(longer));
  for (const Problem* problem : {&other, &swapped}) {
    try {
      code->Prepare(*problem);
      ADD_FAILURE() << "it took the graph";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("reads op types by their number"));
    }
    EXPECT_NE(Hdp(small + ",features=code").make_policy(*problem, Random(1))->shape(), code->shape());
  }
  EXPECT_NO_THROW(Hdp(small).make_policy(conv, Random(1))->Prepare(other));
}

TEST(Hdp, RefusesACheckpointOfAnotherPolicy) {
  const Problem problem = testing::Chain(4, 2);
  const auto evaluator = ParallelFor(problem);
  const std::string path = ::testing::TempDir() + "berth-hdp-checkpoint";
  testing::OpenLearner learner(Hdp(kSmallHdp), {*evaluator}, Random(1), 1);
  learner.Save(path);
  const auto load = [&](const std::string& parameters) {
    testing::OpenLearner(Hdp(parameters), {*evaluator}, Random(2), 1).Load(path, true);
  };
  EXPECT_NO_THROW(load(fmt::format("{},learning_rate=0.5", kSmallHdp)));
  EXPECT_THROW(load(fmt::format("{},temperature=2", kSmallHdp)), Error);
  EXPECT_THROW(load(fmt::format("{},features=code", kSmallHdp)), Error);
  EXPECT_THROW(load("nodes=ops,hidden=8,groups=6,grouper_hidden=8"), Error);
  EXPECT_THROW(Hdp("hidden=33"), Error);
}

// As in the code, a placement that does not fit lasts as long as the failing signal says, and no second per GB more.
TEST(Hdp, TakesWhatDoesNotFitForAFailureWhereItIsTold) {
  const Problem problem = testing::Chain(4, 2);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView& plan) {
    if (plan.device[0] == DeviceId{1}) return Score{.time = 1};
    return Score{.time = 1, .outcome = Outcome::kTooBig, .excess_bytes = 1'000'000'000};
  });
  for (const bool told : {false, true}) {
    const Method method =
        Hdp(fmt::format("{},symmetric=false{}", kSmallHdp, told ? ",failing_signal=100,reward=square_root" : ""));
    const auto policy = method.make_policy(problem, Random(3));
    const auto task = policy->Prepare(problem);
    testing::OpenSearch search(evaluator);
    std::vector<Random> randoms;
    for (uint64_t i = 0; i < 12; ++i) randoms.emplace_back(i);
    std::set<double> costs;
    for (const auto& episode :
         policy->Play(*task, search, randoms, {.memory_penalty = method.scoring.memory_penalty})) {
      costs.insert(episode->cost[0]);
    }
    const double excess = told ? std::numeric_limits<double>::infinity() : 1 + 2 / problem.seconds_per_unit();
    EXPECT_THAT(costs, ElementsAre(1, excess));
  }
}

}  // namespace
}  // namespace berth
