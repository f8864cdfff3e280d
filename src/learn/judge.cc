#include "learn/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace berth {

Judge::Judge(const Evaluator& evaluator, JudgeOptions options)
    : evaluator_(evaluator), options_(options), workspace_(evaluator.NewWorkspace()) {
  BERTH_CHECK(options.runs >= options.kept && options.kept >= 1, "{} runs of which {} are kept", options.runs,
              options.kept);
}

Verdict Judge::Ask(std::span<const DeviceId> device, std::span<double> starts) {
  ++found_.evaluations;
  const PlanView plan{.device = device};
  Verdict verdict;
  if (options_.reject_single_device && std::ranges::count(device, device[0]) == std::ssize(device)) {
    ++failures_;
    last_failure_ = "it is on a single device (reject_single)";
    return {.cost = std::numeric_limits<double>::infinity(), .failed = true};
  }
  if (options_.cache && starts.empty()) {
    std::string key(reinterpret_cast<const char*>(device.data()), device.size_bytes());
    auto [at, is_new] = known_.try_emplace(std::move(key));
    if (is_new) at->second = Measure(plan, starts);
    verdict = at->second;
  } else {
    verdict = Measure(plan, starts);
  }
  if (verdict.failed) {
    ++failures_;
    return verdict;
  }
  if (!has_best_ || Better(verdict.score, found_.score)) {
    has_best_ = true;
    found_.score = verdict.score;
    found_.plan.device.assign(device.begin(), device.end());
  }
  return verdict;
}

void Judge::Repeat(const Verdict& verdict) {
  ++found_.evaluations;
  if (verdict.failed) ++failures_;
}

Verdict Judge::Measure(const PlanView& plan, std::span<double> starts) {
  Verdict verdict;
  double time = 0, value = 0;
  try {
    for (int64_t run = 0; run < options_.runs && !verdict.failed; ++run) {
      verdict.score = evaluator_.ScorePlan(plan, *workspace_, starts);
      if (!std::isfinite(verdict.score.value())) {
        last_failure_ = "the score is not finite";
        verdict.failed = true;
      } else if (run >= options_.runs - options_.kept) {
        time += verdict.score.time;
        value += verdict.score.value();
      }
    }
  } catch (const Error& error) {
    last_failure_ = error.what();
    verdict.failed = true;
  }
  if (verdict.failed) {
    verdict.cost = std::numeric_limits<double>::infinity();
    return verdict;
  }
  if (options_.kept > 1) {
    verdict.score.time = time / static_cast<double>(options_.kept);
    if (verdict.score.objective) verdict.score.objective = value / static_cast<double>(options_.kept);
  }
  const double penalty = options_.memory_penalty / evaluator_.problem().seconds_per_unit();
  verdict.cost = verdict.score.value() + penalty * static_cast<double>(verdict.score.excess_bytes) / 1e9;
  return verdict;
}

PlanResult Judge::Take() {
  has_best_ = false;
  failures_ = 0;
  return std::exchange(found_, {});
}

}  // namespace berth
