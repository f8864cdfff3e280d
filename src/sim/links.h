// contention=links: transfers share the media of their links. Interface: transfers.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "placement/plan.h"
#include "sim/flat_problem.h"
#include "sim/slots.h"
#include "sim/snapshot.h"
#include "sim/transfers.h"

namespace berth {

// Media by when their next transfer ends: a binary heap that knows where each stands.
class NextEnds {
 public:
  void Reset(size_t media) {
    heap_.clear();
    heap_.reserve(media);
    place_.assign(media, -1);
  }

  bool empty() const { return heap_.empty(); }
  double least() const { return heap_.empty() ? kNever : heap_.front().end; }
  int32_t first() const { return heap_.front().medium; }
  void Set(int32_t medium, double end);
  void Remove(int32_t medium);

  struct Item {
    double end;
    int32_t medium;
  };
  std::span<const Item> items() const { return heap_; }

 private:
  void Put(size_t place, const Item& item) {
    heap_[place] = item;
    place_[static_cast<size_t>(item.medium)] = static_cast<int32_t>(place);
  }
  void Rise(size_t place, Item item);
  void Sink(size_t place, Item item);

  std::vector<Item> heap_;
  std::vector<int32_t> place_;  // by medium: in heap_, or -1
};

// Processor sharing by virtual time: the clock of a medium with n transfers runs at 1 / n, so that a transfer is done
// when that clock has gone on by the time that it would take alone. A transfer enters and leaves in O(log of those on
// its medium + log media), however many others it slows down.
class Links {
 public:
  static constexpr bool kUsesSlots = false;
  static constexpr bool kKnowsEnds = false;

  void Reset(const FlatProblem& flat, const PlanView& plan, Slots& slots);
  void Reset(const FlatProblem& flat, std::span<const int32_t> edges, Slots& slots);

  void Request(int32_t tensor, int32_t from, int32_t to, double now) { requested_.push_back({now, tensor, from, to}); }

  template <typename OnStart>
  void Start(double now, OnStart on_start) {
    for (const Transfer& transfer : requested_) {
      on_start(transfer.tensor, transfer.from, transfer.to, kNever);
      ++under_way_;
      const double begin = now + flat_->latency(transfer.tensor, transfer.from, transfer.to);
      if (begin == now) {
        Enter(transfer, now);
      } else {
        in_latency_.push_back({begin, transfer});
        std::push_heap(in_latency_.begin(), in_latency_.end());
      }
    }
    requested_.clear();
  }

  double NextEnd() const {
    return in_latency_.empty() ? ends_.least() : std::min(in_latency_.front().time, ends_.least());
  }

  // on_end(tensor, from, to, start)
  template <typename OnEnd>
  void EndAll(double now, OnEnd on_end) {
    // What ends leaves before others enter: its last bit was on its way until now.
    while (ends_.least() == now) {
      const int32_t m = ends_.first();
      Medium& medium = media_[static_cast<size_t>(m)];
      medium.clock = medium.first->time;
      medium.at = now;
      ended_.clear();
      do {
        std::pop_heap(medium.first, medium.end);
        ended_.push_back((--medium.end)->transfer);
      } while (medium.first != medium.end && medium.first->time == medium.clock);
      Schedule(m);
      under_way_ -= ended_.size();
      for (const Transfer& transfer : ended_) on_end(transfer.tensor, transfer.from, transfer.to, transfer.start);
    }
    while (!in_latency_.empty() && in_latency_.front().time == now) {
      std::pop_heap(in_latency_.begin(), in_latency_.end());
      const Transfer transfer = in_latency_.back().transfer;
      in_latency_.pop_back();
      Enter(transfer, now);
    }
  }

  bool Idle() const { return under_way_ == 0 && requested_.empty(); }

  void Save(Snapshot& to) const;
  void Load(Snapshot::Reader& from);

 private:
  struct Transfer {
    double start;
    int32_t tensor, from, to;
  };
  struct Waiting {
    double time;  // when its latency is over; or on a medium's clock, when it ends
    Transfer transfer;
    bool operator<(const Waiting& other) const { return time > other.time; }  // the heap's top ends first
  };
  struct Medium {
    double clock = 0;  // at the moment `at`; begins again at 0 when nothing is left
    double at = 0;
    Waiting *first, *end;  // a heap of those that share it
    double sharing() const { return static_cast<double>(end - first); }
  };

  void Enter(const Transfer& transfer, double now);
  void Schedule(int32_t medium);

  const FlatProblem* flat_ = nullptr;
  std::vector<int32_t> edges_, capacity_;
  std::vector<Medium> media_;
  std::vector<Waiting> items_;  // of all media
  std::vector<Waiting> in_latency_;
  std::vector<Transfer> requested_, ended_;
  NextEnds ends_;
  size_t under_way_ = 0;
};

}  // namespace berth
