#include "cli/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "placement/single_devices.h"

namespace berth {
namespace {

using Placement = std::vector<DeviceId>;

constexpr size_t kRounds = 5;  // in which the plans are run; after each the predictions are looked at
constexpr int kSearches = 3;   // for the plans of one round, of each kind
constexpr int64_t kEvaluations = 4000;
constexpr size_t kFinalists = 3;
// Predictions are trusted this far. Those that are off by less, in the median, stay as they are: a plan that is
// compiled again is a few percent faster or slower, and a correction would follow that (docs/measured/tune.md). A plan
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

// Of the plans that cut the model, as they were predicted when they were run; false where none ran.
bool AreOff(std::span<const TunedPlan> plans) {
  std::vector<double> predicted, measured;
  for (const auto& [run, round] : plans) {
    if (!run.ran() || OnOneDevice(run.device)) continue;
    predicted.push_back(run.predicted);
    measured.push_back(run.seconds());
  }
  return ErrorOf(predicted, measured).median.value_or(0) > kTrusted;
}

// Which plans to run next, by the predictions as they are; none twice.
class Choice {
 public:
  Choice(PlanRunner& runner, const TuneOptions& options) : runner_(runner), options_(options) {}

  // The plans of a round, of which `left` may still be run; none where nothing new is found.
  std::vector<Placement> Next(size_t left, const std::vector<PlanRun>& fastest_first) {
    chosen_.clear();
    wanted_ = std::min(left, options_.correct ? (options_.plans + kRounds - 1) / kRounds : options_.plans);
    if (found_.empty()) Search(left);
    ++round_;
    const double promising = fastest_first.empty() ? kNoLimit : (1 + kTrusted) * fastest_first.front().seconds();
    Take(found_, promising);
    // Where searches end with few such plans, what is near the fastest of these may be faster than predicted.
    for (const PlanRun& fast : fastest_first) {
      if (chosen_.size() < wanted_ && !options_.stopped())
        Take(runner_.Neighbours(fast.device, options_.stop), promising);
    }
    Take(found_, kNoLimit);
    if (chosen_.empty() && !options_.stopped()) {  // all that was found has been run
      Search(left);
      Take(found_, kNoLimit);
    }
    return std::exchange(chosen_, {});
  }
  // Predictions have changed: plans are searched anew.
  void SearchAnew() { found_.clear(); }

 private:
  void Search(size_t left) {
    found_.clear();
    const int searches = kSearches * static_cast<int>((left * kRounds + options_.plans - 1) / options_.plans);
    // Searches that find nothing new look longer.
    for (int longer = 1; longer <= 3 && found_.empty() && !options_.stopped(); ++longer) {
      found_ = runner_.Candidates(Random(options_.seed).Fork(round_), searches * longer, kEvaluations * longer,
                                  options_.stop);
      std::erase_if(found_, [&](const Placement& plan) { return seen_.contains(plan); });
    }
    // Predictions may flatter every split; the fastest device alone is what none of them may lose to.
    const auto alone = round_ == 0 ? std::ranges::find_if(found_, OnOneDevice) : found_.end();
    if (alone != found_.end()) std::rotate(found_.begin(), alone, alone + 1);
  }

  // Of plans with the smallest prediction first, up to a limit of it.
  void Take(const std::vector<Placement>& from, double limit) {
    for (const Placement& plan : from) {
      if (chosen_.size() == wanted_) return;
      if (seen_.contains(plan)) continue;
      if (limit < kNoLimit && runner_.Predict(plan) > limit) return;
      seen_.insert(plan);
      chosen_.push_back(plan);
    }
  }

  PlanRunner& runner_;
  const TuneOptions& options_;
  std::set<Placement> seen_;
  std::vector<Placement> found_, chosen_;
  size_t wanted_ = 0;
  uint64_t round_ = 0;
};

}  // namespace

double Tuning::stolen() const {
  double most = 0;
  for (const TunedPlan& plan : plans) most = std::max(most, plan.run.measured.stolen);
  for (const Finalist& each : finals.finalists) most = std::max(most, each.stolen());
  return most;
}

double Tuning::speed_change() const {
  SpeedChange change;
  for (const TunedPlan& plan : plans) change.Add(plan.run);
  for (const Finalist& each : finals.finalists) {
    for (const PlanRun& run : each.runs) change.Add(run);
  }
  return change.factor();
}

Tuning TunePlans(PlanRunner& runner, const TuneOptions& options,
                 const std::function<void(const std::string&)>& progress) {
  Tuning tuning;
  const std::optional<CutCosts> known = CutCostsOf(runner.problem().cluster());
  CutFit fit = known ? CutFit(*known) : CutFit();
  Choice choice(runner, options);
  size_t corrected = 0;  // how many plans had been run by then
  for (size_t round = 1; tuning.plans.size() < options.plans && !options.stopped(); ++round) {
    const std::vector<Placement> plans = choice.Next(options.plans - tuning.plans.size(), FastestFirst(tuning.plans));
    if (plans.empty()) break;
    const std::vector<PlanRun> ran = runner.Run(plans, options.runs, options.stop, [&](size_t done) {
      progress(fmt::format("plan {} of {}", tuning.plans.size() + done, options.plans));
    });
    for (const PlanRun& run : ran) tuning.plans.push_back({run, round});
    AddTo(fit, runner.problem(), ran);
    if (!options.correct || fit.num_parts() == 0 || !AreOff(std::span(tuning.plans).subspan(corrected))) continue;
    runner.SetCosts(fit.Fit(), fmt::format("{} parts of this model's runs", fit.num_parts()));
    choice.SearchAnew();
    corrected = tuning.plans.size();
  }
  const std::vector<PlanRun> order = FastestFirst(tuning.plans);
  std::vector<Placement> best;
  // What a moment of the machine flattered must not be answered where one device alone is faster: the one that was the
  // fastest in all turns, which need not be the one that was predicted to be.
  if (const std::optional<DeviceId> alone = runner.fastest_alone(); alone && !order.empty()) {
    best.emplace_back(runner.problem().num_ops(), *alone);
  }
  for (size_t i = 0; i < std::min(kFinalists, order.size()); ++i) {
    if (best.empty() || order[i].device != best.front()) best.push_back(order[i].device);
  }
  if (!best.empty() && !options.stopped()) {
    const size_t runs = (options.final_runs + kFirstTurns - 1) / kFirstTurns;
    size_t turn = 0;
    tuning.finals = RunFinals(best, [&](const Placements& plans) {
      ++turn;
      progress(fmt::format("the fastest once more, turn {} of {}", turn,
                           (turn + kFirstTurns - 1) / kFirstTurns * kFirstTurns));
      return runner.Run(plans, runs, options.stop, [](size_t) {});
    });
  }
  if (tuning.finals.finalists.empty() && !order.empty()) {
    tuning.finals.turns = 0;
    tuning.finals.finalists.push_back({.runs = {order.front()}});
  }
  tuning.stopped = options.stopped();
  return tuning;
}

}  // namespace berth
