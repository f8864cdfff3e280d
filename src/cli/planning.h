// What `plan`, `compare` and `demo` share.
#pragma once

#include <atomic>
#include <span>
#include <string>

#include "cli/arguments.h"
#include "cli/problem_factory.h"
#include "report/json.h"
#include "report/run_planners.h"

namespace berth {

// Finds out what is the same for all planners of a problem: its bound, and its devices alone. Progress is shown. The
// setup outlives them.
Conditions ConditionsOf(const Setup& setup, const SearchArguments& search, const std::atomic<bool>* cancelled);

PlanFile MakePlanFile(const Setup& setup, const PlanReport& report);

// Of a plan that a search ended with and that lacks memory: what is known, and what would be enough.
std::string HowToFit(const Problem& problem, const PlanReport& report);

// Each hint on a line of its own, under a title, and what disturbed measured times; empty without any.
std::string HintLines(const Evaluator& evaluator);
// Of measured times: `stolen_share` and `speed_change` of an answer in JSON.
void AddDisturbance(const Evaluator& evaluator, Json& json);

// Throws Error when no picture could be drawn at `path`, before the work; an empty path is fine. `other`: what else the
// command writes, in another file.
void CheckPicture(const std::string& path, const std::string& other = {}, std::span<const std::string> inputs = {});

// Draws the plan, after the results are out: nothing when `path` is empty. Throws Error when there is no picture in the
// end; what was in the file before is still there then. Ctrl-C ends the drawing, unless it has ended the search
// already.
void WritePicture(const std::string& path, const Problem& problem, const PlanReport& report,
                  const std::atomic<bool>* cancelled = nullptr);

}  // namespace berth
