#include <array>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/measured_run.h"
#include "export/trace.h"
#include "report/table.h"

namespace berth {
int RunPlan(const RunArguments& arguments, const Catalogs& catalogs) {
  if (arguments.plan.empty() && arguments.placement.empty()) {
    throw Error("run: give a plan file, or --placement 0,1,1,... and --model");
  }
  if (arguments.plan.empty() && !arguments.overrides.model) {
    throw Error("run: --placement needs a model: berth run --model MODEL --placement ...");
  }
  CheckWritable(arguments.trace, arguments.overrides.FilesWith(arguments.plan, arguments.placement));
  constexpr uint64_t kMostRuns = 100'000;
  const uint64_t runs = ParseCount("--runs", arguments.runs, 1, kMostRuns);
  const double limit = ParseLimit(arguments.limit);
  const SavedPlan saved = arguments.plan.empty() ? OpenPlacement(arguments.placement, arguments.overrides, catalogs)
                                                 : OpenToSimulate(arguments.plan, arguments.overrides, catalogs);
  CheckWritable(arguments.trace, saved.setup.strings.Files());  // those that the plan names
  const std::string executor =
      arguments.executor.empty() ? DefaultExecutor(*saved.setup.evaluator) : arguments.executor;
  CheckExecutor(executor);
  OpenVino runtime(*saved.setup.problem, ModelFile(saved.setup.strings.model));
  runtime.set_most_seconds(limit);
  const MeasuredRun run = RunMeasured(saved, runtime, executor, static_cast<size_t>(runs), {}, true);
  const bool ran = run.plan.measured.error.empty();

  if (!arguments.trace.empty() && ran) {
    const std::array<NamedTimeline, 2> both = {NamedTimeline{.name = "predicted", .timeline = saved.report.timeline},
                                               NamedTimeline{.name = "measured", .timeline = run.timeline}};
    WriteFile(arguments.trace, WriteTrace(*saved.setup.problem, both));
  }
  if (arguments.json) {
    Print(DumpJson(RunJson(saved, run)));
  } else {
    std::string text = RunPage(saved, run);
    text += UnsteadyLine(SpeedChangeOf(run), "times as measured vary by that, and medians tell what was typical");
    if (!arguments.trace.empty() && ran) {
      text +=
          "\n" + Line(fmt::format("Both timelines are in {}: open it in https://ui.perfetto.dev or chrome://tracing.",
                                  Printable(arguments.trace)));
    }
    Print(text);
  }
  return run.fine() ? 0 : 1;
}

}  // namespace berth
