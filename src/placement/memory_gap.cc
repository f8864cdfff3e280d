#include "placement/memory_gap.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace berth {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
constexpr size_t kMostDeviceSets = 64;

using DeviceSet = std::vector<DeviceId>;  // ascending

// What lies on the device while the op runs, besides parameters.
int64_t WorkingSet(const Graph& graph, OpId op) {
  int64_t bytes = graph.work(op).workspace_bytes;
  for (const TensorId tensor : graph.inputs_of(op)) bytes += graph.tensor_bytes(tensor);
  for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
    bytes += graph.tensor_bytes(MakeId<TensorId>(t));
  }
  return bytes;
}

// By how much the limit of each of the devices is too small at least; of ops that share a device, that of one.
int64_t Lacks(const MemoryGap& gap) {
  const int64_t all = gap.needed - gap.available;
  const auto devices = gap.one_unit ? 1 : static_cast<int64_t>(gap.devices.size());
  return (all + devices - 1) / devices;
}

class GapSearch {
 public:
  GapSearch(const ConstrainedModel& model, const ConstraintSubset& subset)
      : model_(model), graph_(*model.graph), subset_(subset), limits_(subset.MemoryLimits()) {
    for (size_t unit = 0; unit < subset.num_units(); ++unit) devices_of_.push_back(subset.devices(unit));
  }

  // Of the units that fit on none of their devices, the one that needs the most beyond what it may have.
  std::optional<MemoryGap> OfUnits(bool working_sets) const {
    std::optional<MemoryGap> widest;
    std::vector<size_t> seen(graph_.num_parameters(), static_cast<size_t>(-1));
    for (size_t unit = 0; unit < subset_.num_units(); ++unit) {
      int64_t weights = 0;
      for (const OpId op : subset_.ops(unit)) {
        for (const ParameterId parameter : graph_.parameters_of(op)) {
          if (std::exchange(seen[Index(parameter)], unit) != unit) weights += graph_.parameter_bytes(parameter);
        }
      }
      auto gap = OfUnit(unit, weights, working_sets);
      if (gap && (!widest || Lacks(*gap) > Lacks(*widest))) widest = std::move(gap);
    }
    return widest;
  }

  // For sets of devices: the parameters of ops that may only be on these against their memory together. The sets looked
  // at are those that ops are bound to, their unions, and all devices; the one that lacks the most, of equals the
  // smallest.
  std::optional<MemoryGap> OfSets() const {
    std::set<DeviceSet> bound;
    for (const DeviceSet& set : devices_of_) {
      if (bound.size() < kMostDeviceSets) bound.insert(set);
    }
    std::set<DeviceSet> sets = bound;
    for (const DeviceSet& a : bound) {
      for (const DeviceSet& b : bound) {
        if (sets.size() >= kMostDeviceSets) break;
        DeviceSet both;
        std::ranges::set_union(a, b, std::back_inserter(both));
        sets.insert(std::move(both));
      }
    }
    const auto all = model_.cluster->ids();
    sets.emplace(all.begin(), all.end());
    std::vector<DeviceSet> fewest_first(sets.begin(), sets.end());
    std::ranges::stable_sort(fewest_first, {}, &DeviceSet::size);
    std::optional<MemoryGap> widest;
    for (const DeviceSet& set : fewest_first) {
      auto gap = OfSet(set);
      if (gap && (!widest || Lacks(*gap) > Lacks(*widest))) widest = std::move(gap);
    }
    return widest;
  }

 private:
  // On the roomiest of its devices.
  std::optional<MemoryGap> OfUnit(size_t unit, int64_t weights, bool working_sets) const {
    MemoryGap gap{.devices = devices_of_[unit], .available = -1, .one_unit = true};
    for (const DeviceId device : gap.devices) {
      // An op that takes no time holds its inputs and outputs for no time.
      int64_t most = 0;
      for (const OpId op : subset_.ops(unit)) {
        const bool counts = working_sets && model_.can_run[Index(op) * limits_.size() + Index(device)] == 2;
        if (counts) most = std::max(most, WorkingSet(graph_, op));
      }
      const int64_t limit = limits_[Index(device)];
      if (weights + most <= limit) return std::nullopt;
      if (limit <= gap.available) continue;
      gap.needed = weights + most;
      gap.available = limit;
      gap.working_set = most > 0;
    }
    if (gap.devices.empty()) return std::nullopt;
    gap.ops.assign(subset_.ops(unit).begin(), subset_.ops(unit).end());
    return gap;
  }

  std::optional<MemoryGap> OfSet(const DeviceSet& set) const {
    MemoryGap gap{.devices = set};
    for (const DeviceId device : set) {
      const int64_t limit = limits_[Index(device)];
      if (limit == kUnlimited || gap.available > kUnlimited - limit) return std::nullopt;
      gap.available += limit;
    }
    std::vector<uint8_t> bound;
    for (const DeviceSet& devices : devices_of_) bound.push_back(std::ranges::includes(set, devices) ? 1 : 0);
    const auto must_be_here = [&](OpId op) { return subset_.has(op) && bound[subset_.unit_of(op)] != 0; };
    for (const ParameterId parameter : graph_.parameters()) {
      if (std::ranges::any_of(graph_.parameter_consumers(parameter), must_be_here)) {
        gap.needed += graph_.parameter_bytes(parameter);
      }
    }
    if (gap.needed <= gap.available) return std::nullopt;
    for (const OpId op : graph_.ops()) {
      if (!graph_.parameters_of(op).empty() && must_be_here(op)) gap.ops.push_back(op);
    }
    return gap;
  }

  const ConstrainedModel& model_;
  const Graph& graph_;
  const ConstraintSubset& subset_;
  const std::vector<int64_t> limits_;
  std::vector<DeviceSet> devices_of_;  // by unit
};

}  // namespace

std::optional<MemoryGap> FindMemoryGap(const ConstrainedModel& model, const ConstraintSubset& subset,
                                       std::string_view memory_rule) {
  if (memory_rule != "berth" && memory_rule != "msr") return std::nullopt;
  const GapSearch search(model, subset);
  auto of_units = search.OfUnits(memory_rule == "berth"), of_sets = search.OfSets();
  // What lacks the most says how far limits have to be raised.
  if (of_units && (!of_sets || Lacks(*of_units) >= Lacks(*of_sets))) return of_units;
  return of_sets;
}

}  // namespace berth
