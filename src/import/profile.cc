#include "import/profile.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_object.h"

namespace berth {
namespace {

constexpr std::string_view kKernelSuffix = "_kernel_time";
constexpr std::string_view kGpu = "gpu";
constexpr std::string_view kProviderSuffix = "ExecutionProvider";
constexpr int64_t kTableVersion = 1;
constexpr double kLongest = 1e15;  // microseconds: thirty years
// ONNX Runtime names what it fuses by names of its own: an op that has a time ran by itself.
const std::vector<std::vector<std::string>> kNothingFused;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::ranges::max_element(values.begin(), middle)) / 2;
}

// "CPUExecutionProvider" -> "cpu"; providers that drive a GPU -> "gpu"; others in small letters.
std::string KindOf(std::string_view provider) {
  if (provider.ends_with(kProviderSuffix)) provider.remove_suffix(kProviderSuffix.size());
  std::string kind(provider);
  for (char& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const std::string_view gpu : {"cuda", "tensorrt", "nvtensorrtrtx", "rocm", "migraphx", "dml", "webgpu"}) {
    if (kind == gpu) return std::string(kGpu);
  }
  return kind;
}

std::string MostCommon(const std::map<std::string, size_t>& counts) {
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? std::string() : most->first;
}

OpProfile ReadSummary(const nlohmann::json& json, const std::string& path) {
  JsonObject file(json, path);
  const nlohmann::json& nodes = file.List("nodes");
  OpProfile profile{.path = path, .device = {}, .time_by_op = {}, .fused = kNothingFused};
  std::map<std::string, size_t> kinds;
  for (size_t i = 0; i < nodes.size(); ++i) {
    JsonObject node(nodes[i], path, fmt::format("nodes[{}]", i));
    const std::string name = node.Text("name");
    if (name.empty()) continue;
    if (node.Has("provider")) ++kinds[KindOf(node.Text("provider"))];
    const double microseconds = node.Number("us_median", 0, kLongest);
    if (!profile.time_by_op.emplace(name, Seconds{microseconds / 1e6}).second) {
      throw node.Mistake("name", fmt::format("a second '{}'; expected each op once", name));
    }
  }
  profile.device = MostCommon(kinds);
  profile.launch_times = kinds.contains(std::string(kGpu));
  return profile;
}

// Lists of names.
std::vector<std::vector<std::string>> ReadFused(JsonObject& device, const OpProfile& profile) {
  std::vector<std::vector<std::string>> fused;
  std::set<std::string, std::less<>> seen;
  for (const nlohmann::json& kernel : device.List("fused")) {
    const std::string place = fmt::format("[{}]", fused.size());
    const auto is_name = [](const nlohmann::json& name) { return name.is_string(); };
    if (!kernel.is_array() || kernel.size() < 2 || !std::ranges::all_of(kernel, is_name)) {
      throw device.Mistake("fused" + place, "is no list of two or more names");
    }
    std::vector<std::string>& names = fused.emplace_back();
    for (const nlohmann::json& entry : kernel) {
      const auto& name = names.emplace_back(entry.get<std::string>());
      if (!profile.time_by_op.contains(name) || !seen.insert(name).second) {
        throw device.Mistake("fused" + place, fmt::format("'{}'; expected names of nodes, each once", name));
      }
    }
  }
  return fused;
}

std::vector<OpProfile> ReadTable(const nlohmann::json& json, const std::string& path) {
  JsonObject file(json, path);
  if (file.Int("berth-profile", 1, 1'000'000) != kTableVersion) {
    throw file.Mistake("berth-profile", fmt::format("a version that is not known; expected {}", kTableVersion));
  }
  const nlohmann::json& devices = file.List("devices");
  std::vector<OpProfile> profiles;
  for (size_t i = 0; i < devices.size(); ++i) {
    JsonObject device(devices[i], path, fmt::format("devices[{}]", i));
    OpProfile profile{.path = path, .device = device.Text("device"), .time_by_op = {}};
    const auto same = [&](const OpProfile& other) { return other.device == profile.device; };
    if (profile.device.empty() || std::ranges::any_of(profiles, same)) {
      throw device.Mistake("device", fmt::format("'{}'; expected a name, each once", profile.device));
    }
    const nlohmann::json& nodes = device.List("nodes");
    for (size_t j = 0; j < nodes.size(); ++j) {
      JsonObject node(nodes[j], path, fmt::format("devices[{}].nodes[{}]", i, j));
      const std::string name = node.Text("name");
      if (name.empty() || !profile.time_by_op.emplace(name, Seconds{node.Number("us", 0, kLongest) / 1e6}).second) {
        throw node.Mistake("name", fmt::format("'{}'; expected a name, each once", name));
      }
    }
    if (profile.time_by_op.empty()) throw device.Mistake("nodes", "is empty; expected the times of some ops");
    if (device.Has("fused")) profile.fused = ReadFused(device, profile);
    if (device.Has("pace_us")) profile.pace = device.Number("pace_us", 0, kLongest) / 1e6;
    if (device.Has("flops")) profile.flops = device.Number("flops", 0, 1e30);
    profiles.push_back(std::move(profile));
  }
  if (profiles.empty()) throw file.Mistake("devices", "is empty; expected a device with its times");
  return profiles;
}

class TraceReader {
 public:
  TraceReader(const nlohmann::json& events, const std::string& path) : events_(events), path_(path) {}

  OpProfile Read() {
    FindRuns();
    for (size_t i = 0; i < events_.size(); ++i) ReadEvent(i);
    OpProfile profile{.path = path_, .device = MostCommon(kinds_), .time_by_op = {}, .fused = kNothingFused};
    for (const auto& [name, by_run] : microseconds_) {
      std::vector<double> values;
      for (const auto& [run, sum] : by_run) {
        // The first run warms up.
        if (by_run.size() == 1 || run != by_run.begin()->first) values.push_back(sum);
      }
      profile.time_by_op.emplace(name, Seconds{Median(values) / 1e6});
    }
    profile.launch_times = kinds_.contains(std::string(kGpu));
    return profile;
  }

 private:
  JsonObject Event(size_t i) const { return JsonObject(events_[i], path_, fmt::format("[{}]", i)); }

  bool Is(size_t i, std::string_view category) const {
    const auto found = events_[i].is_object() ? events_[i].find("cat") : events_[i].end();
    return events_[i].is_object() && found != events_[i].end() && *found == category;
  }

  void FindRuns() {
    for (size_t i = 0; i < events_.size(); ++i) {
      if (!Is(i, "Session")) continue;
      JsonObject event = Event(i);
      if (event.Text("name") == "model_run") run_starts_.push_back(event.Number("ts", 0, 1e18));
    }
    std::ranges::sort(run_starts_);
  }

  void ReadEvent(size_t i) {
    if (!Is(i, "Node")) return;
    JsonObject event = Event(i);
    std::string name = event.Text("name");
    if (!name.ends_with(kKernelSuffix) || name.size() == kKernelSuffix.size()) return;
    name.resize(name.size() - kKernelSuffix.size());
    const double start = event.Number("ts", 0, 1e18);
    const auto run = std::ranges::upper_bound(run_starts_, start) - run_starts_.begin();
    microseconds_[name][run] += event.Number("dur", 0, kLongest);
    if (event.Has("args")) {
      JsonObject args = event.Object("args");
      if (args.Has("provider")) ++kinds_[KindOf(args.Text("provider"))];
    }
  }

  const nlohmann::json& events_;
  const std::string& path_;
  std::vector<double> run_starts_;
  std::map<std::string, size_t> kinds_;
  std::map<std::string, std::map<std::ptrdiff_t, double>> microseconds_;  // by op and run
};

}  // namespace

std::vector<OpProfile> ReadProfile(std::string_view content, const std::string& path) {
  const nlohmann::json json = ParseJson(content, path);
  if (json.is_object() && json.contains("berth-profile")) return ReadTable(json, path);
  OpProfile profile = json.is_array() ? TraceReader(json, path).Read() : ReadSummary(json, path);
  if (profile.time_by_op.empty()) {
    throw Error(
        "{}: no op's time in it; expected a profile of ONNX Runtime: its Chrome trace, or nodes with name and "
        "us_median",
        path);
  }
  return {std::move(profile)};
}

std::string WriteProfile(const OpTimeTable& table) {
  nlohmann::ordered_json json = {{"berth-profile", kTableVersion},
                                 {"model", table.model},
                                 {"cluster", table.cluster},
                                 {"runtime", table.runtime},
                                 {"machine", table.machine},
                                 {"runs", table.runs},
                                 {"devices", nlohmann::ordered_json::array()}};
  for (const OpTimeTable::Column& column : table.columns) {
    nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
    for (const OpTimeTable::Row& row : column.rows) {
      nodes.push_back({{"name", row.op}, {"us", row.time.value * 1e6}, {"kind", row.kind}});
    }
    json["devices"].push_back({{"device", column.device},
                               {"whole_us", column.whole.value * 1e6},
                               {"spread", column.spread},
                               {"kernels_us", column.kernels.value * 1e6},
                               {"pace_us", column.pace.value * 1e6},
                               {"flops", column.flops},
                               {"fused", column.fused},
                               {"nodes", std::move(nodes)}});
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace berth
