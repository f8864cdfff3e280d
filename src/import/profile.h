// Measured times of ops.
#pragma once

#include <string>
#include <string_view>

#include "placement/costs.h"

namespace berth {

// Reads what ONNX Runtime's profiler wrote, known by content:
// - its Chrome trace: events of category Node named "<op>_kernel_time", microseconds. What an op takes in one run is
// summed
//   (bodies of loops run often); the median over the runs counts, without the first run where there are more;
// - its summary: {"nodes": [{"name": ..., "us_median": ..., "provider": ...}, ...]}, other keys are not read.
// The device is the execution provider's that most ops ran on: "cpu", "gpu". Ops without a name are left out. Throws
// Error that names `path` and the place.
OpProfile ReadProfile(std::string_view content, const std::string& path);

}  // namespace berth
