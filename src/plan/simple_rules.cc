#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "placement/layers.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/contiguous.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// Weights, and what is written while it runs: what a person would add up by hand.
double BytesOf(const Graph& graph, OpId op) {
  double bytes = 0;
  for (const ParameterId parameter : graph.parameters_of(op)) {
    // Each once, with its first op.
    if (graph.parameter_consumers(parameter).front() == op)
      bytes += static_cast<double>(graph.parameter_bytes(parameter));
  }
  for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
    bytes += static_cast<double>(graph.tensor_bytes(MakeId<TensorId>(t)));
  }
  return bytes;
}

// Bytes; infinite where it has no limit.
double MemoryOf(const Problem& problem, DeviceId device) {
  const int64_t limit = problem.memory_limit(device);
  return limit == std::numeric_limits<int64_t>::max() ? std::numeric_limits<double>::infinity()
                                                      : static_cast<double>(limit);
}

// Contiguous parts in proportion to the devices' memory, between layers (Hugging Face's accelerate, device_map
// "balanced"; llama.cpp's tensor split). Devices of unlimited memory count as the largest of the others.
std::vector<DeviceId> MemoryProportional(const Problem& problem, const Contiguous& contiguous) {
  const std::vector<DeviceId> devices = DevicesBySpeed(problem);
  const std::vector<double> share = MemoryOfEach(problem, devices);
  const std::vector<double> bytes = contiguous.Sums([&](OpId op) { return BytesOf(problem.graph(), op); });
  return contiguous.Parts(devices, bytes, share, Cuts::kLayers);
}

// As many layers on each device.
std::vector<DeviceId> EqualLayers(const Problem& problem, const Contiguous& contiguous) {
  const std::vector<DeviceId> devices = DevicesBySpeed(problem);
  std::vector<double> size(contiguous.order().ops.size(), 0);
  for (size_t p = 0; p < size.size(); ++p) {
    size[p] = p == 0 || contiguous.layer_at(p) != contiguous.layer_at(p - 1) ? 1 : 0;
  }
  return contiguous.Parts(devices, size, std::vector<double>(devices.size(), 1), Cuts::kLayers);
}

// Each op on the first device, fastest first, that can run it and has memory left for all that was ever put there
// (OpenVINO's HETERO with its list of priorities, and accelerate's device_map "sequential").
std::vector<DeviceId> FirstFit(const Problem& problem, const Contiguous& contiguous) {
  const std::vector<DeviceId> devices = DevicesBySpeed(problem);
  const std::vector<double> bytes = contiguous.Sums([&](OpId op) { return BytesOf(problem.graph(), op); });
  const ForwardOrder& order = contiguous.order();
  std::vector<std::vector<OpId>> members(order.ops.size());
  for (const OpId op : problem.graph().ops()) members[static_cast<size_t>(order.position_of[Index(op)])].push_back(op);
  std::vector<double> used(problem.num_devices(), 0);
  std::vector<DeviceId> device(problem.num_ops());
  for (size_t p = 0; p < order.ops.size(); ++p) {
    DeviceId chosen{-1};
    for (const DeviceId each : devices) {
      if (!std::ranges::all_of(members[p], [&](OpId op) { return problem.can_run(op, each); })) continue;
      if (chosen == DeviceId{-1}) chosen = each;
      if (used[Index(each)] + bytes[p] <= MemoryOf(problem, each)) {
        chosen = each;
        break;
      }
    }
    if (chosen == DeviceId{-1}) chosen = devices.front();  // apart from its group, then: Legal says so
    used[Index(chosen)] += bytes[p];
    for (const OpId op : members[p]) device[Index(op)] = chosen;
  }
  return device;
}

// Contiguous parts of equal bytes, cut anywhere (m-TOPO of Baechi: Jeon et al. 2020, section 4.1, whose limit of a
// device is an equal share).
std::vector<DeviceId> Topo(const Problem& problem, const Contiguous& contiguous) {
  const std::vector<DeviceId> devices = DevicesBySpeed(problem);
  const std::vector<double> bytes = contiguous.Sums([&](OpId op) { return BytesOf(problem.graph(), op); });
  return contiguous.Parts(devices, bytes, std::vector<double>(devices.size(), 1), Cuts::kAnywhere);
}

using Rule = std::vector<DeviceId> (*)(const Problem&, const Contiguous&);

// A rule of thumb that people place models by: one placement, one evaluation. What its device cannot run goes to the
// fastest that can.
class SimpleRulePlanner : public NamedPlanner {
 public:
  SimpleRulePlanner(const Params& params, Rule rule, std::string cause)
      : NamedPlanner(params), rule_(rule), cause_(std::move(cause)) {}

  PlannerFacts facts() const override { return {.deterministic_without_seed = true, .simple = true}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Problem& problem = request.problem();
    const Layers layers = FindLayers(problem);
    const Contiguous contiguous(problem, layers);
    search.Evaluate({.device = Units(problem).Legal(rule_(problem, contiguous))}, cause_);
    PlanResult result = search.Finish();
    GiveCauses(request, result, cause_);
    return result;
  }

 private:
  Rule rule_;
  std::string cause_;
};

void Add(PlannerCatalog& catalog, EntryInfo info, Rule rule, const char* cause) {
  catalog.Add(std::move(info), [rule, cause](const Params& params, const PlannerCatalog&) {
    return std::make_unique<SimpleRulePlanner>(params, rule, cause);
  });
}

}  // namespace

void RegisterSimpleRules(PlannerCatalog& catalog) {
  Add(catalog,
      {.name = "memory_proportional",
       .sentence = "Contiguous parts in proportion to the devices' memory, cut between layers.",
       .source = "Hugging Face accelerate, device_map=balanced; llama.cpp, tensor split"},
      MemoryProportional, "in its share of the memory");
  Add(catalog,
      {.name = "equal_layers",
       .sentence = "The same number of layers on each device, in order.",
       .source = "the default split of pipeline frameworks, as in GPipe (Huang et al. 2019)"},
      EqualLayers, "in its share of the layers");
  Add(catalog,
      {.name = "topo",
       .sentence = "Contiguous parts of equal bytes: Baechi's m-TOPO.",
       .source = "Jeon et al. 2020 (Baechi)"},
      Topo, "in its share of the bytes");
  Add(catalog,
      {.name = "first_fit",
       .sentence = "Each op on the first device, fastest first, that can run it and has memory left.",
       .source = "OpenVINO HETERO's list of priorities; accelerate, device_map=sequential"},
      FirstFit, "the first device with memory left");
}

}  // namespace berth
