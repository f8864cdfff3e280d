// A placed model as OpenVINO's IR, written by OpenVINO itself.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "placement/problem.h"

namespace berth {

struct IrDevice {
  DeviceId device{};
  std::string plugin{};   // under which OpenVINO knows it: CPU, GPU.1
  bool more_cpu = false;  // a further share of the CPU's cores, CPUB, which OpenVINO does not know by itself
  std::vector<std::pair<std::string, std::string>> settings{};
};

struct WrittenIr {
  std::vector<IrDevice> devices{};         // those that the plan uses, by number
  size_t ops = 0, ops_found = 0;           // of the graph's, those that OpenVINO's reading has, too
  std::vector<std::string> ops_missing{};  // the first few
};

// Writes `xml`, which ends in .xml, and the .bin beside it, with weights as the file has them and sizes as the graph
// has them; the model's rt_info says for each node which device it is for (worker/ir_writer.h). None of the devices
// need be here. Throws Error where this build lacks OpenVINO, where OpenVINO does not take the model, and for devices
// that it cannot tell apart.
WrittenIr WriteOpenVinoIr(const Problem& problem, std::span<const DeviceId> device, const std::string& model_file,
                          const std::string& xml);

}  // namespace berth
