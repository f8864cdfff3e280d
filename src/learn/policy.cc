#include "learn/policy.h"

#include <algorithm>
#include <cmath>

namespace berth {

Task::Task(const Problem& of) : problem(of), units(of) {
  if (has_rules() && !units.contradiction()) otherwise_ = units.AllOn(DeviceId{0});
}

void Task::KeepRules(std::span<DeviceId> placement) const {
  if (has_rules() && !units.Legalise(placement)) std::ranges::copy(otherwise_, placement.begin());
}

void UseOneThread() { at::set_num_threads(1); }

size_t Decide(std::span<const float> log_probability, bool greedy, Random& random) {
  if (greedy) return static_cast<size_t>(std::ranges::max_element(log_probability) - log_probability.begin());
  return DecideBy(log_probability, random.Uniform());
}

size_t DecideBy(std::span<const float> log_probability, double uniform) {
  size_t chosen = 0;
  for (size_t d = 0; d < log_probability.size(); ++d) {
    const double probability = std::exp(static_cast<double>(log_probability[d]));
    if (probability <= 0) continue;
    chosen = d;  // of the last that is possible, where rounding leaves a rest
    uniform -= probability;
    if (uniform < 0) break;
  }
  return chosen;
}

}  // namespace berth
