// What a learned planner is held against: planners that learn nothing, each with as many evaluations.
#pragma once

#include <atomic>
#include <limits>
#include <string>

#include "cli/catalogs.h"
#include "cli/problem_factory.h"
#include "report/comparison.h"
#include "report/json.h"

namespace berth {

// Random placements of ops and of random groups, each single device, one cut, hill climbing, cross-entropy where it is
// there, and the optimum where a minimum cut gives it (`serial`, two devices); with `learned` among them where it is
// given. `evaluations` is at least 1; all of them together take no more than `seconds`.
Comparison RunControls(const Setup& setup, const Catalogs& catalogs, int64_t evaluations, uint64_t seed,
                       const std::atomic<bool>* cancelled, const PlanReport* learned = nullptr,
                       double seconds = std::numeric_limits<double>::infinity());

// A list of what each found.
Json ControlsJson(const Problem& problem, const Comparison& controls);

}  // namespace berth
