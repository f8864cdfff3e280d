// What a learned planner is held against: planners that learn nothing.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "report/comparison.h"
#include "report/json.h"
#include "report/run_planners.h"

namespace berth {

struct Control {
  std::string_view planner;
  std::string_view title;  // of its column in tables
  int rank;                // Table::Column's
  bool simple = false;     // a rule that every comparison has anyway; of "single" the best device counts
};
inline constexpr std::array<Control, 8> kControls = {{{"random", "random", 5},
                                                      {"random(bias=true)", "biased", 6},
                                                      {"on(group=random,planner=random)", "grouped", 7},
                                                      {"local_search", "climbing", 1},
                                                      {"cross_entropy", "cross-entropy", 3},
                                                      {"one_cut", "one cut", 4, true},
                                                      {"single", "one device", 2, true},
                                                      {"mincut", "optimum", 0}}};

// The planners of these that somebody has to ask besides the simple rules: those that are in the catalog, and a minimum
// cut where it is the optimum (`serial`, two devices).
std::vector<std::string> ControlPlanners(const Evaluator& evaluator, const PlannerCatalog& planners);

// Runs the controls beside the simple rules, with `learned` among them where it is given. Each has `evaluations` for
// its search, at least 1, whatever the conditions' budget says; all of them together take no more than `seconds`.
Comparison RunControls(Conditions conditions, const PlannerCatalog& planners, int64_t evaluations,
                       const PlanReport* learned = nullptr, double seconds = std::numeric_limits<double>::infinity());

// What a control found; null where it is not in the comparison.
const PlanReport* FindControl(const Comparison& comparison, const Control& control);

// A list of what each found.
Json ControlsJson(const Problem& problem, const Comparison& controls);

}  // namespace berth
