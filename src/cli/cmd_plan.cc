#include <cmath>

#include "base/file.h"
#include "base/stopwatch.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/guessing.h"
#include "cli/memory_watch.h"
#include "cli/planning.h"
#include "report/controls.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

// Of a learned planner's seconds: what those need that it is compared with.
constexpr double kShareOfControls = 0.25;

// What the seconds went into.
struct Spent {
  double reading = 0, bound = 0, planning = 0, controls = 0;

  std::string ToString() const {
    const auto text = [](double seconds) { return berth::ToString(Seconds{seconds}); };
    return fmt::format(
        "Time spent: {} to read model and machines, {} for the lower bound and the single devices, {} to "
        "plan and to vary what is guessed{}.",
        text(reading), text(bound), text(planning),
        controls > 0 ? fmt::format(", {} for the comparison", text(controls)) : "");
  }
};

}  // namespace

int MakePlan(const PlanArguments& arguments, const Catalogs& catalogs) {
  const double budget_seconds = arguments.search.budget.seconds;
  const auto planner = catalogs.planners.MakePlanner(arguments.planner);
  const std::vector<std::string> files = arguments.problem.Files();
  CheckWritable(arguments.output, files);
  CheckPicture(arguments.picture, arguments.output, files);
  Stopwatch watch;
  const Setup setup = MakeSetup(catalogs, arguments.problem.Strings());
  CheckSizes(setup, arguments.problem.allow_unknown_shapes);
  CheckMemory(setup);
  if (const auto reason = planner->Refuses(*setup.problem, *setup.evaluator)) {
    throw Error("{} does not answer this problem: {}; `berth list planners` shows others", planner->name(), *reason);
  }
  // The model is read now; from here on the budget's seconds are those of the whole answer.
  Spent spent{.reading = watch.Lap()};
  const auto left = [&] { return budget_seconds - (watch.seconds() - spent.reading); };
  const std::atomic<bool>* cancelled = CatchInterrupts();
  MemoryWatch memory(arguments.search.memory_limit);
  const Conditions conditions = ConditionsOf(setup, arguments.search, cancelled);
  spent.bound = watch.Lap();
  const bool learned = planner->facts().learned;
  // What is written after the search takes about as long as the bound before it.
  PlanReport report = RunPlanner(conditions, *planner, (left() - spent.bound) * (learned ? 1 - kShareOfControls : 1));
  report.guesses = VaryGuesses(setup, catalogs, report,
                               BestRival(setup, catalogs, report, report.single_device_time, budget_seconds, cancelled),
                               budget_seconds);
  spent.planning = watch.Lap();

  if (!arguments.output.empty()) WriteFile(arguments.output, WritePlanFile(MakePlanFile(setup, report)));
  std::optional<Comparison> controls;
  if (learned && !cancelled->load()) {
    controls = RunControls(conditions, catalogs.planners, report.result.evaluations, &report, left() - spent.bound);
    spent.controls = watch.Lap();
  }
  if (arguments.json) {
    Json json = PlanJson(*setup.evaluator, report);
    json["single_device_seconds"] = SinglesJson(*setup.problem, report.single_device_time);
    json["spent_seconds"] = {
        {"reading", spent.reading}, {"bound", spent.bound}, {"planning", spent.planning}, {"controls", spent.controls}};
    if (const auto reached = memory.Reached()) json["memory_limit_reached_at_bytes"] = reached->value;
    AddDisturbance(*setup.evaluator, json);
    if (controls) json["controls"] = ControlsJson(*setup.problem, *controls);
    Print(DumpJson(json));
  } else {
    std::string text = PlanPage(*setup.evaluator, report);
    if (!report.timeline.score.fits()) text += "\n" + Wrap(HowToFit(*setup.problem, report));
    if (controls) {
      text += "\n" +
              Wrap(fmt::format("For comparison, planners that do not learn, each with at most {}{}:",
                               Counted(report.result.evaluations, "evaluation"),
                               std::isfinite(budget_seconds) ? " and an equal share of the time that was left" : ""),
                   "") +
              "\n" + ComparisonTable(*setup.problem, *controls);
    }
    text += "\n" + Wrap(spent.ToString());
    if (const std::string sentence = memory.Sentence(); !sentence.empty()) text += Wrap(sentence);
    text += HintLines(*setup.evaluator);
    if (!arguments.output.empty()) {
      text += "\n" + Line(fmt::format("Written to {0}: see `berth explain {0}` and `berth simulate {0} --trace "
                                      "trace.json`.",
                                      ShellWord(Printable(arguments.output))));
    }
    Print(text);
  }
  WritePicture(arguments.picture, *setup.problem, report, cancelled);
  if (!arguments.picture.empty() && !arguments.json) Print(fmt::format("Drawn in {}.\n", Printable(arguments.picture)));
  return report.timeline.score.fits() ? 0 : 1;
}

}  // namespace berth
