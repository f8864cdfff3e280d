#include <algorithm>
#include <vector>

#include "placement/bound_work.h"
#include "placement/placeto_rules.h"

namespace berth {
// After each op its device rests, also before it runs the op's consumer; elsewhere a consumer waits for a transfer. So
// a path takes at least the lesser of the two between any two ops, and a rest at its end; and all ops with their rests
// are shared by the devices.
Bound PlacetoBound(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const Graph& graph = problem.graph();
  const double gap = evaluator.facts().As<PlacetoFacts>()->op_gap;
  const auto devices = static_cast<double>(problem.num_devices());
  std::vector<double> end(graph.num_ops()), pause(graph.num_ops());
  double path = 0, work = 0;
  for (const OpId op : graph.ops()) {
    const double least = std::ranges::min(problem.op_times(op));
    const std::span<const TensorId> inputs = graph.inputs_of(op);
    double start = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const OpId producer = graph.producer(inputs[i]);
      // Of several tensors between two ops the last counts.
      if (i + 1 < inputs.size() && graph.producer(inputs[i + 1]) == producer) continue;
      double between = pause[Index(producer)];
      if (problem.num_devices() > 1)
        between = std::min(between, problem.transfer_time(inputs[i], DeviceId{0}, DeviceId{1}));
      start = std::max(start, end[Index(producer)] + between);
    }
    end[Index(op)] = start + least;
    pause[Index(op)] = least > 0 ? gap : 0;
    path = std::max(path, end[Index(op)] + pause[Index(op)]);
    work += least + pause[Index(op)];
  }
  path = RoundDown(path, 3 * graph.num_ops());
  work = RoundDown(work / devices, 3 * graph.num_ops());
  if (work > path) return {.time = work, .reason = "work and rests ideally spread over the devices"};
  return {.time = path, .reason = "longest path with rests"};
}

}  // namespace berth
