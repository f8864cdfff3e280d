#include "placement/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "placement/bound_pipeline.h"
#include "placement/bound_window.h"
#include "placement/bound_work.h"
#include "placement/placeto_rules.h"

namespace berth {
namespace {

constexpr size_t kLooks = 32;  // more found no more on the papers' networks

// Per op and device: when the op can end there at the earliest. Every sum is one that the simulator makes, in its
// order, and rounding is monotone: no end of a run is earlier, to the last bit.
std::vector<double> EarliestEnds(const Problem& problem, std::optional<DeviceId> io_host) {
  const Graph& graph = problem.graph();
  const size_t devices = problem.num_devices();
  std::vector<double> end(graph.num_ops() * devices, 0);
  if (io_host) {
    for (const InputId input : graph.inputs()) {
      for (const OpId op : graph.input_consumers(input)) {
        for (const DeviceId p : problem.cluster().ids()) {
          if (p == *io_host) continue;
          double& ready = end[Index(op) * devices + Index(p)];
          ready = std::max(ready, problem.transfer_time(graph.input_bytes(input), *io_host, p));
        }
      }
    }
  }
  std::vector<double> arrival(devices);
  for (const OpId op : graph.ops()) {
    double* const row = end.data() + Index(op) * devices;
    for (const DeviceId p : problem.cluster().ids()) row[Index(p)] += problem.op_time(op, p);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      if (graph.consumers(tensor).empty()) continue;
      for (const DeviceId q : problem.cluster().ids()) {
        arrival[Index(q)] = row[Index(q)];
        for (const DeviceId p : problem.cluster().ids()) {
          // A transfer takes time: whoever ends no earlier cannot be the first.
          if (p == q || row[Index(p)] >= arrival[Index(q)]) continue;
          arrival[Index(q)] = std::min(arrival[Index(q)], row[Index(p)] + problem.transfer_time(tensor, p, q));
        }
      }
      for (const OpId consumer : graph.consumers(tensor)) {
        double* const ready = end.data() + Index(consumer) * devices;
        for (size_t q = 0; q < devices; ++q) ready[q] = std::max(ready[q], arrival[q]);
      }
    }
  }
  return end;
}

// The longest path: through each op, the least over its devices of its earliest end there and the least time that its
// successors then still need.
double PathBound(const Problem& problem, const std::vector<double>& earliest_end, std::optional<DeviceId> io_host,
                 Windows& windows) {
  const Graph& graph = problem.graph();
  const size_t devices = problem.num_devices();
  std::vector<double> remaining(graph.num_ops() * devices, 0);  // after the op, when it ran there
  std::vector<double> whole(devices);                           // of one consumer, itself included
  double exact = 0;                                             // sums of the simulator only
  double through = 0;
  for (size_t v = graph.num_ops(); v-- > 0;) {
    const auto op = MakeId<OpId>(v);
    double* const row = remaining.data() + v * devices;
    double ends = kNever, passes = kNever;
    windows.head[v] = windows.tail[v] = kNever;
    for (const DeviceId p : problem.cluster().ids()) {
      const double end = earliest_end[v * devices + Index(p)];
      if (end == kNever) continue;
      double last = end;
      for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
        const auto tensor = MakeId<TensorId>(t);
        if (io_host && p != *io_host && graph.is_output(tensor)) {
          const double length = problem.transfer_time(tensor, p, *io_host);
          last = std::max(last, end + length);
          row[Index(p)] = std::max(row[Index(p)], length);
        }
        for (const OpId consumer : graph.consumers(tensor)) {
          double least = kNever;
          for (const DeviceId q : problem.cluster().ids()) {
            const double rest = problem.op_time(consumer, q) + remaining[Index(consumer) * devices + Index(q)];
            if (rest >= least) continue;
            least = std::min(least, p == q ? rest : problem.transfer_time(tensor, p, q) + rest);
          }
          row[Index(p)] = std::max(row[Index(p)], least);
        }
      }
      windows.head[v] = std::min(windows.head[v], end - problem.op_time(op, p));
      windows.tail[v] = std::min(windows.tail[v], row[Index(p)]);
      ends = std::min(ends, last);
      passes = std::min(passes, end + row[Index(p)]);
    }
    exact = std::max(exact, ends);
    through = std::max(through, passes);
  }
  return std::max(exact, RoundDown(through, 2 * graph.num_ops()));
}

double WorkBound(const Problem& problem, std::vector<double>& weight) {
  const std::vector<double> nothing(problem.num_devices(), 0);
  return RoundDown(LeastWork(problem, nothing, 1, &weight), 2 * problem.num_ops());
}

Bound SerialBound(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  // The evaluator adds in the same order, and transfers besides: no rounding can make this larger.
  double time = 0;
  for (const OpId op : problem.graph().ops()) time += std::ranges::min(problem.op_times(op));
  time += LeastOverhead(evaluator);
  return {.time = time, .reason = "every op on its fastest device"};
}

Bound ParallelBound(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const std::optional<DeviceId> io_host = evaluator.facts().io_host();
  // Shared media are simulated to nine digits.
  const double precision = evaluator.facts().contention() == Contention::kLinks ? 1 - 1e-8 : 1;
  Windows windows{.head = std::vector<double>(problem.num_ops()), .tail = std::vector<double>(problem.num_ops())};
  const double path = PathBound(problem, EarliestEnds(problem, io_host), io_host, windows) * precision;
  std::vector<double> weight;
  const double work = WorkBound(problem, weight);
  RaiseWindows(problem, weight, kLooks, windows);
  const double window = RoundDown(WindowBound(problem, windows, weight), 8 * problem.num_ops()) * precision;
  const double group = RoundDown(GroupBound(problem, windows), 8 * problem.num_ops()) * precision;
  Bound bound{.time = path, .reason = "longest path, with its transfers"};
  const auto offer = [&](double time, const char* reason) {
    if (time > bound.time) bound = {.time = time, .reason = reason};
  };
  offer(work, "work ideally spread over the devices");
  offer(window, "work between the ops that must run before and after it, spread over the devices");
  offer(group, "the largest group of ops that must share a device");
  return bound;
}

// Parts wait, and pay for cuts; without either it is a path of ops, or the work of the devices.
Bound PartsBound(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<double> ready(graph.num_ops(), 0);
  double path = 0;
  for (const OpId op : graph.ops()) {
    const double end = ready[Index(op)] + std::ranges::min(problem.op_times(op));
    path = std::max(path, end);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      if (graph.is_constant(MakeId<TensorId>(t))) continue;  // nobody waits for it
      for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) {
        ready[Index(consumer)] = std::max(ready[Index(consumer)], end);
      }
    }
  }
  path = RoundDown(path, 2 * graph.num_ops());
  std::vector<double> weight;
  const double work = WorkBound(problem, weight);
  return work > path ? Bound{.time = work, .reason = "work ideally spread over the devices"}
                     : Bound{.time = path, .reason = "longest path, without its cuts"};
}

Bound TimeBound(const Evaluator& evaluator) {
  if (evaluator.problem().num_ops() == 0) return {.time = 0, .reason = "there is nothing to do"};
  const EvaluatorFacts& facts = evaluator.facts();
  if (facts.Is<ParallelFacts>()) return ParallelBound(evaluator);
  if (facts.Is<SerialFacts>()) return SerialBound(evaluator);
  if (facts.Is<PipelineFacts>()) return PipelineBound(evaluator);
  if (facts.Is<PiecesFacts>()) return PiecesBound(evaluator);
  if (facts.Is<PlacetoFacts>()) return PlacetoBound(evaluator);
  if (facts.Is<PartsFacts>()) return PartsBound(evaluator.problem());
  return {.time = 0, .reason = "none is known for this execution model"};
}

}  // namespace

Bound LowerBound(const Evaluator& evaluator) {
  Bound bound = TimeBound(evaluator);
  if (!evaluator.facts().objective.is_time()) AddObjectiveBound(evaluator, bound);
  return bound;
}

double Gap(double score, double bound) {
  if (score <= bound || score == 0) return 0;
  return bound > 0 ? (score - bound) / bound : std::numeric_limits<double>::infinity();
}

double MostSaved(double score, double bound) {
  if (score <= bound || score == 0) return 0;
  return (score - bound) / score;
}

}  // namespace berth
