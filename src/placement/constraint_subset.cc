#include "placement/constraint_subset.h"

#include <algorithm>
#include <numeric>

#include "placement/rule_network.h"

namespace berth {

ConstraintSubset::ConstraintSubset(const ConstrainedModel& model, std::span<const size_t> chosen,
                                   std::span<const OpId> ops)
    : model_(model),
      devices_(model.cluster->num_devices()),
      chosen_(chosen.begin(), chosen.end()),
      unit_of_(model.graph->num_ops(), kNone) {
  Join(ops);
  allowed_.assign(units_.size() * devices_, 1);
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    for (const OpId op : units_[unit]) {
      for (size_t d = 0; d < devices_; ++d) {
        if (model.can_run[Index(op) * devices_ + d] == 0) allowed_[unit * devices_ + d] = 0;
      }
    }
  }
  for (const size_t c : chosen_) Narrow(model.constraints[c]);
}

std::vector<DeviceId> ConstraintSubset::devices(size_t unit) const {
  std::vector<DeviceId> devices;
  for (const DeviceId id : model_.cluster->ids()) {
    if (allowed(unit, id)) devices.push_back(id);
  }
  return devices;
}

bool ConstraintSubset::CannotBePlaced() const {
  for (size_t unit = 0; unit < units_.size(); ++unit) {
    const auto row = std::span(allowed_).subspan(unit * devices_, devices_);
    if (std::ranges::find(row, 1) == row.end()) return true;
  }
  return RulesContradict();
}

// Each unit alone has a device; what is left is what rules join.
bool ConstraintSubset::RulesContradict() const {
  std::vector<size_t> variable_of(units_.size(), kNone);
  std::vector<size_t> units;
  const auto variable = [&](OpId op) {
    size_t& v = variable_of[unit_of(op)];
    if (v == kNone) {
      v = units.size();
      units.push_back(unit_of(op));
    }
    return v;
  };
  struct Pair {
    size_t a, b;
    DeviceId from, to;  // equal: never the same device
  };
  std::vector<Pair> pairs;
  const auto add = [&](OpId a, OpId b, DeviceId from, DeviceId to) {
    if (has(a) && has(b)) pairs.push_back({variable(a), variable(b), from, to});
  };
  for (const size_t c : chosen_) {
    const Constraint& constraint = model_.constraints[c];
    for (const auto& [a, b] : constraint.Pairs()) add(a, b, {}, {});
    for (const auto& [tensor, from, to] : constraint.forbidden_transfers) {
      const OpId producer = model_.graph->producer(tensor);
      for (const OpId consumer : model_.graph->consumers(tensor)) add(producer, consumer, from, to);
    }
  }
  if (pairs.empty()) return false;
  RuleNetwork network(units.size(), devices_);
  for (size_t v = 0; v < units.size(); ++v) {
    for (const DeviceId id : model_.cluster->ids()) {
      if (!allowed(units[v], id)) network.Forbid(v, id);
    }
  }
  for (const Pair& pair : pairs) {
    if (pair.from == pair.to) {
      if (pair.a == pair.b) return true;
      network.Separate(pair.a, pair.b);
    } else if (pair.a != pair.b) {
      network.ForbidPair(pair.a, pair.from, pair.b, pair.to);
    }
  }
  network.Prepare();
  std::vector<DeviceId> device(units.size());
  return network.Solve(device, [](size_t, DeviceId) { return 0.0; }) == RuleNetwork::Answer::kNo;
}

std::vector<int64_t> ConstraintSubset::MemoryLimits() const {
  std::vector<int64_t> limits = model_.memory;
  for (const size_t c : chosen_) {
    for (const auto& [device, limit] : model_.constraints[c].limits) {
      limits[Index(device)] = std::min(limits[Index(device)], limit);
    }
  }
  return limits;
}

void ConstraintSubset::Join(std::span<const OpId> ops) {
  std::vector<size_t> parent(ops.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&](size_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  for (size_t i = 0; i < ops.size(); ++i) unit_of_[Index(ops[i])] = i;
  for (const size_t c : chosen_) {
    const Constraint& constraint = model_.constraints[c];
    if (constraint.text.kind != ConstraintKind::kColocate) continue;
    size_t first = kNone;
    for (const OpId op : constraint.ops[0]) {
      if (!has(op)) continue;
      const size_t r = root(unit_of(op));
      if (first == kNone) first = r;
      const size_t low = std::min(root(first), r), high = std::max(root(first), r);
      parent[high] = low;
    }
  }
  std::vector<size_t> unit(ops.size(), kNone);
  for (size_t i = 0; i < ops.size(); ++i) {
    size_t& number = unit[root(i)];
    if (number == kNone) {
      number = units_.size();
      units_.emplace_back();
    }
    units_[number].push_back(ops[i]);
  }
  for (size_t u = 0; u < units_.size(); ++u) {
    for (const OpId op : units_[u]) unit_of_[Index(op)] = u;
  }
}

void ConstraintSubset::Narrow(const Constraint& constraint) {
  const bool pin = constraint.text.kind == ConstraintKind::kPin;
  if (!pin && constraint.text.kind != ConstraintKind::kForbid) return;
  std::vector<uint8_t> out(devices_, pin ? 1 : 0);
  for (const DeviceId device : constraint.devices) out[Index(device)] = pin ? 0 : 1;
  for (const OpId op : constraint.ops[0]) {
    if (!has(op)) continue;
    for (size_t d = 0; d < devices_; ++d) {
      if (out[d] != 0) allowed_[unit_of(op) * devices_ + d] = 0;
    }
  }
}

}  // namespace berth
