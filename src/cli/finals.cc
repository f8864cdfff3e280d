#include "cli/finals.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "exec/statistics.h"
#include "placement/single_devices.h"

namespace berth {
namespace {

double MedianOf(std::span<const PlanRun> runs) {
  std::vector<double> seconds;
  for (const PlanRun& run : runs) seconds.push_back(run.seconds());
  return Median(seconds);
}

bool IsFaster(const PlanRun& one, const PlanRun& other) {
  return one.seconds() < other.seconds() && one.seconds_as_measured() < other.seconds_as_measured();
}

// All of these in three turns; empty where that was stopped.
std::vector<PlanRun> ThreeTurns(const Placements& plans, const RunTurn& run_turn) {
  std::vector<PlanRun> ran;
  for (size_t turn = 0; turn < kFirstTurns; ++turn) {
    std::vector<PlanRun> of_turn = run_turn(plans);
    if (of_turn.size() < plans.size()) return {};
    std::ranges::move(of_turn, std::back_inserter(ran));
  }
  return ran;
}

// Adds what these plans took in three turns. A plan of which one run failed gets none of them.
void Add(const Placements& plans, std::vector<PlanRun> ran, Finals& finals) {
  for (size_t i = 0; i < plans.size(); ++i) {
    Finalist played;
    const PlanRun* failed = nullptr;
    for (size_t k = i; k < ran.size(); k += plans.size()) {
      if (!ran[k].ran()) failed = &ran[k];
      if (!failed) played.runs.push_back(std::move(ran[k]));
    }
    if (failed) {
      if (finals.failed++ == 0) finals.failure = failed->measured.error;
      continue;
    }
    const auto known = std::ranges::find(finals.finalists, plans[i], &Finalist::device);
    if (known == finals.finalists.end()) {
      finals.finalists.push_back(std::move(played));
    } else {
      std::ranges::move(played.runs, std::back_inserter(known->runs));
    }
  }
}

// The device alone, and the splits that may yet turn out faster, of those that have had all turns; empty where all is
// decided.
Placements Undecided(const Finals& finals) {
  const Finalist* const alone = finals.device_alone();
  if (!alone || alone->runs.size() < finals.turns || !finals.winner().is_device_alone()) return {};
  Placements open;
  for (const Finalist& each : finals.finalists) {
    if (!each.is_device_alone() && each.runs.size() == finals.turns && each.seconds() < alone->seconds())
      open.push_back(each.device());
  }
  if (!open.empty()) open.insert(open.begin(), alone->device());
  return open;
}

}  // namespace

double Finalist::seconds() const { return MedianOf(runs); }
double Finalist::fastest() const { return std::ranges::min_element(runs, {}, &PlanRun::seconds)->seconds(); }
double Finalist::slowest() const { return std::ranges::max_element(runs, {}, &PlanRun::seconds)->seconds(); }

double Finalist::stolen() const {
  double most = 0;
  for (const PlanRun& run : runs) most = std::max(most, run.measured.stolen);
  return most;
}

bool Finalist::is_device_alone() const { return OnOneDevice(device()); }

Wins CountWins(const Finalist& split, const Finalist& alone) {
  const size_t turns = std::min(split.runs.size(), alone.runs.size());
  Wins wins{.pairs = turns * turns};
  for (size_t i = 0; i < turns; ++i) {
    for (size_t k = 0; k < turns; ++k) wins.won += IsFaster(split.runs[i], alone.runs[k]);
  }
  const size_t may_lose = turns < kFirstTurns ? 0 : turns / kFirstTurns - 1;  // compilations of the split
  wins.needed = wins.pairs - may_lose * turns;
  return wins;
}

const Finalist* Finals::device_alone() const {
  const auto at_first = [](const Finalist& each) {
    return MedianOf(std::span(each.runs).first(std::min(each.runs.size(), kFirstTurns)));
  };
  const Finalist* alone = nullptr;
  for (const Finalist& each : finalists) {
    if (each.is_device_alone() && (!alone || at_first(each) < at_first(*alone))) alone = &each;
  }
  return alone;
}

const Finalist& Finals::winner() const {
  const Finalist* const alone = device_alone();
  const Finalist* split = nullptr;
  for (const Finalist& each : finalists) {
    if (each.is_device_alone() || (alone && !CountWins(each, *alone).enough())) continue;
    if (!split || each.seconds() < split->seconds()) split = &each;
  }
  return split ? *split : *alone;
}

Finals RunFinals(const Placements& plans, const RunTurn& run_turn) {
  Finals finals;
  Placements open = plans;
  while (!open.empty() && finals.turns < kMostTurns) {
    std::vector<PlanRun> ran = ThreeTurns(open, run_turn);
    if (ran.empty()) break;
    finals.turns += kFirstTurns;
    Add(open, std::move(ran), finals);
    open = Undecided(finals);
  }
  return finals;
}

}  // namespace berth
