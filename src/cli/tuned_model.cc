#include "cli/tuned_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/planning.h"
#include "placement/bound.h"
#include "report/table.h"

namespace berth {
namespace {

// Of the first plans that failed, each reason once.
std::string WhyFailed(const Tuning& tuning) {
  constexpr size_t kReasons = 3;
  std::vector<std::string> reasons;
  std::string text;
  for (size_t i = 0; i < tuning.plans.size() && reasons.size() < kReasons; ++i) {
    const std::string& error = tuning.plans[i].run.measured.error;
    if (error.empty() || std::ranges::count(reasons, error) > 0) continue;
    reasons.push_back(error);
    text += Item(fmt::format("Plan {} failed: {}", i + 1, Legible(error)));
  }
  return text;
}

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
  return table.ToString() + WhyFailed(tuning);
}

// Of plans that were compiled and run again.
std::string FinalsText(const Finals& finals) {
  const Finalist* const alone = finals.device_alone();
  const Finalist& winner = finals.winner();
  std::string text = fmt::format("Compiled and run again {} times each, in turns: the fastest plans{}, {} in all",
                                 kFirstTurns, alone ? " and the fastest device alone" : "", finals.finalists.size());
  text += finals.failed == 0
              ? "."
              : fmt::format(" ({} failed in one of these runs: {}).",
                            Counted(static_cast<int64_t>(finals.failed), "plan"), Legible(finals.failure));
  if (finals.turns > kFirstTurns) {
    text += fmt::format(
        " No split was faster each time; so the device, and the splits with a smaller median than its own, were compiled "
        "more often, up to {} times in all.",
        finals.turns);
  }
  if (!alone) {
    return text +
           " The plan below has the smallest median of these; no device alone was run as often, so none is "
           "compared with it.";
  }
  if (winner.is_device_alone()) {
    return text +
           " The plan below is one device alone: no split was faster than it in enough pairs of a compilation of "
           "the split and one of the device.";
  }
  const Wins wins = CountWins(winner, *alone);
  return text +
         fmt::format(
             " The plan below has the smallest median of the splits that won often enough: paired, compilation by "
             "compilation, it was faster than the device alone in {} of {} pairs; {} were needed.",
             wins.won, wins.pairs, wins.needed);
}

}  // namespace

TunedModel TuneModel(const Catalogs& catalogs, const ProblemStrings& strings, const TuneOptions& options,
                     const std::function<void(const std::string&)>& progress, std::shared_ptr<Runtime> runtime,
                     const std::function<void(const SavedPlan&)>& keep) {
  PlanRunner runner(catalogs, strings, std::move(runtime));
  TunedModel tuned{.tuning = TunePlans(runner, options, progress), .saved = {}, .run = {}};
  const Tuning& tuning = tuned.tuning;
  if (tuning.plans.empty()) throw Error("{}: stopped before a plan was run", strings.model);
  if (tuning.finals.finalists.empty()) {
    throw Error("{}: none of {} could be run; the last one: {}", strings.model,
                Counted(static_cast<int64_t>(tuning.plans.size()), "plan"), tuning.plans.back().run.measured.error);
  }
  SavedPlan& saved = tuned.saved;
  saved.setup = MakeSetup(catalogs, runner.setup().strings, runner.setup().instance);
  const Evaluator& evaluator = *saved.setup.evaluator;
  PlanResult result;
  result.plan.device = tuning.finals.winner().device();
  result.score = evaluator.ScorePlan(result.plan.view(), *evaluator.NewWorkspace());
  result.evaluations = static_cast<int64_t>(tuning.plans.size());
  saved.report = MakePlanReport(evaluator, "tune", std::move(result), LowerBound(evaluator));
  saved.report.seed = options.seed;
  saved.report.budget = fmt::format("{}evals", options.plans);
  const bool all_run = tuning.plans.size() == options.plans;
  saved.report.ended = tuning.stopped ? SearchEnd::kInterrupted
                       : all_run      ? SearchEnd::kEvaluations
                                      : SearchEnd::kItself;
  if (keep) keep(saved);
  progress("the answer, beside each device alone");
  // Who has stopped the search still learns how its answer runs; who interrupts once more ends the program.
  tuned.run = RunMeasured(saved, runner.runtime().openvino, "openvino_parallel", options.final_runs,
                          tuning.stopped ? StopCheck() : options.stop);
  tuned.stopped = options.stopped();
  return tuned;
}

std::string TunedPage(const TunedModel& tuned) {
  const Tuning& tuning = tuned.tuning;
  const std::string disturbed =
      DisturbedLine(tuning.stolen(), "of a plan's time, at most") + UnsteadyLine(tuning.speed_change());
  return Line(fmt::format("{}; {} run{}", DescribeProblem(*tuned.saved.setup.problem),
                          Counted(static_cast<int64_t>(tuning.plans.size()), "plan"),
                          tuning.stopped ? ", then stopped" : "")) +
         "\n" + TuningTable(tuning) + "\n" +
         Wrap((tuning.finals.turns > 0
                   ? FinalsText(tuning.finals)
                   : fmt::format("The fastest were not run again: {}. The plan below is the fastest of those above.",
                                 tuning.finals.failed > 0
                                     ? "they failed, the first since " + Legible(tuning.finals.failure)
                                     : "it was stopped")) +
              " Times above are at the speed at which its op times are told.") +
         (disturbed.empty() ? "" : "\n" + disturbed) + "\n" + RunPage(tuned.saved, tuned.run);
}

}  // namespace berth
