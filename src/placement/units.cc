#include "placement/units.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "placement/grouping.h"

namespace berth {
namespace {

constexpr size_t kNoVariable = static_cast<size_t>(-1);

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
  for (const auto& [a, b] : constraints.separate) {
    if (unit_of(a) != unit_of(b)) continue;
    contradiction_ = fmt::format("ops {} and {} must and must not share a device", graph.op_name(a), graph.op_name(b));
    return;
  }
  if (constraints.separate.empty() && constraints.forbidden_transfers.empty()) return;
  MakeRules();
  std::vector<DeviceId> any(graph.num_ops(), DeviceId{0});
  if (!Legalise(any)) contradiction_ = "found no placement that keeps the constraints separate and forbid-transfer";
}

void Units::MakeRules() {
  const Graph& graph = problem_.graph();
  const Constraints& constraints = problem_.constraints();
  variable_of_.assign(size(), kNoVariable);
  const auto join = [&](const auto& visit) {
    for (const auto& [a, b] : constraints.separate) visit(a, b, DeviceId{-1}, DeviceId{-1});
    for (const auto& [tensor, from, to] : constraints.forbidden_transfers) {
      for (const OpId consumer : graph.consumers(tensor)) {
        // Within a unit nothing is sent.
        if (unit_of(graph.producer(tensor)) != unit_of(consumer)) visit(graph.producer(tensor), consumer, from, to);
      }
    }
  };
  join([&](OpId a, OpId b, DeviceId, DeviceId) { variable_of_[unit_of(a)] = variable_of_[unit_of(b)] = 0; });
  for (size_t unit = 0; unit < size(); ++unit) {
    if (variable_of_[unit] == kNoVariable) continue;
    variable_of_[unit] = ruled_.size();
    ruled_.push_back(unit);
  }
  rules_.emplace(ruled_.size(), problem_.num_devices());
  for (size_t v = 0; v < ruled_.size(); ++v) {
    for (const DeviceId device : problem_.cluster().ids()) {
      if (!can_run(ruled_[v], device)) rules_->Forbid(v, device);
    }
  }
  join([&](OpId a, OpId b, DeviceId from, DeviceId to) {
    const size_t first = variable_of_[unit_of(a)], second = variable_of_[unit_of(b)];
    from == to ? rules_->Separate(first, second) : rules_->ForbidPair(first, from, second, to);
  });
  rules_->Prepare();
}

void Units::Join() {
  const Grouping together = ColocatedOps(problem_);
  unit_of_.resize(problem_.num_ops());
  first_.assign(1, 0);
  ops_.clear();
  for (const GroupId unit : together.groups()) {
    for (const OpId op : together.ops_of(unit)) {
      unit_of_[Index(op)] = Index(unit);
      ops_.push_back(op);
    }
    first_.push_back(ops_.size());
  }
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
  if (!rules_ || variable_of_[unit] == kNoVariable) return can_run(unit, device);
  return rules_->Fits(variable_of_[unit], device,
                      [&](size_t other) { return placement[Index(ops(ruled_[other]).front())]; });
}

void Units::Put(std::span<DeviceId> placement, size_t unit, DeviceId device) const {
  for (const OpId op : ops(unit)) placement[Index(op)] = device;
}

bool Units::Legalise(std::span<DeviceId> placement) const {
  for (size_t unit = 0; unit < size(); ++unit) {
    const DeviceId wish = placement[Index(ops(unit).front())];
    Put(placement, unit, can_run(unit, wish) ? wish : fastest(unit));
  }
  return !rules_ || KeepRules(placement);
}

bool Units::KeepRules(std::span<DeviceId> placement) const {
  std::vector<DeviceId> chosen(ruled_.size());
  const auto cost = [&](size_t v, DeviceId device) {
    const size_t unit = ruled_[v];
    return placement[Index(ops(unit).front())] == device ? -1 : time(unit, device);
  };
  if (rules_->Solve(chosen, cost) != RuleNetwork::Answer::kYes) return false;
  for (size_t v = 0; v < ruled_.size(); ++v) Put(placement, ruled_[v], chosen[v]);
  return true;
}

std::vector<DeviceId> Units::Legal(std::vector<DeviceId> placement) const {
  if (!Legalise(placement))
    throw Error("found no placement that keeps the constraints separate and forbid-transfer; relax one of them");
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
  const bool named = problem.has_explicit_transfers() || evaluator.facts().Is<MeasuredFacts>();
  const std::optional<DeviceId> host = evaluator.facts().io_host();
  std::vector<uint8_t> has_rules(problem.num_devices(), 0);
  for (const auto& [tensor, from, to] : problem.constraints().forbidden_transfers) {
    has_rules[Index(from)] = has_rules[Index(to)] = 1;
  }
  const auto equal = [&](DeviceId a, DeviceId b) {
    if (a == host || b == host || has_rules[Index(a)] != 0 || has_rules[Index(b)] != 0) return false;
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
