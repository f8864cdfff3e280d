#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "cli/profiling.h"
#include "cli/scratch_folder.h"
#include "cli/tuned_model.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr uint64_t kMostTuned = 10'000, kMostRunsOfTuned = 10'000;

}  // namespace

int Tune(const TuneArguments& arguments, const Catalogs& catalogs) {
  const size_t plans = ParseCount("--evaluations", arguments.evaluations, 1, kMostTuned);
  const size_t runs = ParseCount("--runs", arguments.runs, 1, kMostRunsOfTuned);
  const uint64_t seed = ParseCount("--seed", arguments.seed, 0);
  const double limit = ParseLimit(arguments.limit);
  ProblemStrings strings = arguments.problem;
  CheckWritable(arguments.output, strings.Files());
  const StopCheck stop = [cancelled = CatchInterrupts()] { return cancelled->load(); };
  const ScratchFolder scratch("berth_tune");
  std::string profile;
  std::shared_ptr<Runtime> runtime;
  if (strings.costs.empty()) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(arguments.output, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw Error(
          "{}: is no file, so that the measured op times cannot be kept beside it; name a file, or give --costs",
          arguments.output);
    }
    const std::filesystem::path beside(arguments.output.empty() ? scratch.Path("plan.json") : arguments.output);
    profile = (beside.parent_path() / beside.stem()).string() + ".profile.json";
    CheckWritable(profile, strings.Files());
    if (profile.find('"') != std::string::npos) {
      throw Error("{}: no cost model can name a file with a quotation mark; name the output otherwise", profile);
    }
    runtime = OpenRuntime(catalogs, strings);
    CheckHasTwoDevices(runtime->setup->problem->cluster());
    runtime->openvino.set_most_seconds(limit);
    strings.costs = ProfileToFile(*runtime, kProfileRuns, profile, stop);
  }
  if (!runtime && !arguments.limit.empty()) {
    runtime = OpenRuntime(catalogs, strings);
    runtime->openvino.set_most_seconds(limit);
  }
  const TunedModel tuned = [&] {
    ProgressLine progress;
    return TuneModel(
        catalogs, strings,
        {.plans = plans,
         .runs = runs,
         .final_runs = std::max(runs, TuneOptions().final_runs),
         .seed = seed,
         .correct = !arguments.no_correction,
         .stop = stop},
        [&](const std::string& text) { progress.Show(text); }, runtime,
        [&](const SavedPlan& saved) {
          if (arguments.output.empty()) return;
          WriteFile(arguments.output, WritePlanFile(MakePlanFile(saved.setup, saved.report)));
        });
  }();
  const SavedPlan& saved = tuned.saved;

  if (arguments.json) {
    Json json = RunJson(saved, tuned.run);
    json["stopped"] = tuned.stopped;
    json["plans_stolen_share"] = tuned.tuning.stolen();
    json["speed_change"] = tuned.tuning.speed_change();
    json["plans"] = Json::array();
    for (const auto& [one, round] : tuned.tuning.plans) {
      json["plans"].push_back({{"round", round},
                               {"parts", one.measured.subgraphs},
                               {"predicted_seconds", one.predicted},
                               {"measured_seconds", one.ran() ? Json(one.seconds()) : Json()},
                               {"failed_because", one.ran() ? Json() : Json(one.measured.error)}});
    }
    json["run_again"] = Json::array();
    const Finals& finals = tuned.tuning.finals;
    if (finals.turns > 0) {
      const Finalist* const alone = finals.device_alone();
      for (const Finalist& each : finals.finalists) {
        const bool compared = alone && !each.is_device_alone();
        const Wins wins = compared ? CountWins(each, *alone) : Wins{};
        json["run_again"].push_back({{"parts", each.runs.front().measured.subgraphs},
                                     {"times", each.runs.size()},
                                     {"measured_seconds", each.seconds()},
                                     {"fastest_seconds", each.fastest()},
                                     {"slowest_seconds", each.slowest()},
                                     {"device_alone", each.is_device_alone()},
                                     {"pairs", compared ? Json(wins.pairs) : Json()},
                                     {"pairs_won", compared ? Json(wins.won) : Json()},
                                     {"pairs_needed", compared ? Json(wins.needed) : Json()}});
      }
    }
    json["failed_again"] = finals.failed;
    Print(DumpJson(json));
  } else {
    std::string text = TunedPage(tuned);
    if (!arguments.output.empty()) {
      text += "\n";
      if (!profile.empty()) text += Line(fmt::format("Op times are in {}.", Printable(profile)));
      text += Line(fmt::format("Written to {0}: berth run {0}", ShellWord(Printable(arguments.output))));
    }
    Print(text);
  }
  // Whoever interrupts the last run has the plan.
  return tuned.run.fine() || (tuned.stopped && !tuned.tuning.stopped) ? 0 : 1;
}

}  // namespace berth
