// A learned model of costs, which some methods train beside the policy.
#pragma once

#include <vector>

#include "learn/libtorch.h"
#include "learn/policy.h"

namespace berth {

// A model of what placements of one task cost, learned from their scores.
class Critic {
 public:
  virtual ~Critic() = default;

  // The cost that it foresees after each step, in the problem's time unit.
  virtual std::vector<double> Foresee(const Episode& episode) const = 0;
  // Learns from each step whose cost is known and finite.
  virtual void Learn(const Episode& episode) = 0;

  struct LossWeights {
    double reference;  // the cost that counts as 1, in time units
    double entropy;    // of the entropy bonus
    double share;      // of the planned updates, from 0 to 1: for schedules of its own
  };
  // To be minimised, differentiable by the policy's parameters: the cost that the model expects of the distributions
  // from which the episode was drawn, less the entropy bonus. The rule's loss, of what the model has not foreseen, is
  // added to it.
  virtual at::Tensor Loss(const Episode& episode, const Likelihood& likelihood, const LossWeights& weights) const = 0;

  // All that Learn changes, as views that share its memory, float64. For checkpoints.
  virtual std::vector<at::Tensor> State() = 0;
};

}  // namespace berth
