// What `plan`, `compare` and `demo` share.
#pragma once

#include <atomic>
#include <string>

#include "cli/arguments.h"
#include "cli/catalogs.h"
#include "cli/console.h"
#include "cli/problem_factory.h"
#include "report/plan_report.h"

namespace berth {

ProblemStrings StringsOf(const ProblemArguments& arguments);

// Runs a planner of the catalog under a budget; shows progress.
PlanReport RunPlanner(const Setup& setup, Planner& planner, const SearchArguments& search, const Bound& bound,
                      const std::atomic<bool>* cancelled, ProgressLine& line);

PlanFile MakePlanFile(const Setup& setup, const PlanReport& report);

// Of a plan that a search ended with and that lacks memory: what is known, and what would be enough.
std::string HowToFit(const Problem& problem, const PlanReport& report);

// Each hint on a line of its own, under a title; empty without hints.
std::string HintLines(const Problem& problem);

// Draws the plan into an SVG file; nothing when `path` is empty.
void WritePicture(const std::string& path, const Problem& problem, const PlanReport& report);

}  // namespace berth
