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
// The same of a machine whose speed changed by this factor while plans were run. `times`: how they are told.
std::string UnsteadyLine(double factor,
                         const std::string& times = "times are told at one speed, which does not mend all of it");

// The same of runs that took this many times as long as they would have when the device file was measured; empty where
// that differs by less than such a measurement varies. `then`: what is told at the file's speed.
std::string PaceLine(double slowdown, const std::string& when, const std::string& then);

// "95 % interval", as MedianInterval gives it, or what it is of too few runs for one.
std::string IntervalHeading(bool enough);
// That interval; null of too few runs.
Json IntervalJson(const std::vector<double>& seconds);

// What stands beside the plan: each device alone, OpenVINO with all of their cores, and beside HETERO's plans what
// OpenVINO does by itself.
struct RunRow {
  std::string name{};
  bool one_device = false;   // alone
  bool own_threads = false;  // OpenVINO divides each op over all cores
  // Seconds; none where it would not fit, where the plan's constraints forbid it, and where the evaluator knows no time
  // of one run (`pipeline`).
  std::optional<double> predicted{};
  Measurement measured{};
};

struct MeasuredRun {
  std::string executor{};
  OpenedModel opened{};
  RunRow plan{};
  std::optional<size_t> alone_row{};  // the row of `others` that is the plan: all of it is on one device
  std::vector<RunRow> others{};
  Timeline timeline{};  // as measured; without ops where it failed
  // Why the ops in it have predicted times, as shares of the measured one; else empty.
  std::string ops_predicted_because{};
  std::vector<double> op_seconds{};  // by op, by HETERO's counters; empty for others

  // It ran, and its outputs are equal to those of the first device, or cannot be compared since that one alone does not
  // run the model.
  bool fine() const { return plan.measured.error.empty() && (!plan.measured.outputs || plan.measured.outputs->equal); }
};

// By which of the two a plan is run that was made under this evaluator, where nobody says.
std::string DefaultExecutor(const Evaluator& evaluator);

// Throws Error for what runs no plan.
void CheckExecutor(const std::string& executor);

// Runs the plan in turns with the others. `runtime`: of its model on its cluster. Where `stop` says so, it has failed,
// since it was stopped. `runtime_choices`: HETERO's plans run in turns with HETERO and AUTO by themselves too.
MeasuredRun RunMeasured(const SavedPlan& saved, OpenVino& runtime, const std::string& executor, size_t runs,
                        const StopCheck& stop = {}, bool runtime_choices = false);

// By what factor the machine was slower in one round than in another, a tenth of the rounds at either end aside; 1
// where no pace is known.
double SpeedChangeOf(const MeasuredRun& run);

// By how much `predicted` is off: 0.1 where it is 10 % more than `measured`.
inline double OffBy(double predicted, double measured) { return predicted / measured - 1; }

std::string RunPage(const SavedPlan& saved, const MeasuredRun& run);
Json RunJson(const SavedPlan& saved, const MeasuredRun& run);

}  // namespace berth
