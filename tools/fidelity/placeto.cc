// Placeto's published simulator: 326 placements of 17 graphs, each scored by the released code.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cluster/presets.h"
#include "import/readers.h"
#include "sim/simulators.h"
#include "tools/fidelity/fidelity.h"

namespace berth {
namespace {

using nlohmann::json;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

struct Tables {
  FidelityTable makespan{.title = "Placeto: makespan",
                         .text = "In µs, of the released simulator (`placeto` on `--cluster 'placeto(devices=N)'`).",
                         .tolerance = 0};
  FidelityTable starts{
      .title = "Placeto: start times",
      .text =
          "The sum of the start times of all ops in µs, added in the order of the file. Where the released "
          "code's start times are all known each of them is compared as well, and the row says so.",
      .tolerance = 0};
  FidelityTable memory{.title = "Placeto: peak memory",
                       .text = "In bytes, of each device, by the released code's rule (`placeto`, docs/objectives.md).",
                       .tolerance = 0};
};

void AddReference(const json& reference, const Instance& instance, Tables& tables) {
  ClusterCatalog clusters("cluster");
  RegisterPlacetoCluster(clusters);
  EvaluatorCatalog evaluators("evaluator");
  RegisterPlaceto(evaluators);
  const size_t devices = reference["n_devs"];
  const Problem problem =
      instance.On(std::make_shared<const Cluster>(clusters.Make(fmt::format("placeto(devices={})", devices))));
  const Graph& graph = problem.graph();
  std::vector<DeviceId> device(graph.num_ops());
  for (size_t p = 0; p < device.size(); ++p) {
    device[Index(graph.op_at_file_position(p))] = static_cast<DeviceId>(reference["placement"][p].get<int32_t>());
  }
  const Timeline timeline = evaluators.Make("placeto", problem)->Trace({.device = device});

  const std::string what = fmt::format("{}, {} on {}", reference["graph"].get<std::string>(),
                                       reference["placement_name"].get<std::string>(), devices);
  tables.makespan.rows.push_back({.what = what, .published = reference["run_time_us"], .ours = timeline.score.time});

  FidelityRow starts{.what = what, .published = reference["sum_start_us"]};
  bool all = true;
  for (size_t p = 0; p < device.size(); ++p) {
    const double start = timeline.ops[Index(graph.op_at_file_position(p))].start;
    starts.ours += start;
    if (reference.contains("start_us")) all = all && start == reference["start_us"][p].get<double>();
  }
  if (reference.contains("start_us")) starts.note = fmt::format("each of {} compared", device.size());
  if (!all) starts.ours = kNotANumber;
  tables.starts.rows.push_back(std::move(starts));

  for (size_t d = 0; d < devices; ++d) {
    tables.memory.rows.push_back({.what = fmt::format("{}, device {}", what, d),
                                  .published = reference["peak_mem_bytes"][d],
                                  .ours = static_cast<double>(timeline.memory[d].peak_bytes)});
  }
}

}  // namespace

std::vector<FidelityTable> PlacetoFidelity(const std::string& shared) {
  const std::string folder = shared + "/data/placeto/";
  if (!std::filesystem::exists(folder)) return {};
  const json references = ReadJson(folder + "reference.json");
  std::map<std::string, Instance> instances;
  Tables tables;
  for (const json& reference : references["refs"]) {
    const std::string name = reference["graph"], path = folder + "graphs/" + name + ".json";
    if (!instances.contains(name)) instances.emplace(name, ReadPlaceto(ReadFile(path), path));
    AddReference(reference, instances.at(name), tables);
  }
  return {std::move(tables.makespan), std::move(tables.starts), std::move(tables.memory)};
}

}  // namespace berth
