// A plan file and the problem that it names.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "cli/problem_factory.h"
#include "report/plan_report.h"

namespace berth {

struct SavedPlan {
  Setup setup;
  PlanReport report;
};

// Reads the plan, makes its problem again with what `overrides` replaces, and simulates it. Warns of what is a what-if.
SavedPlan OpenPlan(const std::string& path, const PlanOverrides& overrides, const Catalogs& catalogs);

}  // namespace berth
