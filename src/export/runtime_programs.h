// Short programs that run what is handed to a runtime; src/export/programs has them as files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/cluster.h"

namespace berth {

// --- OpenVINO ------------------------------------------------------------------------------------------------

struct OpenVinoPlugin {
  std::string name;       // CPU, CPUB, GPU.1
  bool more_cpu = false;  // a further name of the CPU, which must be registered
  std::vector<std::pair<std::string, std::string>> settings{};
};

// run.py and run.cpp: read model.xml beside them, tell each node its device, compile with HETERO, and run. `title` is
// the model's and the cluster's.
std::string OpenVinoPython(const std::string& title, std::span<const OpenVinoPlugin> plugins);
std::string OpenVinoCpp(const std::string& title, std::span<const OpenVinoPlugin> plugins);

// --- ONNX Runtime --------------------------------------------------------------------------------------------

struct OrtProvider {
  std::string name;  // CUDAExecutionProvider
  std::vector<std::pair<std::string, std::string>> options{};
  size_t threads = 0;  // of a processor; 0: as ONNX Runtime likes
};

constexpr std::string_view kCuda = "CUDAExecutionProvider";

// What runs a device's parts: the CPU's own provider; CUDA for a gpu, by its number among these, with products and
// convolutions in f32 where that is the device's precision, else in TF32; OpenVINO's for an igpu, an npu, and what the
// device file says `runs_on` another of OpenVINO's names. Throws Error for another kind.
OrtProvider OrtProviderOf(const Cluster& cluster, DeviceId device);

// run.py: runs the parts as manifest.json has them.
std::string OnnxRuntimePython(const std::string& title);

}  // namespace berth
