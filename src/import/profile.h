// Measured times of ops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement/op_profile.h"

namespace berth {

// What `berth profile` writes: times by op, for each of several devices.
struct OpTimeTable {
  struct Row {
    std::string op;
    Seconds time{};
    std::string kind;  // how the time was found: "own", "shared", "joined", "none" (exec/openvino.h)
  };
  struct Column {
    std::string device;
    std::vector<Row> rows;
    Seconds whole{};                                // a run of the whole model without counters: the median
    double spread = 0;                              // of these: the longest less the shortest, as a share of it
    Seconds kernels{};                              // what the counters add up to: the median
    std::vector<std::vector<std::string>> fused{};  // ops that ran as one kernel, by name; no op in two
    Seconds pace{};                                 // of the device (Device::pace) at which all these times are told
    double flops = 0;                               // of these ops at the sizes at which they ran
  };
  std::string model, cluster, runtime, machine;
  int64_t runs = 0;
  std::vector<Column> columns{};
};
std::string WriteProfile(const OpTimeTable& table);

// Reads a file of measured times, known by content; one result per device that it speaks of:
// - WriteProfile's: each device's by its name;
// - what ONNX Runtime's profiler wrote, its Chrome trace: events of category Node named "<op>_kernel_time",
// microseconds. What an op takes in one run
//   is summed (bodies of loops run often); the median over the runs counts, without the first run where there are more;
// - its summary: {"nodes": [{"name": ..., "us_median": ..., "provider": ...}, ...]}, other keys are not read.
// The device of the latter two is the execution provider's that most ops ran on: "cpu", "gpu". Ops without a name are
// left out. Throws Error that names `path` and the place.
std::vector<OpProfile> ReadProfile(std::string_view content, const std::string& path);

}  // namespace berth
