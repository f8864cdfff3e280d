// Seconds by op, from the counters of OpenVINO's kernels.
#pragma once

#include <cstdint>
#include <map>
#include <openvino/openvino.hpp>
#include <set>
#include <string>
#include <vector>

#include "worker/loaded_model.h"

namespace berth {

// How the time of an op was found.
enum class OpTimeKind : uint8_t {
  kAbsent,  // the reader made nothing of it that has its name
  kNone,    // it runs in no kernel: nothing of it is left
  kOwn,     // a kernel that holds no other op
  kShared,  // a share, by FLOPs, of a kernel that names it beside others
  kJoined,  // the same of a kernel that does not name it: the one that its result leads to
};

// What a counter says after a run.
enum class CounterOf : uint8_t {
  kLastRun,
  kAllRuns,  // the mean since the model was compiled, as OpenVINO's CPU plugin has it
};

// A kernel is what a runtime executes as one: a convolution with what follows it, a normalisation of eight ops. Its
// time is divided among its ops by their FLOPs. Kernels that hold no op, as those that turn a tensor around, belong to
// the kernel that reads them.
class OpClock {
 public:
  // `weights`: FLOPs by op; `compiled` runs with counters, and has not run yet.
  OpClock(const LoadedModel& model, const ov::CompiledModel& compiled, std::vector<double> weights, CounterOf counters);

  // The counters after each run, and how long it took. The first run warms up and is not counted.
  void Add(const std::vector<ov::ProfilingInfo>& counters, double seconds);

  // By run but the first, by how many times the device was slower than its file says: times are told at the file's pace
  // then. Of kAllRuns only.
  void SetSlowdowns(std::vector<double> slowdowns) { slowdowns_ = std::move(slowdowns); }

  // By op, in seconds. Counters count whole microseconds: the mean of the middle half of the runs tells more than their
  // median. Where they are means themselves, these are scaled to what the middle half of the runs took.
  std::vector<double> Seconds() const;
  const std::vector<OpTimeKind>& kinds() const { return kinds_; }
  // Which ops ran as one, several each, ascending: those of a kernel, and all kernels that one op has.
  const std::vector<std::vector<int32_t>>& OpsOfKernels() const { return ops_of_kernels_; }
  // Of all kernels, by run; one for all runs where counters are means.
  std::vector<double> Totals() const;
  // The share of the time in kernels that belong to no op at all.
  double Unassigned() const;

 private:
  struct Kernel {
    std::vector<int32_t> ops;
    std::vector<double> seconds;  // by run: kLastRun
    double first = 0, sum = 0;    // of the first run, and of all: kAllRuns
  };
  double TimeOf(const Kernel& kernel) const;
  void Join(const LoadedModel& model, const std::vector<int32_t>& kernel_of_node);
  void GatherOps(const std::vector<std::set<int32_t>>& kernels_of_op);

  std::vector<double> weights_;
  std::vector<Kernel> kernels_;
  std::map<std::string, size_t> kernel_of_name_;
  CounterOf counters_;
  size_t runs_ = 0;                // with the one that warms up
  std::vector<double> run_times_;  // of the others
  std::vector<double> slowdowns_;  // of these; empty where nothing is known
  std::vector<OpTimeKind> kinds_;
  std::vector<std::vector<int32_t>> ops_of_kernels_;
};

}  // namespace berth
