// Measured times of ops, and what was measured as one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placement/costs.h"

namespace berth {

// Measured times of one device, by op name.
struct OpProfile {
  std::string path;
  std::string device;  // the device or kind that it speaks of, as the file says; empty when it does not say
  std::map<std::string, Seconds, std::less<>> time_by_op;
  double pace = 0;   // of the device at which these times are (Device::pace), seconds; 0: not known
  double flops = 0;  // of all its ops at the sizes at which they ran; 0: not known
  // Ops that ran as one kernel, several each and no op in two; nothing where the file does not say.
  std::optional<std::vector<std::vector<std::string>>> fused{};
  // Has times of a GPU by ONNX Runtime's profiler, which are not what its ops take (docs/costs.md).
  bool launch_times = false;
};

// What of the graph ran as one: as the profile says, else by the rules of FusedOps; nothing where there is a backward
// pass.
Grouping KernelsOf(const OpProfile& profile, const Graph& graph);

// Replaces the column of every device in `devices` by what the profile has, at the device's own pace where both paces
// are known; what it lacks stays predicted, scaled by
// the median ratio measured / predicted over the kernels that it has (`scaled`), and stays marked as predicted. What
// ran as one are kernels of `times` afterwards, on all devices; apart an op of such a kernel takes what the roofline
// says that it takes alone, scaled by measured / predicted of the kernel. Returns how many of the graph's ops were
// found. Throws Error when none was, when the graph has all of them at other sizes, and where something ran as
// one and a device lacks what the roofline needs.
size_t ApplyProfile(const OpProfile& profile, const Graph& graph, const Cluster& cluster,
                    const std::vector<DeviceId>& devices, OpTimes& times);

}  // namespace berth
