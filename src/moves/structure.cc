#include "moves/structure.h"

#include <algorithm>
#include <numeric>

#include "moves/clusters.h"

namespace berth {
namespace {

// As in list scheduling, with smaller ones besides: half of a device's share of the work at most.
constexpr std::pair<double, double> kRatioAndShare[] = {{0.5, 1.05}, {2, 1.05}, {0.5, 0.5}};
constexpr size_t kMostOps = 200'000;  // beyond, joining ops would take longer than a search has

}  // namespace

Structure::Structure(const Units& units) : units_(units), order_(MakeForwardOrder(units.problem())) {
  const Problem& problem = units.problem();
  const Layers layers = FindLayers(problem);
  Add({layers.layer_of.begin(), layers.layer_of.end()});
  if (problem.num_ops() > kMostOps) return;
  double work = 0;
  for (size_t unit = 0; unit < units.size(); ++unit) work += units.time(unit, units.fastest(unit));
  work /= static_cast<double>(problem.num_devices());
  for (const auto& [ratio, share] : kRatioAndShare) {
    const Clusters clusters(units, ratio, share * work);
    std::vector<size_t> label;
    for (const OpId op : problem.graph().ops()) label.push_back(clusters.cluster_of(op));
    Add(label);
  }
}

void Structure::Add(const std::vector<size_t>& label) {
  const size_t count = label.empty() ? 0 : std::ranges::max(label) + 1;
  std::vector<size_t> first(count + 1, 0);
  for (const size_t each : label) ++first[each + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<size_t> next(first.begin(), first.end() - 1);
  std::vector<OpId> ops(label.size());
  for (size_t v = 0; v < label.size(); ++v) ops[next[label[v]]++] = MakeId<OpId>(v);
  for (size_t part = 0; part < count; ++part) {
    const std::span<const OpId> members(ops.data() + first[part], first[part + 1] - first[part]);
    const bool one =
        std::ranges::all_of(members, [&](OpId op) { return units_.unit_of(op) == units_.unit_of(members.front()); });
    if (one || members.size() == label.size()) continue;
    ops_.insert(ops_.end(), members.begin(), members.end());
    first_.push_back(ops_.size());
    partition_.push_back(partitions_);
  }
  ++partitions_;
}

}  // namespace berth
