// The simulator that was published with Placeto (Addanki et al. 2019, arXiv 1906.08879), to the last bit.
//
// A device runs one op at a time, first come first served, and rests for op_gap after an op that took time. Each device
// has one outgoing port, on which an output of an op is sent once for all other devices together; the port rests for
// bus_hold after each transfer. The run ends with the last rest.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/parameters.h"
#include "placement/evaluator.h"
#include "sim/simulators.h"

namespace berth {
namespace {

// The least of a multiple of four numbers, by four chains that a processor follows at once: half the time of a run is
// here.
double Earliest(const std::vector<double>& when) {
  double a = when[0], b = when[1], c = when[2], d = when[3];
  for (size_t i = 4; i < when.size(); i += 4) {
    a = std::min(a, when[i]);
    b = std::min(b, when[i + 1]);
    c = std::min(c, when[i + 2]);
    d = std::min(d, when[i + 3]);
  }
  return std::min(std::min(a, b), std::min(c, d));
}

// Rows of 32-bit numbers, flat.
struct Rows {
  std::vector<int32_t> start{0};
  std::vector<int32_t> items{};
  std::span<const int32_t> operator[](int32_t row) const {
    const auto first = static_cast<size_t>(start[static_cast<size_t>(row)]);
    return {items.data() + first, static_cast<size_t>(start[static_cast<size_t>(row) + 1]) - first};
  }
  void EndRow() { start.push_back(static_cast<int32_t>(items.size())); }
};

// A tensor's bytes on its producer's device, by the published rule: all outputs of an op together.
struct Held {
  double from, to;  // microseconds
  int64_t bytes;
  int32_t op;
};

// In the numbering of the file, which the published tie-breaks follow.
class State : public Workspace {
 public:
  State(size_t ops, size_t tensors, size_t edges, size_t devices)
      : device(ops),
        missing(ops),
        next_ready(ops),
        start(ops),
        end(ops),
        next_transfer(tensors),
        sent(tensors),
        sent_at(tensors),
        when(4 * devices),
        what(2 * devices),
        free(2 * devices),
        ready(devices),
        transfers(devices),
        level(devices) {
    arrivals.reserve(edges);
    held.reserve(ops);
    changes.reserve(2 * ops);
  }

  // First come, first served: whatever is added is never earlier than what waits already.
  struct Queue {
    int32_t head = -1, tail = -1;
    void Push(int32_t item, std::vector<int32_t>& next) {
      next[static_cast<size_t>(item)] = -1;
      (head < 0 ? head : next[static_cast<size_t>(tail)]) = item;
      tail = item;
    }
    int32_t Pop(const std::vector<int32_t>& next) {
      const int32_t item = head;
      head = next[static_cast<size_t>(item)];
      return item;
    }
  };

  std::vector<int32_t> device, missing, next_ready;  // by op
  std::vector<double> start, end;                    // by op
  std::vector<int32_t> next_transfer;                // by tensor
  std::vector<uint8_t> sent;                         // by tensor: it waits, or has been sent
  std::vector<double> sent_at;                       // by tensor that was sent
  // When what can happen next happens, kNever where nothing waits: per device the end of an op for its consumers there;
  // per port the arrival of a transfer; per port the start of a transfer; per device the start of an op. There is never
  // more than one of each: an op or transfer ends before the next one starts.
  std::vector<double> when;
  std::vector<int32_t> what;  // of the first two kinds: the op, the tensor
  std::vector<double> free;   // per port, then per device: when its last rest ends
  std::vector<Queue> ready, transfers;
  std::vector<std::pair<int32_t, int32_t>> arrivals;  // (producer, consumer)
  size_t ran = 0;                                     // ops, but for those that cannot run where they are
  std::vector<int64_t> level;                         // by device
  std::vector<Held> held;
  std::vector<std::pair<double, int64_t>> changes;
};

class Placeto : public Evaluator {
 public:
  Placeto(const Problem& problem, const Params& params);

  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override { return NewState(); }
  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override;
  Timeline Trace(const PlanView& plan) const override;

 private:
  std::unique_ptr<State> NewState() const {
    return std::make_unique<State>(op_of_.size(), delay_.size(), children_.items.size(), devices_);
  }
  void ReadGraph();
  void ReadRoutes();

  double Run(const PlanView& plan, State& state) const;
  void Enqueue(double now, int32_t op, State& state) const;
  template <typename Deliver>
  void ForEachArrival(size_t which, const State& state, const Deliver& deliver) const;
  void Arrive(double now, size_t first, State& state) const;
  void StartOp(double now, size_t device, State& state) const;
  void StartTransfer(double now, size_t device, State& state) const;
  int64_t Excess(State& state) const;
  void FindHeld(size_t device, State& state) const;
  DeviceMemory TraceMemory(size_t device, State& state) const;
  std::vector<TransferRun> TraceTransfers(const State& state) const;

  double cost(int32_t op, int32_t device) const {
    return cost_[static_cast<size_t>(op) * devices_ + static_cast<size_t>(device)];
  }

  std::string name_;
  size_t devices_;
  double us_per_unit_;
  PlacetoFacts rests_;
  EvaluatorFacts facts_;
  // By position in the file.
  std::vector<OpId> op_of_;
  std::vector<int32_t> producers_;
  std::vector<double> cost_;
  std::vector<int64_t> output_bytes_;
  // Consumers, ascending, and for each the one tensor that counts: of several that go to one op, the last.
  Rows children_;
  std::vector<int32_t> child_tensor_;
  // By tensor.
  Rows consumers_;
  std::vector<int32_t> producer_;
  std::vector<double> delay_;
};

Placeto::Placeto(const Problem& problem, const Params& params)
    : Evaluator(problem),
      name_(params.canonical()),
      devices_(problem.num_devices()),
      us_per_unit_(problem.seconds_per_unit() * 1e6),
      rests_{.op_gap = params.Real("op_gap") / us_per_unit_, .bus_hold = params.Real("bus_hold") / us_per_unit_},
      facts_{.model = rests_, .uses_priorities = false} {
  ReadGraph();
  ReadRoutes();
}

void Placeto::ReadGraph() {
  const Graph& graph = problem().graph();
  std::vector<int32_t> position(graph.num_ops());
  for (size_t p = 0; p < graph.num_ops(); ++p) {
    op_of_.push_back(graph.op_at_file_position(p));
    position[Index(op_of_.back())] = static_cast<int32_t>(p);
  }
  producers_.assign(graph.num_ops(), 0);
  std::vector<std::vector<int32_t>> by_tensor(graph.num_tensors());
  std::vector<std::pair<int32_t, int32_t>> row;  // (consumer, tensor)
  for (const OpId op : op_of_) {
    const std::span<const double> times = problem().op_times(op);
    cost_.insert(cost_.end(), times.begin(), times.end());
    row.clear();
    int64_t bytes = 0;
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      bytes += graph.tensor_bytes(MakeId<TensorId>(t));
      for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) {
        row.emplace_back(position[Index(consumer)], static_cast<int32_t>(t));
      }
    }
    output_bytes_.push_back(bytes);
    std::ranges::sort(row);
    for (size_t i = 0; i < row.size(); ++i) {
      if (i + 1 < row.size() && row[i + 1].first == row[i].first) continue;
      children_.items.push_back(row[i].first);
      child_tensor_.push_back(row[i].second);
      by_tensor[static_cast<size_t>(row[i].second)].push_back(row[i].first);
      ++producers_[static_cast<size_t>(row[i].first)];
    }
    children_.EndRow();
  }
  for (const TensorId tensor : graph.tensors()) {
    producer_.push_back(position[Index(graph.producer(tensor))]);
    consumers_.items.insert(consumers_.items.end(), by_tensor[Index(tensor)].begin(), by_tensor[Index(tensor)].end());
    consumers_.EndRow();
  }
}

void Placeto::ReadRoutes() {
  double bandwidth = kNever;
  for (const DeviceId from : problem().cluster().ids()) {
    for (const DeviceId to : problem().cluster().ids()) {
      if (from == to) continue;
      const size_t route = Index(from) * devices_ + Index(to);
      if (bandwidth == kNever) bandwidth = problem().bandwidth()[route];
      if (problem().bandwidth()[route] != bandwidth || problem().latency()[route] != 0) {
        throw Error(
            "{}: the published simulator has one bandwidth for all links and no latency, and cluster {} has more; use "
            "--cluster 'placeto(devices={})' or --evaluator 'parallel(contention=egress)'",
            name_, problem().cluster().name(), devices_);
      }
    }
  }
  if (problem().has_explicit_transfers()) {
    throw Error(
        "{}: the published simulator computes transfers from bytes, and this problem gives their times; use "
        "--evaluator parallel",
        name_);
  }
  const Graph& graph = problem().graph();
  for (const TensorId tensor : graph.tensors()) {
    delay_.push_back(graph.is_constant(tensor) ? 0 : static_cast<double>(graph.tensor_bytes(tensor)) / bandwidth);
  }
}

// Events by time; at one time arrivals (by producer, then consumer) before ports before devices (by number). The
// published code has one event more, a look at a queue that may be empty or not ready; here a start is known when its
// op or transfer is queued, and the ends of the last rests are kept for the makespan.
double Placeto::Run(const PlanView& plan, State& state) const {
  const size_t ops = op_of_.size();
  for (size_t v = 0; v < ops; ++v) state.device[v] = static_cast<int32_t>(plan.device[Index(op_of_[v])]);
  state.missing = producers_;
  std::ranges::fill(state.start, kNever);
  std::ranges::fill(state.sent, uint8_t{0});
  std::ranges::fill(state.when, kNever);
  std::ranges::fill(state.free, 0.0);
  std::ranges::fill(state.ready, State::Queue{});
  std::ranges::fill(state.transfers, State::Queue{});
  state.ran = 0;

  for (size_t v = 0; v < ops; ++v) {
    if (producers_[v] == 0) Enqueue(0, static_cast<int32_t>(v), state);
  }
  while (true) {
    const double now = Earliest(state.when);
    if (now == kNever) break;
    size_t next = 0;
    while (state.when[next] != now) ++next;
    if (next < 2 * devices_) {
      Arrive(now, next, state);
    } else if (next < 3 * devices_) {
      StartTransfer(now, next - 2 * devices_, state);
    } else {
      StartOp(now, next - 3 * devices_, state);
    }
  }
  return state.ran == ops ? std::ranges::max(state.free) : kNever;
}

void Placeto::Enqueue(double now, int32_t op, State& state) const {
  const auto device = static_cast<size_t>(state.device[static_cast<size_t>(op)]);
  state.ready[device].Push(op, state.next_ready);
  double& start = state.when[3 * devices_ + device];
  if (start == kNever) start = std::max(now, state.free[devices_ + device]);
}

// Calls `deliver` with each consumer that the arrival of this kind and device serves.
template <typename Deliver>
void Placeto::ForEachArrival(size_t which, const State& state, const Deliver& deliver) const {
  const bool here = which < devices_;
  const int32_t item = state.what[which];
  const auto device = static_cast<int32_t>(here ? which : which - devices_);
  for (const int32_t c : here ? children_[item] : consumers_[item]) {
    if ((state.device[static_cast<size_t>(c)] == device) == here) deliver(c);
  }
}

// All that arrives now, by producer and consumer; `first` is one of it. Nothing that happens in here can add to it.
void Placeto::Arrive(double now, size_t first, State& state) const {
  const auto deliver = [&](int32_t consumer) {
    if (--state.missing[static_cast<size_t>(consumer)] == 0) Enqueue(now, consumer, state);
  };
  state.when[first] = kNever;
  bool alone = true;
  for (size_t i = first + 1; i < 2 * devices_; ++i) alone &= state.when[i] != now;
  if (alone) return ForEachArrival(first, state, deliver);

  state.when[first] = now;
  state.arrivals.clear();
  for (size_t i = first; i < 2 * devices_; ++i) {
    if (state.when[i] != now) continue;
    state.when[i] = kNever;
    const int32_t producer = i < devices_ ? state.what[i] : producer_[static_cast<size_t>(state.what[i])];
    ForEachArrival(i, state, [&](int32_t consumer) { state.arrivals.emplace_back(producer, consumer); });
  }
  std::ranges::sort(state.arrivals);
  for (const auto& [producer, consumer] : state.arrivals) deliver(consumer);
}

void Placeto::StartOp(double now, size_t device, State& state) const {
  State::Queue& queue = state.ready[device];
  const int32_t op = queue.Pop(state.next_ready);
  const auto v = static_cast<size_t>(op);
  const double length = cost_[v * devices_ + device];
  const double end = now + length;
  const double free = end + (length != 0 ? rests_.op_gap : 0);
  state.start[v] = now;
  state.end[v] = end;
  state.free[devices_ + device] = free;
  state.when[3 * devices_ + device] = queue.head < 0 ? kNever : free;
  if (end < kNever) ++state.ran;

  // Outputs queue in the order of their first consumer elsewhere.
  State::Queue& transfers = state.transfers[device];
  for (auto i = static_cast<size_t>(children_.start[v]); i < static_cast<size_t>(children_.start[v + 1]); ++i) {
    if (state.device[static_cast<size_t>(children_.items[i])] == static_cast<int32_t>(device)) {
      state.when[device] = end;
      state.what[device] = op;
    } else if (const auto tensor = static_cast<size_t>(child_tensor_[i]); state.sent[tensor] == 0) {
      state.sent[tensor] = 1;
      transfers.Push(child_tensor_[i], state.next_transfer);
      double& start = state.when[2 * devices_ + device];
      if (start == kNever) start = std::max(end, state.free[device]);
    }
  }
}

void Placeto::StartTransfer(double now, size_t device, State& state) const {
  State::Queue& queue = state.transfers[device];
  const auto tensor = static_cast<size_t>(queue.Pop(state.next_transfer));
  const double arrival = now + delay_[tensor];
  const double free = arrival + rests_.bus_hold;
  state.sent_at[tensor] = now;
  state.when[devices_ + device] = arrival;
  state.what[devices_ + device] = static_cast<int32_t>(tensor);
  state.free[device] = free;
  state.when[2 * devices_ + device] = kNever;
  if (queue.head >= 0) {
    const auto producer = static_cast<size_t>(producer_[static_cast<size_t>(queue.head)]);
    state.when[2 * devices_ + device] = std::max(state.end[producer], free);
  }
}

// The published rule: all outputs of an op lie on its device from its start to one microsecond before the end of its
// last consumer, both truncated to whole microseconds; copies, weights and workspaces count nothing.
void Placeto::FindHeld(size_t device, State& state) const {
  state.held.clear();
  for (size_t v = 0; v < op_of_.size(); ++v) {
    if (state.device[v] != static_cast<int32_t>(device) || output_bytes_[v] == 0) continue;
    const double from = state.start[v] * us_per_unit_;
    double to = from;
    for (const int32_t c : children_[static_cast<int32_t>(v)]) {
      const auto consumer = static_cast<size_t>(c);
      to = std::max(to, std::trunc(state.start[consumer] * us_per_unit_) +
                            std::trunc(cost(c, state.device[consumer]) * us_per_unit_) - 1);
    }
    state.held.push_back({from, to, output_bytes_[v], static_cast<int32_t>(v)});
  }
}

// Bytes above the limits, summed over devices.
int64_t Placeto::Excess(State& state) const {
  if (!problem().has_memory_limits()) return 0;
  std::ranges::fill(state.level, 0);
  for (size_t v = 0; v < op_of_.size(); ++v) state.level[static_cast<size_t>(state.device[v])] += output_bytes_[v];
  int64_t excess = 0;
  for (const DeviceId id : problem().cluster().ids()) {
    const int64_t limit = problem().memory_limit(id);
    // What fits all at once needs no closer look.
    if (state.level[Index(id)] <= limit) continue;
    FindHeld(Index(id), state);
    state.changes.clear();
    for (const Held& h : state.held) {
      state.changes.emplace_back(h.from, -h.bytes);
      state.changes.emplace_back(h.to, h.bytes);
    }
    // What comes is counted before what goes at the same moment: it stands as negative and so first.
    std::ranges::sort(state.changes);
    int64_t now = 0, peak = 0;
    for (const auto& [time, bytes] : state.changes) peak = std::max(peak, now -= bytes);
    excess += std::max<int64_t>(0, peak - limit);
  }
  return excess;
}

Score Placeto::ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const {
  auto& state = static_cast<State&>(workspace);
  Score score{.time = Run(plan, state)};
  score.excess_bytes = Excess(state);
  if (score.excess_bytes > 0) score.outcome = Outcome::kTooBig;
  if (!starts.empty()) {
    for (size_t v = 0; v < op_of_.size(); ++v) starts[Index(op_of_[v])] = state.start[v];
  }
  return score;
}

DeviceMemory Placeto::TraceMemory(size_t device, State& state) const {
  FindHeld(device, state);
  struct Change {
    double time;
    int64_t bytes;
    bool operator<(const Change& other) const {
      if (time != other.time) return time < other.time;
      return (bytes > 0) != (other.bytes > 0) ? bytes > 0 : bytes < other.bytes;
    }
  };
  std::vector<Change> changes;
  for (const Held& h : state.held) {
    changes.push_back({h.from, h.bytes});
    changes.push_back({h.to, -h.bytes});
  }
  std::ranges::sort(changes, std::less<>{});
  DeviceMemory memory;
  int64_t level = 0;
  double peak_us = 0;
  for (const Change& change : changes) {
    level += change.bytes;
    // A step per change, not per moment: at one moment the level is highest in between.
    memory.steps.push_back({change.time / us_per_unit_, level});
    if (level > memory.peak_bytes) {
      memory.peak_bytes = level;
      peak_us = change.time;
    }
  }
  memory.peak_time = peak_us / us_per_unit_;
  const Graph& graph = problem().graph();
  for (const Held& h : state.held) {
    if (h.from > peak_us || h.to < peak_us) continue;
    const OpId op = op_of_[static_cast<size_t>(h.op)];
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const int64_t bytes = graph.tensor_bytes(MakeId<TensorId>(t));
      if (bytes > 0) memory.holders.push_back({MemoryHolder::Kind::kTensor, static_cast<int32_t>(t), bytes});
    }
  }
  std::ranges::stable_sort(memory.holders, std::greater<>{}, &MemoryHolder::bytes);
  return memory;
}

// An output is sent once for all other devices together: it shows as one transfer to each, at the same time.
std::vector<TransferRun> Placeto::TraceTransfers(const State& state) const {
  std::vector<TransferRun> runs;
  std::vector<int32_t> to;
  for (size_t t = 0; t < delay_.size(); ++t) {
    if (state.sent[t] == 0) continue;
    const int32_t from = state.device[static_cast<size_t>(producer_[t])];
    to.clear();
    for (const int32_t c : consumers_[static_cast<int32_t>(t)]) to.push_back(state.device[static_cast<size_t>(c)]);
    std::ranges::sort(to);
    to.erase(std::ranges::unique(to).begin(), to.end());
    for (const int32_t d : to) {
      if (d == from) continue;
      runs.push_back({.tensor = MakeId<TensorId>(t),
                      .from = static_cast<DeviceId>(from),
                      .to = static_cast<DeviceId>(d),
                      .start = state.sent_at[t],
                      .end = state.sent_at[t] + delay_[t]});
    }
  }
  std::ranges::stable_sort(runs, {}, &TransferRun::start);
  return runs;
}

Timeline Placeto::Trace(const PlanView& plan) const {
  const std::unique_ptr<State> state = NewState();
  Timeline timeline;
  timeline.score = ScorePlan(plan, *state, {});
  timeline.ops.resize(op_of_.size());
  for (size_t v = 0; v < op_of_.size(); ++v) {
    timeline.ops[Index(op_of_[v])] = {static_cast<DeviceId>(state->device[v]), state->start[v], state->end[v]};
  }
  timeline.transfers = TraceTransfers(*state);
  for (const DeviceId id : problem().cluster().ids()) {
    timeline.memory.push_back(TraceMemory(Index(id), *state));
    const DeviceMemory& memory = timeline.memory.back();
    const int64_t limit = problem().memory_limit(id);
    if (memory.peak_bytes <= limit || !timeline.infeasible_because.empty()) continue;
    timeline.infeasible_because = fmt::format("device {} holds {} at {}, its memory is {} (memory rule: placeto)",
                                              problem().cluster().device(id).name, ToString(Bytes{memory.peak_bytes}),
                                              ToString(problem().ToSeconds(memory.peak_time)), ToString(Bytes{limit}));
  }
  return timeline;
}

}  // namespace

void RegisterPlaceto(EvaluatorCatalog& catalog) {
  catalog.Add(
      {.name = "placeto",
       .sentence = "the published simulator of Placeto to the last bit, with its memory rule",
       .source = "Addanki et al. 2019, arXiv 1906.08879, released code",
       .parameters = {Real("op_gap", "5.7", "microseconds that a device rests after an op that took time", 0, 1e9),
                      Real("bus_hold", "25", "microseconds that a port rests after a transfer", 0, 1e9)}},
      [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
        const Problem& problem = context.problem;
        return std::make_unique<Placeto>(problem, params);
      });
}

}  // namespace berth
