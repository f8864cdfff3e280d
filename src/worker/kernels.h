// What a compiled model executes: OpenVINO's runtime model, by the nodes of the model that was read.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>
#include <string>
#include <vector>

#include "worker/loaded_model.h"

namespace berth {

// A kernel is what a runtime executes as one: a convolution with what follows it, a normalisation of eight ops.
struct RuntimeKernel {
  std::shared_ptr<ov::Node> node;  // of the runtime model
  std::vector<int32_t> nodes;      // of the model that it names as its origin, by number
};

// What OpenVINO tells of a kernel ("layerType", "runtimePrecision"); empty where it does not.
std::string KernelInfo(const ov::Node& kernel, const std::string& key);

// In the runtime model's order, without inputs, outputs and constants. `order` keeps the runtime model alive.
std::vector<RuntimeKernel> KernelsOf(const LoadedModel& model, const std::vector<std::shared_ptr<ov::Node>>& order);

// [{"type": OpenVINO's, "ops": [numbers]}]: the ops whose own nodes each kernel names.
nlohmann::json DescribeKernels(const LoadedModel& model, const ov::CompiledModel& compiled);

}  // namespace berth
