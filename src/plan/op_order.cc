#include "plan/op_order.h"

#include <algorithm>

namespace berth {

OpOrder::OpOrder(const Graph& graph, std::span<const double> starts)
    : graph_(graph), position_(graph.num_ops()), stamp_(graph.num_ops(), 0) {
  // Op numbers are a topological order.
  for (const OpId op : graph.ops()) ops_.push_back(op);
  Keep(starts);
}

void OpOrder::Keep(std::span<const double> starts) {
  std::ranges::stable_sort(ops_, {}, [&](OpId op) { return starts[Index(op)]; });
  for (size_t i = 0; i < ops_.size(); ++i) position_[Index(ops_[i])] = i;
  before_.clear();
}

bool OpOrder::FeedsMarked(OpId op) const {
  for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t) {
    for (const OpId consumer : graph_.consumers(MakeId<TensorId>(t))) {
      if (stamp_[Index(consumer)] == round_) return true;
    }
  }
  return false;
}

bool OpOrder::TakesFromMarked(OpId op) const {
  return std::ranges::any_of(graph_.inputs_of(op),
                             [&](TensorId t) { return stamp_[Index(graph_.producer(t))] == round_; });
}

void OpOrder::Move(OpId op, size_t position) {
  const size_t from = position_[Index(op)];
  if (from == position) return;
  ++round_;
  stamp_[Index(op)] = round_;
  moved_.clear();
  passed_.clear();
  const bool earlier = position < from;
  const size_t first = std::min(from, position), last = std::max(from, position);
  // From the op towards its new place.
  for (size_t k = 0; k <= last - first; ++k) {
    const OpId other = ops_[earlier ? last - k : first + k];
    const bool along = other == op || (earlier ? FeedsMarked(other) : TakesFromMarked(other));
    if (along) stamp_[Index(other)] = round_;
    (along ? moved_ : passed_).push_back(other);
  }
  if (earlier) {
    std::ranges::reverse(moved_);
    std::ranges::reverse(passed_);
  }
  for (size_t i = first; i <= last; ++i) before_.emplace_back(i, ops_[i]);
  size_t next = first;
  for (const OpId other : earlier ? moved_ : passed_) Put(next++, other);
  for (const OpId other : earlier ? passed_ : moved_) Put(next++, other);
}

void OpOrder::TakeBack() {
  for (size_t i = before_.size(); i-- > 0;) Put(before_[i].first, before_[i].second);
  before_.clear();
}

}  // namespace berth
