#include <chrono>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "cli/saved_plan.h"
#include "export/trace.h"
#include "placement/placement_list.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

SavedPlan FromPlacement(const SimulateArguments& arguments, const Catalogs& catalogs) {
  const PlanOverrides& given = arguments.overrides;
  const ProblemArguments defaults;
  if (!given.model)
    throw Error("simulate: --placement needs to know of which model: berth simulate MODEL --placement ...");
  Setup setup = MakeSetup(catalogs, {.model = *given.model,
                                     .shapes = given.shapes,
                                     .format = given.format.value_or(""),
                                     .cluster = given.cluster.value_or(defaults.cluster),
                                     .costs = given.costs.value_or(defaults.costs),
                                     .evaluator = given.evaluator.value_or(defaults.evaluator)});
  const bool in_file = arguments.placement.starts_with('@');
  const std::string path = in_file ? arguments.placement.substr(1) : "--placement";
  PlanResult result;
  result.plan.device = ParsePlacementList(in_file ? ReadFile(path) : arguments.placement, path, *setup.problem);
  if (const auto violation = FindViolation(*setup.problem, result.plan.view())) throw Error("{}: {}", path, *violation);
  result.plan.SetCause("given");
  result.evaluations = 1;
  PlanReport report = MakePlanReport(*setup.evaluator, std::move(result), LowerBound(*setup.evaluator));
  report.planner = "given";
  return {.setup = std::move(setup), .report = std::move(report)};
}

}  // namespace

int Simulate(const SimulateArguments& arguments, const Catalogs& catalogs) {
  if (arguments.plan.empty() && arguments.placement.empty()) {
    throw Error("simulate: give --plan FILE, or MODEL and --placement 0,1,1,...");
  }
  CheckWritable(arguments.trace);
  CheckWritable(arguments.picture);
  const auto start = std::chrono::steady_clock::now();
  SavedPlan saved = arguments.plan.empty() ? FromPlacement(arguments, catalogs)
                                           : OpenPlan(arguments.plan, arguments.overrides, catalogs);
  PlanReport& report = saved.report;
  report.result.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Problem& problem = *saved.setup.problem;

  if (!arguments.trace.empty()) WriteFile(arguments.trace, WriteTrace(problem, report.timeline));
  WritePicture(arguments.picture, problem, report);
  if (arguments.json) {
    Print(DumpJson(SimulationJson(*saved.setup.evaluator, report)));
  } else {
    std::string text = PlanPage(*saved.setup.evaluator, report) + HintLines(problem);
    if (!arguments.trace.empty()) {
      text += fmt::format("\nThe timeline is in {}: open it in https://ui.perfetto.dev or chrome://tracing.\n",
                          Printable(arguments.trace));
    }
    Print(text);
  }
  return report.timeline.score.feasible ? 0 : 1;
}

}  // namespace berth
