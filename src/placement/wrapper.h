// Evaluators that ask another one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "placement/evaluator.h"

namespace berth {

// The workspace of what is wrapped, inside that of the wrapper.
struct WrapperWorkspace : Workspace {
  explicit WrapperWorkspace(std::unique_ptr<Workspace> wrapped) : inner(std::move(wrapped)) {
    inner->stop = [this] { return stop && stop(); };
  }
  // Before the inner evaluator is asked: it hears what the wrapper was told.
  Workspace& Told() {
    inner->evaluation = evaluation;
    return *inner;
  }
  // After it: what it says of a failure is passed on.
  Score Heard(const Score& score) {
    if (score.failed()) failure = inner->failure;
    return score;
  }

  const std::unique_ptr<Workspace> inner;
};

// Forwards all; what derives from it changes scores. Sessions score in full.
class Wrapper : public Evaluator {
 public:
  // `inner` is shared: a pointer that owns nothing will do where somebody else keeps it.
  Wrapper(std::string name, std::shared_ptr<const Evaluator> inner)
      : Evaluator(inner->problem()), inner_(std::move(inner)), facts_(inner_->facts()), name_(std::move(name)) {}

  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override {
    return std::make_unique<WrapperWorkspace>(inner_->NewWorkspace());
  }
  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts = {}) const override {
    return AskInner(plan, static_cast<WrapperWorkspace&>(workspace), starts);
  }
  Timeline Trace(const PlanView& plan) const override { return inner_->Trace(plan); }
  Disturbance disturbance() const override { return inner_->disturbance(); }

 protected:
  Score AskInner(const PlanView& plan, WrapperWorkspace& workspace, std::span<double> starts) const {
    return workspace.Heard(inner_->ScorePlan(plan, workspace.Told(), starts));
  }

  const std::shared_ptr<const Evaluator> inner_;
  EvaluatorFacts facts_;

 private:
  std::string name_;
};

}  // namespace berth
