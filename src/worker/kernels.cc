#include "worker/kernels.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

namespace berth {
namespace {

bool Executes(const ov::Node& kernel) {
  const std::string type = KernelInfo(kernel, "layerType");
  return type != "Const" && type != "Input" && type != "Output" && type != "Parameter" && type != "Result";
}

// "a,b,c", where names may have commas themselves: the longest pieces that are names of the model.
std::vector<int32_t> NamedNodes(const std::string& list, const std::unordered_map<std::string, int32_t>& nodes) {
  std::vector<int32_t> found;
  for (size_t begin = 0; begin < list.size();) {
    size_t next = std::min(list.find(',', begin), list.size()) + 1;
    for (size_t end = list.size(); end > begin; end = end == 0 ? 0 : list.rfind(',', end - 1)) {
      if (end == std::string::npos) break;
      const auto node = nodes.find(list.substr(begin, end - begin));
      if (node == nodes.end()) continue;
      found.push_back(node->second);
      next = end + 1;
      break;
    }
    begin = next;
  }
  return found;
}

}  // namespace

std::string KernelInfo(const ov::Node& kernel, const std::string& key) {
  const auto found = kernel.get_rt_info().find(key);
  return found == kernel.get_rt_info().end() ? std::string() : found->second.as<std::string>();
}

std::vector<RuntimeKernel> KernelsOf(const LoadedModel& model, const std::vector<std::shared_ptr<ov::Node>>& order) {
  std::unordered_map<std::string, int32_t> node_of_name;
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    node_of_name.emplace(model.nodes[node]->get_friendly_name(), static_cast<int32_t>(node));
  }
  std::vector<RuntimeKernel> kernels;
  for (const std::shared_ptr<ov::Node>& node : order) {
    if (Executes(*node)) kernels.push_back({node, NamedNodes(KernelInfo(*node, "originalLayersNames"), node_of_name)});
  }
  return kernels;
}

nlohmann::json DescribeKernels(const LoadedModel& model, const ov::CompiledModel& compiled) {
  const std::shared_ptr<const ov::Model> runtime = compiled.get_runtime_model();
  nlohmann::json kernels = nlohmann::json::array();
  for (const RuntimeKernel& kernel : KernelsOf(model, runtime->get_ordered_ops())) {
    std::set<int32_t> ops;
    for (const int32_t node : kernel.nodes) {
      if (model.named[static_cast<size_t>(node)]) ops.insert(model.op_of[static_cast<size_t>(node)]);
    }
    kernels.push_back({{"type", KernelInfo(*kernel.node, "layerType")}, {"ops", ops}});
  }
  return kernels;
}

}  // namespace berth
