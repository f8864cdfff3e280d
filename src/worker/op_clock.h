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

// A kernel is what a runtime executes as one: a convolution with what follows it, a normalisation of eight ops. Its
// time is divided among its ops by their FLOPs. Kernels that hold no op, as those that turn a tensor around, belong to
// the kernel that reads them.
class OpClock {
 public:
  // `weights`: FLOPs by op; `compiled` ran with counters.
  OpClock(const LoadedModel& model, const ov::CompiledModel& compiled, std::vector<double> weights);

  // The counters after a run.
  void Add(const std::vector<ov::ProfilingInfo>& counters);

  // By op, in seconds. Counters count whole microseconds: the mean of the middle half of the runs tells more than their
  // median.
  std::vector<double> Seconds() const;
  const std::vector<OpTimeKind>& kinds() const { return kinds_; }
  // Which ops ran as one, several each, ascending: those of a kernel, and all kernels that one op has.
  const std::vector<std::vector<int32_t>>& OpsOfKernels() const { return ops_of_kernels_; }
  // Of all kernels, by run.
  const std::vector<double>& totals() const { return totals_; }
  // The share of the time in kernels that belong to no op at all.
  double Unassigned() const;

 private:
  struct Kernel {
    std::vector<int32_t> ops;
    std::vector<double> seconds;  // by run
  };
  void Join(const LoadedModel& model, const std::vector<int32_t>& kernel_of_node);
  void GatherOps(const std::vector<std::set<int32_t>>& kernels_of_op);

  std::vector<double> weights_;
  std::vector<Kernel> kernels_;
  std::map<std::string, size_t> kernel_of_name_;
  std::vector<OpTimeKind> kinds_;
  std::vector<std::vector<int32_t>> ops_of_kernels_;
  std::vector<double> totals_;
};

}  // namespace berth
