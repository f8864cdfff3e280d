#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/measured_run.h"
#include "cli/planning.h"
#include "cli/profiling.h"
#include "cli/tuning.h"
#include "placement/bound.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr uint64_t kMostPlans = 10'000, kMostRuns = 10'000;
constexpr size_t kFinalRuns = 15;
constexpr size_t kProfileRuns = 20;

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

}  // namespace

int Tune(const TuneArguments& arguments, const Catalogs& catalogs) {
  const size_t plans = ParseCount("--evaluations", arguments.evaluations, 1);
  const size_t runs = ParseCount("--runs", arguments.runs, 1);
  if (plans > kMostPlans) throw Error("--evaluations {}: at most {}", arguments.evaluations, kMostPlans);
  if (runs > kMostRuns) throw Error("--runs {}: at most {}", arguments.runs, kMostRuns);
  const uint64_t seed = ParseCount("--seed", arguments.seed, 0);
  CheckWritable(arguments.output);
  const ModelArguments& model = arguments.model;
  ProblemStrings strings = {.model = model.model,
                            .shapes = model.shapes,
                            .batch = model.batch,
                            .format = model.format,
                            .cluster = arguments.cluster,
                            .costs = arguments.costs,
                            .mode = model.mode,
                            .optimizer = model.optimizer};
  const std::atomic<bool>* cancelled = CatchInterrupts();
  std::string profile;
  if (arguments.costs.empty()) {
    const std::filesystem::path beside(arguments.output.empty() ? "plan.json" : arguments.output);
    profile = (beside.parent_path() / beside.stem()).string() + ".profile.json";
    CheckWritable(profile);
    ProgressLine progress;
    progress.Show("measuring the ops");
    WriteFile(profile, WriteProfile(ProfileDevices(MakeSetup(catalogs, strings), kProfileRuns).table));
    strings.costs = fmt::format("profile(file={})", profile);
  }
  PlanRunner runner(catalogs, strings);
  Tuning tuning;
  {
    ProgressLine progress;
    tuning = TunePlans(runner,
                       {.plans = plans,
                        .runs = runs,
                        .seed = seed,
                        .correct = !arguments.no_correction,
                        .stop = [cancelled] { return cancelled->load(); }},
                       [&](const std::string& text) { progress.Show(text); });
  }
  if (tuning.finalists.empty() || !tuning.winner().ran()) {
    if (tuning.plans.empty()) throw Error("stopped before a plan was run");
    throw Error("none of {} could be run; the last one: {}", Counted(static_cast<int64_t>(tuning.plans.size()), "plan"),
                tuning.plans.back().run.measured.error);
  }
  const PlanRun& winner = tuning.winner();

  ProblemStrings final_strings = runner.setup().strings;
  SavedPlan saved{.setup = MakeSetup(catalogs, final_strings), .report = {}};
  const Evaluator& evaluator = *saved.setup.evaluator;
  const auto workspace = evaluator.NewWorkspace();
  PlanResult result;
  result.plan.device = winner.device;
  result.score = evaluator.ScorePlan({.device = winner.device}, *workspace);
  result.evaluations = static_cast<int64_t>(tuning.plans.size());
  saved.report = MakePlanReport(evaluator, "tune", std::move(result), LowerBound(evaluator));
  saved.report.seed = seed;
  saved.report.budget = fmt::format("{}evals", plans);
  const MeasuredRun run = RunMeasured(saved, ModelFile(saved.setup.strings.model), "openvino_parallel", kFinalRuns);
  if (!arguments.output.empty()) WriteFile(arguments.output, WritePlanFile(MakePlanFile(saved.setup, saved.report)));

  if (arguments.json) {
    Json json = RunJson(saved, run);
    json["stopped"] = tuning.stopped;
    json["plans"] = Json::array();
    for (const auto& [one, round] : tuning.plans) {
      json["plans"].push_back({{"round", round},
                               {"parts", one.measured.subgraphs},
                               {"predicted_seconds", one.predicted},
                               {"measured_seconds", one.ran() ? Json(one.seconds()) : Json()},
                               {"failed_because", one.ran() ? Json() : Json(one.measured.error)}});
    }
    Print(DumpJson(json));
  } else {
    std::string text = Line(fmt::format("{}; {} run{}", DescribeProblem(runner.problem()),
                                        Counted(static_cast<int64_t>(tuning.plans.size()), "plan"),
                                        tuning.stopped ? ", then stopped" : "")) +
                       "\n" + TuningTable(tuning) + "\n" +
                       Wrap(fmt::format("The fastest {} were run again, in turns; the plan below won. Times above are at "
                                        "the speed that the machine had when its ops were measured.",
                                        tuning.finalists.size())) +
                       "\n" + RunPage(saved, run);
    if (!profile.empty()) text += "\n" + Line(fmt::format("Op times are in {}.", Printable(profile)));
    if (!arguments.output.empty()) {
      text += (profile.empty() ? "\n" : "") +
              Line(fmt::format("Written to {0}: berth run {0}", Printable(arguments.output)));
    }
    Print(text);
  }
  return run.plan.measured.outputs && run.plan.measured.outputs->equal ? 0 : 1;
}

}  // namespace berth
