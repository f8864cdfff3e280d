#include "sim/transfers.h"

namespace berth {

void CountEdges(const FlatProblem& flat, const PlanView& plan, std::vector<int32_t>& edges) {
  const auto devices = static_cast<size_t>(flat.num_devices());
  edges.assign(devices * devices, 0);
  for (int32_t t = 0; t < flat.num_tensors(); ++t) {
    int32_t* const row = edges.data() + static_cast<size_t>(flat.HomeOf(t, plan.device)) * devices;
    for (const int32_t c : flat.consumers(t)) ++row[Index(plan.device[static_cast<size_t>(c)])];
    if (flat.has_io_host()) ++row[flat.io_host()];
  }
}

// One place per edge is more than enough, and found without a branch.
void Ports::Reset(const FlatProblem& flat, const PlanView& plan, Slots& slots) {
  CountEdges(flat, plan, capacity_);
  Reset(flat, capacity_, slots);
}

void Ports::Reset(const FlatProblem& flat, std::span<const int32_t> edges, Slots& slots) {
  flat_ = &flat;
  devices_ = static_cast<size_t>(flat.num_devices());
  sets_.Reset(2 + 2 * devices_, devices_);
  sets_.Fill(kFreeOut);
  sets_.Fill(kFreeIn);
  queues_.Reset(edges);
  outgoing_.Reset(devices_, slots);
  fresh_.clear();
  freed_.clear();
  candidates_.clear();
  fresh_.reserve(devices_ * devices_);
  freed_.reserve(devices_);
  candidates_.reserve(3 * devices_ *
                      devices_);  // for each in fresh_ one, for each in freed_ one per device and direction
  num_waiting_ = 0;
}

// Nearly always two or three.
void Ports::SortCandidates() {
  constexpr size_t kFew = 8;
  if (candidates_.size() > kFew) {
    std::sort(candidates_.begin(), candidates_.end());
    return;
  }
  for (size_t i = 1; i < candidates_.size(); ++i) {
    const Candidate item = candidates_[i];
    size_t place = i;
    for (; place > 0 && item < candidates_[place - 1]; --place) candidates_[place] = candidates_[place - 1];
    candidates_[place] = item;
  }
}

void SequencedPorts::Add(int32_t tensor, int32_t from, int32_t to) {
  int32_t& first = first_of_tensor_[static_cast<size_t>(tensor)];
  moves_.push_back({tensor, from, to, first, false});
  first = static_cast<int32_t>(moves_.size()) - 1;
}

// The transfers of the tensors first .. last - 1 that no sequence names.
void SequencedPorts::AddHostTransfers(const PlanView& plan, int32_t first, int32_t last) {
  const int32_t host = flat_->io_host();
  const auto device = [&](int32_t op) { return static_cast<int32_t>(plan.device[static_cast<size_t>(op)]); };
  for (int32_t t = first; t < last; ++t) {
    const int32_t u = flat_->producer(t);
    seen_.clear();
    for (const int32_t c : flat_->consumers(t)) seen_.push_back(device(c));
    if (u < 0) {
      std::sort(seen_.begin(), seen_.end());
      seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
      for (const int32_t to : seen_) {
        if (to != host) Add(t, host, to);
      }
    } else if (flat_->tensor(t).is_output && device(u) != host &&
               std::find(seen_.begin(), seen_.end(), host) == seen_.end()) {
      Add(t, device(u), host);
    }
  }
}

void SequencedPorts::Reset(const FlatProblem& flat, const PlanView& plan, Slots& slots) {
  flat_ = &flat;
  moves_.clear();
  first_of_tensor_.assign(static_cast<size_t>(flat.num_tensors()), -1);
  // At most one transfer per edge, and one per output.
  const size_t most = flat.num_edges() + (flat.has_io_host() ? static_cast<size_t>(flat.num_tensors()) : 0);
  moves_.reserve(most);
  out_items_.reserve(most);
  in_items_.reserve(most);
  seen_.reserve(most + static_cast<size_t>(flat.num_devices()) + 1);
  if (flat.has_io_host()) AddHostTransfers(plan, 0, flat.num_inputs());
  for (const auto& [tensor, to] : plan.sequence->transfers) {
    const int32_t t = static_cast<int32_t>(tensor) + flat.num_inputs();
    Add(t, static_cast<int32_t>(plan.device[static_cast<size_t>(flat.producer(t))]), static_cast<int32_t>(to));
  }
  if (flat.has_io_host()) AddHostTransfers(plan, flat.num_inputs(), flat.num_tensors());
  const auto devices = static_cast<size_t>(flat.num_devices());
  out_.resize(devices);
  in_.resize(devices);
  Distribute(&Move::from, out_, out_items_);
  Distribute(&Move::to, in_, in_items_);
  outgoing_.Reset(devices, slots);
  num_waiting_ = 0;
}

// Gives each port its transfers, in order.
void SequencedPorts::Distribute(int32_t Move::* port, std::vector<Queue>& queues, std::vector<int32_t>& items) {
  items.resize(moves_.size());
  seen_.assign(queues.size() + 1, 0);
  for (const Move& move : moves_) ++seen_[static_cast<size_t>(move.*port) + 1];
  for (size_t d = 0; d < queues.size(); ++d) seen_[d + 1] += seen_[d];
  for (size_t d = 0; d < queues.size(); ++d) {
    queues[d] = {items.data() + seen_[d], items.data() + seen_[d + 1], false};
  }
  for (size_t i = 0; i < moves_.size(); ++i)
    items[static_cast<size_t>(seen_[static_cast<size_t>(moves_[i].*port)]++)] = static_cast<int32_t>(i);
}

void SequencedPorts::Request(int32_t tensor, int32_t, int32_t to, double) {
  ++num_waiting_;
  int32_t i = first_of_tensor_[static_cast<size_t>(tensor)];
  while (i >= 0 && moves_[static_cast<size_t>(i)].to != to) i = moves_[static_cast<size_t>(i)].next_of_tensor;
  // One that the sequence lacks waits for ever: the plan is found to contradict itself.
  if (i >= 0) moves_[static_cast<size_t>(i)].requested = true;
}

}  // namespace berth
