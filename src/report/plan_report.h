// A plan, what it scores, and how far that is from the best possible: the page that `plan` and `simulate` print.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "placement/bound.h"
#include "placement/evaluator.h"
#include "placement/planner.h"
#include "report/guesses.h"
#include "report/summary.h"

namespace berth {

struct PlanReport {
  std::string planner;  // canonical, or "given" where no planner made it
  uint64_t seed = 0;
  std::string budget;
  SearchEnd ended = SearchEnd::kItself;
  std::vector<std::string> constraints;  // that it keeps, as they were stated
  PlanResult result;
  Timeline timeline;
  RunSummary summary;
  Bound bound;
  // Scores beside the evaluations of the search: what its walks began with, what a weighted objective is relative to,
  // the timeline, and each device alone where somebody asked.
  int64_t set_up = 0;
  std::vector<double> single_device_time{};    // SingleDevices::times(), or empty where nobody asked
  std::vector<double> single_device_spread{};  // SingleDevices::spreads(), likewise
  std::optional<GuessReport> guesses{};        // where somebody asked and something is guessed

  // How far the objective is above its lower bound.
  double gap() const { return Gap(timeline.score.value(), bound.value()); }
  // Whether no plan is better: its planner proved it, or it is as good as the bound.
  bool optimal() const {
    return result.optimal || (timeline.score.fits() && bound.value() > 0 && timeline.score.value() <= bound.value());
  }
  double most_saved() const { return MostSaved(timeline.score.value(), bound.value()); }
};

// Traces result.plan. `bound` is the problem's, which reports of one problem share; a proof of optimality sharpens it.
PlanReport MakePlanReport(const Evaluator& evaluator, std::string planner, PlanResult result, const Bound& bound);

// The first of all devices that take the same time on their own.
std::vector<DeviceId> DistinctDevices(std::span<const double> single_device_time);

// What should be said of a search that was cut short, or that another run may end elsewhere; empty when all is well.
std::string DescribeEnd(SearchEnd ended);

// "resnet50: 230 ops, 8.18 GFLOP, 97.5 MiB of weights, on cpu_gpu (cpu, gpu)".
std::string DescribeProblem(const Problem& problem);

// The constraints that a plan keeps, the first few of them; empty without any.
std::string ConstraintLines(std::span<const std::string> constraints);

// The page: score and lower bound, a line per device, what limits the run, and why it does not fit if it does not.
std::string PlanPage(const Evaluator& evaluator, const PlanReport& report);

// The table of devices alone.
std::string DeviceTable(const Problem& problem, const PlanReport& report);

// What fills each device at its peak, one line per device: "gpu: weight fc.weight (7.81 MiB), ...".
std::string MemoryHolders(const Problem& problem, const Timeline& timeline, size_t holders);

// "7.2 %": how much of a device's memory its peak is; empty when the device has no limit.
std::string PeakShare(const Problem& problem, const Timeline& timeline, DeviceId device);

}  // namespace berth
