#include "plan/order_search.h"

#include <algorithm>

#include "base/error.h"

namespace berth {
namespace {

constexpr size_t kNoResource = static_cast<size_t>(-1);
constexpr double kMargin = 1 - 1e-12;  // bounds add in another order than schedules

}  // namespace

OrderSearch::OrderSearch(const Problem& problem, Contention contention) : problem_(problem), contention_(contention) {
  BERTH_CHECK(contention != Contention::kLinks, "shared media have no order");
}

// The first activities are the ops, with their numbers. Transfers are activities only where they queue: else they are
// the time between an op and its consumers.
void OrderSearch::MakeActivities(std::span<const DeviceId> device) {
  const Graph& graph = problem_.graph();
  const size_t devices = problem_.num_devices();
  activities_.assign(graph.num_ops(), {});
  for (const OpId op : graph.ops()) {
    Activity& activity = activities_[Index(op)];
    activity.op = op;
    activity.length = problem_.op_time(op, device[Index(op)]);
    activity.resource[0] = activity.resource[1] = Index(device[Index(op)]);
  }
  const auto follows = [&](size_t before, size_t after, double lag) {
    activities_[before].successors.emplace_back(after, lag);
    ++activities_[after].producers;
  };
  for (const TensorId tensor : graph.tensors()) {
    const size_t producer = Index(graph.producer(tensor));
    const DeviceId from = device[producer];
    std::vector<size_t> transfer_to(devices, kNoResource);
    for (const OpId consumer : graph.consumers(tensor)) {
      const DeviceId to = device[Index(consumer)];
      if (from == to) {
        follows(producer, Index(consumer), 0);
        continue;
      }
      const double length = problem_.transfer_time(tensor, from, to);
      if (contention_ == Contention::kNone) {
        follows(producer, Index(consumer), length);
        continue;
      }
      size_t& transfer = transfer_to[Index(to)];
      if (transfer == kNoResource) {
        transfer = activities_.size();
        Activity& activity = activities_.emplace_back();
        activity.length = length;
        activity.transfer = {tensor, to};
        activity.resource[0] = devices + Index(from);
        activity.resource[1] = contention_ == Contention::kPorts ? 2 * devices + Index(to) : activity.resource[0];
        follows(producer, transfer, 0);
      }
      follows(transfer, Index(consumer), 0);
    }
  }
  // Backwards over the ops, each after its consumers and the transfers to them.
  const auto set_tail = [&](Activity& activity) {
    for (const auto& [next, lag] : activity.successors) {
      activity.tail = std::max(activity.tail, lag + activities_[next].length + activities_[next].tail);
    }
  };
  for (size_t v = graph.num_ops(); v-- > 0;) {
    for (const auto& [next, lag] : activities_[v].successors) {
      if (next >= graph.num_ops()) set_tail(activities_[next]);
    }
    set_tail(activities_[v]);
  }
}

double OrderSearch::Start(const State& state, size_t activity) const {
  const Activity& a = activities_[activity];
  return std::max({state.release[activity], state.free[a.resource[0]], state.free[a.resource[1]]});
}

void OrderSearch::Extend(const State& state) {
  if (stopped_) return;
  if (++nodes_ % 4096 == 0 && (*stop_)()) {
    stopped_ = true;
    return;
  }
  if (order_.size() == activities_.size()) {
    double makespan = 0;
    for (size_t d = 0; d < problem_.num_devices(); ++d) makespan = std::max(makespan, state.free[d]);
    if (makespan >= best_) return;
    best_ = makespan;
    result_ = Result{.sequence = MakeSequence(), .makespan = makespan};
    return;
  }
  // What could start only after something else could have started and ended may as well wait for it.
  double first_end = kCannotRun, bound = state.bound;
  size_t first = 0;
  std::vector<std::pair<double, size_t>> able;
  for (size_t a = 0; a < activities_.size(); ++a) {
    if (appended_[a] != 0 || state.missing[a] > 0) continue;
    const double start = Start(state, a), end = start + activities_[a].length;
    bound = std::max(bound, end + activities_[a].tail);
    if (end < first_end) {
      first_end = end;
      first = a;
    }
    if (start >= state.last_start) able.emplace_back(start, a);
  }
  for (size_t d = 0; d < problem_.num_devices(); ++d) bound = std::max(bound, state.free[d] + state.work_left[d]);
  if (bound * kMargin >= best_) return;
  std::ranges::sort(able, {},
                    [&](const auto& entry) { return std::pair(entry.first, -activities_[entry.second].tail); });
  for (const auto& [start, a] : able) {
    if (start >= first_end && a != first) continue;
    const Activity& activity = activities_[a];
    State next = state;
    const double end = start + activity.length;
    next.free[activity.resource[0]] = next.free[activity.resource[1]] = end;
    if (activity.op != OpId{-1}) next.work_left[activity.resource[0]] -= activity.length;
    for (const auto& [follower, lag] : activity.successors) {
      next.release[follower] = std::max(next.release[follower], end + lag);
      --next.missing[follower];
    }
    next.last_start = start;
    next.bound = std::max(state.bound, end + activity.tail);
    order_.push_back(a);
    appended_[a] = 1;
    Extend(next);
    appended_[a] = 0;
    order_.pop_back();
  }
}

Sequence OrderSearch::MakeSequence() const {
  Sequence sequence;
  for (const size_t a : order_) {
    const Activity& activity = activities_[a];
    if (activity.op == OpId{-1}) {
      sequence.transfers.push_back(activity.transfer);
    } else {
      sequence.ops.push_back(activity.op);
    }
  }
  return sequence;
}

std::optional<OrderSearch::Result> OrderSearch::Best(std::span<const DeviceId> device, double below,
                                                     const std::function<bool()>& stop) {
  MakeActivities(device);
  State state{.free = std::vector<double>(3 * problem_.num_devices(), 0),
              .work_left = std::vector<double>(problem_.num_devices(), 0),
              .release = std::vector<double>(activities_.size(), 0),
              .missing = {}};
  for (const Activity& activity : activities_) {
    state.missing.push_back(activity.producers);
    if (activity.op != OpId{-1}) state.work_left[activity.resource[0]] += activity.length;
  }
  best_ = below;
  result_.reset();
  stop_ = &stop;
  stopped_ = false;
  order_.clear();
  appended_.assign(activities_.size(), 0);
  Extend(state);
  if (result_ && contention_ == Contention::kNone) {
    // They do not queue: any order of them will do, and a plan names all.
    for (const TensorId tensor : problem_.graph().tensors()) {
      std::vector<DeviceId> destinations;
      for (const OpId op : problem_.graph().consumers(tensor)) destinations.push_back(device[Index(op)]);
      std::ranges::sort(destinations);
      destinations.erase(std::ranges::unique(destinations).begin(), destinations.end());
      for (const DeviceId to : destinations) {
        if (to != device[Index(problem_.graph().producer(tensor))])
          result_->sequence.transfers.emplace_back(tensor, to);
      }
    }
  }
  return std::move(result_);
}

}  // namespace berth
