// What a machine can do, measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace berth {

struct DetectOptions {
  std::vector<int> cores{};  // of the processor, that may be used
  size_t split = 1;          // into how many devices they are divided
  // Of the processor's devices, one each; one alone is that of all; none: f32.
  std::vector<std::string> precisions{};
  double memory = 0;                               // bytes of the machine's, 0: not known
  double seconds = 50;                             // how long it may measure in all, about
  std::function<void(const std::string&)> warn{};  // told of each device that could not be measured
  std::string program{};                           // what measures, berth-openvino where it is empty
};

// Of these cores one per physical one, the first thread of each, as the kernel tells them apart in `folder`; all of
// those of which it says nothing.
std::vector<int> OnePerPhysicalCore(const std::vector<int>& cores,
                                    const std::string& folder = "/sys/devices/system/cpu");

// This machine as a cluster: every device that OpenVINO finds, and the processor's cores as one device or, of equal
// size, several. Each number says how it was measured and how far repeated measurements were apart. A device that
// cannot be measured is left out. Throws Error where OpenVINO is not here, and where no device can be measured.
Cluster DetectMachine(const DetectOptions& options);

}  // namespace berth
