#include "cli/controls.h"

#include <utility>
#include <vector>

#include "cli/comparing.h"
#include "report/objective_text.h"

namespace berth {

Comparison RunControls(const Setup& setup, const Catalogs& catalogs, int64_t evaluations, uint64_t seed,
                       const std::atomic<bool>* cancelled, const PlanReport* learned, double seconds) {
  // Further names join where they are there and answer; single devices and one_cut come with every comparison.
  std::vector<std::string> planners = {"random", "random(bias=true)", "on(group=random,planner=random)",
                                       "local_search"};
  if (catalogs.planners.Find("cross_entropy") != nullptr) planners.emplace_back("cross_entropy");
  if (setup.evaluator->facts().Is<SerialFacts>() && setup.problem->num_devices() == 2) {
    planners.emplace_back("mincut");
  }
  std::vector<ComparisonRow> rows;
  if (learned != nullptr) rows.push_back({.report = *learned});
  return ComparePlanners(setup, catalogs, planners, {.budget = {.evaluations = evaluations}, .seed = seed}, cancelled,
                         std::move(rows), seconds);
}

Json ControlsJson(const Problem& problem, const Comparison& controls) {
  Json list = Json::array();
  for (const ComparisonRow& row : controls.rows) {
    const Score& score = row.report.timeline.score;
    list.push_back({{"planner", row.report.planner},
                    {"score_seconds", problem.ToSeconds(score.time).value},
                    {"objective_value", ObjectiveNumber(problem, controls.objective, score.value())},
                    {"feasible", score.fits()},
                    {"optimal", row.report.result.optimal},
                    {"evaluations", row.report.result.evaluations}});
  }
  return list;
}

}  // namespace berth
