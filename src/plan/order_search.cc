#include "plan/order_search.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace berth {
namespace {

constexpr size_t kNoResource = static_cast<size_t>(-1);
constexpr double kMargin = 1 - 1e-12;  // bounds add in another order than schedules

}  // namespace

OrderSearch::OrderSearch(const Problem& problem, Contention contention, std::optional<DeviceId> io_host)
    : problem_(problem), contention_(contention), io_host_(io_host) {
  BERTH_CHECK(contention != Contention::kLinks, "shared media have no order");
}

void OrderSearch::Follows(size_t before, size_t after, double lag) {
  activities_[before].successors.emplace_back(after, lag);
  ++activities_[after].producers;
}

size_t OrderSearch::AddTransfer(size_t producer, TensorId tensor, DeviceId from, DeviceId to) {
  const size_t devices = problem_.num_devices(), transfer = activities_.size();
  Activity& activity = activities_.emplace_back();
  activity.length = problem_.transfer_time(tensor, from, to);
  activity.transfer = {tensor, to};
  activity.resource[0] = devices + Index(from);
  activity.resource[1] = contention_ == Contention::kPorts ? 2 * devices + Index(to) : activity.resource[0];
  Follows(producer, transfer, 0);
  return transfer;
}

// The first activities are the ops, with their numbers. Transfers are activities only where they queue: else they are
// the time between an op and its consumers.
void OrderSearch::MakeActivities(std::span<const DeviceId> device) {
  const Graph& graph = problem_.graph();
  activities_.assign(graph.num_ops(), {});
  for (const OpId op : graph.ops()) {
    Activity& activity = activities_[Index(op)];
    activity.op = op;
    activity.length = problem_.op_time(op, device[Index(op)]);
    activity.resource[0] = activity.resource[1] = Index(device[Index(op)]);
  }
  for (const TensorId tensor : graph.tensors()) {
    const size_t producer = Index(graph.producer(tensor));
    const DeviceId from = device[producer];
    std::vector<size_t> transfer_to(problem_.num_devices(), kNoResource);
    for (const OpId consumer : graph.consumers(tensor)) {
      const DeviceId to = device[Index(consumer)];
      if (from == to) {
        Follows(producer, Index(consumer), 0);
      } else if (!queues()) {
        Follows(producer, Index(consumer), problem_.transfer_time(tensor, from, to));
      } else {
        size_t& transfer = transfer_to[Index(to)];
        if (transfer == kNoResource) transfer = AddTransfer(producer, tensor, from, to);
        Follows(transfer, Index(consumer), 0);
      }
    }
  }
  if (io_host_) AddReturns(device);
  SetTails();
}

// Outputs that only the host wants: each after all that a sequence names on one of its ports, and after those of
// smaller numbers.
void OrderSearch::AddReturns(std::span<const DeviceId> device) {
  const Graph& graph = problem_.graph();
  const auto share_port = [&](size_t a, size_t b) {
    return activities_[a].resource[0] == activities_[b].resource[0] ||
           activities_[a].resource[1] == activities_[b].resource[1];
  };
  for (const TensorId tensor : graph.tensors()) {
    const size_t producer = Index(graph.producer(tensor));
    const DeviceId from = device[producer];
    const bool wanted_there =
        std::ranges::any_of(graph.consumers(tensor), [&](OpId op) { return device[Index(op)] == *io_host_; });
    if (!graph.is_output(tensor) || from == *io_host_ || wanted_there) continue;
    if (!queues()) {
      double& time = activities_[producer].return_time;
      time = std::max(time, problem_.transfer_time(tensor, from, *io_host_));
      continue;
    }
    const size_t last = AddTransfer(producer, tensor, from, *io_host_);
    activities_[last].named = false;
    for (size_t before = graph.num_ops(); before < last; ++before) {
      if (share_port(before, last)) Follows(before, last, 0);
    }
  }
}

// Backwards over the ops, each after its consumers and the transfers to them. What returns to the host follows
// transfers, and nothing follows it but its like.
void OrderSearch::SetTails() {
  const auto set_tail = [&](Activity& activity) {
    activity.tail = activity.return_time;
    for (const auto& [next, lag] : activity.successors) {
      activity.tail = std::max(activity.tail, lag + activities_[next].length + activities_[next].tail);
    }
  };
  const size_t ops = problem_.num_ops();
  for (size_t a = activities_.size(); a-- > ops;) {
    if (!activities_[a].named) set_tail(activities_[a]);
  }
  for (size_t v = ops; v-- > 0;) {
    for (const auto& [next, lag] : activities_[v].successors) {
      if (next >= ops && activities_[next].named) set_tail(activities_[next]);
    }
    set_tail(activities_[v]);
  }
}

// Nothing is appended yet; graph inputs are on their way from the host, one after another where they queue.
OrderSearch::State OrderSearch::Beginning(std::span<const DeviceId> device) const {
  const Graph& graph = problem_.graph();
  const size_t devices = problem_.num_devices();
  State state{.free = std::vector<double>(3 * devices, 0),
              .work_left = std::vector<double>(devices, 0),
              .release = std::vector<double>(activities_.size(), 0),
              .missing = {}};
  for (const Activity& activity : activities_) {
    state.missing.push_back(activity.producers);
    if (activity.op != OpId{-1}) state.work_left[activity.resource[0]] += activity.length;
  }
  if (!io_host_) return state;
  for (const InputId input : graph.inputs()) {
    std::set<DeviceId> destinations;
    for (const OpId op : graph.input_consumers(input)) destinations.insert(device[Index(op)]);
    destinations.erase(*io_host_);
    for (const DeviceId to : destinations) {
      double end = problem_.transfer_time(graph.input_bytes(input), *io_host_, to);
      if (queues()) {
        // Its other port is free: all that has used it came from the host too.
        double& leaving = state.free[devices + Index(*io_host_)];
        end += leaving;
        leaving = end;
        if (contention_ == Contention::kPorts) state.free[2 * devices + Index(to)] = end;
      }
      for (const OpId op : graph.input_consumers(input)) {
        double& release = state.release[Index(op)];
        if (device[Index(op)] == to) release = std::max(release, end);
      }
    }
  }
  return state;
}

double OrderSearch::Start(const State& state, size_t activity) const {
  const Activity& a = activities_[activity];
  return std::max({state.release[activity], state.free[a.resource[0]], state.free[a.resource[1]]});
}

void OrderSearch::Extend(const State& state) {
  if (stopped_) return;
  if (++nodes_ % kStopEach == 0 && (*stop_)()) {
    stopped_ = true;
    return;
  }
  if (order_.size() == activities_.size()) {
    if (state.finish >= best_) return;
    best_ = state.finish;
    result_ = Result{.sequence = MakeSequence(), .makespan = state.finish};
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
    next.finish = std::max(state.finish, end + activity.return_time);
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
    if (!activity.named) continue;
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
  const State state = Beginning(device);
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
