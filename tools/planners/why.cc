#include "tools/planners/why.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "cli/problem_factory.h"
#include "placement/layers.h"
#include "placement/units.h"

namespace berth {
namespace {

// What is sent under a placement, each tensor once per destination.
struct Sent {
  double gradients_of_weights = 0, others = 0;  // bytes
};

Sent BytesSent(const Problem& problem, std::span<const DeviceId> device) {
  const Graph& graph = problem.graph();
  Sent sent;
  for (const TensorId tensor : graph.tensors()) {
    std::set<DeviceId> to;
    bool to_sum_or_update = false;
    for (const OpId op : graph.consumers(tensor)) {
      to.insert(device[Index(op)]);
      // Sums of gradients of activations are of an activation's tensors; those of weights end in an update.
      for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
        for (const OpId next : graph.consumers(MakeId<TensorId>(t))) {
          to_sum_or_update = to_sum_or_update || graph.op_name(next).starts_with("update/");
        }
      }
      to_sum_or_update = to_sum_or_update || graph.op_name(op).starts_with("update/");
    }
    to.erase(device[Index(graph.producer(tensor))]);
    const double bytes = static_cast<double>(graph.tensor_bytes(tensor)) * static_cast<double>(to.size());
    (to_sum_or_update ? sent.gradients_of_weights : sent.others) += bytes;
  }
  return sent;
}

struct Gains {
  int64_t tried = 0, better = 0;
  double best = 0;  // the largest share of the score that one saves
};

// All moves of one unit, and all moves of all of a layer, from a placement.
Gains TryUnits(const Evaluator& evaluator, const Units& units, const std::vector<DeviceId>& device, size_t stride) {
  const auto workspace = evaluator.NewWorkspace();
  const auto session = evaluator.NewSession({.device = device}, *workspace);
  Gains gains;
  for (size_t unit = 0; unit < units.size(); unit += stride) {
    for (const DeviceId to : units.problem().cluster().ids()) {
      if (device[Index(units.ops(unit).front())] == to) continue;
      std::vector<std::pair<OpId, DeviceId>> moves;
      for (const OpId op : units.ops(unit)) moves.emplace_back(op, to);
      const double saved = 1 - session->Try(moves).value() / session->score().value();
      ++gains.tried;
      gains.better += saved > 1e-9 ? 1 : 0;
      gains.best = std::max(gains.best, saved);
    }
  }
  return gains;
}

Gains TryLayers(const Evaluator& evaluator, const Layers& layers, const std::vector<DeviceId>& device) {
  const auto workspace = evaluator.NewWorkspace();
  const auto session = evaluator.NewSession({.device = device}, *workspace);
  Gains gains;
  for (size_t layer = 0; layer < layers.layers.size(); ++layer) {
    for (const DeviceId to : evaluator.problem().cluster().ids()) {
      std::vector<std::pair<OpId, DeviceId>> moves;
      for (const OpId op : evaluator.problem().graph().ops()) {
        if (static_cast<size_t>(layers.layer_of[Index(op)]) == layer && device[Index(op)] != to) {
          moves.emplace_back(op, to);
        }
      }
      if (moves.empty()) continue;
      const double saved = 1 - session->Try(moves).value() / session->score().value();
      ++gains.tried;
      gains.better += saved > 1e-9 ? 1 : 0;
      gains.best = std::max(gains.best, saved);
    }
  }
  return gains;
}

std::string Text(const Gains& gains) {
  return fmt::format("{} of {}, {:.1f} % at most", gains.better, gains.tried, 100 * gains.best);
}

}  // namespace

void WriteWhy(const Catalogs& catalogs) {
  fmt::print(
      "| step of training | planner | ms | GB of weights' gradients sent | GB of all else | moves of one group that "
      "gain "
      "| moves of one layer that gain |\n|---|---|---:|---:|---:|---:|---:|\n");
  for (const auto& [model, cluster] :
       {std::pair("rnnlm(layers=4)", "p100x4"), std::pair("gnmt(layers=4)", "p100x4"), std::pair("nmt", "p100x4")}) {
    ProblemStrings strings;
    strings.model = model;
    strings.cluster = cluster;
    strings.mode = "training";
    strings.evaluator = "parallel(contention=ports)";
    const Setup setup = MakeSetup(catalogs, strings);
    const Units units(*setup.problem);
    const Layers layers = FindLayers(*setup.problem);
    for (const char* name : {"heft(clusters=never)", "human", "heft"}) {
      const PlanResult result = catalogs.planners.MakePlanner(name)->MakePlan(
          {.evaluator = *setup.evaluator, .budget = {}, .random = Random(1)});
      const Sent sent = BytesSent(*setup.problem, result.plan.device);
      // A few hundred of the groups tell.
      const Gains single = TryUnits(*setup.evaluator, units, result.plan.device, 1 + units.size() / 400);
      fmt::print("| `{}`, {} | `{}` | {:.0f} | {:.2f} | {:.2f} | {} | {} |\n", model, cluster, name,
                 result.score.value() * setup.problem->seconds_per_unit() * 1e3, sent.gradients_of_weights / 1e9,
                 sent.others / 1e9, Text(single), Text(TryLayers(*setup.evaluator, layers, result.plan.device)));
    }
  }
}

}  // namespace berth
