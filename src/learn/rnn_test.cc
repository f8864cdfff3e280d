#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "learn/planners.h"
#include "learn/rnn_network.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

std::unique_ptr<Evaluator> SerialFor(const Problem& problem) {
  EvaluatorCatalog catalog("evaluator");
  RegisterSerial(catalog);
  return catalog.Make("serial(io=everywhere)", problem);
}

Method Rnn(const std::string& parameters) {
  MethodCatalog methods;
  RegisterMethods(methods);
  return methods.Make(fmt::format("rnn({})", parameters));
}

// An LSTM as it is written down, one number after another.
struct SlowLstm {
  std::vector<double> h, c;

  void Step(const std::vector<double>& x, const at::Tensor& input, const at::Tensor& recurrent,
            const at::Tensor& bias) {
    const size_t hidden = h.size();
    const auto gate = [&](size_t which, size_t i) {
      const auto row = static_cast<int64_t>(which * hidden + i);
      double sum = bias[row].item<double>();
      for (size_t k = 0; k < x.size(); ++k) sum += input[row][static_cast<int64_t>(k)].item<double>() * x[k];
      for (size_t k = 0; k < hidden; ++k) sum += recurrent[row][static_cast<int64_t>(k)].item<double>() * h[k];
      return sum;
    };
    const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
    std::vector<double> next_h(hidden), next_c(hidden);
    for (size_t i = 0; i < hidden; ++i) {
      next_c[i] = sigmoid(gate(1, i)) * c[i] + sigmoid(gate(0, i)) * std::tanh(gate(2, i));
      next_h[i] = sigmoid(gate(3, i)) * std::tanh(next_c[i]);
    }
    h = next_h;
    c = next_c;
  }
};

std::vector<double> Row(const at::Tensor& matrix, int64_t row) {
  std::vector<double> values;
  for (int64_t k = 0; k < matrix.size(1); ++k) values.push_back(matrix[row][k].item<double>());
  return values;
}

std::vector<double> Times(const at::Tensor& matrix, const std::vector<double>& x) {
  std::vector<double> y;
  for (int64_t i = 0; i < matrix.size(0); ++i) {
    double sum = 0;
    for (size_t k = 0; k < x.size(); ++k) sum += matrix[i][static_cast<int64_t>(k)].item<double>() * x[k];
    y.push_back(sum);
  }
  return y;
}

TEST(RnnNetwork, IsTheOneThatIsWrittenDown) {
  for (const bool both_ways : {false, true}) {
    const RnnShape shape{
        .features = 3, .devices = 2, .hidden = 4, .bidirectional = both_ways, .tanh_constant = 5, .temperature = 2};
    const RnnNetwork network(shape, Random(1));
    std::map<std::string, at::Tensor> weight;
    for (const auto& parameter : network.named_parameters()) weight[parameter.key()] = parameter.value().detach();
    const at::Tensor features = torch::tensor({{0.5, -1.0, 2.0}, {1.0, 0.0, -0.5}, {0.25, 0.75, 1.5}}, torch::kFloat32);
    const std::vector<int64_t> placement = {1, 0, 1};

    // The slow form: embed, read, attend, write.
    std::vector<std::vector<double>> x, read(3);
    for (int64_t i = 0; i < 3; ++i) {
      x.push_back(Times(weight["embed"], Row(features, i)));
      for (size_t k = 0; k < 4; ++k) x.back()[k] += weight["embed_bias"][static_cast<int64_t>(k)].item<double>();
    }
    SlowLstm decoder;
    const std::vector<std::string> encoders = both_ways
                                                  ? std::vector<std::string>{"encoder_forward", "encoder_backward"}
                                                  : std::vector<std::string>{"encoder"};
    for (const std::string& name : encoders) {
      const size_t own = 4 / encoders.size();
      SlowLstm encoder{.h = std::vector<double>(own), .c = std::vector<double>(own)};
      for (size_t i = 0; i < 3; ++i) {
        const size_t at = name == "encoder_backward" ? 2 - i : i;
        encoder.Step(x[at], weight[name + "_input"], weight[name + "_recurrent"], weight[name + "_bias"]);
        read[at].insert(read[at].end(), encoder.h.begin(), encoder.h.end());
      }
      decoder.h.insert(decoder.h.end(), encoder.h.begin(), encoder.h.end());
      decoder.c.insert(decoder.c.end(), encoder.c.begin(), encoder.c.end());
    }
    const RnnNetwork::Memory memory = network.Read(features);
    RnnNetwork::State state = network.Begin(memory, 1);
    const at::Tensor all =
        network.All(memory, torch::tensor({{0, 0, 1}, {1, 0, 1}}, torch::kInt64), torch::zeros({3, 2}))[1];
    int64_t previous = 2;
    for (int64_t step = 0; step < 3; ++step) {
      decoder.Step(Row(weight["device"], previous), weight["decoder_input"], weight["decoder_recurrent"],
                   weight["decoder_bias"]);
      const std::vector<double> query = Times(weight["query"], decoder.h);
      std::vector<std::vector<double>> keys;
      std::vector<double> attention;
      double whole = 0;
      for (const auto& each : read) {
        keys.push_back(Times(weight["key"], each));
        std::vector<double> compared;
        for (size_t k = 0; k < 4; ++k) compared.push_back(std::tanh(query[k] + keys.back()[k]));
        attention.push_back(std::exp(Times(weight["score"], compared)[0]));
        whole += attention.back();
      }
      std::vector<double> joined = decoder.h;
      for (size_t k = 0; k < 4; ++k) {
        double context = 0;
        for (size_t j = 0; j < 3; ++j) context += attention[j] / whole * keys[j][k];
        joined.push_back(context);
      }
      std::vector<double> logits = Times(weight["out"], joined);
      double sum = 0;
      for (double& logit : logits) sum += std::exp(logit = 5 * std::tanh(logit / 2));
      state.previous = torch::tensor({previous}, torch::kInt64);
      const at::Tensor next = network.Next(memory, state, torch::zeros({2}));
      for (int64_t d = 0; d < 2; ++d) {
        const double expected = logits[static_cast<size_t>(d)] - std::log(sum);
        EXPECT_NEAR(next[0][d].item<double>(), expected, 1e-5) << step << both_ways;
        EXPECT_NEAR(all[step][d].item<double>(), expected, 1e-5) << step << both_ways;
      }
      previous = placement[static_cast<size_t>(step)];
    }
  }
}

TEST(Rnn, RecallsTheProbabilitiesWithWhichItPlayed) {
  Random random(2);
  const Problem problem = testing::RandomProblem(random, {.ops = 15, .devices = 3, .forbidden = 0.3});
  const auto evaluator = SerialFor(problem);
  for (const char* const parameters : {"hidden=16", "mode=paper,hidden=16,colocation=none"}) {
    const Method method = Rnn(parameters);
    const auto policy = method.make_policy(problem, Random(3));
    const auto task = policy->Prepare(problem);
    testing::OpenSearch search(*evaluator);
    std::vector<Random> randoms{Random(1), Random(2), Random(3)};
    const auto episodes = policy->Play(*task, search, randoms, {});
    EXPECT_EQ(search.evaluations(), 3);
    std::vector<Played> played;
    for (const auto& episode : episodes) played.push_back({.task = *task, .episode = *episode});
    const auto likelihoods = policy->Recall(played, 1);
    for (size_t e = 0; e < episodes.size(); ++e) {
      ASSERT_EQ(likelihoods[e]->log_prob.size(0), std::ssize(episodes[e]->log_prob));
      for (size_t i = 0; i < episodes[e]->log_prob.size(); ++i) {
        EXPECT_NEAR(likelihoods[e]->log_prob[static_cast<int64_t>(i)].item<float>(), episodes[e]->log_prob[i], 1e-5);
      }
      EXPECT_EQ(FindViolation(problem, search.best().view()), std::nullopt);
    }
  }
}

// What it learns is more than what it would have drawn anyway.
TEST(Rnn, FindsABetterLikeliestPlacementThanItsUntrainedTwin) {
  Random random(5);
  double trained = 0, untrained = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const Problem problem = testing::RandomProblem(random, {.ops = 16, .devices = 2});
    const auto evaluator = SerialFor(problem);
    const auto greedy = [&](const char* rate) {
      testing::OpenLearner learner(Rnn(fmt::format("hidden=16,colocation=none,epochs=1,learning_rate={}", rate)),
                                   {*evaluator}, Random(seed), 40);
      for (int i = 0; i < 40; ++i) learner.Update(1'000'000, 2);
      return learner.Greedy(0).cost;
    };
    trained += std::log(greedy("0.01"));
    untrained += std::log(greedy("0"));
  }
  EXPECT_LT(std::exp((trained - untrained) / 2), 0.9);
}

// The same weights with another temperature are another policy.
TEST(Rnn, RefusesACheckpointOfOtherLogits) {
  const Problem problem = testing::Chain(4, 2);
  const auto evaluator = SerialFor(problem);
  const std::string path = ::testing::TempDir() + "berth-rnn-checkpoint";
  testing::OpenLearner learner(Rnn("hidden=8,temperature=2"), {*evaluator}, Random(1), 1);
  learner.Save(path);
  testing::OpenLearner same(Rnn("hidden=8,temperature=2,learning_rate=0.5"), {*evaluator}, Random(2), 1),
      other(Rnn("hidden=8"), {*evaluator}, Random(2), 1);
  EXPECT_NO_THROW(same.Load(path, true));
  EXPECT_THROW(other.Load(path, true), Error);
}

TEST(Rnn, SaysWhatItCannotDo) {
  const Problem chain = testing::Chain(4, 2), fork = testing::ForkJoin(5, 2);
  const auto evaluator = SerialFor(chain), on_fork = SerialFor(fork);
  EXPECT_THROW(testing::OpenLearner(Rnn("colocation=none"), {*evaluator, *on_fork}, Random(1), 1), Error);
  EXPECT_EQ(Rnn("colocation=none").refuses(testing::Chain(600, 2)),
            "it can place 512 groups and not 600: put ops together, as in on(group=merge,planner=rnn)");
  EXPECT_EQ(Rnn("").refuses(testing::Chain(600, 2)), std::nullopt) << "one group";
  EXPECT_THROW(Rnn("hidden=33"), Error);
}

}  // namespace
}  // namespace berth
