#include "exec/openvino_ir.h"

#include <algorithm>

#include "base/error.h"
#include "exec/openvino.h"

namespace berth {
namespace {

constexpr double kWriteLimit = 600;  // seconds; large weights take their time

std::vector<IrDevice> UsedDevices(const Cluster& cluster, std::span<const DeviceId> device) {
  std::vector<IrDevice> used;
  for (const DeviceId id : cluster.ids()) {
    if (std::ranges::count(device, id) == 0) continue;
    const std::string runs_on = RunsOn(cluster.device(id));
    const auto is_same = [&](const IrDevice& other) { return RunsOn(cluster.device(other.device)) == runs_on; };
    const auto same = std::ranges::count_if(used, is_same);
    if (same > 0 && runs_on != "CPU") {
      throw Error(
          "devices {} and {} both run on {}; say in the device file which is which, like `runs_on: {}.0` and "
          "`runs_on: {}.1`",
          cluster.device(std::ranges::find_if(used, is_same)->device).name, cluster.device(id).name, runs_on, runs_on,
          runs_on);
    }
    used.push_back(
        {.device = id, .plugin = runs_on + std::string(static_cast<size_t>(same), 'B'), .more_cpu = same > 0});
  }
  return used;
}

}  // namespace

WrittenIr WriteOpenVinoIr(const Problem& problem, std::span<const DeviceId> device, const std::string& model_file,
                          const std::string& xml) {
  nlohmann::json question = ModelQuestion(problem.graph(), model_file);
  WrittenIr written{.devices = UsedDevices(problem.cluster(), device)};
  nlohmann::json devices = nlohmann::json::array(), places = nlohmann::json::array();
  for (const IrDevice& one : written.devices) {
    devices.push_back(RuntimeDeviceJson(problem.cluster().device(one.device)));
    devices.back()["plugin"] = one.plugin;
  }
  for (const DeviceId id : device) {
    const auto at = std::ranges::find(written.devices, id, &IrDevice::device);
    places.push_back(at - written.devices.begin());
  }
  question.update({{"do", "write_ir"}, {"devices", devices}, {"device", places}, {"to", WorkerPath(xml)}});
  WorkerProcess worker(OpenVinoProgram());
  const nlohmann::json answer = worker.AskAbout(model_file, question, kWriteLimit);
  for (size_t i = 0; i < written.devices.size(); ++i) {
    for (const auto& [key, value] : answer.at("devices").at(i).at("settings").items()) {
      written.devices[i].settings.emplace_back(key, value);
    }
  }
  written.ops = answer.at("ops");
  written.ops_found = answer.at("ops_found");
  written.ops_missing = answer.at("ops_missing");
  return written;
}

}  // namespace berth
