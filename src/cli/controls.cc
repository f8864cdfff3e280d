#include "cli/controls.h"

#include <utility>
#include <vector>

#include "cli/comparing.h"
#include "report/controls.h"

namespace berth {

Comparison RunControls(const Setup& setup, const Catalogs& catalogs, int64_t evaluations, uint64_t seed,
                       const std::atomic<bool>* cancelled, const PlanReport* learned, double seconds) {
  std::vector<ComparisonRow> rows;
  if (learned != nullptr) rows.push_back({.report = *learned});
  return ComparePlanners(setup, catalogs, ControlPlanners(*setup.evaluator, catalogs.planners),
                         {.budget = {.evaluations = evaluations}, .seed = seed}, cancelled, std::move(rows), seconds);
}

}  // namespace berth
