// The fastest of many noisy runs flatters itself, and a plan that is compiled again is a few percent faster or slower.
// So the fastest plans and the fastest device alone are compiled and run again, in turns, until one can tell.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cli/plan_runs.h"

namespace berth {

// A plan that was compiled and run several times; once where that was stopped or failed.
struct Finalist {
  std::vector<PlanRun> runs;  // one of each compilation, in the order of the turns; at least one, and each has run

  double seconds() const;  // the median of the compilations; with an even number of them the mean of the middle two
  double fastest() const;
  double slowest() const;
  double stolen() const;  // the largest share of a compilation's time in which other programs had the cores
  const std::vector<DeviceId>& device() const { return runs.front().device; }
  bool is_device_alone() const;
};

// In the first go, and at most in all.
inline constexpr size_t kFirstTurns = 3, kMostTurns = 9;

// Each compilation of a split beside each of a device alone, of the turns that both had.
struct Wins {
  size_t pairs = 0;
  // In how many of them the split took less time both at the file's speed and as measured: what is faster by one of the
  // two only is so by what the processor's speed did meanwhile.
  size_t won = 0;
  size_t needed = 0;

  bool enough() const { return won >= needed; }
};
// 9 of 9 pairs are needed after three turns, 30 of 36 after six, 63 of 81 after nine: one compilation of six, or two of
// nine, may lose to all of the device's, as where another program takes a core of the split meanwhile.
Wins CountWins(const Finalist& split, const Finalist& alone);

struct Finals {
  std::vector<Finalist> finalists;
  size_t turns = 0;  // 0: nothing was run again
  // How many plans failed in one of these runs, and why the first of them did. A plan that failed in the first three
  // turns is no finalist; one that failed later keeps the turns before.
  size_t failed = 0;
  std::string failure{};

  // The one with the smallest median of the first three turns; null where there is none.
  const Finalist* device_alone() const;
  // Of at least one finalist: of the splits that win often enough against the device alone, the one with the smallest
  // median; where there is none, the device alone. A split that is just as fast as the device wins by chance in one of
  // 13 cases, at least one of three such splits in two of 11 (200,000 drawn cases).
  const Finalist& winner() const;
};

using Placements = std::vector<std::vector<DeviceId>>;
// Compiles and runs each of these once, in this order; fewer where it was stopped.
using RunTurn = std::function<std::vector<PlanRun>(const Placements&)>;

// Plans that differ from one another: three turns of all; where no split has won then, three more of the device alone
// and of the splits that have a smaller median than it, and three more again. Where somebody stops it, the go of three
// turns that was not finished does not count.
Finals RunFinals(const Placements& plans, const RunTurn& run_turn);

}  // namespace berth
