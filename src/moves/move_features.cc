#include "moves/move_features.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "base/error.h"

namespace berth {
namespace {

constexpr double kScale = 20;  // times of a twentieth of the makespan are large
constexpr double kNearlyCritical = 0.02;

// Of infinity, too, where nothing took any time before.
double Squash(double x) {
  const double size = std::min(std::abs(x), std::numeric_limits<double>::max());
  return std::copysign(size / (1 + size), x);
}

}  // namespace

MoveFeatures::MoveFeatures(const Problem& problem)
    : problem_(problem), round_of_(problem.num_ops(), 0), goal_(problem.num_ops()) {}

void MoveFeatures::Know(std::span<const DeviceId> device, std::span<const double> starts) {
  const Graph& graph = problem_.graph();
  BERTH_CHECK(device.size() == graph.num_ops() && starts.size() == graph.num_ops());
  device_.assign(device.begin(), device.end());
  start_.assign(starts.begin(), starts.end());
  end_.resize(graph.num_ops());
  load_.assign(problem_.num_devices(), 0);
  order_.assign(problem_.num_devices(), {});
  makespan_ = 0;
  for (const OpId op : graph.ops()) {
    const DeviceId here = device[Index(op)];
    const double time = problem_.op_time(op, here);
    end_[Index(op)] = starts[Index(op)] + time;
    load_[Index(here)] += time;
    makespan_ = std::max(makespan_, end_[Index(op)]);
    order_[Index(here)].push_back(op);
  }
  makespan_ = std::max(makespan_, std::numeric_limits<double>::min());
  // What an op waits for is before it: it started earlier, or took no time, and then its number is smaller.
  const auto when = [&](OpId op) { return std::tuple(start_[Index(op)], end_[Index(op)], op); };
  std::vector<OpId> next(graph.num_ops(), OpId{-1});
  std::vector<OpId> backward;
  for (std::vector<OpId>& order : order_) {
    std::ranges::sort(order, {}, when);
    for (size_t i = 0; i + 1 < order.size(); ++i) next[Index(order[i])] = order[i + 1];
    backward.insert(backward.end(), order.begin(), order.end());
  }
  std::ranges::sort(backward, std::greater(), when);
  after_.assign(graph.num_ops(), 0);
  for (const OpId op : backward) {
    double after = 0;
    if (const OpId behind = next[Index(op)]; behind != OpId{-1}) after = time(behind) + after_[Index(behind)];
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      for (const OpId consumer : graph.consumers(tensor)) {
        const DeviceId from = device[Index(op)], to = device[Index(consumer)];
        const double sending = from == to ? 0 : problem_.transfer_time(tensor, from, to);
        after = std::max(after, sending + time(consumer) + after_[Index(consumer)]);
      }
    }
    after_[Index(op)] = after;
  }
}

double MoveFeatures::Critical(double slack) const {
  return std::exp(-std::max(slack, 0.0) / makespan_ / kNearlyCritical);
}

// How long a device works between two times.
double MoveFeatures::Busy(DeviceId device, double begin, double end) const {
  const std::vector<OpId>& order = order_[Index(device)];
  double busy = 0;
  for (auto op = std::ranges::lower_bound(order, begin, {}, [&](OpId each) { return end_[Index(each)]; });
       op != order.end() && start_[Index(*op)] < end; ++op) {
    busy += std::max(0.0, std::min(end, end_[Index(*op)]) - std::max(begin, start_[Index(*op)]));
  }
  return busy;
}

MoveFeatures::Row MoveFeatures::Of(std::span<const std::pair<OpId, DeviceId>> moves) {
  const Graph& graph = problem_.graph();
  ++round_;
  moved_.clear();
  for (const auto& [op, to] : moves) {
    if (round_of_[Index(op)] != round_) moved_.push_back(op);
    round_of_[Index(op)] = round_;
    goal_[Index(op)] = to;
  }
  const auto device_after = [&](OpId op) {
    return round_of_[Index(op)] == round_ ? goal_[Index(op)] : device_[Index(op)];
  };

  load_after_ = load_;
  added_.assign(problem_.num_devices(), 0);
  double critical_before = 0, critical_after = 0, longer = 0, work = 0;
  double sending = 0, critical_sending = 0, cuts = 0;
  double begin = makespan_, end = 0;
  // A tensor that goes from one op to another.
  const auto add_edge = [&](TensorId tensor, OpId producer, OpId consumer) {
    const DeviceId from = device_[Index(producer)], to = device_[Index(consumer)];
    const DeviceId from_after = device_after(producer), to_after = device_after(consumer);
    const double before = from == to ? 0 : problem_.transfer_time(tensor, from, to);
    const double after = from_after == to_after ? 0 : problem_.transfer_time(tensor, from_after, to_after);
    const double slack = makespan_ - end_[Index(producer)] - before - time(consumer) - after_[Index(consumer)];
    sending += after - before;
    critical_sending += Critical(slack) * (after - before);
    cuts += (from_after != to_after ? 1 : 0) - (from != to ? 1 : 0);
  };
  for (const OpId op : moved_) {
    const DeviceId here = device_[Index(op)], there = goal_[Index(op)];
    const double before = time(op), after = problem_.op_time(op, there);
    const double critical = Critical(makespan_ - end_[Index(op)] - after_[Index(op)]);
    load_after_[Index(here)] -= before;
    load_after_[Index(there)] += after;
    added_[Index(there)] += after;
    critical_before += critical * before;
    critical_after += critical * after;
    longer += after - before;
    work += after;
    begin = std::min(begin, start_[Index(op)]);
    end = std::max(end, end_[Index(op)]);
    for (const TensorId tensor : graph.inputs_of(op)) add_edge(tensor, graph.producer(tensor), op);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      for (const OpId consumer : graph.consumers(tensor)) {
        if (round_of_[Index(consumer)] != round_) add_edge(tensor, op, consumer);  // else it is among its inputs
      }
    }
  }
  // What does not fit into the gaps that the goals have meanwhile.
  double crowded = work;
  for (const DeviceId device : problem_.cluster().ids()) {
    if (added_[Index(device)] > 0) crowded += Busy(device, begin, end) - std::max(0.0, end - begin);
  }
  const double most = std::ranges::max(load_), most_after = std::ranges::max(load_after_);
  const double path = critical_after - critical_before + critical_sending;
  const auto share = [&](double time) { return Squash(kScale * time / makespan_); };
  return {1,
          share(critical_before),
          share(critical_after),
          share(critical_after - critical_before),
          share(most_after - most),
          share(sending),
          share(critical_sending),
          share(std::max(0.0, crowded)),
          share(path),
          share(longer),
          Squash(std::log1p(static_cast<double>(moved_.size())) / 2),
          Squash(0.3 * cuts),
          share(std::max(0.0, critical_sending)),
          share(std::max(0.0, path)),
          share(work),
          critical_before > 1e-3 * work ? 1.0 : 0.0};
}

}  // namespace berth
