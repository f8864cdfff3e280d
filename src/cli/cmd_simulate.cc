#include <filesystem>

#include "base/file.h"
#include "base/stopwatch.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "cli/saved_plan.h"
#include "export/trace.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
int Simulate(SimulateArguments arguments, const Catalogs& catalogs) {
  // Without a placement it can only be a plan, whatever it is called; a model that ships is no file.
  std::error_code ignored;
  const bool is_plan =
      arguments.plan.empty() && arguments.placement.empty() &&
      (arguments.plan_or_model.ends_with(".json") || std::filesystem::exists(arguments.plan_or_model, ignored));
  if (is_plan) arguments.plan = arguments.plan_or_model;
  if (!is_plan && !arguments.plan_or_model.empty()) arguments.overrides.model = arguments.plan_or_model;
  if (arguments.plan.empty() && arguments.placement.empty()) {
    throw Error("simulate: give a plan file (plan.json), or MODEL and --placement 0,1,1,...");
  }
  if (arguments.plan.empty() && !arguments.overrides.model) {
    throw Error("simulate: --placement needs a model: berth simulate MODEL --placement ...");
  }
  const std::vector<std::string> files = arguments.overrides.FilesWith(arguments.plan, arguments.placement);
  CheckWritable(arguments.trace, files);
  CheckPicture(arguments.picture, arguments.trace, files);
  const Stopwatch watch;
  SavedPlan saved = arguments.plan.empty() ? OpenPlacement(arguments.placement, arguments.overrides, catalogs)
                                           : OpenPlan(arguments.plan, arguments.overrides, catalogs);
  for (const std::string& output : {arguments.trace, arguments.picture}) {
    CheckWritable(output, saved.setup.strings.Files());  // those that the plan names
  }
  PlanReport& report = saved.report;
  report.result.wall_seconds = watch.seconds();
  const Problem& problem = *saved.setup.problem;

  if (!arguments.trace.empty()) WriteFile(arguments.trace, WriteTrace(problem, report.timeline));
  if (arguments.json) {
    Json json = SimulationJson(*saved.setup.evaluator, report);
    AddDisturbance(*saved.setup.evaluator, json);
    Print(DumpJson(json));
  } else {
    std::string text = PlanPage(*saved.setup.evaluator, report) + HintLines(*saved.setup.evaluator);
    if (!arguments.trace.empty()) {
      text += "\n" + Line(fmt::format("The timeline is in {}: open it in https://ui.perfetto.dev or chrome://tracing.",
                                      Printable(arguments.trace)));
    }
    Print(text);
  }
  WritePicture(arguments.picture, problem, report);
  if (!arguments.picture.empty() && !arguments.json) Print(fmt::format("Drawn in {}.\n", Printable(arguments.picture)));
  return report.timeline.score.fits() ? 0 : 1;
}

}  // namespace berth
