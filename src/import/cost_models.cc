#include "import/cost_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "import/profile.h"
#include "placement/fusion.h"
#include "placement/op_profile.h"

namespace berth {
namespace {

constexpr const char* kRoofline = "roofline";

// The devices that a pattern fits by name or, where it fits no name, by kind: the rule of device files.
std::vector<DeviceId> DevicesThatFit(std::string_view pattern, const Cluster& cluster) {
  for (const auto field : {&Device::name, &Device::kind}) {
    std::vector<DeviceId> devices;
    for (const DeviceId id : cluster.ids()) {
      if (GlobMatches(pattern, cluster.device(id).*field)) devices.push_back(id);
    }
    if (!devices.empty()) return devices;
  }
  return {};
}

// All devices of the comma-separated patterns in `text`, or of the profile's own device where it is empty.
std::vector<DeviceId> ProfiledDevices(const std::string& text, const OpProfile& profile, const Cluster& cluster) {
  std::vector<std::string> patterns = SplitList(text.empty() ? profile.device : text);
  if (patterns.empty() || patterns.front().empty()) {
    throw Error("{}: it does not say which device it is of: write profile(file=...,devices=cpu)", profile.path);
  }
  std::vector<DeviceId> devices;
  for (const std::string& pattern : patterns) {
    const std::vector<DeviceId> fit = DevicesThatFit(pattern, cluster);
    if (fit.empty()) {
      std::vector<std::string> names;
      for (const DeviceId id : cluster.ids()) names.push_back(cluster.device(id).name);
      throw Error("{}: '{}' is no device or kind of cluster {}: write profile(file=...,devices=...) with some of {}",
                  profile.path, pattern, cluster.name(), fmt::join(names, ", "));
    }
    devices.insert(devices.end(), fit.begin(), fit.end());
  }
  std::ranges::sort(devices);
  devices.erase(std::ranges::unique(devices).begin(), devices.end());
  return devices;
}

// What measuring has shown of the roofline on GPUs whose efficiencies are Berth's defaults; nothing without such GPUs.
// `profiled` are devices of which it does not speak.
std::vector<std::string> NotesOnGpus(const Cluster& cluster, std::span<const DeviceId> profiled = {}) {
  std::vector<std::string> names;
  for (const DeviceId id : cluster.ids()) {
    const Device& device = cluster.device(id);
    const bool predicted = std::ranges::find(profiled, id) == profiled.end();
    const bool by_defaults = device.efficiency.empty() && !(device.half_rate_outputs.value > 0);
    if (predicted && device.kind == "gpu" && by_defaults) names.push_back(device.name);
  }
  if (names.empty()) return {};
  const std::string all = names.size() == 1 ? names.front() : fmt::format("{} GPUs", names.size());
  return {fmt::format(
      "Times on {} are predicted with Berth's default efficiencies: an H100 took 1.6 to 45 times as long as so "
      "predicted, 3.8 times in the median of 83 models at batch 1. half_rate_outputs in a device file says how large an "
      "op must be to be fast, op_overhead what each op costs beside its work (docs/gpu.md).",
      all)};
}

using AppliedProfiles = std::vector<std::pair<const OpProfile*, std::vector<DeviceId>>>;

// What predicts where the profiles say nothing: a roofline that nothing more is said of takes for kernels what they do.
OpTimes RestTimes(const std::string& rest, const AppliedProfiles& profiles, const CostCatalog& catalog,
                  const Graph& graph, const Cluster& cluster) {
  if (rest != kRoofline) return catalog.MakeTimes(rest, graph, cluster);
  Grouping kernels = KernelsOf(*profiles.front().first, graph);
  for (const auto& [profile, devices] : profiles) kernels = Joined(graph, kernels, KernelsOf(*profile, graph));
  return RooflineTimes(graph, cluster, kernels);
}

OpTimes ProfileTimes(const Params& params, const CostCatalog& catalog, const Graph& graph, const Cluster& cluster) {
  const std::string& path = params.Text("file");
  if (path.empty()) throw Error("profile: no file: write profile(file=cpu.json)");
  const std::vector<OpProfile> profiles =
      ReadProfile(ReadFile(path, {.what = "profile", .most_bytes = int64_t{4} << 30}), path);
  const std::string& devices = params.Text("devices");
  if (profiles.size() > 1 && !devices.empty()) {
    throw Error("profile: {} has times of {} devices, each by its name; leave devices={} out", path, profiles.size(),
                devices);
  }
  AppliedProfiles applied;
  for (const OpProfile& profile : profiles) {
    // A cluster may lack some of the devices that were measured, not all of them.
    if (profiles.size() > 1 && DevicesThatFit(profile.device, cluster).empty()) continue;
    applied.emplace_back(&profile, ProfiledDevices(devices, profile, cluster));
  }
  if (applied.empty()) {
    std::vector<std::string> names;
    for (const OpProfile& profile : profiles) names.push_back(profile.device);
    throw Error("profile: {} has times of {}; none is a device of cluster {}", path, fmt::join(names, ", "),
                cluster.name());
  }
  OpTimes times = RestTimes(params.Text("rest"), applied, catalog, graph, cluster);
  std::vector<DeviceId> profiled;
  for (const auto& [profile, on] : applied) {
    ApplyProfile(*profile, graph, cluster, on, times);
    profiled.insert(profiled.end(), on.begin(), on.end());
  }
  // The rest's note may speak of GPUs that have measured times now.
  for (const std::string& note : NotesOnGpus(cluster)) std::erase(times.notes, note);
  if (params.Text("rest").starts_with(kRoofline)) times.notes = NotesOnGpus(cluster, profiled);
  times.source = params.canonical();
  if (std::ranges::any_of(applied, [](const auto& entry) { return entry.first->launch_times; })) {
    std::string note = fmt::format(
        "{}: ONNX Runtime's profiler does not tell what a GPU's ops take. Where launches wait for their kernels "
        "(CUDA_LAUNCH_BLOCKING=1) the times add up to more than the model takes, else they are of launching. Say what "
        "each device alone takes, in the order of the cluster: --costs 'calibrated(totals=TIME/TIME,rest=...)', "
        "docs/costs.md.",
        path);
    if (std::ranges::find(times.notes, note) == times.notes.end()) times.notes.push_back(std::move(note));
  }
  return times;
}

// Times of another model, each device's scaled so that the whole graph takes there what it was measured to take.
OpTimes CalibratedTimes(const Params& params, const CostCatalog& catalog, const Graph& graph, const Cluster& cluster) {
  const std::string& text = params.Text("totals");
  std::vector<double> totals;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    try {
      totals.push_back(ParseSeconds(std::string_view(text).substr(at, end - at)).value);
    } catch (const Error& error) {
      throw Error("calibrated: totals={}: {}; write one time per device, like totals=16ms/7.81ms", text, error.what());
    }
    if (!(totals.back() > 0)) throw Error("calibrated: totals={}: a device that takes no time cannot be", text);
    at = end + 1;
  }
  if (totals.size() != cluster.num_devices()) {
    throw Error("calibrated: totals={} has {}, cluster {} has {}: write one time per device, like 16ms/7.81ms", text,
                Counted(static_cast<int64_t>(totals.size()), "time"), cluster.name(),
                Counted(static_cast<int64_t>(cluster.num_devices()), "device"));
  }
  OpTimes times = catalog.MakeTimes(params.Text("rest"), graph, cluster);
  for (size_t device = 0; device < totals.size(); ++device) {
    double sum = 0;
    for (size_t i = device; i < times.time.size(); i += totals.size()) {
      if (times.time[i] < kCannotRun) sum += times.time[i];
    }
    if (sum <= 0)
      throw Error("calibrated: by {} {} takes no time, so no factor makes it {}", params.Text("rest"), graph.name(),
                  text);
    for (size_t i = device; i < times.time.size(); i += totals.size()) times.time[i] *= totals[device] / sum;
    for (Kernel& kernel : times.kernels) {
      for (size_t i = device; i < kernel.apart.size(); i += totals.size()) kernel.apart[i] *= totals[device] / sum;
    }
  }
  times.source = params.canonical();
  times.notes.clear();  // of totals that were not true; now they are the given ones
  return times;
}

}  // namespace

OpTimes CostCatalog::MakeTimes(std::string_view text, const Graph& graph, const Cluster& cluster) const {
  std::error_code unreadable;
  if (Find(text) == nullptr && std::filesystem::is_regular_file(text, unreadable)) {
    throw Error("{}: is a file; for the op times in it write 'profile(file=\"{}\")'", text, text);
  }
  return Make(text, *this, graph, cluster);
}

void RegisterCostModels(CostCatalog& catalog) {
  catalog.Add(
      {.name = kRoofline,
       .sentence = "predicts: FLOPs or bytes at the device's rates, whichever takes longer, and an overhead per op",
       .source = "Williams, Waterman and Patterson 2009",
       .parameters = {{.name = "fusion",
                       .type = ParameterType::kChoice,
                       .default_value = "openvino",
                       .sentence = "openvino: what OpenVINO's CPU plugin executes as one, by rules, is one kernel, of "
                                   "one device and with one overhead (in training every op is one); none: every op is "
                                   "one",
                       .choices = {"openvino", "none"}}}},
      [](const Params& params, const CostCatalog&, const Graph& graph, const Cluster& cluster) {
        if (params.Text("fusion") == "none") {
          OpTimes times = RooflineTimes(graph, cluster);
          times.source = params.canonical();
          times.notes = NotesOnGpus(cluster);
          return times;
        }
        OpTimes times = RooflineTimes(graph, cluster, FusedOps(graph));
        times.notes = NotesOnGpus(cluster);
        // Plan files from before the choice say no more than the name: where something is fused, it is said.
        if (!times.kernels.empty()) times.source = "roofline(fusion=openvino)";
        return times;
      });
  catalog.Add(
      {.name = "profile",
       .sentence = "measured times, of `berth profile` or ONNX Runtime; what they lack is predicted, and marked so",
       .source = "-",
       .parameters = {{.name = "file",
                       .sentence =
                           "what `berth profile -o` wrote; or ONNX Runtime's Chrome trace, or its summary by node"},
                      {.name = "devices",
                       .sentence = "whose times these are, names or kinds; nothing: the kind that the file names"},
                      {.name = "rest",
                       .type = ParameterType::kSpec,
                       .default_value = kRoofline,
                       .sentence = "the cost model for other devices and for ops that the file lacks; the roofline has "
                                   "the file's kernels unless it says which"}}},
      ProfileTimes);
  catalog.Add(
      {.name = "calibrated",
       .sentence = "another model's times, scaled so that each device alone takes what it was measured to take",
       .source = "-",
       .parameters = {{.name = "totals",
                       .sentence = "measured times of the whole graph, a device each in the cluster's order, as "
                                   "16ms/7.81ms"},
                      {.name = "rest",
                       .type = ParameterType::kSpec,
                       .default_value = "roofline(fusion=none)",
                       .sentence = "the cost model that is scaled"}}},
      CalibratedTimes);
}

}  // namespace berth
