// Planning that learns from runs: plan on the simulator, run the best few, correct the simulator where it is off, and
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/finals.h"
#include "cli/plan_runs.h"

namespace berth {

struct TunedPlan {
  PlanRun run;
  size_t round = 0;  // from 1 on
};

struct Tuning {
  std::vector<TunedPlan> plans;
  // Of the fastest few and the fastest device alone. Where that was stopped or failed, the fastest plan as it was, in
  // no turn; empty where none ran.
  Finals finals{};
  bool stopped = false;

  double stolen() const;        // the largest share of a plan's time in which other programs had the cores
  double speed_change() const;  // of the machine, a factor
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
