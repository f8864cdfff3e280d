// What share of its peak a device reaches with each class of ops, from profiles: `efficiency` in a device file.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "exec/openvino.h"
#include "graph/graph.h"
#include "placement/problem.h"

namespace berth {

// Of one class of ops on one device.
struct FittedEfficiency {
  DeviceId device{};
  OpClass op_class{};
  double before = 0;               // as the device file says, or else the default of the device's kind
  double efficiency = 0;           // above 0, at most 1
  bool capped = false;             // it would be above 1: the peak in the device file is too low
  size_t kernels = 0, models = 0;  // that it rests on
  double share = 0;                // of the device's time that these kernels take, every model counted alike
  // By how much the prediction is off for these kernels, the median of shares of the measured times.
  double off_before = 0, off_after = 0;
};

// Compares what kernels took with what `roofline` says of them (docs/costs.md), with the bandwidth and the overhead
// that the device file has. The kernels are those that the profile says ran as one. Their times are scaled so that they
// add up to what the whole model took without counters, since counters take time themselves.
//
// A kernel belongs to the class of its op with most FLOPs. One that took no longer than its bytes take by the file says
// nothing of how fast the device computes, and is left out. The efficiency of a class is the median of those with which
// its kernels would be predicted exactly, each weighted by its share of its model's time: a few kernels that are slow
// for reasons of their own (a depthwise convolution) move a median less than they move a sum, and a long model counts
// no more than a short one. Since a kernel may hold several classes, they are found in turns.
//
// A class keeps the file's number where fewer than 5 kernels or less than 1 % of the time are left. Devices that are
// equal in each model (exec/equal_devices.h) share a number. The overhead per op is not fitted, since profiles hardly
// determine it (docs/decisions/0010-running-models.md). Deterministic.
class EfficiencyFit {
 public:
  static constexpr size_t kLeastKernels = 5;
  static constexpr double kLeastShare = 0.01;

  // `profiles` by device of the problem; those that failed add nothing. All problems are of one cluster. Throws Error
  // where a device lacks what the roofline needs.
  void Add(const Problem& problem, std::span<const OpMeasurement> profiles);
  size_t num_models() const { return models_.size(); }

  // By device, then class; not those that keep the file's number. `without`: a model that is left out, by the order in
  // which they were added.
  std::vector<FittedEfficiency> Fit(const Cluster& cluster, std::optional<size_t> without = {}) const;

 private:
  using Efficiencies = std::array<double, kOpClasses>;

  // What the roofline adds up: launches * op_overhead + max(the sum of computing / efficiency, moving). Seconds.
  struct Kernel {
    OpClass op_class{};
    double launches = 0, moving = 0;
    Efficiencies computing{};  // by class, at the whole peak
    double measured = 0;

    double Time(double op_overhead, const Efficiencies& efficiency) const;
  };
  struct Model {
    std::vector<std::vector<Kernel>> kernels{};  // by device; none where it was not measured
    std::vector<double> seconds{};               // by device, of the whole model
    std::vector<size_t> equal_to{};              // by device, the same number for equal ones
  };
  // A kernel that says something of its class, by its share of its model's time.
  struct Sample {
    size_t device;
    const Kernel* kernel;
    double weight;
  };

  static std::vector<Kernel> KernelsOf(const Problem& problem, DeviceId device, const OpMeasurement& profile);
  static std::vector<FittedEfficiency> FitEqual(const Cluster& cluster, std::span<const Model* const> models,
                                                std::span<const size_t> devices);

  std::vector<Model> models_;
};

// The same devices with these numbers, marked as measured; the source says from what, and how widely kernels differ.
Cluster WithEfficiencies(const Cluster& cluster, std::span<const FittedEfficiency> fitted);

}  // namespace berth
