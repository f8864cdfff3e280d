#include "sim/memory_level.h"

namespace berth {

void MemoryLevel::Reset(const FlatProblem& flat, const PlanView& plan) {
  const auto devices = static_cast<size_t>(flat.num_devices());
  parameter_bytes_.assign(devices, 0);
  seen_.assign(devices, -1);
  const Graph& graph = flat.problem().graph();
  for (const ParameterId parameter : graph.parameters()) {
    for (const OpId op : graph.parameter_consumers(parameter)) {
      const size_t device = Index(plan.device[Index(op)]);
      if (seen_[device] == static_cast<int32_t>(parameter)) continue;
      seen_[device] = static_cast<int32_t>(parameter);
      parameter_bytes_[device] += graph.parameter_bytes(parameter);
    }
  }
  Prepare(flat);
}

void MemoryLevel::Reset(const FlatProblem& flat, std::span<const int64_t> parameter_bytes) {
  parameter_bytes_.assign(parameter_bytes.begin(), parameter_bytes.end());
  Prepare(flat);
}

void MemoryLevel::Prepare(const FlatProblem& flat) {
  flat_ = &flat;
  devices_ = static_cast<size_t>(flat.num_devices());
  holders_.resize(static_cast<size_t>(flat.num_tensors()) * devices_);
  levels_.assign(devices_, {.bytes = 0, .peak = 0, .changed = 0});
}

void MemoryLevel::Save(std::vector<int32_t>& held, Snapshot& to) const {
  to.PutAll(levels_);
  std::erase_if(held, [this](int32_t t) {
    return std::all_of(Row(t), Row(t) + devices_, [](int32_t count) { return count == 0; });
  });
  to.PutCounted(std::span<const int32_t>(held));
  for (const int32_t t : held) to.PutAll(std::span(Row(t), devices_));
}

void MemoryLevel::Load(Snapshot::Reader& from, std::vector<int32_t>& held) {
  from.TakeAll(levels_);
  from.TakeCounted(held);
  for (const int32_t t : held) from.TakeAll(std::span(Row(t), devices_));
}

void MemoryLevel::Finish(double finish, Score& score) {
  for (size_t d = 0; d < devices_; ++d) {
    Level& level = levels_[d];
    // At the end itself nothing is held but parameters, which the peak has counted.
    if (level.changed < finish) level.peak = std::max(level.peak, level.bytes);
    const int64_t limit = flat_->problem().memory_limit(MakeId<DeviceId>(d));
    const int64_t peak = level.peak + parameter_bytes_[d];
    if (peak > limit) {
      score.outcome = Outcome::kTooBig;
      score.excess_bytes += peak - limit;
    }
  }
}

}  // namespace berth
