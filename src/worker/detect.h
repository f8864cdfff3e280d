// Micro-benchmarks of devices and of the ways between them.
#pragma once

#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>
#include <vector>

#include "worker/devices.h"

namespace berth {

// For about so many seconds in all. {"devices": [{"rates": {"f32": {"matmul_flops": [...], "conv_flops": [...]}, ...},
// "bandwidth": [...], "op_overhead": [...], "pace": [...]}], "links": [row-major: null, or {"latency": [...],
// "bandwidth": [...]}]}: FLOP/s, bytes per second and seconds, one number per repetition. Rates are those of f32, of
// the device's own precision, and of i8, of a quantized model, where the device computes that with 8-bit operands. The
// paces (worker/pace.h, of a processor) are all that were measured meanwhile, and the device's others are told at their
// median. Links of a device that is no CPU, and the diagonal, are null.
nlohmann::json Detect(ov::Core& core, const std::vector<RuntimeDevice>& devices, double seconds);

}  // namespace berth
