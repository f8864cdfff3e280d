#include "cli/saved_plan.h"

#include <filesystem>

#include "cli/console.h"

namespace berth {
namespace {

// Files that a plan names by a relative path are looked for from here, then from where the plan lies.
std::string Located(const std::string& name, const std::string& plan_path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (name.empty() || fs::exists(name, ignored)) return name;
  const fs::path beside = fs::path(plan_path).parent_path() / name;
  return fs::is_regular_file(beside, ignored) ? beside.string() : name;
}

}  // namespace

SavedPlan OpenPlan(const std::string& path, const PlanOverrides& overrides, const Catalogs& catalogs) {
  const PlanFile file = ReadPlanFile(path);
  ProblemStrings strings = {.model = overrides.model.value_or(Located(file.model, path)),
                            .shapes = overrides.shapes.empty() ? file.shapes : overrides.shapes,
                            .format = overrides.format.value_or(file.format),
                            .cluster = overrides.cluster.value_or(Located(file.cluster, path)),
                            .costs = overrides.costs.value_or(file.costs),
                            .evaluator = overrides.evaluator.value_or(file.evaluator)};
  Setup setup = [&] {
    try {
      return MakeSetup(catalogs, strings);
    } catch (const Error& error) {
      if (overrides.model || overrides.cluster || overrides.costs || overrides.evaluator) throw;
      throw Error("{}: {}", path, error.what());
    }
  }();
  std::vector<std::string> warnings;
  PlanResult result;
  result.plan = BindPlan(file, *setup.problem, warnings);
  for (const std::string& warning : warnings) Warn(warning);
  if (!setup.evaluator->facts().uses_priorities && (!result.plan.priority.empty() || result.plan.sequence)) {
    result.plan.priority.clear();
    result.plan.sequence.reset();
    Warn(fmt::format("{} has no use for the plan's order of ops", setup.evaluator->name()));
  }
  result.optimal = file.optimal && warnings.empty() && setup.evaluator->name() == file.evaluator;
  result.evaluations = 1;
  PlanReport report = MakePlanReport(*setup.evaluator, std::move(result), LowerBound(*setup.evaluator));
  report.planner = file.planner;
  report.seed = file.seed;
  return {.setup = std::move(setup), .report = std::move(report)};
}

}  // namespace berth
