#include "base/file.h"
#include "cli/commands.h"
#include "cli/controls.h"
#include "cli/planning.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {

int MakePlan(const PlanArguments& arguments, const Catalogs& catalogs) {
  Budget::Parse(arguments.search.budget);
  const auto planner = catalogs.planners.MakePlanner(arguments.planner);
  CheckWritable(arguments.output);
  CheckPicture(arguments.picture);
  const Setup setup = MakeSetup(catalogs, StringsOf(arguments.problem));
  CheckMemory(setup);
  if (const auto reason = planner->Refuses(*setup.problem, *setup.evaluator)) {
    throw Error("{} does not answer this problem: {}; `berth list planners` shows others", planner->name(), *reason);
  }
  const std::atomic<bool>* cancelled = CatchInterrupts();
  const PlanReport report = [&] {
    ProgressLine line;
    return RunPlanner(setup, *planner, arguments.search, LowerBound(*setup.evaluator), cancelled, line);
  }();

  if (!arguments.output.empty()) WriteFile(arguments.output, WritePlanFile(MakePlanFile(setup, report)));
  std::optional<Comparison> controls;
  if (planner->facts().learned && !cancelled->load()) {
    controls = RunControls(setup, catalogs, report.result.evaluations, arguments.search.seed, cancelled, &report);
  }
  if (arguments.json) {
    Json json = PlanJson(*setup.evaluator, report);
    if (controls) json["controls"] = ControlsJson(*setup.problem, *controls);
    Print(DumpJson(json));
  } else {
    std::string text = PlanPage(*setup.evaluator, report);
    if (!report.timeline.score.feasible) text += "\n" + Wrap(HowToFit(*setup.problem, report));
    if (controls) {
      text += fmt::format("\nFor comparison, planners that do not learn, each with at most {}:\n\n",
                          Counted(report.result.evaluations, "evaluation")) +
              ComparisonTable(*setup.problem, *controls);
    }
    text += HintLines(*setup.problem);
    if (!arguments.output.empty()) {
      text += "\n" + Line(fmt::format("Written to {0}: see `berth explain {0}` and `berth simulate --plan {0} --trace "
                                      "trace.json`.",
                                      Printable(arguments.output)));
    }
    Print(text);
  }
  WritePicture(arguments.picture, *setup.problem, report, cancelled);
  if (!arguments.picture.empty() && !arguments.json) Print(fmt::format("Drawn in {}.\n", Printable(arguments.picture)));
  return report.timeline.score.feasible ? 0 : 1;
}

}  // namespace berth
