#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

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
constexpr size_t kProfileRuns = 20;
constexpr size_t kRounds = 5;   // in which the plans are run; after each the prediction is corrected
constexpr int kSearches = 3;    // per round, of each kind
constexpr int64_t kEvaluations = 4000;
constexpr size_t kFinalists = 3, kFinalRuns = 15;

struct TunedPlan {
  PlanRun run;
  size_t round = 0;
};

struct Tuning {
  std::vector<TunedPlan> plans;
  std::vector<PlanRun> finalists;  // run again, fresh
  bool stopped = false;
};

const PlanRun& Fastest(const std::vector<PlanRun>& runs) {
  return *std::ranges::min_element(runs, {}, [](const PlanRun& run) {
    return run.ran() ? run.seconds() : std::numeric_limits<double>::infinity();
  });
}

Tuning TunePlans(PlanBench& bench, size_t plans, size_t runs, uint64_t seed, bool correct,
                 const std::atomic<bool>* cancelled, ProgressLine& progress) {
  Tuning tuning;
  std::set<std::vector<DeviceId>> seen;
  CutFit fit;
  const StopCheck stop = [cancelled] { return cancelled->load(); };
  const size_t rounds = correct ? kRounds : 1;
  for (size_t round = 0; tuning.plans.size() < plans && !stop(); ++round) {
    const size_t left = plans - tuning.plans.size();
    const size_t wanted = std::min(left, (plans + rounds - 1) / rounds);
    std::vector<std::vector<DeviceId>> chosen;
    // A round whose searches find nothing new looks longer.
    const int searches = kSearches * static_cast<int>(std::max<size_t>(1, wanted / 4));
    for (int longer = 1; longer <= 3 && chosen.empty(); ++longer) {
      for (std::vector<DeviceId>& plan : bench.Candidates(seed + round, searches * longer, kEvaluations * longer)) {
        if (chosen.size() == wanted) break;
        if (seen.insert(plan).second) chosen.push_back(std::move(plan));
      }
    }
    if (chosen.empty()) break;
    const std::vector<PlanRun> ran = bench.Run(chosen, runs, stop, [&](size_t done) {
      progress.Show(fmt::format("plan {} of {}", tuning.plans.size() + done, plans));
    });
    for (const PlanRun& run : ran) tuning.plans.push_back({run, round + 1});
    if (!correct) continue;
    AddTo(fit, bench.problem(), ran);
    if (fit.num_parts() > 0) bench.SetCosts(fit.Fit(), fmt::format("{} parts of this model's runs", fit.num_parts()));
  }
  // The fastest of many noisy runs flatters itself: the first few are run again, in turns.
  std::vector<PlanRun> order;
  for (const TunedPlan& plan : tuning.plans) {
    if (plan.run.ran()) order.push_back(plan.run);
  }
  std::ranges::stable_sort(order, {}, &PlanRun::seconds);
  std::vector<std::vector<DeviceId>> best;
  for (size_t i = 0; i < std::min(order.size(), kFinalists); ++i) best.push_back(order[i].device);
  if (!best.empty() && !stop()) {
    progress.Show("the fastest once more");
    tuning.finalists = bench.Run(best, kFinalRuns, stop, [](size_t) {});
  }
  if (tuning.finalists.empty()) tuning.finalists.assign(order.begin(), order.begin() + (order.empty() ? 0 : 1));
  tuning.stopped = stop();
  return tuning;
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
  PlanBench bench(catalogs, strings);
  Tuning tuning;
  {
    ProgressLine progress;
    tuning = TunePlans(bench, plans, runs, seed, !arguments.no_correction, cancelled, progress);
  }
  if (tuning.finalists.empty() || !Fastest(tuning.finalists).ran()) {
    if (tuning.plans.empty()) throw Error("stopped before a plan was run");
    throw Error("none of {} could be run; the last one: {}", Counted(static_cast<int64_t>(tuning.plans.size()), "plan"),
                tuning.plans.back().run.measured.error);
  }
  const PlanRun& winner = Fastest(tuning.finalists);

  ProblemStrings final_strings = bench.setup().strings;
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
    std::string text = Line(fmt::format("{}: {} run on {}{}", DescribeProblem(bench.problem()),
                                        Counted(static_cast<int64_t>(tuning.plans.size()), "plan"),
                                        Legible(saved.setup.problem->cluster().name()),
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
