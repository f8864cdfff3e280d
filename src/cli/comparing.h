// Runs several planners on one problem, the simple rules among them.
#pragma once

#include <atomic>
#include <limits>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/problem_factory.h"
#include "report/comparison.h"

namespace berth {

// The simple rules (each device that differs from the others alone, one cut, and what experts do), then `planners`,
// each under the same budget; what is named twice runs once; `known` are rows that somebody has already. Of
// `seconds_for_all` each gets an equal share of what those before it left. Ctrl-C or SIGTERM ends the running planner
// and leaves out those behind it.
Comparison ComparePlanners(const Setup& setup, const Catalogs& catalogs, const std::vector<std::string>& planners,
                           const SearchArguments& search, const std::atomic<bool>* cancelled,
                           std::vector<ComparisonRow> known = {},
                           double seconds_for_all = std::numeric_limits<double>::infinity());

}  // namespace berth
