#include "plan/sequence_walk.h"

#include <algorithm>
#include <cmath>

namespace berth {
namespace {

std::vector<double> StartsOf(Search& search, const PlanView& plan, std::string_view cause) {
  std::vector<double> starts(plan.device.size());
  search.Evaluate(plan, cause, starts);
  return starts;
}

}  // namespace

SequenceWalk::SequenceWalk(Search& search, const PlanView& start, std::string_view cause)
    : search_(search),
      cause_(cause),
      starts_(StartsOf(search, start, cause)),
      tried_starts_(starts_.size()),
      device_(start.device.begin(), start.device.end()),
      order_(search.problem().graph(), starts_),
      priority_(starts_.size()) {
  TryChange({});
  Take();
}

void SequenceWalk::MakeSequence() {
  const Graph& graph = search_.problem().graph();
  sequence_.ops = order_.ops();
  sequence_.transfers.clear();
  for (const OpId op : order_.ops()) {
    const DeviceId from = tried_device_[Index(op)];
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      destinations_.clear();
      for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) {
        const DeviceId to = tried_device_[Index(consumer)];
        if (to != from) destinations_.push_back(to);
      }
      std::ranges::sort(destinations_);
      const auto repeated = std::ranges::unique(destinations_);
      for (auto to = destinations_.begin(); to != repeated.begin(); ++to) {
        sequence_.transfers.emplace_back(MakeId<TensorId>(t), *to);
      }
    }
  }
}

Score SequenceWalk::TryChange(const PlanChange& change) {
  order_.TakeBack();
  tried_device_ = device_;
  for (const auto& [op, device] : change.moves) tried_device_[Index(op)] = device;
  const double last = static_cast<double>(order_.ops().size()) - 1;
  for (const auto& [op, priority] : change.priorities) {
    const double place = std::clamp(last - priority, 0.0, last);
    const bool earlier = place < static_cast<double>(order_.position(op));
    order_.Move(op, static_cast<size_t>(earlier ? std::ceil(place) : std::floor(place)));
  }
  MakeSequence();
  tried_ = search_.Evaluate({.device = tried_device_, .sequence = &sequence_}, cause_, tried_starts_);
  return tried_;
}

void SequenceWalk::Take() {
  score_ = tried_;
  device_.swap(tried_device_);
  starts_.swap(tried_starts_);
  order_.Keep(starts_);
  for (const OpId op : order_.ops()) {
    priority_[Index(op)] = static_cast<double>(order_.ops().size() - 1 - order_.position(op));
  }
}

void SequenceWalk::Starts(std::span<double> starts) const { std::ranges::copy(starts_, starts.begin()); }

}  // namespace berth
