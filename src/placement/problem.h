// Graph + Cluster + costs + constraints: the question a Planner answers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "graph/graph.h"

namespace berth {

// Per op and device, in the Problem's time unit: row-major, num_ops x num_devices, contiguous. kCannotRun (infinity)
// where the device cannot or must not run the op.
inline constexpr double kCannotRun = std::numeric_limits<double>::infinity();
// The time of what does not happen.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

// Ops that a runtime executes as one. Their times are those of the kernel, which one of them has, the others take none;
// that holds as long as they share a device.
struct Kernel {
  std::vector<OpId> ops{};      // ascending, at least two
  std::vector<double> apart{};  // ops x devices: how long each takes as a kernel of its own
};

struct OpTimes {
  std::vector<double> time{};
  // Same shape: 1 where the number was measured (a profile), 0 where a model predicted it. Empty: all predicted.
  std::vector<uint8_t> measured{};
  std::vector<Kernel> kernels{};     // no op is in two
  std::string source{};              // how they were made, canonical: "roofline", "profile(file=...)+roofline"
  std::vector<std::string> notes{};  // what a reader must know before believing them: sentences
};

// The tensor never goes from one device to the other: not its producer on `from` and a consumer on `to` at once.
struct ForbiddenTransfer {
  TensorId tensor{};
  DeviceId from{}, to{};
  auto operator<=>(const ForbiddenTransfer&) const = default;
};

// Constraints on placements; all data, so that planners can look at them. docs/constraints.md says how people state
// them.
struct Constraints {
  // Groups of ops that share a device.
  std::vector<std::vector<OpId>> colocate{};
  // Pairs of ops that must not share a device.
  std::vector<std::pair<OpId, OpId>> separate{};
  // Ascending, each once.
  std::vector<ForbiddenTransfer> forbidden_transfers{};
  // Ops that pins and forbids keep from devices that could run them, ascending: what reports call a rule and no
  // inability.
  std::vector<OpId> narrowed{};

  // Whether any rule joins several ops; those of one op stand in the op times.
  bool empty() const { return colocate.empty() && separate.empty() && forbidden_transfers.empty(); }
  bool forbids(TensorId tensor, DeviceId from, DeviceId to) const {
    return !forbidden_transfers.empty() && std::binary_search(forbidden_transfers.begin(), forbidden_transfers.end(),
                                                              ForbiddenTransfer{tensor, from, to});
  }
};

// Immutable; cheap to move, and copied only on purpose. Flat arrays, O(1) accessors.
class Problem {
 public:
  struct Options {
    double seconds_per_unit = 1;               // the time unit of all costs: 1e-6 for a data set in microseconds
    std::vector<double> explicit_transfers{};  // tensors x devices x devices; empty for all but data sets that give it
    // Per tensor, in time units: what a device pays to send it to, or to fetch it from, the host's memory. A data set's
    // own rule (Tarnawski et al. 2020, section 3); empty for all others.
    std::vector<double> staging{};
    Constraints constraints{};             // pins and forbids stand in OpTimes as kCannotRun
    std::vector<int64_t> memory_limits{};  // per device; empty: the cluster's
  };

  // Kernels share a device: the constraints get their ops beside what they demand already. Those that the constraints
  // part, or that no device can run whole, are none: their ops take the time that they take apart.
  // Throws Error naming the op when some op can run on no device at all, and where times, or the energy of so long a
  // time, add up to more than a double can hold.
  Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster, OpTimes times);
  Problem(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster, OpTimes times, Options options);

  // The same with other constraints. O(size).
  Problem With(Constraints constraints) const;

  const Graph& graph() const { return *graph_; }
  const Cluster& cluster() const { return *cluster_; }
  const std::shared_ptr<const Graph>& shared_graph() const { return graph_; }
  const std::shared_ptr<const Cluster>& shared_cluster() const { return cluster_; }
  size_t num_ops() const { return graph_->num_ops(); }
  size_t num_devices() const { return num_devices_; }

  // Duration of an op on a device, in time units; kCannotRun where it cannot run.
  double op_time(OpId op, DeviceId device) const { return times_.time[Index(op) * num_devices_ + Index(device)]; }
  std::span<const double> op_times(OpId op) const {
    return {times_.time.data() + Index(op) * num_devices_, num_devices_};
  }
  bool can_run(OpId op, DeviceId device) const { return op_time(op, device) < kCannotRun; }
  bool measured(OpId op, DeviceId device) const {
    return !times_.measured.empty() && times_.measured[Index(op) * num_devices_ + Index(device)] != 0;
  }
  const std::string& cost_source() const { return times_.source; }
  const std::vector<std::string>& cost_notes() const { return times_.notes; }
  // Those that are whole wherever they are.
  std::span<const Kernel> kernels() const { return times_.kernels; }
  // How many others the costs know, which are apart.
  size_t split_kernels() const { return split_kernels_; }

  // latency + bytes / bandwidth, evaluated in this order (the reference says so, to the last bit); from != to. 0 for
  // the graph's constants; what the data set says, where it gives times.
  double transfer_time(TensorId tensor, DeviceId from, DeviceId to) const {
    const size_t route = Index(from) * num_devices_ + Index(to);
    if (!explicit_transfers_.empty()) [[unlikely]]
      return explicit_transfers_[Index(tensor) * num_devices_ * num_devices_ + route];
    if (graph_->is_constant(tensor)) [[unlikely]]
      return 0;
    return latency_[route] + static_cast<double>(graph_->tensor_bytes(tensor)) / bandwidth_[route];
  }
  // The same for a number of bytes that is no tensor's (graph inputs).
  double transfer_time(int64_t bytes, DeviceId from, DeviceId to) const {
    const size_t route = Index(from) * num_devices_ + Index(to);
    return latency_[route] + static_cast<double>(bytes) / bandwidth_[route];
  }
  // Row-major num_devices x num_devices, in time units and bytes per time unit; the diagonal is 0 and infinity.
  std::span<const double> latency() const { return latency_; }
  std::span<const double> bandwidth() const { return bandwidth_; }
  bool has_staging() const { return !staging_.empty(); }
  // Devices of kind "cpu" work in the host's memory: to them staging costs nothing, and `pieces` gives them as many
  // cores as there are ops.
  bool on_host(DeviceId device) const { return on_host_[Index(device)] != 0; }
  double staging(TensorId tensor) const { return staging_[Index(tensor)]; }
  // Whether a data set gives the times of whole transfers (Options::explicit_transfers). Not so where some tensors are
  // constant: these take no time, and all others follow the links.
  bool has_explicit_transfers() const { return !explicit_transfers_.empty(); }

  // Bytes; INT64_MAX when unlimited.
  int64_t memory_limit(DeviceId device) const { return memory_limits_[Index(device)]; }
  bool has_memory_limits() const;

  const Constraints& constraints() const { return constraints_; }

  double seconds_per_unit() const { return seconds_per_unit_; }
  Seconds ToSeconds(double units) const { return {units * seconds_per_unit_}; }

  // A hash of all numbers that enter a score: the graph's, the cluster's, the op times.
  uint64_t fingerprint() const;

 private:
  void CheckTotals() const;
  void JoinKernels();

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Cluster> cluster_;
  OpTimes times_;
  size_t split_kernels_ = 0;
  size_t num_devices_;
  double seconds_per_unit_;
  std::vector<double> latency_, bandwidth_;
  std::vector<double> explicit_transfers_;  // tensors x devices x devices; empty where no data set gives them
  std::vector<double> staging_;
  std::vector<uint8_t> on_host_;
  std::vector<int64_t> memory_limits_;
  Constraints constraints_;
};

}  // namespace berth
