#include "learn/scoring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "placement/wrapper.h"
#include "placement/wrappers.h"

namespace berth {
namespace {

class StrictEvaluator : public Wrapper {
 public:
  StrictEvaluator(std::shared_ptr<const Evaluator> of, bool reject_single_device)
      : Wrapper(of->name(), of), reject_single_device_(reject_single_device) {}

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    if (reject_single_device_ && std::ranges::count(plan.device, plan.device[0]) == std::ssize(plan.device)) {
      workspace.failure = "it is on a single device (reject_single)";
      return Score::Failed();
    }
    const Score score = AskInner(plan, static_cast<WrapperWorkspace&>(workspace), starts);
    if (score.failed() || std::isfinite(score.value())) return score;
    workspace.failure = "the score is not finite";
    return Score::Failed();
  }

 private:
  bool reject_single_device_;
};

}  // namespace

std::unique_ptr<const Evaluator> ForLearning(const Evaluator& evaluator, const ScoringOptions& options) {
  // Kept by the caller.
  std::shared_ptr<const Evaluator> of(std::shared_ptr<const void>(), &evaluator);
  std::unique_ptr<const Evaluator> strict =
      std::make_unique<const StrictEvaluator>(std::move(of), options.reject_single_device);
  if (options.runs > 1) strict = Repeated(std::move(strict), options.runs, options.kept);
  if (options.cache) strict = Cached(std::move(strict));
  return strict;
}

double CostOf(const Problem& problem, const Score& score, double memory_penalty) {
  if (score.failed()) return std::numeric_limits<double>::infinity();
  double cost = score.value();
  if (score.outcome == Outcome::kImpossible) {
    // Not by more, since nearly all draws may break the rule, and which of them are fast is still worth learning.
    constexpr double kBreaksARule = 1.1;
    cost = std::isinf(memory_penalty) ? memory_penalty : kBreaksARule * cost;
  }
  if (score.excess_bytes == 0) return cost;
  return cost + memory_penalty / problem.seconds_per_unit() * static_cast<double>(score.excess_bytes) / 1e9;
}

}  // namespace berth
