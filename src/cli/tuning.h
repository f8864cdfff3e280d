// Planning that learns from runs: plan on the simulator, run the best few, correct the simulator where it is off, and
// again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/plan_runs.h"

namespace berth {

struct TunedPlan {
  PlanRun run;
  size_t round = 0;  // from 1 on
};

// A plan that was compiled and run several times; once where that was stopped or failed, and then all three times are
// equal. Times in seconds.
struct Finalist {
  PlanRun run;                      // of the compilation with the median time
  double fastest = 0, slowest = 0;  // of the compilations
  double stolen = 0;                // the largest share of a compilation's time in which other programs had the cores

  bool is_device_alone() const;
};

struct Tuning {
  std::vector<TunedPlan> plans;
  // The fastest few and the fastest device alone, compiled and run again in turns: the fastest of many noisy runs
  // flatters itself, and a plan that is compiled again is a few percent faster or slower. Where that was stopped or
  // failed, the fastest as it was; empty where none ran.
  std::vector<Finalist> finalists;
  size_t times_again = 0;  // how often each of them was compiled and run again
  // Those that were to be among them, and failed in one of these runs; why the first of them did.
  size_t failed_again = 0;
  std::string failure_again{};
  bool stopped = false;

  // Of at least one finalist: of the splits that were faster in each compilation than the device alone in any, the one
  // with the smallest median; where there is none, the device alone. By chance a given split that is as fast as the
  // device does so in one of twenty cases (three and three compilations), one of three such splits in one of eight.
  const Finalist& winner() const;
  bool has_device_alone() const;  // among the finalists
  double stolen() const;          // the largest share of a plan's time in which other programs had the cores
};

struct TuneOptions {
  size_t plans = 20, runs = 10;
  size_t final_runs = 15;  // of each finalist in all, and of the answer, at least
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
