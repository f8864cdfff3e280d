// Which transfers start when, under each kind of contention: classes with one interface.
//   Request(tensor, from, to, now)   the transfer may start from `now` on; calls come with `now` never falling
//   Start(now, on_start)             starts all that can: on_start(tensor, from, to, end) for each
//   NextEnd()                        when the next one ends; infinity when none is under way
//   End(now, on_end)                 ends those that end at `now`: on_end(tensor, from, to) for each, in any order
//   Idle()                           nothing is under way and nothing waits
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "placement/plan.h"
#include "sim/flat_problem.h"

namespace berth {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// The least of some times, a multiple of four: four chains of comparisons at once, where one would wait for itself.
inline double Least(std::span<const double> times) {
  const auto lesser = [](double a, double b) { return b < a ? b : a; };
  double a = kNever, b = kNever, c = kNever, d = kNever;
  for (size_t i = 0; i + 4 <= times.size(); i += 4) {
    a = lesser(a, times[i]);
    b = lesser(b, times[i + 1]);
    c = lesser(c, times[i + 2]);
    d = lesser(d, times[i + 3]);
  }
  return lesser(lesser(a, b), lesser(c, d));
}

inline size_t RoundUpToFour(size_t n) { return (n + 3) / 4 * 4; }

// Where ports are limited, at most one transfer leaves a device at a time: one slot for each.
class Outgoing {
 public:
  void Reset(size_t devices) {
    end_.assign(RoundUpToFour(devices), kNever);
    move_.resize(devices);
    active_ = 0;
  }
  bool free(int32_t from) const { return end_[static_cast<size_t>(from)] == kNever; }
  void Set(int32_t tensor, int32_t from, int32_t to, double end) {
    end_[static_cast<size_t>(from)] = end;
    move_[static_cast<size_t>(from)] = {tensor, to};
    ++active_;
  }
  double NextEnd() const { return Least(end_); }
  bool idle() const { return active_ == 0; }

  template <typename OnEnd>
  void End(double now, OnEnd on_end) {
    for (size_t p = 0; p < move_.size(); ++p) {
      if (end_[p] != now) continue;
      end_[p] = kNever;
      --active_;
      on_end(move_[p].tensor, static_cast<int32_t>(p), move_[p].to);
    }
  }

 private:
  struct Move {
    int32_t tensor, to;
  };
  std::vector<double> end_;
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
  void Push(size_t k, const Item& item) {
    Queue& queue = queues_[k];
    Item* place = queue.tail++;
    for (; place > queue.head && Before(item, place[-1]); --place) *place = place[-1];
    *place = item;
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
  void Reset(const FlatProblem& flat, const PlanView&) {
    flat_ = &flat;
    active_.clear();
    waiting_.clear();
    // At most one transfer per edge, and one per output.
    const size_t most = flat.num_edges() + (flat.io_on_host() ? static_cast<size_t>(flat.num_tensors()) : 0);
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
  void End(double now, OnEnd on_end) {
    while (!active_.empty() && active_.front().end == now) {
      std::pop_heap(active_.begin(), active_.end());
      const Move move = active_.back();
      active_.pop_back();
      on_end(move.tensor, move.from, move.to);
    }
  }

  bool Idle() const { return active_.empty() && waiting_.empty(); }

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
  void Reset(const FlatProblem& flat, const PlanView& plan) {
    flat_ = &flat;
    const auto devices = static_cast<size_t>(flat.num_devices());
    capacity_.assign(devices, 0);
    for (int32_t t = 0; t < flat.num_tensors(); ++t) {
      const int32_t u = flat.producer(t);
      const size_t from = u < 0 ? 0 : Index(plan.device[static_cast<size_t>(u)]);
      capacity_[from] += static_cast<int32_t>(flat.consumers(t).size()) + flat.io_on_host();
    }
    queues_.Reset(capacity_);
    outgoing_.Reset(devices);
    waiting_ = 0;
  }

  void Request(int32_t tensor, int32_t from, int32_t to, double now) {
    queues_.Push(static_cast<size_t>(from), {now, flat_->transfer_time(tensor, from, to), tensor, to});
    ++waiting_;
  }

  template <typename OnStart>
  void Start(double now, OnStart on_start) {
    if (waiting_ == 0) return;
    for (int32_t p = 0; p < flat_->num_devices(); ++p) {
      const auto k = static_cast<size_t>(p);
      if (!outgoing_.free(p) || queues_.empty(k)) continue;
      const RequestQueues::Item item = queues_.front(k);
      queues_.Pop(k);
      --waiting_;
      const double end = now + item.length;
      outgoing_.Set(item.tensor, p, item.to, end);
      on_start(item.tensor, p, item.to, end);
    }
  }

  double NextEnd() const { return outgoing_.NextEnd(); }
  template <typename OnEnd>
  void End(double now, OnEnd on_end) {
    outgoing_.End(now, on_end);
  }
  bool Idle() const { return waiting_ == 0 && outgoing_.idle(); }

 private:
  const FlatProblem* flat_ = nullptr;
  std::vector<int32_t> capacity_;
  RequestQueues queues_;
  Outgoing outgoing_;
  size_t waiting_ = 0;
};

// contention=ports: a transfer holds the outgoing port of one device and the incoming port of the other. A queue per
// ordered pair of devices: only the heads can start. Sets of devices are bits, so that blocked heads cost next to
// nothing.
class Ports {
 public:
  void Reset(const FlatProblem& flat, const PlanView& plan);

  void Request(int32_t tensor, int32_t from, int32_t to, double now) {
    const size_t k = Pair(from, to);
    queues_.Push(k, {now, flat_->transfer_time(tensor, from, to), tensor, to});
    Word(waiting_, from, to) |= Bit(to);
    ++num_waiting_;
    changed_ = true;
  }

  template <typename OnStart>
  void Start(double now, OnStart on_start) {
    if (!changed_) return;
    changed_ = false;
    if (num_waiting_ == 0) return;
    FindCandidates();
    for (const Candidate& candidate : candidates_) {
      const auto from = static_cast<int32_t>(candidate.pair / devices_),
                 to = static_cast<int32_t>(candidate.pair % devices_);
      if (!outgoing_.free(from) || (Word(free_in_, 0, to) & Bit(to)) == 0) continue;
      const RequestQueues::Item item = queues_.front(candidate.pair);
      queues_.Pop(candidate.pair);
      --num_waiting_;
      if (queues_.empty(candidate.pair)) Word(waiting_, from, to) &= ~Bit(to);
      Word(free_in_, 0, to) &= ~Bit(to);
      const double end = now + item.length;
      outgoing_.Set(item.tensor, from, to, end);
      on_start(item.tensor, from, to, end);
    }
  }

  double NextEnd() const { return outgoing_.NextEnd(); }
  template <typename OnEnd>
  void End(double now, OnEnd on_end) {
    outgoing_.End(now, [&](int32_t tensor, int32_t from, int32_t to) {
      Word(free_in_, 0, to) |= Bit(to);
      changed_ = true;
      on_end(tensor, from, to);
    });
  }
  bool Idle() const { return num_waiting_ == 0 && outgoing_.idle(); }

 private:
  // The head of a queue both of whose ports are free.
  struct Candidate {
    double request;
    int32_t tensor;
    uint32_t pair;
    bool operator<(const Candidate& other) const {
      if (request != other.request) return request < other.request;
      return tensor != other.tensor ? tensor < other.tensor : pair < other.pair;
    }
  };

  size_t Pair(int32_t from, int32_t to) const { return static_cast<size_t>(from) * devices_ + static_cast<size_t>(to); }
  static uint64_t Bit(int32_t device) { return uint64_t{1} << (device % 64); }
  uint64_t& Word(std::vector<uint64_t>& sets, int32_t row, int32_t device) const {
    return sets[static_cast<size_t>(row) * words_ + static_cast<size_t>(device) / 64];
  }
  void FindCandidates();

  const FlatProblem* flat_ = nullptr;
  size_t devices_ = 0;
  size_t words_ = 0;               // of 64 devices
  std::vector<uint64_t> waiting_;  // per sender, the destinations that its queues hold transfers for
  std::vector<uint64_t> free_in_;  // the devices whose incoming port is free
  std::vector<int32_t> capacity_;
  RequestQueues queues_;
  Outgoing outgoing_;
  std::vector<Candidate> candidates_;
  size_t num_waiting_ = 0;
  bool changed_ = false;  // a port was freed or a transfer requested since the last Start
};

// Strictly in the plan's sequence: a port waits for its next transfer even if others could start. A sequence names
// transfers to consumers; those that only io_on_host makes are put around it: graph inputs before it, and outputs after
// it.
class SequencedPorts {
 public:
  explicit SequencedPorts(bool ingress_too = false) : ingress_too_(ingress_too) {}

  void Reset(const FlatProblem& flat, const PlanView& plan);

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

  double NextEnd() const { return outgoing_.NextEnd(); }
  template <typename OnEnd>
  void End(double now, OnEnd on_end) {
    outgoing_.End(now, [&](int32_t tensor, int32_t from, int32_t to) {
      in_[static_cast<size_t>(to)].busy = false;
      on_end(tensor, from, to);
    });
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
  void Distribute(int32_t Move::*port, std::vector<Queue>& queues, std::vector<int32_t>& items);

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
