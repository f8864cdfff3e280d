#include "placement/set_up.h"

#include <limits>

#include "base/error.h"

namespace berth {

int64_t Charged(const Evaluator& evaluator, int64_t scores) {
  return evaluator.facts().Is<MeasuredFacts>() ? scores : 0;
}

Budget BudgetOfSearch(const Budget& budget, const Evaluator& evaluator, int64_t scores_beside) {
  const int64_t charged = Charged(evaluator, scores_beside);
  if (charged == 0 || budget.evaluations == std::numeric_limits<int64_t>::max()) return budget;
  if (budget.evaluations <= charged) {
    throw Error(
        "budget {}: of {}, {} evaluations go into what plans are compared with and what is reported; give at least "
        "{}evals",
        budget.ToString(), evaluator.name(), charged, charged + 1);
  }
  Budget left = budget;
  left.evaluations -= charged;
  return left;
}

}  // namespace berth
