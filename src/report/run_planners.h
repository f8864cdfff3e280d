// Runs planners on one problem, and reports what each found.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "placement/bound.h"
#include "placement/planner.h"
#include "placement/single_devices.h"
#include "report/comparison.h"
#include "report/plan_report.h"

namespace berth {

// What is the same for all planners that are run on a problem.
struct Conditions {
  const Evaluator& evaluator;  // with its problem
  Bound bound;                 // LowerBound of it
  SingleDevices singles;
  // Of each planner. Under a measured evaluator its evaluations cover what is scored beside the search, too.
  Budget budget{};
  uint64_t seed = 1;
  std::vector<std::string> constraints{};  // that plans keep, as they were stated
  // Who hears of a planner's progress, by its name; may be empty.
  std::function<ProgressCallback(const std::string& planner)> progress{};

  // Scores beside a planner's own: what a weighted objective is relative to, each device alone, and its plan's
  // timeline.
  int64_t scores_beside() const { return evaluator.facts().objective.set_up + singles.evaluations() + 1; }
};

// A planner has no plan to answer with: its evaluator failed each time, the time was over before, or its MakePlan
// threw.
struct NoAnswer : Error {
  NoAnswer(const std::string& what, std::string without_name) : Error(what), why(std::move(without_name)) {}
  std::string why;  // without the planner's name
};

// Under the conditions' budget, of which no more than `seconds_left` are left. Throws NoAnswer, and Error where the
// budget holds no evaluation for the search.
PlanReport RunPlanner(const Conditions& conditions, Planner& planner,
                      double seconds_left = std::numeric_limits<double>::infinity());

// The simple rules (each device that differs from the others alone, one cut, and what experts do), then `planners`,
// each under the same budget; what is named twice runs once; `known` are rows that somebody has already. Of
// `seconds_for_all` each gets an equal share of what those before it left. Once the budget is cancelled, the running
// planner ends and those behind it are left out. One that has no answer is a refusal. Throws Error where no planner
// answers the problem.
Comparison ComparePlanners(const Conditions& conditions, const PlannerCatalog& catalog,
                           const std::vector<std::string>& planners, std::vector<ComparisonRow> known = {},
                           double seconds_for_all = std::numeric_limits<double>::infinity());

}  // namespace berth
