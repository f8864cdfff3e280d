// Which ready op a device starts next: three rules with one interface. Each keeps its ops in one slice per device of a
// flat array, since a plan says in advance how many ops a device will ever see.
//   Push(device, op, now)   the op became ready; calls come with `now` never falling
//   Has(device)             whether the device could start one now
//   Pop(device)             takes the first
//   Save(to), Load(from)    the ready ops; Load comes after a Reset, perhaps to other slices
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/plan.h"
#include "sim/snapshot.h"

namespace berth {

// `first[d] .. first[d + 1]` is device d's slice.
using Slices = std::span<const int32_t>;

// Earlier ready time first, then smaller op number. Ops come in the order of their ready times, so that a queue will
// do; only those of one instant have to be put in order.
class FirstCome {
 public:
  void Reset(const PlanView&, Slices first) {
    queues_.resize(first.size() - 1);
    items_.resize(static_cast<size_t>(first.back()));
    for (size_t d = 0; d < queues_.size(); ++d) {
      queues_[d] = {.head = items_.data() + first[d],
                    .tail = items_.data() + first[d],
                    .instant = items_.data() + first[d],
                    .time = -1};
    }
  }

  void Push(int32_t device, int32_t op, double now) {
    Queue& queue = queues_[static_cast<size_t>(device)];
    if (queue.time != now) {
      queue.time = now;
      queue.instant = queue.tail;
    }
    int32_t* place = queue.tail++;
    int32_t* const least = std::max(queue.instant, queue.head);
    for (; place > least && place[-1] > op; --place) *place = place[-1];
    *place = op;
  }

  bool Has(int32_t device) const {
    const Queue& queue = queues_[static_cast<size_t>(device)];
    return queue.head != queue.tail;
  }

  int32_t Pop(int32_t device) { return *queues_[static_cast<size_t>(device)].head++; }

  void Save(Snapshot& to) const {
    for (const Queue& queue : queues_) {
      to.PutCounted(std::span<const int32_t>(queue.head, queue.tail));
      to.Put(std::max(queue.instant, queue.head) - queue.head);
      to.Put(queue.time);
    }
  }
  void Load(Snapshot::Reader& from) {
    for (Queue& queue : queues_) {
      queue.tail = from.TakeCounted(queue.head);
      queue.instant = queue.head + from.Take<ptrdiff_t>();
      queue.time = from.Take<double>();
    }
  }

 private:
  struct Queue {
    int32_t *head, *tail;
    int32_t* instant;  // the first that became ready at `time`
    double time;
  };
  std::vector<Queue> queues_;
  std::vector<int32_t> items_;
};

// Larger priority first, then smaller op number: a binary heap per device.
class ByPriority {
 public:
  void Reset(const PlanView& plan, Slices first) {
    priority_ = plan.priority.data();
    heaps_.resize(first.size() - 1);
    items_.resize(static_cast<size_t>(first.back()));
    for (size_t d = 0; d < heaps_.size(); ++d) heaps_[d] = {items_.data() + first[d], items_.data() + first[d]};
  }

  void Push(int32_t device, int32_t op, double) {
    Heap& heap = heaps_[static_cast<size_t>(device)];
    *heap.end++ = {priority_[op], op};
    std::push_heap(heap.begin, heap.end);
  }

  bool Has(int32_t device) const {
    const Heap& heap = heaps_[static_cast<size_t>(device)];
    return heap.begin != heap.end;
  }

  int32_t Pop(int32_t device) {
    Heap& heap = heaps_[static_cast<size_t>(device)];
    std::pop_heap(heap.begin, heap.end);
    return (--heap.end)->op;
  }

  void Save(Snapshot& to) const {
    for (const Heap& heap : heaps_) to.PutCounted(std::span<const Item>(heap.begin, heap.end));
  }
  void Load(Snapshot::Reader& from) {
    for (Heap& heap : heaps_) heap.end = from.TakeCounted(heap.begin);
  }

 private:
  struct Item {
    double priority;
    int32_t op;
    bool operator<(const Item& other) const {
      return priority != other.priority ? priority < other.priority : op > other.op;
    }
  };
  struct Heap {
    Item *begin, *end;
  };
  const double* priority_ = nullptr;
  std::vector<Heap> heaps_;
  std::vector<Item> items_;
};

// Strictly in the plan's sequence: a device waits for its next op even if others could start.
class InSequence {
 public:
  void Reset(const PlanView& plan, Slices first) {
    queues_.resize(first.size() - 1);
    items_.resize(static_cast<size_t>(first.back()));
    ready_.assign(plan.device.size(), 0);
    for (size_t d = 0; d < queues_.size(); ++d) queues_[d] = {items_.data() + first[d], items_.data() + first[d]};
    for (const OpId op : plan.sequence->ops) *queues_[Index(plan.device[Index(op)])].tail++ = static_cast<int32_t>(op);
  }

  void Push(int32_t, int32_t op, double) { ready_[static_cast<size_t>(op)] = 1; }

  bool Has(int32_t device) const {
    const Queue& queue = queues_[static_cast<size_t>(device)];
    return queue.head != queue.tail && ready_[static_cast<size_t>(*queue.head)] != 0;
  }

  int32_t Pop(int32_t device) { return *queues_[static_cast<size_t>(device)].head++; }

 private:
  struct Queue {
    int32_t *head, *tail;
  };
  std::vector<Queue> queues_;
  std::vector<int32_t> items_;
  std::vector<uint8_t> ready_;
};

}  // namespace berth
