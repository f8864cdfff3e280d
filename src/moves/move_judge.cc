#include "moves/move_judge.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace berth {
namespace {

// What the model is to foresee of a change: -1 where it helps, however little, up to 0.5 where it makes the score worse
// by a percent or more; so that neither a lucky move nor a disaster outweighs all others.
double Badness(double change) {
  constexpr double kNoGain = -1e-12, kHopeless = 0.01;
  return change < kNoGain ? -1 : 0.5 * std::min(change / kHopeless, 1.0);
}

}  // namespace

MoveJudge::MoveJudge(size_t features) : features_(features), state_(features + features * features + 1, 0) {
  for (size_t i = 0; i < features; ++i) state_[features + i * features + i] = 1;
  state_.back() = 0.01;
}

double MoveJudge::Guess(std::span<const double> features, Random& random) const {
  BERTH_CHECK(features.size() == features_);
  double mean = 0, variance = 0;
  for (size_t a = 0; a < features_; ++a) {
    mean += weight()[a] * features[a];
    double row = 0;
    for (size_t b = 0; b < features_; ++b) row += covariance(a, b) * features[b];
    variance += features[a] * row;
  }
  return mean + std::sqrt(std::max(variance, 0.0)) * random.Normal();
}

void MoveJudge::Learn(std::span<const double> features, double change) {
  BERTH_CHECK(features.size() == features_);
  constexpr double kShare = 0.02, kLeastNoise = 1e-6;
  std::vector<double> gain(features_, 0);
  double error = Badness(change), explained = 0;
  for (size_t a = 0; a < features_; ++a) {
    error -= weight()[a] * features[a];
    for (size_t b = 0; b < features_; ++b) gain[a] += covariance(a, b) * features[b];
    explained += gain[a] * features[a];
  }
  double& noise = state_.back();
  noise = std::max((1 - kShare) * noise + kShare * error * error, kLeastNoise);
  const double variance = explained + noise;
  for (size_t a = 0; a < features_; ++a) {
    state_[a] += gain[a] * error / variance;
    for (size_t b = 0; b < features_; ++b) state_[features_ + a * features_ + b] -= gain[a] * gain[b] / variance;
  }
}

}  // namespace berth
