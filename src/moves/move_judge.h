// Learns, from the scores of moves, which of the next ones are worth a score.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/random.h"

namespace berth {

// A linear model of how much worse a move makes a score, by Bayesian regression (recursive least squares): it knows how
// little it knows, and guesses from its posterior distribution (Thompson 1933), so that what was never tried gets its
// turn. What it learns is about features, not about ops: a hundred moves teach it, and it serves any graph.
class MoveJudge {
 public:
  explicit MoveJudge(size_t features);

  // What a move with these features may do: less is better. O(features^2).
  double Guess(std::span<const double> features, Random& random) const;
  // `change`: what the move did to the score, relative to the score before; infinity where it failed. O(features^2).
  void Learn(std::span<const double> features, double change);

  // All that Learn changes. For checkpoints.
  std::span<double> state() { return state_; }

 private:
  std::span<const double> weight() const { return std::span(state_).first(features_); }
  double covariance(size_t a, size_t b) const { return state_[features_ + a * features_ + b]; }

  size_t features_;
  std::vector<double> state_;  // weights, their covariance, and the variance of what they do not explain
};

}  // namespace berth
