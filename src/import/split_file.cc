#include "import/split_file.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/file.h"
#include "base/json_object.h"

namespace berth {
namespace {

using nlohmann::json;

class SplitReader {
 public:
  SplitReader(const std::string& path, const Instance& instance)
      : path_(path), instance_(instance), device_(instance.graph->num_ops()) {
    for (const OpId op : instance.graph->ops()) op_of_[instance.file_ids[Index(op)]] = op;
  }

  // The devices of one list of the file are those of one kind, in the cluster's order.
  void ReadDevices(JsonObject& top, const std::string& key, std::string_view kind) {
    std::vector<DeviceId> devices;
    for (const DeviceId id : instance_.cluster->ids()) {
      if (instance_.cluster->device(id).kind == kind) devices.push_back(id);
    }
    const json& list = top.List(key);
    for (size_t i = 0; i < list.size(); ++i) {
      JsonObject entry(list[i], path_, fmt::format("{}[{}]", key, i));
      if (entry.Has("load")) entry.Number("load");
      const json& nodes = entry.List("nodes");
      if (!nodes.empty() && i >= devices.size()) {
        throw entry.Mistake(
            "", fmt::format("the instance has {} {}; move these {} nodes to them", devices.size(), key, nodes.size()));
      }
      for (size_t n = 0; n < nodes.size(); ++n) Place(nodes[n], entry, n, devices[i]);
      entry.Finish();
    }
  }

  Plan Finish() {
    FollowColourClasses();
    Plan plan;
    for (const OpId op : instance_.graph->ops()) {
      const std::optional<DeviceId> device = device_[Index(op)];
      if (!device) throw Error("{}: node {} is on no device; add it to one", path_, instance_.file_ids[Index(op)]);
      plan.device.push_back(*device);
    }
    plan.SetCause("given");
    return plan;
  }

 private:
  void Place(const json& node, const JsonObject& entry, size_t position, DeviceId device) {
    const std::string key = fmt::format("nodes[{}]", position);
    const auto found = node.is_number_integer() ? op_of_.find(node.get<int64_t>()) : op_of_.end();
    if (found == op_of_.end())
      throw entry.Mistake(key, fmt::format("{} is no node of the instance; is it another one's split?",
                                           node.is_number() ? node.dump() : node.type_name()));
    std::optional<DeviceId>& place = device_[Index(found->second)];
    if (place) {
      throw entry.Mistake(key, fmt::format("node {} is on {} already; list it once", node.dump(),
                                           instance_.cluster->device(*place).name));
    }
    place = device;
  }

  void FollowColourClasses() {
    for (const std::vector<OpId>& group : instance_.options.constraints.colocate) {
      std::optional<DeviceId> shared;
      for (const OpId op : group) {
        if (device_[Index(op)]) shared = device_[Index(op)];
      }
      for (const OpId op : group) {
        if (!device_[Index(op)]) device_[Index(op)] = shared;
      }
    }
  }

  const std::string& path_;
  const Instance& instance_;
  std::unordered_map<int64_t, OpId> op_of_;
  std::vector<std::optional<DeviceId>> device_;
};

// What upstream prints before the object, blanked, so that lines and columns in errors are the file's.
std::string WithoutPreamble(std::string_view content) {
  std::string text(content);
  for (char& c : text) {
    if (c == '{') break;
    if (c != '\n') c = ' ';
  }
  return text;
}

}  // namespace

bool LooksLikeSplit(std::string_view content) {
  return content.find("\"fpgas\"") != content.npos && content.find("\"cpus\"") != content.npos;
}

Plan ReadSplit(std::string_view content, const std::string& path, const Instance& instance) {
  if (!instance.is_whole() || instance.file_ids.empty()) {
    throw Error("{}: a split belongs to an instance of the MSR data set, and {} is none; name the instance", path,
                instance.graph->name());
  }
  const json document = ParseJson(WithoutPreamble(content), path);
  JsonObject top(document, path);
  SplitReader reader(path, instance);
  reader.ReadDevices(top, "fpgas", "acc");
  reader.ReadDevices(top, "cpus", "cpu");
  for (const std::string_view total : {"maxLoad", "totalLatency"}) {
    if (top.Has(total)) top.Number(total);
  }
  top.Finish();
  Plan plan = reader.Finish();
  if (const auto violation = FindViolation(instance.ToProblem(), plan.view())) {
    throw Error("{}: is no placement of {}: {}", path, instance.graph->name(), *violation);
  }
  return plan;
}

}  // namespace berth
