#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/planning.h"
#include "cli/problem_factory.h"
#include "report/json.h"
#include "report/model_page.h"
#include "report/table.h"

namespace berth {
namespace {

bool BringsCosts(const Instance& instance) { return instance.times || !instance.times_by_kind.empty(); }

std::string TimeUnit(const Instance& instance) {
  const double seconds = instance.options.seconds_per_unit;
  if (seconds == 1e-3) return "milliseconds";
  if (seconds == 1e-6) return "microseconds";
  return seconds == 1 ? "no stated unit: one is taken as one second"
                      : fmt::format("units of {}", ToString(Seconds{seconds}));
}

// What the devices are that the times are for: "6 devices of its own: acc0, ...", "any of kind gpu".
std::string Devices(const Instance& instance) {
  std::vector<std::string> names;
  if (!instance.cluster) {
    for (const auto& [kind, times] : instance.times_by_kind) names.push_back(Legible(kind));
    return fmt::format("none of its own; it has costs for devices of kind {}", JoinAnd(names));
  }
  for (const DeviceId id : instance.cluster->ids()) names.push_back(LegibleName(*instance.cluster, id));
  return fmt::format("{} of its own: {}", names.size(), JoinAnd(names));
}

// What a published instance brings besides its graph.
std::string DataSetPage(const Instance& instance) {
  std::string text = "What the file brings besides:\n";
  text += Wrap("times: " + TimeUnit(instance));
  text += Wrap("devices: " + Devices(instance));
  if (!instance.evaluator.empty()) text += Wrap("its own rule: " + instance.evaluator);
  const auto groups = static_cast<int64_t>(instance.options.constraints.colocate.size());
  if (groups > 0) text += Wrap(fmt::format("{} of ops that share a device", Counted(groups, "group")));
  if (instance.plan) text += Wrap("a plan of its own");
  for (const auto& [name, value] : instance.published) {
    text += Wrap(fmt::format("{}: {}", Legible(name), ToString(Seconds{value * instance.options.seconds_per_unit})));
  }
  return text;
}

Json DataSetJson(const Instance& instance) {
  Json kinds = Json::array(), published = Json::object();
  for (const auto& [kind, times] : instance.times_by_kind) kinds.push_back(kind);
  for (const auto& [name, value] : instance.published) published[name] = value * instance.options.seconds_per_unit;
  return {{"time_unit", TimeUnit(instance)},
          {"seconds_per_unit", instance.options.seconds_per_unit},
          {"cluster", instance.cluster ? ClusterJson(*instance.cluster) : Json()},
          {"costs_by_kind", std::move(kinds)},
          {"evaluator", instance.evaluator},
          {"colocated_groups", instance.options.constraints.colocate.size()},
          {"published_seconds", std::move(published)}};
}

}  // namespace

int Inspect(const InspectArguments& arguments, const Catalogs& catalogs) {
  CheckWritable(arguments.output, arguments.problem.Files());
  const ProblemStrings& strings = arguments.problem;
  const auto read = std::make_shared<const Instance>(MakeInstance(catalogs, strings));
  const Instance& instance = *read;
  std::optional<Setup> setup;
  if (!strings.cluster.empty() || !strings.costs.empty()) setup = MakeSetup(catalogs, strings, read);
  const Problem* const problem = setup ? setup->problem.get() : nullptr;
  const Graph& graph = *instance.graph;
  if (!arguments.output.empty()) WriteFile(arguments.output, WriteGraphJson(graph));
  if (arguments.json) {
    Json json = GraphJson(graph);
    if (BringsCosts(instance)) json["data_set"] = DataSetJson(instance);
    if (problem) json["op_type_seconds"] = TypeTimesJson(*problem);
    Print(DumpJson(json));
  } else {
    Print(ModelPage(graph) + (problem ? "\n" + TypeTimesPage(*problem) : "") +
          (BringsCosts(instance) ? "\n" + DataSetPage(instance) : "") +
          (arguments.output.empty()
               ? ""
               : fmt::format("\nWritten to {}, in Berth's own format.\n", Printable(arguments.output))));
  }
  return 0;
}

}  // namespace berth
