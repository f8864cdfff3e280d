// For tests of what learns: methods and evaluators by name, and an evaluator that says whatever a test wants.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "learn/learner.h"
#include "placement/search.h"

namespace berth::testing {

// Of a catalog that `add` fills, like RegisterParallel.
inline std::unique_ptr<Evaluator> EvaluatorNamed(std::string_view name, void (*add)(EvaluatorCatalog&),
                                                 const Problem& problem) {
  EvaluatorCatalog catalog("evaluator");
  add(catalog);
  return catalog.Make(name, problem);
}

inline Method MethodNamed(std::string_view name) {
  MethodCatalog methods;
  RegisterMethods(methods);
  return methods.Make(name);
}

// Normally distributed, in double precision.
inline at::Tensor NormalTensor(Random& random, at::IntArrayRef sizes) {
  at::Tensor x = torch::empty(sizes, torch::kFloat64);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] = random.Normal();
  return x;
}

// The gradient of `function` by the parameters of a module in double precision is what differences say, in some numbers
// of each.
inline void ExpectTheGradientThatDifferencesSay(const torch::nn::Module& module,
                                                const std::function<at::Tensor()>& function, double near,
                                                const std::string& where) {
  const auto parameters = module.named_parameters();
  const auto gradient = torch::autograd::grad({function()}, module.parameters());
  const torch::NoGradGuard no_gradient;
  for (size_t p = 0; p < parameters.size(); ++p) {
    at::Tensor weight = parameters[p].value();
    for (int64_t i = 0; i < weight.numel(); i += 1 + weight.numel() / 7) {
      double& number = weight.data_ptr<double>()[i];
      const double before = number, step = 1e-6;
      number = before + step;
      const double above = function().item<double>();
      number = before - step;
      const double below = function().item<double>();
      number = before;
      EXPECT_NEAR(gradient[p].reshape({-1})[i].item<double>(), (above - below) / (2 * step), near)
          << parameters[p].key() << " " << i << " " << where;
    }
  }
}

class FakeEvaluator : public Evaluator {
 public:
  FakeEvaluator(const Problem& problem, std::function<Score(const PlanView&)> score, Objective objective = {})
      : Evaluator(problem), score_(std::move(score)) {
    facts_.objective = std::move(objective);
    facts_.model = MeasuredFacts{};
    facts_.exclusive = true;
    facts_.tracks_memory = false;  // no trace says what a run holds
  }
  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override {
    static const std::string name("fake");
    return name;
  }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<Workspace>(); }
  // An Error is a failure.
  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double>) const override {
    try {
      return score_(plan);
    } catch (const Error& error) {
      workspace.failure = error.what();
      return Score::Failed();
    }
  }
  Timeline Trace(const PlanView&) const override { throw Error("there is no timeline"); }

 private:
  std::function<Score(const PlanView&)> score_;
  EvaluatorFacts facts_;
};

// op0 -> op1 -> ... with tensors of no bytes and weights of its own for each.
inline Graph WeightChain(const std::vector<int64_t>& bytes) {
  GraphBuilder builder("weights");
  for (size_t v = 0; v < bytes.size(); ++v) {
    builder.AddOp(fmt::format("op{}", v), "Unit", {});
    builder.AddTensor(v, 0, {}, v + 1 == bytes.size());
    if (v > 0) builder.Consume(v - 1, v);
    builder.UseParameter(builder.AddParameter(bytes[v], fmt::format("weight{}", v)), v);
  }
  return builder.Build();
}

// Without a budget.
class OpenSearch : public Search {
 public:
  explicit OpenSearch(const Evaluator& evaluator)
      : Search({.evaluator = evaluator, .budget = {}, .random = Random(1)}) {}
};

using Evaluators = std::vector<std::reference_wrapper<const Evaluator>>;

struct OpenSearches {
  explicit OpenSearches(const Evaluators& evaluators) {
    for (const Evaluator& each : evaluators) own.push_back(std::make_unique<OpenSearch>(each));
    for (const auto& each : own) all.push_back(each.get());
  }
  std::vector<std::unique_ptr<OpenSearch>> own{};
  std::vector<Search*> all{};
};

// A learner with searches of its own.
class OpenLearner : private OpenSearches, public Learner {
 public:
  OpenLearner(const Method& method, const Evaluators& evaluators, const Random& random, int64_t planned_updates,
              Ranks* ranks = nullptr)
      : OpenSearches(evaluators), Learner(method, all, random, planned_updates, ranks) {}
};

// The mean costs of so many updates of training, and then what the policy's own answer costs.
inline std::vector<double> CostsOfTraining(const Method& method, const Evaluator& evaluator, const Random& random,
                                           int64_t updates, int64_t threads) {
  OpenLearner learner(method, {evaluator}, random, updates);
  std::vector<double> costs;
  for (int64_t i = 0; i < updates; ++i) costs.push_back(learner.Update(1'000'000, threads)->mean_cost);
  costs.push_back(learner.Greedy(0, threads).cost);
  return costs;
}

inline std::unique_ptr<Likelihood> RecallOne(const Policy& policy, const Task& task, const Episode& episode) {
  const Played played{.task = task, .episode = episode};
  return std::move(policy.Recall(std::span(&played, 1), 1)[0]);
}

}  // namespace berth::testing
