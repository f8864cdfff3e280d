// Planning that learns from runs: plan on the simulator, run the best few, correct the simulator where it is off, and
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/plan_runs.h"

namespace berth {

struct TunedPlan {
  PlanRun run;
  size_t round = 0;  // from 1 on
};

// A plan that was compiled and run several times; once where that was stopped or failed.
struct Finalist {
  std::vector<PlanRun> runs;  // one of each compilation, in the order of the turns; at least one, and each has run

  const PlanRun& median() const;  // the one with the median time
  double fastest() const;         // seconds
  double slowest() const;
  double stolen() const;  // the largest share of a compilation's time in which other programs had the cores
  const std::vector<DeviceId>& device() const { return runs.front().device; }
  bool is_device_alone() const;
};

// In how many of the pairs of a compilation of the split and one of the device alone, of the turns that both had, the
// split took less time.
struct Wins {
  size_t won = 0, pairs = 0, needed = 0;

  bool enough() const { return won >= needed; }
};
// Of three turns all nine pairs are needed. Of six turns one compilation of the split may lose to all of the device's,
// as where another program takes a core of it meanwhile, and of nine two: 30 of 36, 63 of 81.
Wins CountWins(const Finalist& split, const Finalist& alone);

// How often the fastest plans are compiled and run again, and at most.
inline constexpr size_t kFirstTurns = 3, kMostTurns = 9;

struct Tuning {
  std::vector<TunedPlan> plans;
  // The fastest few and the fastest device alone, compiled and run again in turns: the fastest of many noisy runs
  // flatters itself, and a plan that is compiled again is a few percent faster or slower. Each has three turns; where
  // no split wins often enough, those whose median is below the device's have three more, and three more again. Where
  // that was stopped or failed, the fastest as it was; empty where none ran.
  std::vector<Finalist> finalists;
  size_t times_again = 0;  // how many turns there were
  // Those that were to be among them, and failed in one of these runs; why the first of them did.
  size_t failed_again = 0;
  std::string failure_again{};
  bool stopped = false;

  // Of at least one finalist: of the splits that win often enough against the device alone, the one with the smallest
  // median; where there is none, the device alone. A split that is just as fast as the device does so in one of 13
  // cases, at least one of three such splits in two of 11 (200,000 drawn cases).
  const Finalist& winner() const;
  const Finalist* device_alone() const;  // the one with the smallest median of these finalists; null: none
  double stolen() const;                 // the largest share of a plan's time in which other programs had the cores
};

struct TuneOptions {
  size_t plans = 20, runs = 10;
  size_t final_runs = 15;  // of each finalist in its first three turns, and of the answer, at least
  uint64_t seed = 1;
  bool correct = true;  // false: the best plans of the first prediction
  StopCheck stop{};

  bool stopped() const { return stop && stop(); }
};

// Runs at most so many different plans by the runner, the fastest device alone first, in five rounds. After a round
// whose predictions were off, the runner's costs of cuts are fitted to the runs of this model, and plans are searched
// anew. Ends early where searches, repeated with other seeds, find no more plans.
Tuning TunePlans(PlanRunner& runner, const TuneOptions& options,
                 const std::function<void(const std::string&)>& progress);

}  // namespace berth
