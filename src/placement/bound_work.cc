#include "placement/bound_work.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace berth {
namespace {

// For any weights of the devices that sum to 1, the weighted mean of the loads is at most the largest load (the
// Lagrangian dual of the fractional assignment, whose value the best weights reach): with rates of fixed + shared *
// weight, the sum over ops of their least rated time is a bound. `loads` receives what each device gets when every op
// takes that.
double RatedWork(const Problem& problem, const std::vector<double>& rate, std::vector<double>& loads) {
  std::ranges::fill(loads, 0);
  double sum = 0;
  for (const OpId op : problem.graph().ops()) {
    const std::span<const double> times = problem.op_times(op);
    size_t best = 0;
    double least = kNever;
    for (size_t p = 0; p < times.size(); ++p) {
      // A rate of 0 makes NaN of what cannot run, which is less than nothing.
      if (const double cost = rate[p] * times[p]; cost < least) {
        least = cost;
        best = p;
      }
    }
    sum += least;
    loads[best] += times[best];
  }
  return sum;
}

// The most that one op costs, run where it costs least.
double DearestOp(const Problem& problem, std::span<const double> rate) {
  double most = 0;
  for (const OpId op : problem.graph().ops()) {
    const std::span<const double> times = problem.op_times(op);
    double least = kNever;
    for (size_t p = 0; p < times.size(); ++p) {
      if (times[p] < kNever) least = std::min(least, rate[p] * times[p]);
    }
    most = std::max(most, least);
  }
  return most;
}

// With two devices the dual is a concave function of one number, whose slope is the difference of the loads.
double TwoDeviceWork(const Problem& problem, std::span<const double> fixed, double shared, int rounds,
                     std::vector<double>& weight) {
  std::vector<double> loads(2);
  double low = 0, high = 1, best = 0;
  for (int round = 0; round < rounds; ++round) {
    const double middle = (low + high) / 2;
    const double work = RatedWork(problem, {fixed[0] + shared * middle, fixed[1] + shared * (1 - middle)}, loads);
    if (work > best) {
      best = work;
      weight = {middle, 1 - middle};
    }
    (loads[0] > loads[1] ? low : high) = middle;
  }
  return best;
}

// Multiplicative steps along the subgradient, which is the loads: the price of an overloaded device rises.
double ManyDeviceWork(const Problem& problem, std::span<const double> fixed, double shared, int rounds,
                      std::vector<double>& best_weight) {
  const size_t devices = problem.num_devices();
  std::vector<double> weight(devices, 1 / static_cast<double>(devices)), rate(devices), loads(devices);
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    // The weights' rounded sum may exceed 1.
    const double sum = std::max(1.0, std::accumulate(weight.begin(), weight.end(), 0.0));
    for (size_t p = 0; p < devices; ++p) rate[p] = fixed[p] + shared * (weight[p] / sum);
    if (const double work = RatedWork(problem, rate, loads); work > best) {
      best = work;
      for (size_t p = 0; p < devices; ++p) best_weight[p] = weight[p] / sum;
    }
    const double most = std::ranges::max(loads);
    if (most == 0) break;
    double total = 0;
    for (size_t p = 0; p < devices; ++p) {
      weight[p] *= std::exp(loads[p] / most / (1 + 0.5 * round));
      total += weight[p];
    }
    for (double& w : weight) w = std::max(w / total, 1e-12);
  }
  return best;
}

// Ops that tensors join, directly or not, with `inputs` graph inputs too: ops of different components are never in one
// subgraph. What makes weights alone is in none.
size_t Components(const Graph& graph, bool inputs) {
  std::vector<size_t> parent(graph.num_ops());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  size_t components = 0;
  for (const OpId op : graph.ops()) components += graph.makes_constants(op) ? 0 : 1;
  const auto join = [&](OpId one, OpId other) {
    if (graph.makes_constants(one) || graph.makes_constants(other)) return;
    const size_t a = root(Index(one)), b = root(Index(other));
    if (a == b) return;
    parent[std::max(a, b)] = std::min(a, b);
    --components;
  };
  for (const TensorId tensor : graph.tensors()) {
    for (const OpId consumer : graph.consumers(tensor)) join(graph.producer(tensor), consumer);
  }
  for (const InputId input : graph.inputs()) {
    std::optional<OpId> first;
    for (const OpId reader : graph.input_consumers(input)) {
      if (!inputs || graph.makes_constants(reader)) continue;
      if (first) join(*first, reader);
      first = reader;
    }
  }
  return components;
}

}  // namespace

double RoundDown(double sum, size_t additions) {
  const double share = (static_cast<double>(additions) + 8) * 4 * std::numeric_limits<double>::epsilon();
  return std::max(0.0, sum * (1 - share));
}

double LeastOverhead(const Evaluator& evaluator) {
  const auto* serial = evaluator.facts().As<SerialFacts>();
  const double overhead = serial != nullptr ? serial->subgraph_overhead : 0;
  if (!(overhead > 0)) return 0;
  return overhead * static_cast<double>(Components(evaluator.problem().graph(), serial->hetero_subgraphs));
}

double LeastWork(const Problem& problem, std::span<const double> fixed, double shared, std::vector<double>* weight) {
  // Enough rounds to converge, and no more than a second's work on a graph of a million ops.
  const double size = static_cast<double>(problem.num_ops() * problem.num_devices()) + 1;
  const int rounds = static_cast<int>(std::clamp(1e8 / size, 4.0, 60.0));
  const size_t devices = problem.num_devices();
  std::vector<double> best(devices, 1 / static_cast<double>(devices));
  double work = 0;
  if (devices == 1) {
    std::vector<double> loads(1);
    work = RatedWork(problem, {fixed[0] + shared}, loads);
  } else {
    work = devices == 2 ? TwoDeviceWork(problem, fixed, shared, rounds, best)
                        : ManyDeviceWork(problem, fixed, shared, rounds, best);
  }
  if (weight != nullptr) *weight = std::move(best);
  return work;
}

void AddObjectiveBound(const Evaluator& evaluator, Bound& bound) {
  const Problem& problem = evaluator.problem();
  const EvaluatorFacts& facts = evaluator.facts();
  auto [fixed, shared] = RatesOf(evaluator);
  std::vector<double> loads(problem.num_devices());
  const size_t additions = 4 * problem.num_ops() + 4 * problem.num_devices();
  if (facts.Is<MeasuredFacts>()) {
    bound.objective = 0;
    return;
  }
  if (facts.Is<PiecesFacts>()) {
    // A host's cores compute side by side: of their ops, the host is busy for the longest one at least.
    const double dearest = DearestOp(problem, fixed);
    for (const DeviceId id : problem.cluster().ids()) fixed[Index(id)] *= problem.on_host(id) ? 0 : 1;
    const double computing = std::max(dearest, RatedWork(problem, fixed, loads));
    bound.objective = RoundDown(computing + shared * bound.time, additions);
    bound.reason = "least energy of each op, and the least time: " + bound.reason;
    return;
  }
  const double apart = RoundDown(RatedWork(problem, fixed, loads) + shared * bound.time, additions);
  double together = 0;
  if (facts.Is<SerialFacts>()) {
    // One op after another: every op takes of the whole time, and so does the overhead of each subgraph.
    for (double& rate : fixed) rate += shared;
    together = RatedWork(problem, fixed, loads) + shared * LeastOverhead(evaluator);
  } else {
    together = LeastWork(problem, fixed, shared);
  }
  together = RoundDown(together, additions);
  bound.objective = std::max(apart, together);
  bound.reason = apart < together ? "work ideally spread over the devices, in the objective's measure"
                                  : "least energy of each op, and the least time: " + bound.reason;
}

}  // namespace berth
