#include "placement/bound_pipeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "placement/bound_work.h"
#include "placement/grouping.h"

namespace berth {
namespace {

// What is placed as a whole, on kinds of devices: devices on which every op takes the same time.
struct Work {
  std::vector<double> devices;            // of each kind, how many
  std::vector<std::vector<double>> time;  // by item, then kind; kNever where it cannot run
};

std::vector<std::vector<DeviceId>> KindsOfDevices(const Problem& problem) {
  std::map<std::vector<double>, std::vector<DeviceId>> by_column;
  for (const DeviceId d : problem.cluster().ids()) {
    std::vector<double> column;
    for (const OpId op : problem.graph().ops()) column.push_back(problem.op_time(op, d));
    by_column[std::move(column)].push_back(d);
  }
  std::vector<std::vector<DeviceId>> kinds;
  for (auto& [column, devices] : by_column) kinds.push_back(std::move(devices));
  return kinds;
}

// Ops that share a device are one item: those of a group, and of groups that have an op in common.
Work MakeWork(const Problem& problem) {
  Work work;
  const auto kinds = KindsOfDevices(problem);
  for (const auto& devices : kinds) work.devices.push_back(static_cast<double>(devices.size()));
  const Grouping units = ColocatedOps(problem);
  for (const GroupId unit : units.groups()) {
    std::vector<double>& time = work.time.emplace_back(kinds.size(), 0.0);
    for (const OpId op : units.ops_of(unit)) {
      for (size_t k = 0; k < kinds.size(); ++k) time[k] += problem.op_time(op, kinds[k].front());
    }
  }
  return work;
}

// For any weights of the devices that sum to 1 the largest load is at least their weighted mean, and that at least the
// sum of each item's least weighted time: the dual of the fractional assignment. A kind's weight is shared by its
// devices. `slope` receives each kind's load per device.
double WeightedWork(const Work& work, const std::vector<double>& weight, std::vector<double>& slope) {
  std::ranges::fill(slope, 0);
  double sum = 0;
  for (const std::vector<double>& time : work.time) {
    size_t best = 0;
    double least = kNever;
    for (size_t k = 0; k < time.size(); ++k) {
      if (const double weighted = time[k] * (weight[k] / work.devices[k]); weighted < least) {
        least = weighted;
        best = k;
      }
    }
    if (least == kNever) continue;  // no plan at all; what is left still holds
    sum += least;
    slope[best] += time[best] / work.devices[best];
  }
  return sum;
}

// The dual is concave; with two kinds its only variable is found by halving.
double TwoKindsOfWork(const Work& work) {
  std::vector<double> slope(2);
  double low = 0, high = 1, best = 0;
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    best = std::max(best, WeightedWork(work, {middle, 1 - middle}, slope));
    (slope[0] > slope[1] ? low : high) = middle;
  }
  return best;
}

// Multiplicative steps: the price of an overloaded kind rises.
double ManyKindsOfWork(const Work& work) {
  const size_t kinds = work.devices.size();
  std::vector<double> weight(work.devices), slope(kinds);
  double best = 0;
  for (int round = 0; round < 60; ++round) {
    const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
    for (double& w : weight) w = std::max(w / total, 1e-12);
    // Their rounded sum may exceed 1.
    const double sum = std::accumulate(weight.begin(), weight.end(), 0.0);
    best = std::max(best, WeightedWork(work, weight, slope) / std::max(1.0, sum));
    const double most = std::ranges::max(slope);
    if (most == 0) break;
    for (size_t k = 0; k < kinds; ++k) weight[k] *= std::exp(slope[k] / most / (1 + 0.5 * round));
  }
  return best;
}

}  // namespace

Bound PipelineBound(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const Work work = MakeWork(problem);
  double largest = 0;
  for (const std::vector<double>& time : work.time) {
    if (const double least = std::ranges::min(time); least < kNever) largest = std::max(largest, least);
  }
  double spread = 0;
  if (work.devices.size() == 1) {
    for (const std::vector<double>& time : work.time) spread += time.front() / work.devices.front();
  } else {
    spread = work.devices.size() == 2 ? TwoKindsOfWork(work) : ManyKindsOfWork(work);
  }
  const size_t additions = 2 * problem.num_ops();
  if (largest >= spread)
    return {.time = RoundDown(largest, additions), .reason = "the largest group of ops that share a device"};
  return {.time = RoundDown(spread, additions), .reason = "work ideally spread over the devices"};
}

Bound PiecesBound(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const Graph& graph = problem.graph();
  std::vector<double> end(graph.num_ops());
  double longest = 0;
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op))
      end[Index(op)] = std::max(end[Index(op)], end[Index(graph.producer(tensor))]);
    end[Index(op)] += std::ranges::min(problem.op_times(op));
    longest = std::max(longest, end[Index(op)]);
  }
  return {.time = RoundDown(longest, 2 * graph.num_ops()), .reason = "longest path, every op on its fastest device"};
}

}  // namespace berth
