// One run of the evaluator `parallel` through time. docs/semantics.md has its rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/evaluator.h"
#include "sim/device_sets.h"
#include "sim/flat_problem.h"
#include "sim/links.h"
#include "sim/memory_level.h"
#include "sim/plan_tables.h"
#include "sim/ready_ops.h"
#include "sim/slots.h"
#include "sim/snapshot.h"
#include "sim/transfers.h"

namespace berth {

// What every kind of run needs; a run takes of the rest what its rules ask for.
struct ParallelWorkspace : Workspace {
  std::vector<OpState> ops;
  std::vector<int32_t> first_op;   // per device: where its ops would start in a list of all, by device
  Slots slots;                     // when the op of each device ends, and then when the transfer that it sends does
  DeviceSets changed;              // devices that were freed, or got a ready op, since ops were last started
  std::vector<int32_t> running;    // per device: its op
  std::vector<int32_t> last_sent;  // per device: the tensor last found to go there
  MemoryLevel memory;

  FirstCome first_come;
  ByPriority by_priority;
  InSequence in_sequence;

  Unlimited unlimited;
  EgressPorts egress;
  Ports ports;
  Links links;
  SequencedPorts sequenced_egress{false};
  SequencedPorts sequenced_ports{true};
};

// What a run can still ask for of what has happened, from one save of its state to the next.
struct Frontier {
  std::vector<int32_t> ended;    // ops, since the last save
  std::vector<int32_t> waiting;  // ops that lack inputs, some of whose inputs exist; perhaps more than once
  std::vector<int32_t> held;     // tensors that something needs where they are

  // At time 0.
  void Reset(const FlatProblem& flat) {
    ended.clear();
    waiting.clear();
    held.clear();
    for (int32_t t = 0; t < flat.num_inputs(); ++t) {
      held.push_back(t);
      waiting.insert(waiting.end(), flat.consumers(t).begin(), flat.consumers(t).end());
    }
  }
};

// Who watches a run is told when an op has ended, in which round, and when all that can start in a round has started:
// OpEnded(op, round), Started(run). This one is told nothing.
struct Unwatched {
  static constexpr bool kWatches = false;
};

// One run through time. Ready says which op a device starts, Transfers which transfers start (ready_ops.h,
// transfers.h). A round is what happens at one instant, or a part of it where things have no length.
template <typename Ready, typename Transfers, bool kMemory, typename Watcher = Unwatched>
class Run {
  static constexpr size_t kFetched = 4;  // consumers whose state is fetched ahead: most tensors have no more

 public:
  Run(const FlatProblem& flat, ParallelWorkspace& workspace, Ready& ready, Transfers& transfers,
      std::span<double> starts, std::vector<TransferRun>* record, Watcher watcher = {})
      : flat_(flat),
        work_(workspace),
        ready_(ready),
        transfers_(transfers),
        starts_(starts),
        record_(record),
        watcher_(watcher) {}

  Score Simulate(const PlanView& plan) {
    Prepare(plan);
    Begin();
    return Continue();
  }

  // The same from tables that are there already, and from the middle of a run when `from` is one that was saved. That
  // one may have been of another plan, if the two differ in nothing that has happened by then.
  Score Simulate(const PlanView& plan, const PlanTables& tables, const Snapshot* from, Frontier& frontier) {
    work_.ops = tables.ops();
    ResetDevices();
    ready_.Reset(plan, tables.first_op());
    transfers_.Reset(flat_, tables.edges(), work_.slots);
    if constexpr (kMemory) work_.memory.Reset(flat_, tables.parameter_bytes());
    frontier.Reset(flat_);
    if (from == nullptr) {
      Begin();
    } else {
      Load(*from, frontier);
    }
    return Continue();
  }

  uint32_t round() const { return round_; }
  int32_t ended() const { return ended_; }

  // When all that can start has started. Of ops that have nothing or all, and of tensors that nothing needs, there is
  // nothing to remember: O(what is under way, and what has happened since the last save).
  void Save(Frontier& frontier, Snapshot& to) const {
    for (const int32_t v : frontier.ended) {
      const std::span<const int32_t> users = flat_.users_of(v);
      frontier.waiting.insert(frontier.waiting.end(), users.begin(), users.end());
      for (int32_t t = flat_.first_output(v); t < flat_.first_output(v + 1); ++t) frontier.held.push_back(t);
    }
    frontier.ended.clear();
    std::erase_if(frontier.waiting, [this](int32_t v) { return work_.ops[static_cast<size_t>(v)].missing == 0; });
    to.Put(now_);
    to.Put(round_);
    to.Put(ended_);
    work_.slots.Save(to);
    to.PutAll(work_.running);
    to.PutCounted(std::span<const int32_t>(frontier.waiting));
    for (const int32_t v : frontier.waiting) to.Put(work_.ops[static_cast<size_t>(v)].missing);
    ready_.Save(to);
    transfers_.Save(to);
    if constexpr (kMemory) work_.memory.Save(frontier.held, to);
  }

 private:
  void Load(const Snapshot& snapshot, Frontier& frontier) {
    Snapshot::Reader from(snapshot);
    now_ = from.Take<double>();
    round_ = from.Take<uint32_t>();
    ended_ = from.Take<int32_t>();
    work_.slots.Load(from);
    from.TakeAll(work_.running);
    from.TakeCounted(frontier.waiting);
    for (const int32_t v : frontier.waiting) work_.ops[static_cast<size_t>(v)].missing = from.Take<int32_t>();
    ready_.Load(from);
    transfers_.Load(from);
    if constexpr (kMemory) work_.memory.Load(from, frontier.held);
  }

  Score Continue() {
    while (true) {
      StartTransfers();
      StartOps();
      if constexpr (Watcher::kWatches) watcher_.Started(*this);
      const double next = NextEnd();
      if (next == kNever) break;
      now_ = next;
      ++round_;
      EndAll();
    }
    // Ops are left when a sequence contradicts itself, or when one is on a device that cannot run it.
    if (ended_ != flat_.num_ops() || !transfers_.Idle()) return {.time = kNever, .outcome = Outcome::kImpossible};
    Score score{.time = now_};
    if constexpr (kMemory) work_.memory.Finish(now_, score);
    return score;
  }

  void ResetDevices() {
    const auto devices = static_cast<size_t>(flat_.num_devices());
    work_.slots.Reset(Transfers::kUsesSlots ? 2 * devices : devices);
    work_.changed.Reset(1, devices);
    work_.running.resize(devices);
    work_.last_sent.assign(devices, -1);
  }

  void Prepare(const PlanView& plan) {
    const auto devices = static_cast<size_t>(flat_.num_devices());
    work_.ops.resize(plan.device.size());
    work_.first_op.assign(devices + 1, 0);
    ResetDevices();
    std::fill(starts_.begin(), starts_.end(), kNever);
    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      const auto d = static_cast<int32_t>(plan.device[static_cast<size_t>(v)]);
      work_.ops[static_cast<size_t>(v)] = {flat_.op_time(v, d), flat_.num_inputs_of(v), d};
      ++work_.first_op[static_cast<size_t>(d) + 1];
    }
    for (size_t d = 0; d < devices; ++d) work_.first_op[d + 1] += work_.first_op[d];
    ready_.Reset(plan, work_.first_op);
    transfers_.Reset(flat_, plan, work_.slots);
    if constexpr (kMemory) work_.memory.Reset(flat_, plan);
  }

  // What is there at time 0.
  void Begin() {
    for (int32_t v = 0; v < flat_.num_ops(); ++v) {
      const OpState& op = work_.ops[static_cast<size_t>(v)];
      if (op.missing == 0) BecomesReady(v, op.device);
    }
    for (int32_t t = 0; t < flat_.num_inputs(); ++t) {
      if constexpr (kMemory) work_.memory.Arriving(t, flat_.io_host(), 0);
      Publish(t, flat_.io_host());
    }
  }

  void StartTransfers() {
    transfers_.Start(now_, [this](int32_t t, [[maybe_unused]] int32_t from, int32_t to, [[maybe_unused]] double end) {
      if constexpr (kMemory) work_.memory.Arriving(t, to, now_);
      if constexpr (Transfers::kKnowsEnds) Record(t, from, to, now_, end);
    });
  }

  void Record(int32_t t, int32_t from, int32_t to, double start, double end) {
    if (record_ == nullptr) return;
    const bool is_input = t < flat_.num_inputs();
    record_->push_back({.tensor = is_input ? static_cast<TensorId>(t) : flat_.tensor_id(t),
                        .from = static_cast<DeviceId>(from),
                        .to = static_cast<DeviceId>(to),
                        .start = start,
                        .end = end,
                        .is_input = is_input});
  }

  void StartOps() {
    work_.changed.TakeEach(0, [this](int32_t d) {
      if (work_.slots[static_cast<size_t>(d)] != kNever || !ready_.Has(d)) return;
      const int32_t v = ready_.Pop(d);
      work_.slots.Set(static_cast<size_t>(d), now_ + work_.ops[static_cast<size_t>(v)].duration);
      work_.running[static_cast<size_t>(d)] = v;
      if (!starts_.empty()) starts_[static_cast<size_t>(v)] = now_;
      if constexpr (kMemory) work_.memory.OpStarts(v, d, now_);
      // Its end will ask for these; until then other things end.
      for (const int32_t c : flat_.users_of(v).first(std::min(kFetched, flat_.users_of(v).size()))) {
        __builtin_prefetch(work_.ops.data() + c, 1);
      }
    });
  }

  double NextEnd() const {
    if constexpr (Transfers::kUsesSlots) {
      return work_.slots.Least();
    } else {
      return std::min(work_.slots.Least(), transfers_.NextEnd());
    }
  }

  void EndAll() {
    const auto on_end = [this](int32_t t, int32_t from, int32_t to, [[maybe_unused]] double start = kNever) {
      if constexpr (!Transfers::kKnowsEnds) Record(t, from, to, start, now_);
      if constexpr (kMemory) work_.memory.Release(t, from, now_);
      Arrive(t, to);
    };
    work_.slots.ForEachAt(now_, [&](size_t slot) {
      const auto device = static_cast<int32_t>(slot);
      if constexpr (Transfers::kUsesSlots) {
        if (device >= flat_.num_devices()) return transfers_.End(device - flat_.num_devices(), on_end);
      }
      EndOp(device);
    });
    if constexpr (!Transfers::kUsesSlots) transfers_.EndAll(now_, on_end);
  }

  void EndOp(int32_t d) {
    work_.slots.Set(static_cast<size_t>(d), kNever);
    work_.changed.Add(0, d);
    ++ended_;
    const int32_t v = work_.running[static_cast<size_t>(d)];
    if constexpr (Watcher::kWatches) watcher_.OpEnded(v, round_);
    for (int32_t t = flat_.first_output(v); t < flat_.first_output(v + 1); ++t) Publish(t, d);
    if constexpr (kMemory) work_.memory.OpEnds(v, d, now_);
  }

  void BecomesReady(int32_t v, int32_t d) {
    ready_.Push(d, v, now_);
    work_.changed.Add(0, d);
  }

  // A tensor is there, on the device of its producer: consumers on this device have it, each other one is sent it once.
  void Publish(int32_t t, int32_t from) {
    if constexpr (kMemory) work_.memory.TensorBegins(t);
    for (const int32_t c : flat_.consumers(t)) {
      OpState& op = work_.ops[static_cast<size_t>(c)];
      if constexpr (kMemory) work_.memory.Hold(t, op.device);
      if (op.device == from) {
        if (--op.missing == 0) BecomesReady(c, from);
      } else {
        Send(t, from, op.device);
      }
    }
    if (flat_.tensor(t).is_output) {
      if constexpr (kMemory) work_.memory.Hold(t, from);
      if (flat_.has_io_host() && from != flat_.io_host()) {
        if constexpr (kMemory) work_.memory.Hold(t, flat_.io_host());
        Send(t, from, flat_.io_host());
      }
    }
    if constexpr (kMemory) work_.memory.Drop(t, from, now_);
  }

  void Send(int32_t t, int32_t from, int32_t to) {
    int32_t& last = work_.last_sent[static_cast<size_t>(to)];
    if (last == t) return;
    last = t;
    if constexpr (kMemory) work_.memory.Hold(t, from);
    transfers_.Request(t, from, to, now_);
  }

  void Arrive(int32_t t, int32_t to) {
    for (const int32_t c : flat_.consumers(t)) {
      OpState& op = work_.ops[static_cast<size_t>(c)];
      const bool here = op.device == to;
      op.missing -= here;
      if (here && op.missing == 0) BecomesReady(c, to);
    }
  }

  const FlatProblem& flat_;
  ParallelWorkspace& work_;
  Ready& ready_;
  Transfers& transfers_;
  std::span<double> starts_;
  std::vector<TransferRun>* record_;
  [[no_unique_address]] Watcher watcher_;
  double now_ = 0;
  uint32_t round_ = 0;
  int32_t ended_ = 0;
};

}  // namespace berth
