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
// A split file of the MSR data set does as well, with overrides.model as its instance.
SavedPlan OpenPlan(const std::string& path, const PlanOverrides& overrides, const Catalogs& catalogs);

// The same for a placement as people hold it: "0,1,1" or "@file", of overrides.model, which must be there.
SavedPlan OpenPlacement(const std::string& placement, const PlanOverrides& overrides, const Catalogs& catalogs);

}  // namespace berth
