// A plan as it was predicted and as it ran.
#pragma once

#include <string>
#include <vector>

#include "cli/saved_plan.h"
#include "exec/openvino.h"
#include "exec/statistics.h"
#include "report/json.h"

namespace berth {

// A line for a page that says which share of some time other programs had the cores; empty where that is too little to
// matter. `of_what`: "of the time".
std::string DisturbedLine(double stolen, const std::string& of_what);
// The same of a machine whose speed changed by this factor while plans were run.
std::string UnsteadyLine(double factor);

// The same of runs that took this many times as long as they would have when the device file was measured; empty where
// that differs by less than such a measurement varies. `then`: what is told at the file's speed.
std::string PaceLine(double slowdown, const std::string& when, const std::string& then);

// "95 % interval", as MedianInterval gives it, or what it is of too few runs for one.
std::string IntervalHeading(bool enough);
// That interval; null of too few runs.
Json IntervalJson(const std::vector<double>& seconds);

// What stands beside the plan: each device alone, and OpenVINO with all of their cores.
struct RunRow {
  std::string name{};
  bool one_device = false;  // alone
  // Seconds; none where it would not fit, where the plan's constraints forbid it, and where the evaluator knows no time
  // of one run (`pipeline`).
  std::optional<double> predicted{};
  Measurement measured{};
};

struct MeasuredRun {
  std::string executor{};
  OpenedModel opened{};
  RunRow plan{};
  std::vector<RunRow> others{};
  Timeline timeline{};  // as measured; without ops where it failed
  // Why the ops in it have predicted times, as shares of the measured one; else empty.
  std::string ops_predicted_because{};

  // It ran, and its outputs are equal to those of the first device, or cannot be compared since that one alone does not
  // run the model.
  bool fine() const { return plan.measured.error.empty() && (!plan.measured.outputs || plan.measured.outputs->equal); }
};

// By which of the two a plan is run that was made under this evaluator, where nobody says.
std::string DefaultExecutor(const Evaluator& evaluator);

// Throws Error for what runs no plan.
void CheckExecutor(const std::string& executor);

// Runs the plan in turns with the others. `runtime`: of its model on its cluster. Where `stop` says so, it has failed,
// since it was stopped.
MeasuredRun RunMeasured(const SavedPlan& saved, OpenVino& runtime, const std::string& executor, size_t runs,
                        const StopCheck& stop = {});

// By how much `predicted` is off: 0.1 where it is 10 % more than `measured`.
inline double OffBy(double predicted, double measured) { return predicted / measured - 1; }

std::string RunPage(const SavedPlan& saved, const MeasuredRun& run);
Json RunJson(const SavedPlan& saved, const MeasuredRun& run);

}  // namespace berth
