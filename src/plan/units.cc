#include "plan/units.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace berth {
namespace {

constexpr int kMostSteps = 200'000;  // of the search for a placement that keeps the Separate constraints

}  // namespace

Units::Units(const Problem& problem) : problem_(problem) {
  const Graph& graph = problem.graph();
  const Constraints& constraints = problem.constraints();
  first_.resize(graph.num_ops() + 1);
  std::iota(first_.begin(), first_.end(), size_t{0});
  ops_.assign(graph.ops().begin(), graph.ops().end());
  if (!constraints.colocate.empty()) Join();
  for (size_t unit = 0; unit < size() && !constraints.colocate.empty(); ++unit) {
    if (num_devices(unit) > 0) continue;
    contradiction_ = fmt::format("no device can run all {} ops that must share one with {}", ops(unit).size(),
                                 graph.op_name(ops(unit).front()));
    return;
  }
  if (constraints.separate.empty()) return;
  apart_.resize(size());
  for (const auto& [a, b] : constraints.separate) {
    const size_t first = unit_of(a), second = unit_of(b);
    if (first == second) {
      contradiction_ =
          fmt::format("ops {} and {} must and must not share a device", graph.op_name(a), graph.op_name(b));
      return;
    }
    apart_[first].push_back(second);
    apart_[second].push_back(first);
  }
  for (size_t unit = 0; unit < size(); ++unit) {
    if (!apart_[unit].empty()) separated_.push_back(unit);
  }
  std::vector<DeviceId> any(graph.num_ops(), DeviceId{0});
  if (!Legalise(any)) contradiction_ = "found no placement that keeps apart what must not share a device";
}

void Units::Join() {
  std::vector<size_t> parent(problem_.num_ops());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  for (const std::vector<OpId>& group : problem_.constraints().colocate) {
    for (const OpId op : group) {
      const size_t a = root(Index(group.front())), b = root(Index(op));
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  // The smallest op of a unit is its root.
  unit_of_.resize(problem_.num_ops());
  size_t units = 0;
  for (size_t v = 0; v < parent.size(); ++v) unit_of_[v] = root(v) == v ? units++ : unit_of_[root(v)];
  first_.assign(units + 1, 0);
  for (const size_t unit : unit_of_) ++first_[unit + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<size_t> next(first_.begin(), first_.end() - 1);
  for (size_t v = 0; v < parent.size(); ++v) ops_[next[unit_of_[v]]++] = MakeId<OpId>(v);
}

std::span<const size_t> Units::apart(size_t unit) const {
  return apart_.empty() ? std::span<const size_t>() : std::span<const size_t>(apart_[unit]);
}

double Units::time(size_t unit, DeviceId device) const {
  double sum = 0;
  for (const OpId op : ops(unit)) sum += problem_.op_time(op, device);
  return sum;
}

DeviceId Units::fastest(size_t unit) const {
  DeviceId best{0};
  for (const DeviceId device : problem_.cluster().ids()) {
    if (time(unit, device) < time(unit, best)) best = device;
  }
  return best;
}

size_t Units::num_devices(size_t unit) const {
  size_t count = 0;
  for (const DeviceId device : problem_.cluster().ids()) count += can_run(unit, device) ? 1 : 0;
  return count;
}

bool Units::Fits(std::span<const DeviceId> placement, size_t unit, DeviceId device) const {
  if (!can_run(unit, device)) return false;
  return std::ranges::none_of(apart(unit),
                              [&](size_t other) { return placement[Index(ops(other).front())] == device; });
}

void Units::Put(std::span<DeviceId> placement, size_t unit, DeviceId device) const {
  for (const OpId op : ops(unit)) placement[Index(op)] = device;
}

bool Units::Legalise(std::span<DeviceId> placement) const {
  for (size_t unit = 0; unit < size(); ++unit) {
    const DeviceId wish = placement[Index(ops(unit).front())];
    Put(placement, unit, can_run(unit, wish) ? wish : fastest(unit));
  }
  return separated_.empty() || LegaliseApart(placement);
}

// Depth first over the units that must be apart from others; each tries its wish, then the other devices, fastest
// first.
bool Units::LegaliseApart(std::span<DeviceId> placement) const {
  constexpr DeviceId kNowhere{-1};
  std::vector<std::vector<DeviceId>> order(separated_.size());
  for (size_t i = 0; i < separated_.size(); ++i) {
    const size_t unit = separated_[i];
    const DeviceId wish = placement[Index(ops(unit).front())];
    for (const DeviceId device : problem_.cluster().ids()) {
      if (can_run(unit, device)) order[i].push_back(device);
    }
    std::ranges::stable_sort(order[i], {}, [&](DeviceId d) { return std::pair(d != wish, time(unit, d)); });
  }
  for (const size_t unit : separated_) Put(placement, unit, kNowhere);
  std::vector<size_t> next(separated_.size(), 0);
  int steps = 0;
  for (size_t i = 0; i < separated_.size();) {
    if (++steps > kMostSteps) return false;
    const size_t unit = separated_[i];
    Put(placement, unit, kNowhere);
    while (next[i] < order[i].size() && !Fits(placement, unit, order[i][next[i]])) ++next[i];
    if (next[i] < order[i].size()) {
      Put(placement, unit, order[i][next[i]++]);
      ++i;
    } else if (i == 0) {
      return false;
    } else {
      next[i--] = 0;
    }
  }
  return true;
}

std::vector<DeviceId> Units::Legal(std::vector<DeviceId> placement) const {
  if (!Legalise(placement))
    throw Error("found no placement that keeps apart what must not share a device; relax `separate`");
  return placement;
}

std::vector<DeviceId> Units::AllOn(DeviceId device) const {
  return Legal(std::vector<DeviceId>(problem_.num_ops(), device));
}

std::vector<DeviceId> Units::Draw(Random& random, std::span<const double> weight) const {
  std::vector<DeviceId> placement(problem_.num_ops());
  for (size_t unit = 0; unit < size(); ++unit) {
    double sum = 0;
    for (const DeviceId device : problem_.cluster().ids()) sum += can_run(unit, device) ? weight[Index(device)] : 0;
    double left = random.Uniform() * sum;
    DeviceId chosen = fastest(unit);
    for (const DeviceId device : problem_.cluster().ids()) {
      if (!can_run(unit, device)) continue;
      chosen = device;
      left -= weight[Index(device)];
      if (left < 0) break;
    }
    Put(placement, unit, chosen);
  }
  return Legal(std::move(placement));
}

std::vector<DeviceId> InterchangeableDevices(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const Cluster& cluster = problem.cluster();
  const bool named = evaluator.facts().io_on_host || problem.has_explicit_transfers() ||
                     evaluator.facts().model == EvaluatorFacts::Model::kMeasured;
  const auto equal = [&](DeviceId a, DeviceId b) {
    if (cluster.class_of(a) != cluster.class_of(b) || problem.memory_limit(a) != problem.memory_limit(b)) return false;
    return std::ranges::all_of(problem.graph().ops(),
                               [&](OpId op) { return problem.op_time(op, a) == problem.op_time(op, b); });
  };
  std::vector<DeviceId> class_of;
  for (const DeviceId device : cluster.ids()) {
    class_of.push_back(device);
    if (named) continue;
    for (const DeviceId other : cluster.ids()) {
      if (other >= device) break;
      if (class_of[Index(other)] != other || !equal(other, device)) continue;
      class_of.back() = other;
      break;
    }
  }
  return class_of;
}

}  // namespace berth
