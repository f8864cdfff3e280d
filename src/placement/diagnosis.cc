#include "placement/diagnosis.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "placement/memory_gap.h"
#include "placement/minimal_conflict.h"

namespace berth {
namespace {

constexpr size_t kShownReasons = 6;
constexpr std::string_view kOwnPlace = "the model's own";

// Ops looked at, over all questions: about a second.
constexpr size_t kMostWork = 10'000'000;

std::string Quoted(const ConstraintText& text) { return fmt::format("`{}`", text.ToString()); }

std::string Names(const Graph& graph, std::span<const OpId> ops, size_t most) {
  std::vector<std::string_view> names;
  for (const OpId op : ops.first(std::min(most, ops.size()))) names.push_back(graph.op_name(op));
  const std::string more = ops.size() > most ? fmt::format(" and {} more", ops.size() - most) : "";
  return fmt::format("{}{}", fmt::join(names, ", "), more);
}

// What the file of a model demands, as if somebody had stated it.
void AddOwn(const Graph& graph, const Constraints& own, std::vector<Constraint>& constraints) {
  const auto add = [&](ConstraintKind kind, std::vector<std::vector<OpId>> ops, std::string text) {
    constraints.push_back(
        {.text = {.kind = kind, .text = std::move(text), .place = std::string(kOwnPlace)}, .ops = std::move(ops)});
  };
  for (const std::vector<OpId>& group : own.colocate) {
    if (group.size() > 1) add(ConstraintKind::kColocate, {group}, Names(graph, group, 5));
  }
  for (const auto& [a, b] : own.separate) {
    const OpId pair[] = {a, b};
    add(ConstraintKind::kSeparate, {{a}, {b}}, Names(graph, pair, 2));
  }
  if (own.forbidden_transfers.empty()) return;
  add(ConstraintKind::kForbidTransfer, {}, fmt::format("{} tensors and links", own.forbidden_transfers.size()));
  constraints.back().forbidden_transfers = own.forbidden_transfers;
}

}  // namespace

ConstraintCheck::ConstraintCheck(std::shared_ptr<const Graph> graph, std::shared_ptr<const Cluster> cluster,
                                 const OpTimes& times, const Problem::Options& options,
                                 std::vector<Constraint> constraints)
    : model_{.graph = std::move(graph),
             .cluster = std::move(cluster),
             .can_run = {},
             .memory = {},
             .constraints = std::move(constraints)} {
  model_.memory = MemoryOf(*model_.cluster, options);
  for (const double time : times.time) model_.can_run.push_back(time == kCannotRun ? 0 : time > 0 ? 2 : 1);
  AddOwn(*model_.graph, options.constraints, model_.constraints);
}

bool ConstraintCheck::Impossible(std::span<const size_t> chosen, std::string_view memory_rule) const {
  const auto all = model_.graph->ops();
  const ConstraintSubset subset(model_, chosen, std::vector<OpId>(all.begin(), all.end()));
  return subset.CannotBePlaced() || FindMemoryGap(model_, subset, memory_rule);
}

std::vector<size_t> ConstraintCheck::SmallestConflict(std::string_view memory_rule) const {
  const auto impossible = [&](std::span<const size_t> chosen) { return Impossible(chosen, memory_rule); };
  std::vector<size_t> conflict = *MinimalConflict(
      model_.constraints.size(), [&](std::span<const size_t> chosen) { return std::optional(impossible(chosen)); });
  // A minimal one need not be a smallest one: all singles and pairs, while these are few.
  const size_t most_questions = std::min<size_t>(2000, kMostWork / (model_.graph->num_ops() + 1));
  const size_t n = model_.constraints.size();
  if (conflict.size() < 2 || n > most_questions) return conflict;
  for (size_t a = 0; a < n; ++a) {
    if (const size_t one[] = {a}; impossible(one)) return {a};
  }
  if (conflict.size() < 3 || n * n / 2 > most_questions) return conflict;
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = a + 1; b < n; ++b) {
      if (const size_t two[] = {a, b}; impossible(two)) return {a, b};
    }
  }
  return conflict;
}

// Of those that the constraints name. Empty when that took too long.
std::vector<OpId> ConstraintCheck::FewestOps(std::span<const size_t> chosen) const {
  std::vector<OpId> named;
  for (const size_t c : chosen) {
    for (const std::vector<OpId>& ops : model_.constraints[c].ops) named.insert(named.end(), ops.begin(), ops.end());
    for (const ForbiddenTransfer& forbidden : model_.constraints[c].forbidden_transfers) {
      const std::span<const OpId> consumers = model_.graph->consumers(forbidden.tensor);
      named.push_back(model_.graph->producer(forbidden.tensor));
      named.insert(named.end(), consumers.begin(), consumers.end());
    }
  }
  std::ranges::sort(named);
  named.erase(std::ranges::unique(named).begin(), named.end());
  size_t work = 0;
  const auto fewest = MinimalConflict(named.size(), [&](std::span<const size_t> members) -> std::optional<bool> {
    std::vector<OpId> ops;
    for (const size_t i : members) ops.push_back(named[i]);
    std::ranges::sort(ops);
    for (const size_t c : chosen) work += model_.constraints[c].forbidden_transfers.size() + 1;
    work += members.size() + model_.graph->num_ops() / 64;
    if (work > kMostWork) return std::nullopt;
    return ConstraintSubset(model_, chosen, ops).CannotBePlaced();
  });
  std::vector<OpId> ops;
  if (!fewest) return ops;
  for (const size_t i : *fewest) ops.push_back(named[i]);
  return ops;
}

std::optional<Diagnosis> ConstraintCheck::Diagnose(std::string_view memory_rule) const {
  std::vector<size_t> all(model_.constraints.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (!Impossible(all, memory_rule)) return std::nullopt;
  const std::vector<size_t> conflict = SmallestConflict(memory_rule);
  const auto ops = model_.graph->ops();
  const ConstraintSubset subset(model_, conflict, std::vector<OpId>(ops.begin(), ops.end()));
  Diagnosis diagnosis;
  if (subset.CannotBePlaced()) {
    // An op that no device runs is not the constraints' fault: Problem says so.
    if (conflict.empty()) return std::nullopt;
    diagnosis = DescribePlacement(conflict);
  } else {
    const auto gap = FindMemoryGap(model_, subset, memory_rule);
    if (!gap) return std::nullopt;
    diagnosis = DescribeMemory(conflict, *gap);
  }
  for (const size_t c : conflict) diagnosis.constraints.push_back(model_.constraints[c].text);
  return diagnosis;
}

std::vector<std::pair<ConstraintText, std::string>> ConstraintCheck::Broken(std::span<const DeviceId> device) const {
  std::vector<std::pair<ConstraintText, std::string>> broken;
  for (const Constraint& constraint : model_.constraints) {
    if (auto breach = Breach(constraint, *model_.graph, *model_.cluster, device))
      broken.emplace_back(constraint.text, std::move(*breach));
  }
  return broken;
}

// --- In words --------------------------------------------------------------------------------------------------------

std::string ConstraintCheck::DeviceNames(std::span<const DeviceId> devices) const {
  std::vector<std::string_view> names;
  for (const DeviceId id : devices) names.push_back(model_.cluster->device(id).name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// "cpu: not in `pin a=npu`; npu: cannot run Softmax".
std::string ConstraintCheck::WhyNowhere(std::span<const size_t> chosen, OpId op) const {
  std::vector<std::pair<std::string, std::vector<DeviceId>>> reasons;
  for (const DeviceId device : model_.cluster->ids()) {
    std::string reason;
    if (model_.can_run[Index(op) * model_.cluster->num_devices() + Index(device)] == 0) {
      reason = fmt::format("cannot run {}", model_.graph->op_type(op));
    }
    for (const size_t c : chosen) {
      const Constraint& constraint = model_.constraints[c];
      const bool pin = constraint.text.kind == ConstraintKind::kPin;
      if (!reason.empty() || (!pin && constraint.text.kind != ConstraintKind::kForbid)) continue;
      if (!std::ranges::binary_search(constraint.ops[0], op)) continue;
      const bool named = std::ranges::binary_search(constraint.devices, device);
      if (named != pin) reason = Quoted(constraint.text);
    }
    auto known = std::ranges::find(reasons, reason, &decltype(reasons)::value_type::first);
    if (known == reasons.end()) known = reasons.insert(reasons.end(), {reason, {}});
    known->second.push_back(device);
  }
  std::vector<std::string> parts;
  for (const auto& [reason, devices] : reasons)
    parts.push_back(fmt::format("not on {}: {}", DeviceNames(devices), reason));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string ConstraintCheck::WhereItMayBe(const ConstraintSubset& subset, OpId op) const {
  const std::vector<DeviceId> devices = subset.devices(subset.unit_of(op));
  if (devices.size() == model_.cluster->num_devices()) return {};
  return fmt::format("{} may only be on {}", model_.graph->op_name(op), DeviceNames(devices));
}

Diagnosis ConstraintCheck::DescribePlacement(std::span<const size_t> chosen) const {
  Diagnosis diagnosis{.kind = Diagnosis::Kind::kPlacement};
  const std::vector<OpId> ops = FewestOps(chosen);
  for (const OpId op : ops) diagnosis.ops.emplace_back(model_.graph->op_name(op));
  const auto any = [&](ConstraintKind kind) {
    return std::ranges::any_of(chosen, [&](size_t c) { return model_.constraints[c].text.kind == kind; });
  };
  const bool together = any(ConstraintKind::kColocate), apart = any(ConstraintKind::kSeparate);
  const bool links = any(ConstraintKind::kForbidTransfer);

  // Where each may be on its own, whatever it is joined to.
  std::vector<size_t> own_rules;
  for (const size_t c : chosen) {
    const ConstraintKind kind = model_.constraints[c].text.kind;
    if (kind == ConstraintKind::kPin || kind == ConstraintKind::kForbid) own_rules.push_back(c);
  }
  const ConstraintSubset alone(model_, own_rules, ops);
  std::vector<DeviceId> possible;
  for (const OpId op : ops) {
    const std::vector<DeviceId> devices = alone.devices(alone.unit_of(op));
    possible.insert(possible.end(), devices.begin(), devices.end());
  }
  std::ranges::sort(possible);
  possible.erase(std::ranges::unique(possible).begin(), possible.end());

  const std::string names = Names(*model_.graph, ops, kNamedOps);
  if (ops.size() == 1) {
    diagnosis.summary = fmt::format("op {} ({}) may be on no device", names, model_.graph->op_type(ops[0]));
    diagnosis.reasons.push_back(fmt::format("{}: {}", names, WhyNowhere(chosen, ops[0])));
  } else if (ops.empty()) {
    diagnosis.summary = "the constraints cannot be kept together";
  } else if (together && apart && !links && ops.size() == 2) {
    diagnosis.summary = fmt::format("ops {} must and must not share a device", names);
  } else if (together && !apart && !links) {
    diagnosis.summary = fmt::format("ops {} must share a device, and there is none that all of them may be on", names);
  } else if (apart && !together && !links && possible.size() < ops.size()) {
    diagnosis.summary = fmt::format("ops {} must be on {} different devices; there {} {} for them", names, ops.size(),
                                    possible.size() == 1 ? "is" : "are", possible.size());
  } else {
    diagnosis.summary = fmt::format("no devices for ops {} keep all the constraints on them", names);
  }
  for (const OpId op : ops.size() > 1 ? std::span<const OpId>(ops) : std::span<const OpId>()) {
    const std::string where = WhereItMayBe(alone, op);
    if (!where.empty() && diagnosis.reasons.size() < kShownReasons) diagnosis.reasons.push_back(where);
  }
  for (const size_t c : chosen) {
    const ConstraintText& text = model_.constraints[c].text;
    if (text.place == kOwnPlace) continue;
    const bool names_devices = text.kind == ConstraintKind::kPin;
    diagnosis.remedies.push_back(names_devices
                                     ? fmt::format("let {} name other devices too, or fewer ops", Quoted(text))
                                     : fmt::format("drop {}, or let it name fewer ops", Quoted(text)));
  }
  if (diagnosis.remedies.empty())
    diagnosis.remedies.push_back("choose a cluster for which the model's own constraints can be kept");
  if (apart && !together && !links) diagnosis.remedies.push_back("choose a cluster with more devices for these ops");
  return diagnosis;
}

Diagnosis ConstraintCheck::DescribeMemory(std::span<const size_t> chosen, const MemoryGap& gap) const {
  Diagnosis diagnosis{.kind = Diagnosis::Kind::kMemory, .needed_bytes = gap.needed, .available_bytes = gap.available};
  for (const OpId op : gap.ops) diagnosis.ops.emplace_back(model_.graph->op_name(op));
  for (const DeviceId id : gap.devices) diagnosis.devices.push_back(model_.cluster->device(id).name);
  const std::string devices = DeviceNames(gap.devices), needed = ToString(Bytes{gap.needed});
  const std::string available = ToString(Bytes{gap.available});
  const bool everywhere = gap.devices.size() == model_.cluster->num_devices();
  const bool one = gap.devices.size() == 1;
  if (gap.one_unit) {
    const bool one_op = gap.ops.size() == 1;
    const std::string who = one_op ? fmt::format("op {}", Names(*model_.graph, gap.ops, 1))
                                   : fmt::format("the {} ops that share a device with {}", gap.ops.size(),
                                                 model_.graph->op_name(gap.ops.front()));
    const std::string_view also = !gap.working_set ? "" : one_op ? ", inputs and outputs" : "";
    const std::string_view of_one = gap.working_set && !one_op ? ", with the inputs and outputs of one of them," : "";
    diagnosis.summary = fmt::format("the weights{} of {}{} need {}; {} {}", also, who, of_one, needed,
                                    one ? fmt::format("{}, the only device for them, has", devices)
                                        : std::string("the largest device for them has"),
                                    available);
  } else if (everywhere) {
    diagnosis.summary =
        fmt::format("the weights of the model need {}; all devices together have {}", needed, available);
  } else {
    diagnosis.summary =
        fmt::format("the weights of the {} op{} that may only be on {} need {}; {} {}", gap.ops.size(),
                    gap.ops.size() == 1 ? "" : "s", devices, needed, one ? "it has" : "together these have", available);
  }
  for (const size_t c : chosen) {
    const Constraint& constraint = model_.constraints[c];
    const ConstraintText& text = constraint.text;
    if (text.place == kOwnPlace) continue;
    if (constraint.limits.empty()) {
      diagnosis.remedies.push_back(fmt::format("drop {}, or let it name fewer ops", Quoted(text)));
      continue;
    }
    const bool share = text.kind == ConstraintKind::kKeepFree;
    const std::string lift = share ? "keep less free than" : "raise";
    if (one) {
      diagnosis.remedies.push_back(
          fmt::format("{} {}: {} needs at least {}", lift, Quoted(text), devices, ToBudget(Bytes{gap.needed})));
    } else {
      diagnosis.remedies.push_back(fmt::format("{} {}: {} more {} needed", lift, Quoted(text),
                                               ToBudget(Bytes{gap.needed - gap.available}),
                                               gap.one_unit ? "on one device is" : "in all is"));
    }
  }
  diagnosis.remedies.push_back("choose a cluster with more memory, or a smaller model");
  return diagnosis;
}

}  // namespace berth
