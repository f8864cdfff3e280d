#include "placement/op_profile.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "cluster/pace.h"
#include "placement/fusion.h"

namespace berth {
namespace {

// Of the larger half the smallest; 1 where there are none.
double MiddleRatio(std::vector<double> ratios) {
  if (ratios.empty()) return 1;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::ranges::nth_element(ratios, middle);
  return *middle;
}

// From the profile's times to those at the device's pace; exactly 1 where the two are the same but for how a file
// rounds them, or one is not known.
double FactorFor(const Device& device, const OpProfile& profile) {
  constexpr double kRounding = 1e-6;
  if (!(device.pace > 0) || !(profile.pace > 0) || std::abs(device.pace / profile.pace - 1) < kRounding) return 1;
  return Slowdown(device.pace, profile.pace);
}

class ProfileOnGraph {
 public:
  ProfileOnGraph(const OpProfile& profile, const Graph& graph, const Grouping& kernels)
      : graph_(graph), kernels_(kernels), seconds_(graph.num_ops(), 0), whole_(kernels.num_groups()) {
    for (const OpId op : graph.ops()) {
      const auto entry = profile.time_by_op.find(graph.op_name(op));
      if (entry == profile.time_by_op.end()) continue;
      ++found_;
      flops_ += graph.work(op).flops;
      seconds_[Index(op)] = entry->second.value;
      std::optional<double>& whole = whole_[Index(kernels.group_of(op))];
      whole = whole.value_or(0) + entry->second.value;
    }
  }

  size_t found() const { return found_; }
  double flops() const { return flops_; }  // of these

  // What was measured, times `factor`, and the rest scaled, in one device's column.
  void Apply(DeviceId device, double factor, size_t num_devices, OpTimes& times) const {
    const auto at = [&](OpId op) { return Index(op) * num_devices + Index(device); };
    std::vector<double> ratios;
    for (const GroupId kernel : kernels_.groups()) {
      if (!whole_[Index(kernel)]) continue;
      double predicted = 0;
      for (const OpId op : kernels_.ops_of(kernel)) predicted += times.time[at(op)];
      if (predicted > 0 && predicted < kCannotRun) ratios.push_back(factor * *whole_[Index(kernel)] / predicted);
    }
    const double scale = MiddleRatio(std::move(ratios));
    for (const OpId op : graph_.ops()) {
      if (times.time[at(op)] == kCannotRun) continue;
      if (measured(op)) {
        // Where the runtime does not name an op, its time is among that of the others.
        times.time[at(op)] = factor * seconds_[Index(op)];
        times.measured[at(op)] = 1;
      } else {
        times.time[at(op)] *= scale;
      }
    }
    for (Kernel& kernel : times.kernels) {
      for (size_t i = 0; i < kernel.ops.size(); ++i) {
        double& apart = kernel.apart[i * num_devices + Index(device)];
        if (measured(kernel.ops[i])) {
          apart = times.time[at(kernel.ops[i])];
        } else if (apart < kCannotRun) {
          apart *= scale;
        }
      }
    }
  }

  // What the ops of a kernel take apart. `roofline`: with the same kernels.
  void PartKernels(const OpTimes& roofline, DeviceId device, double factor, size_t num_devices, OpTimes& times) const {
    std::vector<std::optional<double>> apart(graph_.num_ops());
    for (const Kernel& kernel : roofline.kernels) {
      const std::optional<double>& whole = whole_[Index(kernels_.group_of(kernel.ops.front()))];
      double predicted = 0;
      for (const OpId op : kernel.ops) predicted += roofline.time[Index(op) * num_devices + Index(device)];
      // What takes no time by the roofline keeps its share of what was measured.
      if (!whole || !(predicted > 0) || predicted == kCannotRun) continue;
      for (size_t i = 0; i < kernel.ops.size(); ++i) {
        apart[Index(kernel.ops[i])] = kernel.apart[i * num_devices + Index(device)] * factor * *whole / predicted;
      }
    }
    for (Kernel& kernel : times.kernels) {
      for (size_t i = 0; i < kernel.ops.size(); ++i) {
        if (const std::optional<double>& time = apart[Index(kernel.ops[i])]) {
          kernel.apart[i * num_devices + Index(device)] = *time;
        }
      }
    }
  }

 private:
  bool measured(OpId op) const { return whole_[Index(kernels_.group_of(op))].has_value(); }

  const Graph& graph_;
  const Grouping& kernels_;
  size_t found_ = 0;
  double flops_ = 0;
  std::vector<double> seconds_;               // by op; 0 where the profile lacks it
  std::vector<std::optional<double>> whole_;  // by kernel: nothing where the profile has none of its ops
};

}  // namespace

Grouping KernelsOf(const OpProfile& profile, const Graph& graph) {
  // What a backward pass reads again is written, whatever ran as one without it: there the rules fuse nothing.
  const auto is_backward = [&](OpId op) { return graph.is_backward(op); };
  if (!profile.fused || std::ranges::any_of(graph.ops(), is_backward)) return FusedOps(graph);
  std::map<std::string_view, int32_t> label_of;  // by op name; beyond the numbers of ops
  for (size_t kernel = 0; kernel < profile.fused->size(); ++kernel) {
    for (const std::string& name : (*profile.fused)[kernel]) {
      label_of.emplace(name, static_cast<int32_t>(graph.num_ops() + kernel));
    }
  }
  std::vector<int32_t> label(graph.num_ops());
  std::iota(label.begin(), label.end(), 0);
  for (const OpId op : graph.ops()) {
    if (const auto known = label_of.find(graph.op_name(op)); known != label_of.end()) label[Index(op)] = known->second;
  }
  return Grouping(graph, label);
}

size_t ApplyProfile(const OpProfile& profile, const Graph& graph, const Cluster& cluster,
                    const std::vector<DeviceId>& devices, OpTimes& times) {
  const Grouping kernels = KernelsOf(profile, graph);
  const ProfileOnGraph found(profile, graph, kernels);
  if (found.found() == 0) {
    throw Error("{}: none of its {} is an op of {}: is it a profile of another model?", profile.path,
                Counted(static_cast<int64_t>(profile.time_by_op.size()), "op"), graph.name());
  }
  constexpr double kSame = 1e-3;
  if (profile.flops > 0 && found.found() == profile.time_by_op.size() &&
      std::abs(found.flops() / profile.flops - 1) > kSame) {
    throw Error(
        "{}: its times are of other sizes: its ops had {}, here they have {}; profile again with this --batch and --shape",
        profile.path, WithPrefix(profile.flops, "FLOP"), WithPrefix(found.flops(), "FLOP"));
  }
  const size_t num_devices = cluster.num_devices();
  if (times.measured.empty()) times.measured.assign(times.time.size(), 0);
  const auto factor = [&](DeviceId device) { return FactorFor(cluster.device(device), profile); };
  for (const DeviceId device : devices) found.Apply(device, factor(device), num_devices, times);
  JoinKernels(graph, kernels, times);
  if (kernels.num_groups() == graph.num_ops()) return found.found();
  const OpTimes roofline = RooflineTimes(graph, cluster, kernels);
  for (const DeviceId device : devices) found.PartKernels(roofline, device, factor(device), num_devices, times);
  return found.found();
}

}  // namespace berth
