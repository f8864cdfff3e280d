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
  return testing::EvaluatorNamed("serial(io=everywhere)", RegisterSerial, problem);
}

Method Rnn(const std::string& parameters) { return testing::MethodNamed(fmt::format("rnn({})", parameters)); }

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

// What the released code of 2018 has instead of a bias for each gate: one number for all forget gates.
at::Tensor BiasesOf(const std::map<std::string, at::Tensor>& weight, const std::string& name) {
  const auto own = weight.find(name + "_bias");
  if (own != weight.end()) return own->second;
  const int64_t hidden = weight.at(name + "_recurrent").size(1);
  at::Tensor biases = torch::zeros({4 * hidden}, torch::kFloat64);
  const at::Tensor forget = weight.at(name.substr(0, name.find('_')) + "_forget");
  biases.slice(0, hidden, 2 * hidden).fill_(forget.item<double>());
  return biases;
}

TEST(RnnNetwork, IsTheOneThatIsWrittenDown) {
  struct Form {
    bool both_ways, embedded, aligned, noisy;
  };
  for (const auto& [both_ways, embedded, aligned, noisy] :
       {Form{false, true, false, false}, Form{true, true, false, false}, Form{true, false, false, true},
        Form{true, true, true, true}}) {
    RnnNetwork network({.features = 3,
                        .devices = 2,
                        .hidden = 4,
                        .bidirectional = both_ways,
                        .tanh_constant = 5,
                        .temperature = 2,
                        .embedded = embedded,
                        .gate_biases = embedded,
                        .aligned = aligned},
                       Random(1));
    network.to(torch::kFloat64);
    std::map<std::string, at::Tensor> weight;
    for (const auto& parameter : network.named_parameters()) weight[parameter.key()] = parameter.value().detach();
    EXPECT_EQ(weight.contains("encoder_forget"), !embedded);
    if (!embedded) weight["encoder_forget"].fill_(0.7);
    const at::Tensor features = torch::tensor({{0.5, -1.0, 2.0}, {1.0, 0.0, -0.5}, {0.25, 0.75, 1.5}}, torch::kFloat64);
    const at::Tensor noise = torch::tensor({{0.3, -0.2}, {0.0, 1.0}, {-0.5, 0.1}}, torch::kFloat64);
    const std::vector<int64_t> placement = {1, 0, 1};

    // The slow form: embed, read, attend, write.
    std::vector<std::vector<double>> x, read(3);
    for (int64_t i = 0; i < 3; ++i) {
      x.push_back(Row(features, i));
      if (!embedded) continue;
      x.back() = Times(weight["embed"], x.back());
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
        encoder.Step(x[at], weight[name + "_input"], weight[name + "_recurrent"], BiasesOf(weight, name));
        read[at].insert(read[at].end(), encoder.h.begin(), encoder.h.end());
      }
      decoder.h.insert(decoder.h.end(), encoder.h.begin(), encoder.h.end());
      decoder.c.insert(decoder.c.end(), encoder.c.begin(), encoder.c.end());
    }
    std::vector<std::vector<double>> keys;
    for (const auto& each : read) keys.push_back(Times(weight["key"], each));

    const at::Tensor drawn = torch::tensor({{0, 0, 1}, {1, 0, 1}}, torch::kInt64), mask = torch::zeros({3, 2});
    const at::Tensor own_noise = noisy ? torch::stack({-2 * noise, noise}) : at::Tensor();
    const RnnNetwork::Memory memory = network.Read(features);
    RnnNetwork::State state = network.Begin(memory, 1);
    // The same groups for both placements, and each its own.
    const at::Tensor shared = network.All(memory, drawn, mask, own_noise)[1];
    const at::Tensor own =
        network.All(network.Read(torch::stack({features.flip(0), features})), drawn, mask, own_noise)[1];
    int64_t previous = 2;
    for (int64_t step = 0; step < 3; ++step) {
      std::vector<double> input = Row(weight["device"], previous);
      const std::vector<double>& here = keys[static_cast<size_t>(step)];
      if (aligned) input.insert(input.end(), here.begin(), here.end());
      decoder.Step(input, weight["decoder_input"], weight["decoder_recurrent"], BiasesOf(weight, "decoder"));
      const std::vector<double> query = Times(weight["query"], decoder.h);
      std::vector<double> attention;
      double whole = 0;
      for (const auto& key : keys) {
        std::vector<double> compared;
        for (size_t k = 0; k < 4; ++k) compared.push_back(std::tanh(query[k] + key[k]));
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
      for (double& logit : logits) logit = 5 * std::tanh(logit / 2);
      const double size = std::sqrt((logits[0] * logits[0] + logits[1] * logits[1]) / 2);
      double sum = 0;
      for (size_t d = 0; d < 2; ++d) {
        if (noisy) logits[d] += size * noise[step][static_cast<int64_t>(d)].item<double>();
        sum += std::exp(logits[d]);
      }
      state.previous = torch::tensor({previous}, torch::kInt64);
      const at::Tensor next =
          network.Next(memory, state, torch::zeros({2}), noisy ? noise[step].unsqueeze(0) : at::Tensor());
      for (int64_t d = 0; d < 2; ++d) {
        const double expected = logits[static_cast<size_t>(d)] - std::log(sum);
        for (const at::Tensor& row : {next[0], shared[step], own[step]}) {
          EXPECT_NEAR(row[d].item<double>(), expected, 1e-12) << step << both_ways << embedded << aligned;
        }
      }
      previous = placement[static_cast<size_t>(step)];
    }
  }
}

TEST(Rnn, RecallsTheProbabilitiesWithWhichItPlayed) {
  Random random(2);
  const Problem problem = testing::RandomProblem(random, {.ops = 15, .devices = 3, .forbidden = 0.3});
  const auto evaluator = SerialFor(problem);
  for (const char* const parameters : {"hidden=16", "mode=paper,hidden=16,colocation=none", "mode=hsdag,hidden=16"}) {
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
      const Method method = Rnn(fmt::format("hidden=16,colocation=none,epochs=1,learning_rate={}", rate));
      return testing::CostsOfTraining(method, *evaluator, Random(seed), 40, 2).back();
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
  EXPECT_THAT([&] { testing::OpenLearner(Rnn("colocation=none"), {*evaluator, *on_fork}, Random(1), 1); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("train on graphs with as many groups")));
  EXPECT_EQ(Rnn("colocation=none").refuses(testing::Chain(600, 2)),
            "it can place 512 groups and not 600: put ops together, as in on(group=merge,planner=rnn)");
  EXPECT_EQ(Rnn("").refuses(testing::Chain(600, 2)), std::nullopt) << "one group";
  EXPECT_THROW(Rnn("hidden=33"), Error);
}

}  // namespace
}  // namespace berth
