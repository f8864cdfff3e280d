#include "sim/links.h"

namespace berth {

void NextEnds::Set(int32_t medium, double end) {
  const int32_t place = place_[static_cast<size_t>(medium)];
  const Item item{end, medium};
  if (place < 0) {
    heap_.push_back(item);
    Rise(heap_.size() - 1, item);
  } else if (end < heap_[static_cast<size_t>(place)].end) {
    Rise(static_cast<size_t>(place), item);
  } else {
    Sink(static_cast<size_t>(place), item);
  }
}

void NextEnds::Remove(int32_t medium) {
  const int32_t found = place_[static_cast<size_t>(medium)];
  if (found < 0) return;
  const auto place = static_cast<size_t>(found);
  place_[static_cast<size_t>(medium)] = -1;
  const Item last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  if (place > 0 && last.end < heap_[(place - 1) / 2].end) {
    Rise(place, last);
  } else {
    Sink(place, last);
  }
}

void NextEnds::Rise(size_t place, Item item) {
  for (; place > 0 && item.end < heap_[(place - 1) / 2].end; place = (place - 1) / 2)
    Put(place, heap_[(place - 1) / 2]);
  Put(place, item);
}

void NextEnds::Sink(size_t place, Item item) {
  for (size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1].end < heap_[child].end) ++child;
    if (item.end <= heap_[child].end) break;
    Put(place, heap_[child]);
    place = child;
  }
  Put(place, item);
}

void Links::Reset(const FlatProblem& flat, const PlanView& plan, Slots& slots) {
  CountEdges(flat, plan, edges_);
  Reset(flat, edges_, slots);
}

void Links::Reset(const FlatProblem& flat, std::span<const int32_t> edges, Slots&) {
  flat_ = &flat;
  const auto devices = static_cast<size_t>(flat.num_devices());
  capacity_.assign(flat.num_media(), 0);
  size_t total = 0;
  for (size_t from = 0; from < devices; ++from) {
    for (size_t to = 0; to < devices; ++to) {
      if (from == to) continue;
      capacity_[static_cast<size_t>(flat.medium(static_cast<int32_t>(from), static_cast<int32_t>(to)))] +=
          edges[from * devices + to];
      total += static_cast<size_t>(edges[from * devices + to]);
    }
  }
  // At most one transfer per edge, and one per output: space for all of any plan.
  const size_t most = flat.num_edges() + (flat.has_io_host() ? static_cast<size_t>(flat.num_tensors()) : 0);
  items_.reserve(most);
  items_.resize(total);
  media_.resize(flat.num_media());
  Waiting* next = items_.data();
  for (size_t m = 0; m < media_.size(); ++m) {
    media_[m] = {.clock = 0, .at = 0, .first = next, .end = next};
    next += capacity_[m];
  }
  in_latency_.clear();
  in_latency_.reserve(most);
  requested_.clear();
  requested_.reserve(most);
  ended_.clear();
  ended_.reserve(most);
  ends_.Reset(media_.size());
  under_way_ = 0;
}

void Links::Enter(const Transfer& transfer, double now) {
  const int32_t m = flat_->medium(transfer.from, transfer.to);
  Medium& medium = media_[static_cast<size_t>(m)];
  if (medium.first != medium.end) medium.clock += (now - medium.at) / medium.sharing();
  medium.at = now;
  *medium.end++ = {medium.clock + flat_->sending_time(transfer.tensor, transfer.from, transfer.to), transfer};
  std::push_heap(medium.first, medium.end);
  Schedule(m);
}

void Links::Schedule(int32_t m) {
  Medium& medium = media_[static_cast<size_t>(m)];
  if (medium.first == medium.end) {
    medium.clock = 0;
    return ends_.Remove(m);
  }
  // The clock may have gone a rounding too far.
  const double left = std::max(0.0, medium.first->time - medium.clock);
  ends_.Set(m, medium.at + left * medium.sharing());
}

void Links::Save(Snapshot& to) const {
  to.PutCounted(ends_.items());
  for (const NextEnds::Item& item : ends_.items()) {
    const Medium& medium = media_[static_cast<size_t>(item.medium)];
    to.Put(medium.clock);
    to.Put(medium.at);
    to.PutCounted(std::span<const Waiting>(medium.first, medium.end));
  }
  to.PutCounted(std::span<const Waiting>(in_latency_));
  to.Put(under_way_);
}

void Links::Load(Snapshot::Reader& from) {
  const auto busy = from.Take<size_t>();
  std::vector<NextEnds::Item> items(busy);
  from.TakeAll(items);
  for (const NextEnds::Item& item : items) {
    Medium& medium = media_[static_cast<size_t>(item.medium)];
    medium.clock = from.Take<double>();
    medium.at = from.Take<double>();
    medium.end = from.TakeCounted(medium.first);
    ends_.Set(item.medium, item.end);
  }
  from.TakeCounted(in_latency_);
  under_way_ = from.Take<size_t>();
}

}  // namespace berth
