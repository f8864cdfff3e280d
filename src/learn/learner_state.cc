#include "learn/learner_state.h"

#include <utility>

namespace berth {

Undo::Undo(LearnerState& state)
    : state_(state),
      rule_(state.rule),
      reference_(state.reference),
      updates_(state.updates),
      evaluations_(state.evaluations),
      failures_(state.failures) {
  for (const at::Tensor& parameter : state.policy->parameters()) {
    parameters_.push_back(parameter.detach().clone());
    const auto moments = state.adam->state().find(parameter.unsafeGetTensorImpl());
    if (moments == state.adam->state().end()) continue;
    adam_.emplace_back(static_cast<const torch::optim::AdamParamState&>(*moments->second));
    adam_.back().exp_avg(adam_.back().exp_avg().clone()).exp_avg_sq(adam_.back().exp_avg_sq().clone());
  }
}

void Undo::KeepCritics() {
  for (const auto& critic : state_.critics) {
    critics_.emplace_back();
    for (const at::Tensor& part : critic->State()) critics_.back().push_back(part.clone());
  }
}

void Undo::Restore() {
  const torch::NoGradGuard no_gradient;
  for (size_t i = 0; i < critics_.size(); ++i) {
    const std::vector<at::Tensor> parts = state_.critics[i]->State();
    for (size_t p = 0; p < parts.size(); ++p) parts[p].copy_(critics_[i][p]);
  }
  const std::vector<at::Tensor> parameters = state_.policy->parameters();
  state_.adam->state().clear();
  for (size_t p = 0; p < parameters.size(); ++p) {
    parameters[p].copy_(parameters_[p]);
    if (p >= adam_.size()) continue;
    state_.adam->state()[parameters[p].unsafeGetTensorImpl()] =
        std::make_unique<torch::optim::AdamParamState>(adam_[p]);
  }
  state_.rule = std::move(rule_);
  state_.reference = std::move(reference_);
  state_.updates = updates_;
  state_.evaluations = evaluations_;
  state_.failures = failures_;
}

}  // namespace berth
