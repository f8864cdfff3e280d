// A plan file and the problem that it names.
#pragma once

#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/problem_factory.h"
#include "report/plan_report.h"

namespace berth {

struct SavedPlan {
  Setup setup;
  PlanReport report;
};

// The plan is not what the constraints demand. Not the command line's mistake where the question was just that.
class BrokenPlan : public Error {
 public:
  using Broken = std::vector<std::pair<ConstraintText, std::string>>;
  BrokenPlan(const std::string& path, Broken how);
  Broken broken;  // which constraints, and how
};

// Reads the plan, makes its problem again with what `overrides` replaces, and simulates it. Warns of what is a what-if.
// A split file of the MSR data set does as well, with overrides.model as its instance. Throws BrokenPlan.
SavedPlan OpenPlan(const std::string& path, const PlanOverrides& overrides, const Catalogs& catalogs);

// The same for a placement as people hold it: "0,1,1" or "@file", of overrides.model, which must be there.
SavedPlan OpenPlacement(const std::string& placement, const PlanOverrides& overrides, const Catalogs& catalogs);

// The same, but a plan that was made by measuring gets the simulator of what ran it, unless `overrides` name an
// evaluator.
SavedPlan OpenToSimulate(const std::string& path, PlanOverrides overrides, const Catalogs& catalogs);

}  // namespace berth
