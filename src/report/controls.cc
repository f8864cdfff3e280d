#include "report/controls.h"

#include <algorithm>
#include <utility>

#include "placement/objective_text.h"
#include "placement/set_up.h"

namespace berth {

std::vector<std::string> ControlPlanners(const Evaluator& evaluator, const PlannerCatalog& planners) {
  const bool cut_is_best = evaluator.facts().Is<SerialFacts>() && evaluator.problem().num_devices() == 2;
  std::vector<std::string> names;
  for (const Control& control : kControls) {
    if (control.simple || (control.planner == "mincut" && !cut_is_best)) continue;
    if (planners.Find(Spec::Parse(control.planner).name) != nullptr) names.emplace_back(control.planner);
  }
  return names;
}

Comparison RunControls(Conditions conditions, const PlannerCatalog& planners, int64_t evaluations,
                       const PlanReport* learned, double seconds) {
  const Evaluator& evaluator = conditions.evaluator;
  conditions.budget = {.evaluations = evaluations + Charged(evaluator, conditions.scores_beside()),
                       .cancelled = conditions.budget.cancelled};
  std::vector<ComparisonRow> rows;
  if (learned != nullptr) rows.push_back({.report = *learned});
  return ComparePlanners(conditions, planners, ControlPlanners(evaluator, planners), std::move(rows), seconds);
}

const PlanReport* FindControl(const Comparison& comparison, const Control& control) {
  const auto found = std::ranges::find_if(comparison.rows, [&](const ComparisonRow& row) {
    return row.report.planner == control.planner ||
           row.report.planner.starts_with(fmt::format("{}(device", control.planner));
  });
  return found == comparison.rows.end() ? nullptr : &found->report;
}

Json ControlsJson(const Problem& problem, const Comparison& controls) {
  Json list = Json::array();
  for (const ComparisonRow& row : controls.rows) {
    const Score& score = row.report.timeline.score;
    list.push_back({{"planner", row.report.planner},
                    {"score_seconds", problem.ToSeconds(score.time).value},
                    {"objective_value", ObjectiveNumber(problem, controls.objective, score.value())},
                    {"feasible", score.fits()},
                    {"optimal", row.report.optimal()},
                    {"evaluations", row.report.result.evaluations}});
  }
  return list;
}

}  // namespace berth
