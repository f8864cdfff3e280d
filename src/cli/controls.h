// Runs what a learned planner is held against (report/controls.h), each with as many evaluations.
#pragma once

#include <atomic>
#include <limits>
#include <string>

#include "cli/catalogs.h"
#include "cli/problem_factory.h"
#include "report/comparison.h"

namespace berth {

// With `learned` among them where it is given. `evaluations` is at least 1; all of them together take no more than
// `seconds`.
Comparison RunControls(const Setup& setup, const Catalogs& catalogs, int64_t evaluations, uint64_t seed,
                       const std::atomic<bool>* cancelled, const PlanReport* learned = nullptr,
                       double seconds = std::numeric_limits<double>::infinity());

}  // namespace berth
