#include "cli/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <span>

namespace berth {
namespace {

constexpr size_t kRounds = 5;  // in which the plans are run; after each the predictions are looked at
constexpr int kSearches = 3;   // for the plans of one round, of each kind
constexpr int64_t kEvaluations = 4000;
constexpr size_t kFinalists = 3, kTimesCompiled = 3;
// Predictions are trusted this far. Those that are off by less, in the median, stay as they are: a plan that is
// compiled again is a few percent faster or slower, and a correction would follow that (docs/measured.md). A plan
// predicted to lose to the fastest by more is run only where nothing else is left.
constexpr double kTrusted = 0.05;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();  // of a prediction, in seconds

std::vector<PlanRun> FastestFirst(const std::vector<TunedPlan>& plans) {
  std::vector<PlanRun> order;
  for (const TunedPlan& plan : plans) {
    if (plan.run.ran()) order.push_back(plan.run);
  }
  std::ranges::stable_sort(order, {}, &PlanRun::seconds);
  return order;
}

bool OnOneDevice(const std::vector<DeviceId>& device) {
  return std::ranges::adjacent_find(device, std::not_equal_to<>()) == device.end();
}

// Of the plans that cut the model, as they were predicted when they were run; false where none ran.
bool AreOff(std::span<const TunedPlan> plans) {
  std::vector<double> predicted, measured;
  for (const auto& [run, round] : plans) {
    if (!run.ran() || OnOneDevice(run.device)) continue;
    predicted.push_back(run.predicted);
    measured.push_back(run.seconds());
  }
  return ErrorOf(predicted, measured).median > kTrusted;
}

// Each compiled and run several times, and of these the run with the median time.
std::vector<PlanRun> RunFinal(PlanRunner& runner, const std::vector<std::vector<DeviceId>>& plans, size_t runs,
                              const StopCheck& stop) {
  std::vector<std::vector<DeviceId>> all;
  for (size_t time = 0; time < kTimesCompiled; ++time) std::ranges::copy(plans, std::back_inserter(all));
  const std::vector<PlanRun> ran = runner.Run(all, (runs + kTimesCompiled - 1) / kTimesCompiled, stop, [](size_t) {});
  std::vector<PlanRun> finalists;
  for (const std::vector<DeviceId>& plan : plans) {
    std::vector<const PlanRun*> of_plan;
    for (const PlanRun& run : ran) {
      if (run.ran() && run.device == plan) of_plan.push_back(&run);
    }
    if (of_plan.size() < kTimesCompiled) continue;
    std::ranges::sort(of_plan, {}, [](const PlanRun* run) { return run->seconds(); });
    finalists.push_back(*of_plan[of_plan.size() / 2]);
  }
  return finalists;
}

}  // namespace

const PlanRun& Tuning::winner() const { return *std::ranges::min_element(finalists, {}, &PlanRun::seconds); }

Tuning TunePlans(PlanRunner& runner, const TuneOptions& options,
                 const std::function<void(const std::string&)>& progress) {
  Tuning tuning;
  std::set<std::vector<DeviceId>> seen;
  const std::optional<CutCosts> known = CutCostsOf(runner.problem().cluster());
  CutFit fit = known ? CutFit(*known) : CutFit();
  const auto stop = [&] { return options.stop && options.stop(); };
  const size_t plans = options.plans;
  const size_t in_a_round = options.correct ? (plans + kRounds - 1) / kRounds : plans;
  std::vector<std::vector<DeviceId>> candidates;  // by the predictions as they are now
  size_t corrected = 0;                           // how many plans had been run by then
  for (size_t round = 0; tuning.plans.size() < plans && !stop(); ++round) {
    const size_t left = plans - tuning.plans.size();
    const size_t wanted = std::min(left, in_a_round);
    std::vector<std::vector<DeviceId>> chosen;
    // Of plans with the smallest prediction first.
    const auto choose = [&](const std::vector<std::vector<DeviceId>>& from, double limit = kNoLimit) {
      for (const std::vector<DeviceId>& plan : from) {
        if (chosen.size() == wanted) return;
        if (seen.contains(plan)) continue;
        if (limit < kNoLimit && runner.Predict(plan) > limit) return;
        seen.insert(plan);
        chosen.push_back(plan);
      }
    };
    if (candidates.empty()) {
      const int searches = kSearches * static_cast<int>((left * kRounds + plans - 1) / plans);
      // Searches that find nothing new look longer.
      for (int longer = 1; longer <= 3 && candidates.empty(); ++longer) {
        candidates = runner.Candidates(Random(options.seed).Fork(round), searches * longer, kEvaluations * longer);
        std::erase_if(candidates, [&](const auto& plan) { return seen.contains(plan); });
      }
      // Predictions may flatter every split; the fastest device alone is what none of them may lose to.
      const auto alone = round == 0 ? std::ranges::find_if(candidates, OnOneDevice) : candidates.end();
      if (alone != candidates.end()) std::rotate(candidates.begin(), alone, alone + 1);
    }
    const std::vector<PlanRun> order = FastestFirst(tuning.plans);
    const double promising = order.empty() ? kNoLimit : (1 + kTrusted) * order.front().seconds();
    choose(candidates, promising);
    // Where searches end with few such plans, what is near the fastest of these may be faster than predicted.
    for (const PlanRun& fast : order) {
      if (chosen.size() < wanted && !stop()) choose(runner.Neighbours(fast.device), promising);
    }
    choose(candidates);
    if (chosen.empty()) break;
    const std::vector<PlanRun> ran = runner.Run(chosen, options.runs, options.stop, [&](size_t done) {
      progress(fmt::format("plan {} of {}", tuning.plans.size() + done, plans));
    });
    for (const PlanRun& run : ran) tuning.plans.push_back({run, round + 1});
    AddTo(fit, runner.problem(), ran);
    if (!options.correct || fit.num_parts() == 0 || !AreOff(std::span(tuning.plans).subspan(corrected))) continue;
    runner.SetCosts(fit.Fit(), fmt::format("{} parts of this model's runs", fit.num_parts()));
    candidates.clear();
    corrected = tuning.plans.size();
  }
  const std::vector<PlanRun> order = FastestFirst(tuning.plans);
  std::vector<std::vector<DeviceId>> best;
  for (size_t i = 0; i < std::min(order.size(), kFinalists); ++i) best.push_back(order[i].device);
  if (!best.empty() && !stop()) {
    progress("the fastest once more");
    tuning.finalists = RunFinal(runner, best, options.final_runs, options.stop);
    if (!tuning.finalists.empty()) tuning.times_again = kTimesCompiled;
  }
  if (tuning.finalists.empty() && !order.empty()) tuning.finalists.push_back(order.front());
  tuning.stopped = stop();
  return tuning;
}

}  // namespace berth
