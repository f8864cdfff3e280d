#include "placement/constraints.h"

#include <re2/re2.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "base/error.h"

namespace berth {
namespace {

constexpr size_t kMostPairs = 1'000'000;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// What an example of each kind looks like, for errors.
std::string_view Example(ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::kPin:
      return "encoder/*=gpu0";
    case ConstraintKind::kForbid:
      return "type:Softmax=npu";
    case ConstraintKind::kColocate:
    case ConstraintKind::kSeparate:
      return "embedding,decoder/*";
    case ConstraintKind::kMemory:
      return "gpu0=4GiB";
    case ConstraintKind::kKeepFree:
      return "10% or gpu0=10%";
    case ConstraintKind::kForbidTransfer:
      return "hidden=cpu>gpu0";
  }
  return {};
}

// Reads one constraint, and knows where it stands.
class Reader {
 public:
  Reader(const ConstraintText& text, const Graph& graph, const Cluster& cluster, std::span<const int64_t> memory)
      : text_(text), graph_(graph), cluster_(cluster), memory_(memory) {}

  Constraint Read() const {
    Constraint constraint{.text = text_};
    switch (text_.kind) {
      case ConstraintKind::kPin:
      case ConstraintKind::kForbid: {
        const auto [ops, devices] = SplitAtLast(text_.text, '=');
        constraint.ops = {Union(Ops(ops))};
        constraint.devices = Devices(devices);
        break;
      }
      case ConstraintKind::kColocate:
        constraint.ops = {Union(Ops(text_.text))};
        if (constraint.ops[0].size() < 2) ThrowSingle(constraint.ops[0].front());
        break;
      case ConstraintKind::kSeparate:
        constraint.ops = Ops(text_.text);
        CheckSeparate(constraint.ops);
        break;
      case ConstraintKind::kMemory:
      case ConstraintKind::kKeepFree:
        constraint.limits = Limits();
        break;
      case ConstraintKind::kForbidTransfer: {
        const auto [tensors, route] = SplitAtLast(text_.text, '=');
        constraint.forbidden_transfers = ForbiddenTransfers(Tensors(tensors), route);
        break;
      }
    }
    return constraint;
  }

 private:
  template <typename... Args>
  Error Mistake(fmt::format_string<Args...> format, Args&&... args) const {
    const std::string where = text_.place.empty() ? std::string() : text_.place + ": ";
    return Error("{}{} '{}': {}", where, kConstraintNames[static_cast<size_t>(text_.kind)], text_.text,
                 fmt::format(format, std::forward<Args>(args)...));
  }

  Error Malformed() const { return Mistake("expected something like {}", Example(text_.kind)); }

  // --- The grammar

  std::pair<std::string_view, std::string_view> SplitAtLast(std::string_view text, char separator) const {
    const size_t at = text.rfind(separator);
    if (at == std::string_view::npos) throw Malformed();
    return {text.substr(0, at), text.substr(at + 1)};
  }

  // At commas outside of double quotes; quotes are taken off.
  std::vector<std::string> List(std::string_view text) const {
    std::vector<std::string> items;
    for (size_t i = 0; i <= text.size(); ++i) {
      bool quoted = false;
      const size_t first = i;
      while (i < text.size() && (quoted || text[i] != ',')) quoted ^= text[i++] == '"';
      if (quoted) throw Mistake("a double quote is not closed");
      std::string_view item = Trimmed(text.substr(first, i - first));
      if (item.size() >= 2 && item.front() == '"' && item.back() == '"') item = item.substr(1, item.size() - 2);
      if (item.empty()) throw Malformed();
      items.emplace_back(item);
    }
    return items;
  }

  // --- Ops and tensors

  // Calls visit(i) for each i < count whose name or type matches the pattern.
  template <typename Name, typename Type, typename Visit>
  void Match(const std::string& pattern, size_t count, const Name& name, const Type& type, const Visit& visit) const {
    if (pattern.starts_with("type:")) {
      const std::string_view glob = std::string_view(pattern).substr(5);
      for (size_t i = 0; i < count; ++i) {
        if (GlobMatches(glob, type(i))) visit(i);
      }
    } else if (pattern.starts_with("re:")) {
      const RE2 regex(pattern.substr(3), Options());
      if (!regex.ok()) {
        throw Mistake("'{}' is no regular expression that Berth can use ({})", regex.pattern(), regex.error());
      }
      for (size_t i = 0; i < count; ++i) {
        if (RE2::FullMatch(re2::StringPiece(name(i)), regex)) visit(i);
      }
    } else {
      for (size_t i = 0; i < count; ++i) {
        if (GlobMatches(pattern, name(i))) visit(i);
      }
    }
  }

  static RE2::Options Options() {
    RE2::Options options(RE2::Quiet);
    options.set_never_capture(true);
    return options;
  }

  std::vector<std::vector<OpId>> Ops(std::string_view list) const {
    std::vector<std::vector<OpId>> ops;
    for (const std::string& pattern : List(list)) {
      std::vector<OpId>& matching = ops.emplace_back();
      Match(
          pattern, graph_.num_ops(), [&](size_t i) { return graph_.op_name(MakeId<OpId>(i)); },
          [&](size_t i) { return graph_.op_type(MakeId<OpId>(i)); },
          [&](size_t i) { matching.push_back(MakeId<OpId>(i)); });
      if (!matching.empty()) continue;
      const auto name = [&](size_t i) { return graph_.op_name(MakeId<OpId>(i)); };
      ThrowNoMatch(pattern, "op", graph_.num_ops(), name);
    }
    return ops;
  }

  std::vector<TensorId> Tensors(std::string_view list) const {
    std::vector<TensorId> tensors;
    const auto name = [&](size_t i) { return graph_.tensor_name(MakeId<TensorId>(i)); };
    for (const std::string& pattern : List(list)) {
      const size_t before = tensors.size();
      Match(
          pattern, graph_.num_tensors(), name,
          [&](size_t i) { return graph_.op_type(graph_.producer(MakeId<TensorId>(i))); },
          [&](size_t i) { tensors.push_back(MakeId<TensorId>(i)); });
      if (tensors.size() == before) ThrowNoTensor(pattern, name);
    }
    std::ranges::sort(tensors);
    tensors.erase(std::ranges::unique(tensors).begin(), tensors.end());
    return tensors;
  }

  static std::vector<OpId> Union(std::vector<std::vector<OpId>> lists) {
    std::vector<OpId> all;
    for (const std::vector<OpId>& list : lists) all.insert(all.end(), list.begin(), list.end());
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    return all;
  }

  // --- What matched nothing

  // Names, and where they look like paths or numbered lists the globs of their beginnings: a glob is nearer to these.
  template <typename Name>
  static std::vector<std::string> Candidates(const std::string& pattern, size_t count, const Name& name) {
    std::set<std::string, std::less<>> candidates;
    const bool glob = pattern.find_first_of("*?") != std::string::npos;
    for (size_t i = 0; i < count; ++i) {
      const std::string_view text = name(i);
      if (!glob) candidates.emplace(text);
      for (size_t end = 1; glob && end < text.size(); ++end) {
        if (std::string_view("/._:-").find(text[end - 1]) != std::string_view::npos) {
          candidates.insert(std::string(text.substr(0, end)) + "*");
        }
      }
    }
    return {candidates.begin(), candidates.end()};
  }

  template <typename Name>
  [[noreturn]] void ThrowNoMatch(const std::string& pattern, std::string_view what, size_t count,
                                 const Name& name) const {
    const bool by_type = pattern.starts_with("type:");
    const std::string looked_for = by_type ? pattern.substr(5) : pattern;
    std::string_view near;
    std::vector<std::string> known;
    if (!pattern.starts_with("re:")) {
      known = by_type ? graph_.op_types() : Candidates(looked_for, count, name);
      near = Closest(looked_for, known);
    }
    std::string hint;
    if (!near.empty()) {
      hint = fmt::format(", did you mean '{}{}'?", by_type ? "type:" : "", near);
    } else if (by_type) {
      hint = fmt::format("; there are: {}", fmt::join(known, ", "));
    } else if (count > 0) {
      hint = fmt::format("; the first is '{}'", name(0));
    }
    throw Mistake("no {} of {} matches '{}'{}", what, graph_.name(), pattern, hint);
  }

  template <typename Name>
  [[noreturn]] void ThrowNoTensor(const std::string& pattern, const Name& name) const {
    for (const InputId input : graph_.inputs()) {
      if (!GlobMatches(pattern, graph_.input_name(input))) continue;
      throw Mistake("'{}' is an input of the model and no op's tensor; pin the ops that read it", pattern);
    }
    for (const OpId op : graph_.ops()) {
      if (graph_.op_name(op) != pattern || graph_.first_output(op) == graph_.end_output(op)) continue;
      throw Mistake("'{}' is an op; its tensor is called '{}'", pattern, name(graph_.first_output(op)));
    }
    ThrowNoMatch(pattern, "tensor", graph_.num_tensors(), name);
  }

  [[noreturn]] void ThrowSingle(OpId op) const {
    throw Mistake("it matches op {} alone; name at least two ops", graph_.op_name(op));
  }

  // --- Devices

  std::vector<DeviceId> Devices(std::string_view list) const {
    std::vector<DeviceId> devices;
    for (const std::string& item : List(list)) {
      if (item.find_first_of("*?") == std::string::npos) {
        try {
          devices.push_back(cluster_.Find(item));
        } catch (const Error& error) {
          throw Mistake("{}", error.what());
        }
        continue;
      }
      const size_t before = devices.size();
      std::vector<std::string_view> known;
      for (const DeviceId id : cluster_.ids()) {
        known.push_back(cluster_.device(id).name);
        if (GlobMatches(item, known.back())) devices.push_back(id);
      }
      if (devices.size() == before)
        throw Mistake("no device matches '{}'; there are: {}", item, fmt::join(known, ", "));
    }
    std::ranges::sort(devices);
    devices.erase(std::ranges::unique(devices).begin(), devices.end());
    return devices;
  }

  std::vector<ForbiddenTransfer> ForbiddenTransfers(const std::vector<TensorId>& tensors,
                                                    std::string_view route) const {
    const auto [from, to] = SplitAtLast(route, '>');
    const std::vector<DeviceId> senders = Devices(from), receivers = Devices(to);
    std::vector<ForbiddenTransfer> forbidden;
    for (const TensorId tensor : tensors) {
      for (const DeviceId sender : senders) {
        for (const DeviceId receiver : receivers) {
          if (sender != receiver) forbidden.push_back({.tensor = tensor, .from = sender, .to = receiver});
        }
      }
    }
    if (forbidden.empty()) throw Mistake("nothing is sent from a device to itself; name two devices");
    return forbidden;
  }

  // --- Numbers

  std::vector<std::pair<DeviceId, int64_t>> Limits() const {
    const bool share = text_.kind == ConstraintKind::kKeepFree;
    const bool everywhere = share && text_.text.find('=') == std::string::npos;
    const auto [list, amount] =
        everywhere ? std::pair<std::string_view, std::string_view>("*", text_.text) : SplitAtLast(text_.text, '=');
    std::vector<std::pair<DeviceId, int64_t>> limits;
    bool lowers = false;
    for (const DeviceId device : Devices(list)) {
      const int64_t memory = memory_[Index(device)];
      const std::string& name = cluster_.device(device).name;
      if (share && memory == kUnlimited) {
        if (everywhere) continue;
        throw Mistake("the size of {}'s memory is not known; state an absolute budget: memory {}=4GiB", name, name);
      }
      const int64_t limit =
          share ? static_cast<int64_t>(static_cast<double>(memory) * (1 - Share(amount))) : Budget(amount);
      lowers |= limit < memory;
      limits.emplace_back(device, std::min(limit, memory));
    }
    if (!share && !lowers) {
      const auto& [device, memory] = limits.front();
      throw Mistake("{} has only {}; a budget can lower that, not raise it (a device file can)",
                    cluster_.device(device).name, ToString(Bytes{memory}));
    }
    if (limits.empty()) throw Mistake("no device's memory has a known size; state absolute budgets: memory gpu0=4GiB");
    return limits;
  }

  int64_t Budget(std::string_view text) const {
    try {
      return ParseBytes(Trimmed(text)).value;
    } catch (const Error& error) {
      throw Mistake("{}", error.what());
    }
  }

  double Share(std::string_view text) const {
    double share = 0;
    try {
      share = ParseShare(Trimmed(text));
    } catch (const Error& error) {
      throw Mistake("{}", error.what());
    }
    if (share > 1) throw Mistake("'{}' is no share of the whole: write 10% or 0.1", Trimmed(text));
    return share;
  }

  // --- Separate

  void CheckSeparate(const std::vector<std::vector<OpId>>& ops) const {
    if (ops.size() == 1 && ops[0].size() < 2) ThrowSingle(ops[0].front());
    std::vector<uint8_t> seen(graph_.num_ops(), 0);
    size_t all = 0, pairs = 0;
    for (const std::vector<OpId>& list : ops) {
      for (const OpId op : list) {
        if (std::exchange(seen[Index(op)], uint8_t{1}) != 0) {
          throw Mistake("op {} matches two of its patterns and cannot be apart from itself", graph_.op_name(op));
        }
      }
      pairs += all * list.size();
      all += list.size();
    }
    if (ops.size() == 1) pairs = all * (all - 1) / 2;
    if (pairs > kMostPairs) {
      throw Mistake(
          "it separates {} pairs of ops, and at most {} are possible; colocate the ops of each side, and separate one "
          "op of each",
          pairs, kMostPairs);
    }
  }

  const ConstraintText& text_;
  const Graph& graph_;
  const Cluster& cluster_;
  std::span<const int64_t> memory_;
};

}  // namespace

std::string ConstraintText::ToString() const {
  return fmt::format("{} {}", kConstraintNames[static_cast<size_t>(kind)], text);
}

ConstraintText ParseConstraint(std::string_view text, const std::string& place) {
  const size_t space = std::min(text.find(' '), text.size());
  const std::string_view name = text.substr(0, space);
  const auto kind = std::ranges::find(kConstraintNames, name);
  if (kind == kConstraintNames.end()) {
    throw Error("{}: '{}' is no constraint; expected one of {} and what it is about", place, text,
                fmt::join(kConstraintNames, ", "));
  }
  return {.kind = static_cast<ConstraintKind>(kind - kConstraintNames.begin()),
          .text = std::string(Trimmed(text.substr(space))),
          .place = place};
}

std::vector<std::pair<OpId, OpId>> Constraint::Pairs() const {
  std::vector<std::pair<OpId, OpId>> pairs;
  if (text.kind != ConstraintKind::kSeparate) return pairs;
  // Several patterns: ops of different ones. A single one: all its ops from one another.
  std::vector<OpId> before;
  for (const std::vector<OpId>& list : ops) {
    for (const OpId op : list) {
      for (const OpId other : before) pairs.emplace_back(std::min(op, other), std::max(op, other));
      if (ops.size() == 1) before.push_back(op);
    }
    if (ops.size() > 1) before.insert(before.end(), list.begin(), list.end());
  }
  std::ranges::sort(pairs);
  return pairs;
}

std::optional<std::string> Breach(const Constraint& constraint, const Graph& graph, const Cluster& cluster,
                                  std::span<const DeviceId> device) {
  const auto place = [&](OpId op) { return device[Index(op)]; };
  const auto name = [&](OpId op) { return cluster.device(place(op)).name; };
  const ConstraintKind kind = constraint.text.kind;
  if (kind == ConstraintKind::kPin || kind == ConstraintKind::kForbid) {
    size_t wrong = 0;
    std::optional<OpId> first;
    for (const OpId op : constraint.ops[0]) {
      const bool named = std::ranges::binary_search(constraint.devices, place(op));
      if (named == (kind == ConstraintKind::kPin)) continue;
      if (wrong++ == 0) first = op;
    }
    if (!first) return std::nullopt;
    const std::string others = wrong > 1 ? fmt::format(" (the first of {} such ops)", wrong) : "";
    return fmt::format("op {} is on {}{}", graph.op_name(*first), name(*first), others);
  }
  if (kind == ConstraintKind::kColocate) {
    const OpId first = constraint.ops[0].front();
    for (const OpId op : constraint.ops[0]) {
      if (place(op) == place(first)) continue;
      return fmt::format("op {} is on {}, op {} on {}", graph.op_name(first), name(first), graph.op_name(op), name(op));
    }
  }
  for (const auto& [a, b] : constraint.Pairs()) {
    if (place(a) == place(b))
      return fmt::format("ops {} and {} are both on {}", graph.op_name(a), graph.op_name(b), name(a));
  }
  for (const auto& [tensor, from, to] : constraint.forbidden_transfers) {
    const OpId producer = graph.producer(tensor);
    for (const OpId op : graph.consumers(tensor)) {
      if (place(producer) != from || place(op) != to) continue;
      return fmt::format("tensor {} goes from op {} on {} to op {} on {}", graph.tensor_name(tensor),
                         graph.op_name(producer), name(producer), graph.op_name(op), name(op));
    }
  }
  return std::nullopt;
}

std::vector<int64_t> MemoryOf(const Cluster& cluster, const Problem::Options& options) {
  if (!options.memory_limits.empty()) return options.memory_limits;
  std::vector<int64_t> limits;
  for (const DeviceId id : cluster.ids()) {
    const std::optional<Quantity>& memory = cluster.device(id).memory;
    limits.push_back(memory ? static_cast<int64_t>(memory->value) : kUnlimited);
  }
  return limits;
}

std::vector<Constraint> ResolveConstraints(std::span<const ConstraintText> texts, const Graph& graph,
                                           const Cluster& cluster, const Problem::Options& options) {
  const std::vector<int64_t> memory = MemoryOf(cluster, options);
  std::vector<Constraint> constraints;
  for (const ConstraintText& text : texts) constraints.push_back(Reader(text, graph, cluster, memory).Read());
  return constraints;
}

void ApplyConstraints(std::span<const Constraint> constraints, const Graph& graph, const Cluster& cluster,
                      OpTimes& times, Problem::Options& options) {
  const size_t devices = cluster.num_devices();
  std::vector<uint8_t> narrowed(graph.num_ops(), 0);
  Constraints& rules = options.constraints;
  for (const Constraint& constraint : constraints) {
    const ConstraintKind kind = constraint.text.kind;
    if (kind == ConstraintKind::kPin || kind == ConstraintKind::kForbid) {
      for (const OpId op : constraint.ops[0]) {
        for (const DeviceId device : cluster.ids()) {
          const bool named = std::ranges::binary_search(constraint.devices, device);
          if (named == (kind == ConstraintKind::kPin)) continue;
          double& time = times.time[Index(op) * devices + Index(device)];
          if (time < kCannotRun) narrowed[Index(op)] = 1;
          time = kCannotRun;
        }
      }
    }
    if (kind == ConstraintKind::kColocate) rules.colocate.push_back(constraint.ops[0]);
    std::ranges::copy(constraint.Pairs(), std::back_inserter(rules.separate));
    std::ranges::copy(constraint.forbidden_transfers, std::back_inserter(rules.forbidden_transfers));
    if (!constraint.limits.empty() && options.memory_limits.empty()) options.memory_limits = MemoryOf(cluster, options);
    for (const auto& [device, limit] : constraint.limits) {
      int64_t& least = options.memory_limits[Index(device)];
      least = std::min(least, limit);
    }
  }
  for (const OpId op : graph.ops()) {
    if (narrowed[Index(op)] != 0) rules.narrowed.push_back(op);
  }
  std::ranges::sort(rules.forbidden_transfers);
  const auto repeated = std::ranges::unique(rules.forbidden_transfers);
  rules.forbidden_transfers.erase(repeated.begin(), repeated.end());
}

}  // namespace berth
