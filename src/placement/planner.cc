#include "placement/planner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace berth {

Budget Budget::Parse(std::string_view text) {
  Budget budget;
  // False for what is neither, or there twice.
  const auto take = [&](std::string_view part) {
    constexpr std::string_view kEvals = "evals";
    const Budget none;
    if (part.ends_with(kEvals)) {
      const std::string_view number = part.substr(0, part.size() - kEvals.size());
      int64_t value = 0;
      const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
      const bool counts = code == std::errc() && end == number.data() + number.size() && value > 0;
      return counts && std::exchange(budget.evaluations, value) == none.evaluations;
    }
    try {
      const double limit = ParseSeconds(part).value;
      return limit > 0 && std::exchange(budget.seconds, limit) == none.seconds;
    } catch (const Error&) {
      return false;  // said below, with an example that fits a budget
    }
  };
  const std::vector<std::string> parts = SplitList(text);
  if (parts.empty() || !std::ranges::all_of(parts, take)) {
    throw Error("'{}' is not a budget: write 200evals, 10s, or both as 200evals,10s", text);
  }
  return budget;
}

std::string Budget::ToString() const {
  std::vector<std::string> parts;
  if (evaluations < std::numeric_limits<int64_t>::max()) parts.push_back(fmt::format("{}evals", evaluations));
  if (std::isfinite(seconds)) parts.push_back(fmt::format("{}s", seconds));
  return fmt::format("{}", fmt::join(parts, ","));
}

SearchEnd HowItEnded(const Budget& budget, const PlanResult& result) {
  if (result.optimal) return SearchEnd::kItself;
  // What the clock decided is said before evaluations, since another run may find another plan.
  const bool by_clock = result.cut_by == SearchEnd::kClock && std::isfinite(budget.seconds);
  if (result.evaluations >= budget.evaluations && !by_clock) return SearchEnd::kEvaluations;
  if (budget.cancelled != nullptr && budget.cancelled->load()) return SearchEnd::kInterrupted;
  if (by_clock) return SearchEnd::kClock;
  // Without a limit of evaluations it was the planner's own that cut a part.
  const bool counted = budget.evaluations < std::numeric_limits<int64_t>::max();
  if (result.cut_by == SearchEnd::kEvaluations && counted) return SearchEnd::kEvaluations;
  // What is left may be too little for one more score.
  const double left = budget.seconds - result.wall_seconds;
  return left <= result.seconds_per_evaluation ? SearchEnd::kClock : SearchEnd::kItself;
}

bool NoPlanIsBetter(const Planner& planner, const PlanResult& result, const EvaluatorFacts& evaluator) {
  return result.optimal && (planner.facts().space == PlannerFacts::Space::kSequence || !evaluator.uses_priorities);
}

}  // namespace berth
