// For tests of what learns: an evaluator that says whatever a test wants.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "placement/evaluator.h"

namespace berth::testing {

class FakeEvaluator : public Evaluator {
 public:
  FakeEvaluator(const Problem& problem, std::function<Score(const PlanView&)> score)
      : Evaluator(problem), score_(std::move(score)) {
    facts_.model = EvaluatorFacts::Model::kMeasured;
    facts_.thread_safe = false;
  }
  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override {
    static const std::string name("fake");
    return name;
  }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<Workspace>(); }
  Score ScorePlan(const PlanView& plan, Workspace&, std::span<double>) const override { return score_(plan); }
  Timeline Trace(const PlanView&) const override { throw Error("there is no timeline"); }

 private:
  std::function<Score(const PlanView&)> score_;
  EvaluatorFacts facts_;
};

}  // namespace berth::testing
