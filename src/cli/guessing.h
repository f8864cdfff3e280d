// Whether a plan's gain survives what is guessed of the machines (report/guesses.h).
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "cli/catalogs.h"
#include "cli/problem_factory.h"
#include "report/comparison.h"
#include "report/guesses.h"
#include "report/plan_report.h"

namespace berth {

// What a plan is compared with: everything on the fastest device, or a simple rule's plan.
struct Rival {
  std::string name;
  Plan plan;
};
// `singles`: by device, as SingleDevices::times gives them. Nothing where no device runs everything.
std::optional<Rival> FastestDevice(const Problem& problem, const std::vector<double>& singles);
std::optional<Rival> BestSimple(const Problem& problem, const Comparison& comparison);
// The best of the fastest device and what the rules one_cut, human and metis answer, that is not the plan itself; where
// the plan is on one device, also of what a short search finds for guessed links that are twice as fast: a split, where
// one could pay. Nothing where VaryGuesses would have nothing to say. `seconds`: of the budget; a model so large that
// they afford few evaluations has the fastest device alone, as a search has that was cancelled.
std::optional<Rival> BestRival(const Setup& setup, const Catalogs& catalogs, const PlanReport& report,
                               const std::vector<double>& singles, double seconds,
                               const std::atomic<bool>* cancelled = nullptr);

// Scores the plan and the rival, as they are, with each guessed number at both ends of its range: 4 evaluations per
// number, which `seconds` of a budget bound. Nothing where that means nothing: without guesses, of machines and costs
// that a data set brings, of measured times, of a plan that does not fit or is the rival itself.
std::optional<GuessReport> VaryGuesses(const Setup& setup, const Catalogs& catalogs, const PlanReport& report,
                                       const std::optional<Rival>& rival, double seconds);

}  // namespace berth
