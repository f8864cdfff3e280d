#include "worker/ir_writer.h"

#include <filesystem>
#include <openvino/op/ops.hpp>
#include <openvino/pass/serialize.hpp>
#include <unordered_set>

#include "base/error.h"
#include "worker/devices.h"
#include "worker/loaded_model.h"

namespace berth {
namespace {

void MakeNamesUnique(const std::vector<std::shared_ptr<ov::Node>>& nodes) {
  std::unordered_set<std::string> taken;
  for (const std::shared_ptr<ov::Node>& node : nodes) {
    const std::string name = node->get_friendly_name();
    for (size_t copy = 2; !taken.insert(node->get_friendly_name()).second; ++copy) {
      node->set_friendly_name(name + "/" + std::to_string(copy));
    }
  }
}

}  // namespace

nlohmann::json WriteIr(const nlohmann::json& question, ov::Core& core) {
  const std::string path = question.at("model");
  const LoadedModel loaded = LoadModel(question, core, {.as_in_file = true});
  const auto device = question.at("device").get<std::vector<size_t>>();
  std::vector<RuntimeDevice> devices;
  nlohmann::json described = nlohmann::json::array();
  for (const nlohmann::json& entry : question.at("devices")) {
    devices.push_back({.name = entry.at("name"),
                       .runs_on = entry.at("runs_on"),
                       .cores = entry.at("cores").get<std::vector<int>>(),
                       .plugin = entry.at("plugin"),
                       .precision = PrecisionOf(entry)});
    nlohmann::json settings = nlohmann::json::object();
    for (const auto& [key, value] : Settings(devices.back())) settings[key] = value.as<std::string>();
    described.push_back({{"plugin", devices.back().plugin}, {"settings", settings}});
  }

  const std::vector<std::shared_ptr<ov::Node>> nodes = loaded.model->get_ordered_ops();
  MakeNamesUnique(nodes);
  for (const std::shared_ptr<ov::Node>& node : nodes) {
    const std::string& plugin = devices.at(device.at(static_cast<size_t>(std::max(loaded.OpOf(*node), 0)))).plugin;
    loaded.model->set_rt_info(plugin, "affinity", node->get_friendly_name());
  }
  const std::string xml = question.at("to");
  try {
    ov::serialize(loaded.model, xml, std::filesystem::path(xml).replace_extension(".bin").string());
  } catch (const std::exception& exception) {
    throw Error("{}: OpenVINO cannot write it as {}: {}", path, xml, Brief(exception));
  }
  return {{"devices", described},
          {"nodes", nodes.size()},
          {"ops", loaded.ops},
          {"ops_found", loaded.ops_found},
          {"ops_missing", loaded.ops_missing}};
}

}  // namespace berth
