#include "cli/tuned_model.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/planning.h"
#include "placement/bound.h"
#include "report/table.h"

namespace berth {
namespace {

std::string TuningTable(const Tuning& tuning) {
  using enum Table::Align;
  Table table({{"round", kRight},
               {"plan", kRight},
               {"parts", kRight},
               {"predicted", kRight},
               {"measured", kRight},
               {"off", kRight}});
  size_t number = 0;
  for (const auto& [run, round] : tuning.plans) {
    ++number;
    const double off = run.ran() ? OffBy(run.predicted, run.seconds()) : 0;
    table.Add({Count(static_cast<int64_t>(round)), Count(static_cast<int64_t>(number)),
               Count(static_cast<int64_t>(run.measured.subgraphs)), ToString(Seconds{run.predicted}),
               run.ran() ? ToString(Seconds{run.seconds()}) : "failed",
               run.ran() ? fmt::format("{}{}", off < 0 ? "-" : "+", Percent(std::abs(off))) : ""});
  }
  return table.ToString();
}

// Of finalists that were compiled and run again.
std::string WhyAnswered(const Tuning& tuning) {
  if (!tuning.has_device_alone()) {
    return "The plan below has the smallest median of these; no device alone was run as often, so none is compared with "
           "it.";
  }
  if (tuning.winner().is_device_alone()) {
    return "The plan below is one device alone: no split was faster in each of its compilations than that device in "
           "every one of its own.";
  }
  return "The plan below has the smallest median of the splits that were faster in each compilation than the device alone "
         "in any.";
}

}  // namespace

TunedModel TuneModel(const Catalogs& catalogs, const ProblemStrings& strings, const TuneOptions& options,
                     const std::function<void(const std::string&)>& progress, std::shared_ptr<Runtime> runtime) {
  PlanRunner runner(catalogs, strings, std::move(runtime));
  TunedModel tuned{.tuning = TunePlans(runner, options, progress), .saved = {}, .run = {}};
  const Tuning& tuning = tuned.tuning;
  if (tuning.plans.empty()) throw Error("{}: stopped before a plan was run", strings.model);
  if (tuning.finalists.empty()) {
    throw Error("{}: none of {} could be run; the last one: {}", strings.model,
                Counted(static_cast<int64_t>(tuning.plans.size()), "plan"), tuning.plans.back().run.measured.error);
  }
  SavedPlan& saved = tuned.saved;
  saved.setup = MakeSetup(catalogs, runner.setup().strings, runner.setup().instance);
  const Evaluator& evaluator = *saved.setup.evaluator;
  PlanResult result;
  result.plan.device = tuning.winner().run.device;
  result.score = evaluator.ScorePlan(result.plan.view(), *evaluator.NewWorkspace());
  result.evaluations = static_cast<int64_t>(tuning.plans.size());
  saved.report = MakePlanReport(evaluator, "tune", std::move(result), LowerBound(evaluator));
  saved.report.seed = options.seed;
  saved.report.budget = fmt::format("{}evals", options.plans);
  tuned.run = RunMeasured(saved, runner.runtime().openvino, "openvino_parallel", options.final_runs);
  return tuned;
}

std::string TunedPage(const TunedModel& tuned) {
  const Tuning& tuning = tuned.tuning;
  const std::string disturbed = DisturbedLine(tuning.stolen(), "of a plan's time, at most");
  return Line(fmt::format("{}; {} run{}", DescribeProblem(*tuned.saved.setup.problem),
                          Counted(static_cast<int64_t>(tuning.plans.size()), "plan"),
                          tuning.stopped ? ", then stopped" : "")) +
         "\n" + TuningTable(tuning) + "\n" +
         Wrap(tuning.times_again > 0
                  ? fmt::format(
                        "Compiled and run again {} times each, in turns: the fastest plans{}, {} in all. {} Times "
                        "above are at the speed that the machine had when its ops were measured.",
                        tuning.times_again, tuning.has_device_alone() ? " and the fastest device alone" : "",
                        tuning.finalists.size(), WhyAnswered(tuning))
                  : std::string("The fastest were not run again: it was stopped, or they failed. The plan below is the "
                                "fastest of those above, whose times are at the speed that the machine had when its "
                                "ops were measured.")) +
         (disturbed.empty() ? "" : "\n" + disturbed) + "\n" + RunPage(tuned.saved, tuned.run);
}

}  // namespace berth
