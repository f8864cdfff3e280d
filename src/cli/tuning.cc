#include "cli/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace berth {
namespace {

constexpr size_t kRounds = 5;  // in which the plans are run; after each the prediction is corrected
constexpr int kSearches = 3;   // per round, of each kind
constexpr int64_t kEvaluations = 4000;
constexpr size_t kFinalists = 3;

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
  const size_t rounds = options.correct ? kRounds : 1;
  for (size_t round = 0; tuning.plans.size() < plans && !stop(); ++round) {
    const size_t left = plans - tuning.plans.size();
    const size_t wanted = std::min(left, (plans + rounds - 1) / rounds);
    std::vector<std::vector<DeviceId>> chosen;
    const auto choose = [&](std::vector<std::vector<DeviceId>> candidates) {
      for (std::vector<DeviceId>& plan : candidates) {
        if (chosen.size() == wanted) return;
        if (seen.insert(plan).second) chosen.push_back(std::move(plan));
      }
    };
    // A round whose searches find nothing new looks longer.
    const int searches = kSearches * static_cast<int>(std::max<size_t>(1, wanted / 4));
    for (int longer = 1; longer <= 3 && chosen.empty(); ++longer) {
      std::vector<std::vector<DeviceId>> candidates =
          runner.Candidates(options.seed + round, searches * longer, kEvaluations * longer);
      // Predictions may flatter every split; the fastest device alone is what none of them may lose to.
      const auto alone = round == 0 ? std::ranges::find_if(candidates, OnOneDevice) : candidates.end();
      if (alone != candidates.end()) choose({*alone});
      choose(std::move(candidates));
    }
    // Where searches end with the same few plans, what is near the fastest of these may be faster than predicted.
    for (const PlanRun& fast : FastestFirst(tuning.plans)) {
      if (chosen.size() < wanted && !stop()) choose(runner.Neighbours(fast.device));
    }
    if (chosen.empty()) break;
    const std::vector<PlanRun> ran = runner.Run(chosen, options.runs, options.stop, [&](size_t done) {
      progress(fmt::format("plan {} of {}", tuning.plans.size() + done, plans));
    });
    for (const PlanRun& run : ran) tuning.plans.push_back({run, round + 1});
    if (!options.correct) continue;
    AddTo(fit, runner.problem(), ran);
    if (fit.num_parts() > 0) runner.SetCosts(fit.Fit(), fmt::format("{} parts of this model's runs", fit.num_parts()));
  }
  // The fastest of many noisy runs flatters itself: the first few are run again, in turns.
  const std::vector<PlanRun> order = FastestFirst(tuning.plans);
  std::vector<std::vector<DeviceId>> best;
  for (size_t i = 0; i < std::min(order.size(), kFinalists); ++i) best.push_back(order[i].device);
  if (!best.empty() && !stop()) {
    progress("the fastest once more");
    tuning.finalists = runner.Run(best, kFinalRuns, options.stop, [](size_t) {});
  }
  std::erase_if(tuning.finalists, [](const PlanRun& run) { return !run.ran(); });
  if (tuning.finalists.empty() && !order.empty()) tuning.finalists.push_back(order.front());
  tuning.stopped = stop();
  return tuning;
}

}  // namespace berth
