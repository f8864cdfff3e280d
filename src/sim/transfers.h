// Which transfers start when, under each kind of contention: classes with one interface.
//   Request(tensor, from, to, now)   the transfer may start from `now` on; calls come with `now` never falling
//   Start(now, on_start)             starts all that can: on_start(tensor, from, to, end) for each
//   Idle()                           nothing is under way and nothing waits
//   Save(to), Load(from)             the state just after a Start; Load comes after a Reset, perhaps for another plan
// `edges` of a Reset: how many edges lead from one device to another, in a table of devices x devices. More will do.
// Where ports are limited at most one transfer leaves a device at a time. Its end stands in a slot of the device:
//   End(device, on_end)              the transfer in this slot ends: on_end(tensor, from, to)
// Where they are not, any number is under way:
//   NextEnd()                        when the next one ends; kNever when none is under way
//   EndAll(now, on_end)              ends those that end at `now`, in any order
// Where !kKnowsEnds a transfer's end is not known when it starts: `end` is kNever then, and on_end is told its start
// too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/plan.h"
#include "sim/device_sets.h"
#include "sim/flat_problem.h"
#include "sim/slots.h"
#include "sim/snapshot.h"

namespace berth {

// The `edges` of a plan.
void CountEdges(const FlatProblem& flat, const PlanView& plan, std::vector<int32_t>& edges);

// Transfers under way, one per sending device at most. Their slots are those after the devices' own.
class Outgoing {
 public:
  void Reset(size_t devices, Slots& slots) {
    slots_ = &slots;
    move_.resize(devices);
    active_ = 0;
  }
  bool free(int32_t from) const { return (*slots_)[Slot(from)] == kNever; }
  void Set(int32_t tensor, int32_t from, int32_t to, double end) {
    slots_->Set(Slot(from), end);
    move_[static_cast<size_t>(from)] = {tensor, to};
    ++active_;
  }
  bool idle() const { return active_ == 0; }

  struct Move {
    int32_t tensor, to;
  };
  // But for the slots.
  void Save(Snapshot& to) const {
    to.PutAll(move_);
    to.Put(active_);
  }
  void Load(Snapshot::Reader& from) {
    from.TakeAll(move_);
    active_ = from.Take<size_t>();
  }

  Move Take(int32_t from) {
    slots_->Set(Slot(from), kNever);
    --active_;
    return move_[static_cast<size_t>(from)];
  }

 private:
  size_t Slot(int32_t from) const { return move_.size() + static_cast<size_t>(from); }

  Slots* slots_ = nullptr;
  std::vector<Move> move_;
  size_t active_ = 0;
};

// Waiting transfers in several queues, each ordered by (request, tensor, destination). Requests come in the order of
// time, so that only those of one instant have to be put in order.
class RequestQueues {
 public:
  struct Item {
    double request;
    double length;
    int32_t tensor, to;
  };

  // Queue k can hold capacity[k] items.
  void Reset(std::span<const int32_t> capacity) {
    queues_.resize(capacity.size());
    size_t total = 0;
    for (const int32_t count : capacity) total += static_cast<size_t>(count);
    items_.resize(total);
    Item* first = items_.data();
    for (size_t k = 0; k < queues_.size(); ++k) {
      queues_[k] = {first, first};
      first += capacity[k];
    }
  }

  bool empty(size_t k) const { return queues_[k].head == queues_[k].tail; }
  const Item& front(size_t k) const { return *queues_[k].head; }
  void Pop(size_t k) { ++queues_[k].head; }
  // Whether it is the first now.
  bool Push(size_t k, const Item& item) {
    Queue& queue = queues_[k];
    Item* place = queue.tail++;
    for (; place > queue.head && Before(item, place[-1]); --place) *place = place[-1];
    *place = item;
    return place == queue.head;
  }

  // Of many queues most are empty.
  void Save(Snapshot& to) const {
    for (size_t k = 0; k < queues_.size(); ++k) {
      if (empty(k)) continue;
      to.Put(k);
      to.PutCounted(std::span<const Item>(queues_[k].head, queues_[k].tail));
    }
    to.Put(queues_.size());
  }
  void Load(Snapshot::Reader& from) {
    for (auto k = from.Take<size_t>(); k < queues_.size(); k = from.Take<size_t>()) {
      queues_[k].tail = from.TakeCounted(queues_[k].head);
    }
  }

 private:
  static bool Before(const Item& a, const Item& b) {
    if (a.request != b.request) return a.request < b.request;
    return a.tensor != b.tensor ? a.tensor < b.tensor : a.to < b.to;
  }
  struct Queue {
    Item *head, *tail;
  };
  std::vector<Queue> queues_;
  std::vector<Item> items_;
};

// contention=none: every transfer starts when it is requested.
class Unlimited {
 public:
  static constexpr bool kUsesSlots = false;
  static constexpr bool kKnowsEnds = true;

  void Reset(const FlatProblem& flat, const PlanView&, Slots&) { Reset(flat); }
  void Reset(const FlatProblem& flat, std::span<const int32_t>, Slots&) { Reset(flat); }
  void Reset(const FlatProblem& flat) {
    flat_ = &flat;
    active_.clear();
    waiting_.clear();
    // At most one transfer per edge, and one per output.
    const size_t most = flat.num_edges() + (flat.has_io_host() ? static_cast<size_t>(flat.num_tensors()) : 0);
    active_.reserve(most);
    waiting_.reserve(most);
  }

  void Request(int32_t tensor, int32_t from, int32_t to, double now) {
    waiting_.push_back({now + flat_->transfer_time(tensor, from, to), tensor, from, to});
  }

  template <typename OnStart>
  void Start(double, OnStart on_start) {
    for (const Move& move : waiting_) {
      on_start(move.tensor, move.from, move.to, move.end);
      active_.push_back(move);
      std::push_heap(active_.begin(), active_.end());
    }
    waiting_.clear();
  }

  double NextEnd() const { return active_.empty() ? kNever : active_.front().end; }

  template <typename OnEnd>
  void EndAll(double now, OnEnd on_end) {
    while (!active_.empty() && active_.front().end == now) {
      std::pop_heap(active_.begin(), active_.end());
      const Move move = active_.back();
      active_.pop_back();
      on_end(move.tensor, move.from, move.to);
    }
  }

  bool Idle() const { return active_.empty() && waiting_.empty(); }

  void Save(Snapshot& to) const { to.PutCounted(std::span<const Move>(active_)); }
  void Load(Snapshot::Reader& from) { from.TakeCounted(active_); }

 private:
  struct Move {
    double end;
    int32_t tensor, from, to;
    bool operator<(const Move& other) const { return end > other.end; }  // the heap's top ends first
  };
  const FlatProblem* flat_ = nullptr;
  std::vector<Move> active_, waiting_;
};

// contention=egress: one transfer leaves a device at a time, the first by (request, tensor, destination).
class EgressPorts {
 public:
  static constexpr bool kUsesSlots = true;
  static constexpr bool kKnowsEnds = true;

  void Reset(const FlatProblem& flat, const PlanView& plan, Slots& slots) {
    flat_ = &flat;
    const auto devices = static_cast<size_t>(flat.num_devices());
    capacity_.assign(devices, 0);
    for (int32_t t = 0; t < flat.num_tensors(); ++t) {
      capacity_[static_cast<size_t>(flat.HomeOf(t, plan.device))] +=
          static_cast<int32_t>(flat.consumers(t).size()) + flat.has_io_host();
    }
    Prepare(slots);
  }
  void Reset(const FlatProblem& flat, std::span<const int32_t> edges, Slots& slots) {
    flat_ = &flat;
    const auto devices = static_cast<size_t>(flat.num_devices());
    capacity_.assign(devices, 0);
    for (size_t i = 0; i < edges.size(); ++i) capacity_[i / devices] += edges[i];
    Prepare(slots);
  }

  void Request(int32_t tensor, int32_t from, int32_t to, double now) {
    queues_.Push(static_cast<size_t>(from), {now, flat_->transfer_time(tensor, from, to), tensor, to});
    changed_.Add(0, from);
    ++waiting_;
  }

  template <typename OnStart>
  void Start(double now, OnStart on_start) {
    changed_.TakeEach(0, [&](int32_t p) {
      const auto k = static_cast<size_t>(p);
      if (!outgoing_.free(p) || queues_.empty(k)) return;
      const RequestQueues::Item item = queues_.front(k);
      queues_.Pop(k);
      --waiting_;
      const double end = now + item.length;
      outgoing_.Set(item.tensor, p, item.to, end);
      on_start(item.tensor, p, item.to, end);
    });
  }

  template <typename OnEnd>
  void End(int32_t from, OnEnd on_end) {
    const auto [tensor, to] = outgoing_.Take(from);
    changed_.Add(0, from);
    on_end(tensor, from, to);
  }

  bool Idle() const { return waiting_ == 0 && outgoing_.idle(); }

  void Save(Snapshot& to) const {
    queues_.Save(to);
    outgoing_.Save(to);
    to.Put(waiting_);
  }
  void Load(Snapshot::Reader& from) {
    queues_.Load(from);
    outgoing_.Load(from);
    waiting_ = from.Take<size_t>();
  }

 private:
  void Prepare(Slots& slots) {
    queues_.Reset(capacity_);
    outgoing_.Reset(capacity_.size(), slots);
    changed_.Reset(1, capacity_.size());
    waiting_ = 0;
  }

  const FlatProblem* flat_ = nullptr;
  std::vector<int32_t> capacity_;
  RequestQueues queues_;
  Outgoing outgoing_;
  DeviceSets changed_;  // the port was freed or a transfer requested since the last Start
  size_t waiting_ = 0;
};

// contention=ports: a transfer holds the outgoing port of one device and the incoming port of the other. A queue per
// ordered pair of devices: only the heads can start, and only those that something has just happened to.
class Ports {
 public:
  static constexpr bool kUsesSlots = true;
  static constexpr bool kKnowsEnds = true;

  void Reset(const FlatProblem& flat, const PlanView& plan, Slots& slots);
  void Reset(const FlatProblem& flat, std::span<const int32_t> edges, Slots& slots);

  void Request(int32_t tensor, int32_t from, int32_t to, double now) {
    const size_t pair = Pair(from, to);
    if (queues_.empty(pair)) {
      sets_.Add(ToRow(from), to);
      sets_.Add(FromRow(to), from);
    }
    const bool first = queues_.Push(pair, {now, flat_->transfer_time(tensor, from, to), tensor, to});
    if (first && sets_.Has(kFreeOut, from) && sets_.Has(kFreeIn, to)) fresh_.push_back({from, to});
    ++num_waiting_;
  }

  // Starting one transfer cannot make another possible, so that one pass over the candidates in their order is the same
  // as choosing the first again and again.
  template <typename OnStart>
  void Start(double now, OnStart on_start) {
    if (num_waiting_ == 0) return freed_.clear();
    FindCandidates();
    for (const Candidate& candidate : candidates_) {
      const int32_t from = candidate.from, to = candidate.to;
      if (!sets_.Has(kFreeOut, from) || !sets_.Has(kFreeIn, to)) continue;
      const size_t pair = Pair(from, to);
      const RequestQueues::Item item = queues_.front(pair);
      queues_.Pop(pair);
      --num_waiting_;
      if (queues_.empty(pair)) {
        sets_.Remove(ToRow(from), to);
        sets_.Remove(FromRow(to), from);
      }
      sets_.Remove(kFreeOut, from);
      sets_.Remove(kFreeIn, to);
      const double end = now + item.length;
      outgoing_.Set(item.tensor, from, to, end);
      on_start(item.tensor, from, to, end);
    }
    candidates_.clear();
  }

  template <typename OnEnd>
  void End(int32_t from, OnEnd on_end) {
    const auto [tensor, to] = outgoing_.Take(from);
    sets_.Add(kFreeOut, from);
    sets_.Add(kFreeIn, to);
    freed_.push_back({from, to});
    on_end(tensor, from, to);
  }

  bool Idle() const { return num_waiting_ == 0 && outgoing_.idle(); }

  void Save(Snapshot& to) const {
    sets_.Save(to);
    queues_.Save(to);
    outgoing_.Save(to);
    to.Put(num_waiting_);
  }
  void Load(Snapshot::Reader& from) {
    sets_.Load(from);
    queues_.Load(from);
    outgoing_.Load(from);
    num_waiting_ = from.Take<size_t>();
  }

 private:
  struct Route {
    int32_t from, to;
  };
  // The head of a queue both of whose ports are free.
  struct Candidate {
    double request;
    int32_t tensor, from, to;
    bool operator<(const Candidate& other) const {
      if (request != other.request) return request < other.request;
      return tensor != other.tensor ? tensor < other.tensor : to < other.to;
    }
  };

  // Rows of sets_: devices whose port is free; then per sender the destinations that it has transfers for; then per
  // destination the senders.
  static constexpr size_t kFreeOut = 0, kFreeIn = 1;
  static size_t ToRow(int32_t from) { return 2 + static_cast<size_t>(from); }
  size_t FromRow(int32_t to) const { return 2 + devices_ + static_cast<size_t>(to); }

  size_t Pair(int32_t from, int32_t to) const { return static_cast<size_t>(from) * devices_ + static_cast<size_t>(to); }
  void FindCandidates() {
    for (const Route& route : fresh_) AddCandidate(route.from, route.to);
    for (const Route& route : freed_) {
      sets_.ForEachInBoth(ToRow(route.from), kFreeIn, [&](int32_t to) { AddCandidate(route.from, to); });
      sets_.ForEachInBoth(FromRow(route.to), kFreeOut, [&](int32_t from) {
        if (from != route.from) AddCandidate(from, route.to);
      });
    }
    fresh_.clear();
    freed_.clear();
    if (candidates_.size() > 1) SortCandidates();
  }
  void AddCandidate(int32_t from, int32_t to) {
    const RequestQueues::Item& head = queues_.front(Pair(from, to));
    candidates_.push_back({head.request, head.tensor, from, to});
  }
  void SortCandidates();

  const FlatProblem* flat_ = nullptr;
  size_t devices_ = 0;
  DeviceSets sets_;
  std::vector<int32_t> capacity_;
  RequestQueues queues_;
  Outgoing outgoing_;
  // Since the last Start: new heads of queues with both ports free, one per pair at most, as an op's tensors ascend;
  // and the transfers that ended, one per sender.
  std::vector<Route> fresh_, freed_;
  std::vector<Candidate> candidates_;
  size_t num_waiting_ = 0;
};

// Strictly in the plan's sequence: a port waits for its next transfer even if others could start. A sequence names
// transfers to consumers; those that only io=host makes are put around it: graph inputs before it, and outputs after
// it.
class SequencedPorts {
 public:
  explicit SequencedPorts(bool ingress_too = false) : ingress_too_(ingress_too) {}

  static constexpr bool kUsesSlots = true;
  static constexpr bool kKnowsEnds = true;

  void Reset(const FlatProblem& flat, const PlanView& plan, Slots& slots);

  void Request(int32_t tensor, int32_t from, int32_t to, double now);

  template <typename OnStart>
  void Start(double now, OnStart on_start) {
    for (int32_t p = 0; p < flat_->num_devices(); ++p) {
      Queue& leaving = out_[static_cast<size_t>(p)];
      if (!outgoing_.free(p) || leaving.empty()) continue;
      const int32_t next = leaving.front();
      const Move& move = moves_[static_cast<size_t>(next)];
      Queue& entering = in_[static_cast<size_t>(move.to)];
      if (!move.requested || (ingress_too_ && (entering.busy || entering.front() != next))) continue;
      ++leaving.head;
      ++entering.head;
      entering.busy = true;
      --num_waiting_;
      const double end = now + flat_->transfer_time(move.tensor, p, move.to);
      outgoing_.Set(move.tensor, p, move.to, end);
      on_start(move.tensor, p, move.to, end);
    }
  }

  template <typename OnEnd>
  void End(int32_t from, OnEnd on_end) {
    const auto [tensor, to] = outgoing_.Take(from);
    in_[static_cast<size_t>(to)].busy = false;
    on_end(tensor, from, to);
  }

  bool Idle() const { return num_waiting_ == 0 && outgoing_.idle(); }

 private:
  struct Move {
    int32_t tensor, from, to;
    int32_t next_of_tensor;  // in moves_, -1 for none
    bool requested;
  };
  struct Queue {  // of one port: indices of moves_
    const int32_t *head, *tail;
    bool busy;
    bool empty() const { return head == tail; }
    int32_t front() const { return *head; }
  };
  void Add(int32_t tensor, int32_t from, int32_t to);
  void AddHostTransfers(const PlanView& plan, int32_t first, int32_t last);
  void Distribute(int32_t Move::* port, std::vector<Queue>& queues, std::vector<int32_t>& items);

  bool ingress_too_;
  const FlatProblem* flat_ = nullptr;
  std::vector<Move> moves_;  // in the order that the ports keep
  std::vector<int32_t> first_of_tensor_;
  std::vector<int32_t> out_items_, in_items_, seen_;
  std::vector<Queue> out_, in_;
  Outgoing outgoing_;
  size_t num_waiting_ = 0;  // requested and not started
};

}  // namespace berth
