// The model of a problem, run by OpenVINO in a process of its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "exec/worker_process.h"
#include "placement/evaluator.h"
#include "placement/problem.h"

namespace berth {

// A way to run the model.
struct RunWay {
  std::string how{};               // "parallel", "hetero", "alone", "default", "auto", "threads" (worker/session.h)
  std::vector<DeviceId> device{};  // by op: of "parallel" and "hetero"
  DeviceId on{};                   // of "alone"
  std::string first{};             // of "auto": CPU, GPU
};

// Times in seconds since the run began.
struct MeasuredPart {
  DeviceId device{};
  std::vector<OpId> ops{};
  double begin = 0, end = 0;
  double seconds = 0;  // from begin to end, the median of all rounds, each at the device's pace in the device file
};
struct MeasuredTransfer {
  std::optional<TensorId> tensor{};  // none: a tensor that is none of the graph's
  DeviceId from{}, to{};
  int64_t bytes = 0;
  double begin = 0, end = 0;  // from when it was made to when its reader began, where nothing else kept that waiting
};
struct OutputComparison {
  bool equal = false;
  double largest_difference = 0, tolerance = 0;  // as shares of an output's largest magnitude
  double finite = 1;                             // the share of values that are finite numbers
};

struct Measurement {
  std::string error{};            // why there is none; else empty
  std::vector<double> seconds{};  // by round
  double stolen = 0;              // the share of the time in which another process had the cores
  // By round, by how many times its devices were slower than at the paces of the device file (Device::pace), those
  // without one as fast; empty where none has one.
  std::vector<double> slowdown{};
  std::string precision{};  // the least exact of the devices that took part
  size_t subgraphs = 0;
  // Of the round in the middle but for the parts' medians; empty where the runtime does not tell them.
  std::vector<MeasuredPart> parts{};
  std::vector<MeasuredTransfer> transfers{};
  std::optional<OutputComparison> outputs{};  // beside the model on the first device in f32, where that was asked
  std::string no_reference{};                 // why there is none to compare with, where that was asked; else empty

  // The median of the rounds, each as it would have been at these paces; that of `seconds` where they are not known.
  double seconds_at_file_pace() const;
  // The median as measured over that one.
  double typical_slowdown() const;
};

// Seconds by op, from OpenVINO's counters, at the device's pace in the device file where that is known.
struct OpMeasurement {
  std::string error{};
  double pace = 0;  // the device's in the device file; 0: not known
  std::vector<double> op_seconds{};
  // By op: "own" a kernel, "shared" with other ops that it names, "joined" to one that does not name it, "none" of it
  // runs, "absent" from the runtime's reading of the model.
  std::vector<std::string> kind{};
  std::vector<std::vector<OpId>> kernels{};  // ops that ran as one, several each; no op in two
  std::vector<double> totals{};              // of all kernels, by round; one for all rounds where no counter tells
  std::vector<double> seconds{};             // of the same model without counters, by round, in turns with them
  double stolen = 0;                         // the share of these in which another process had the core
  std::optional<double> slowdown{};          // the median of the runs as measured over that of `seconds`
  double unassigned = 0;                     // the share of the kernels' time that belongs to no op
};

// What a runtime executes as one.
struct MeasuredKernel {
  std::string type{};       // the runtime's
  std::vector<OpId> ops{};  // that it names, ascending
};

// What a process that was started found of the model.
struct OpenedModel {
  size_t ops = 0, ops_found = 0;
  std::vector<std::string> ops_missing{};  // the first few
  size_t weights_filled = 0;               // constants of one value throughout, which random ones replace
  std::string version{};                   // of OpenVINO
};

// Of a question of berth-openvino (worker/session.h): the model's file, its sizes and its ops. Throws Error for what no
// runtime runs: a formula, training.
nlohmann::json ModelQuestion(const Graph& graph, const std::string& model_file);

// Seconds to wait for an answer whose runs should take `seconds`: half an hour to compile, and ten times as long.
inline double LimitFor(double seconds) { return 1800 + 10 * seconds; }

// So many rounds, or as many as what takes `seconds` in each needs to run for `least` in all, up to 250: in fewer, a
// moment at which the machine does something else would be in all of them.
inline size_t RoundsFor(size_t rounds, double seconds, double least) {
  constexpr double kMost = 250;
  return std::max(rounds, static_cast<size_t>(std::min(std::ceil(least / std::max(seconds, 1e-9)), kMost)));
}

// For one thread. A run that ends or blocks its process fails, and the next has a new one.
class OpenVino {
 public:
  // Opens the model at the sizes of the problem's graph. Throws Error where this build or this machine lacks what that
  // needs, where a device of the cluster is none here, and where OpenVINO does not take the model.
  // `program`: what is asked, berth-openvino where it is empty.
  OpenVino(const Problem& problem, const std::string& model_file, std::string program = {});

  const OpenedModel& opened() const { return opened_; }

  // From here on no run or profile is waited for longer, whatever Options::limit says. A model that is opened anew,
  // since its process died, has five minutes, as at first.
  void set_most_seconds(double seconds) { most_seconds_ = seconds; }

  struct Options {
    size_t rounds = 10;  // after one that warms up
    bool compare = false;
    double limit = 120;  // seconds; no answer after that is a failure
    StopCheck stop{};
  };
  // The ways take turns, a run each per round, so that what else the machine does meets all of them. Where one of them
  // ends or blocks the process, each is tried by itself, and those that do not do so run again together; one by one
  // where none does. Where computing what outputs are compared with does it, nothing is compared.
  std::vector<Measurement> Run(const std::vector<RunWay>& ways, const Options& options);
  // The whole model on each of these devices, with counters. The devices take turns, as ways do: a machine's speed
  // changes from minute to minute, and devices that are measured one after another would seem to differ.
  std::vector<OpMeasurement> Profile(std::span<const DeviceId> devices, const Options& options);
  // The same of a plan under HETERO. Where it cannot be measured, `error` says why, and ops have the problem's times.
  OpMeasurement ProfileHetero(std::span<const DeviceId> device, const Options& options);
  // What the whole model on `device` is made into, without running it. Throws Error where it does not compile.
  std::vector<MeasuredKernel> Kernels(DeviceId device);

 private:
  void Open(double limit, const StopCheck& stop = {});
  bool alive() const { return is_open_ && worker_->alive(); }
  std::vector<Measurement> RunTogether(const std::vector<RunWay>& ways, const Options& options);
  std::vector<Measurement> RunUncompared(const std::vector<RunWay>& ways, const Options& options,
                                         const std::string& because);
  nlohmann::json Ask(const nlohmann::json& question, const Options& options);
  Measurement Read(const nlohmann::json& answer) const;
  OpMeasurement ReadOps(const nlohmann::json& answer) const;

  const Problem& problem_;
  std::string model_file_;
  nlohmann::json question_;  // that opens the model
  std::string program_;
  double most_seconds_ = std::numeric_limits<double>::infinity();
  std::unique_ptr<WorkerProcess> worker_;
  bool is_open_ = false;  // a process that did not take the model is no use
  OpenedModel opened_;
};

// The timeline of a run, in the problem's unit. Within a part, of which the runtime tells no more than beginning and
// end, an op has the share that the problem's op times give it; `op_seconds`, where not empty, are one after another as
// long as the run. An op of which nothing is left at run time takes no time.
Timeline MakeMeasuredTimeline(const Problem& problem, std::span<const DeviceId> device, const Measurement& measurement,
                              std::span<const double> op_seconds = {});

// A device as berth-openvino is asked about it: name, runs_on, cores, precision. Throws Error as RunsOn does.
nlohmann::json RuntimeDeviceJson(const Device& device);

// What device files call a device, as a runtime does: its `runs_on`, or by its kind. Throws Error where neither tells.
std::string RunsOn(const Device& device);

// Whether that program is here.
bool CanRunModels();
// That program; throws Error, one line, where it is not here: "`purpose` needs OpenVINO".
std::string OpenVinoProgram(std::string_view purpose = "running models");

}  // namespace berth
