#include "sim/complete_timeline.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace berth {
namespace {

using Kind = MemoryHolder::Kind;

// [from, to)
struct Span {
  double from, to;
  MemoryHolder holder;
};

// Something that ops consume, with where and when it is made.
struct Source {
  MemoryHolder holder;
  bool is_output;
  OpRun made;
  std::span<const OpId> consumers;
  std::span<const TransferRun> transfers;
};

class SpanCollector {
 public:
  SpanCollector(const Problem& problem, const Timeline& timeline, double finish, std::optional<DeviceId> io_host)
      : graph_(problem.graph()),
        timeline_(timeline),
        finish_(finish),
        io_host_(io_host),
        spans_(problem.num_devices()),
        last_use_(problem.num_devices()) {}

  std::vector<std::vector<Span>> Collect() {
    AddParameters();
    AddWorkspaces();
    AddInputsAndTensors();
    return std::move(spans_);
  }

 private:
  void Add(DeviceId device, double from, double to, const MemoryHolder& holder) {
    if (from < to && holder.bytes > 0) spans_[Index(device)].push_back({from, to, holder});
  }

  void AddParameters() {
    for (const ParameterId parameter : graph_.parameters()) {
      std::vector<DeviceId> devices;
      for (const OpId op : graph_.parameter_consumers(parameter)) devices.push_back(timeline_.ops[Index(op)].device);
      std::ranges::sort(devices);
      devices.erase(std::ranges::unique(devices).begin(), devices.end());
      for (const DeviceId device : devices) {
        Add(device, 0, kCannotRun,
            {Kind::kParameter, static_cast<int32_t>(parameter), graph_.parameter_bytes(parameter)});
      }
    }
  }

  void AddWorkspaces() {
    for (const OpId op : graph_.ops()) {
      const OpRun& run = timeline_.ops[Index(op)];
      Add(run.device, run.start, run.end,
          {Kind::kWorkspace, static_cast<int32_t>(op), graph_.work(op).workspace_bytes});
    }
  }

  void AddInputsAndTensors() {
    std::vector<TransferRun> transfers = timeline_.transfers;
    std::ranges::sort(transfers, {}, [](const TransferRun& run) { return std::pair(!run.is_input, run.tensor); });
    auto next = transfers.cbegin();
    const auto transfers_of = [&](bool is_input, int32_t id) {
      const auto first = next;
      while (next != transfers.cend() && next->is_input == is_input && static_cast<int32_t>(next->tensor) == id) ++next;
      return std::span(first, next);
    };
    if (io_host_) {
      for (const InputId input : graph_.inputs()) {
        const auto id = static_cast<int32_t>(input);
        AddSource({.holder = {Kind::kInput, id, graph_.input_bytes(input)},
                   .is_output = false,
                   .made = {.device = *io_host_, .start = 0, .end = 0},
                   .consumers = graph_.input_consumers(input),
                   .transfers = transfers_of(true, id)});
      }
    }
    for (const TensorId tensor : graph_.tensors()) {
      const auto id = static_cast<int32_t>(tensor);
      AddSource({.holder = {Kind::kTensor, id, graph_.tensor_bytes(tensor)},
                 .is_output = graph_.is_output(tensor),
                 .made = timeline_.ops[Index(graph_.producer(tensor))],
                 .consumers = graph_.consumers(tensor),
                 .transfers = transfers_of(false, id)});
    }
  }

  // From its start to its last use, on the device that made it and on those that it was sent to.
  void AddSource(const Source& source) {
    for (const OpId op : source.consumers) last_use_[Index(timeline_.ops[Index(op)].device)] = 0;
    for (const OpId op : source.consumers) {
      double& last = last_use_[Index(timeline_.ops[Index(op)].device)];
      last = std::max(last, timeline_.ops[Index(op)].end);
    }
    double to = source.made.end;
    for (const OpId op : source.consumers) {
      if (timeline_.ops[Index(op)].device == source.made.device) to = std::max(to, timeline_.ops[Index(op)].end);
    }
    for (const TransferRun& transfer : source.transfers) to = std::max(to, transfer.end);
    Add(source.made.device, source.made.start, source.is_output ? finish_ : to, source.holder);

    MemoryHolder copy = source.holder;
    if (copy.kind == Kind::kTensor) copy.kind = Kind::kCopy;
    for (const TransferRun& transfer : source.transfers) {
      const bool is_result = source.is_output && transfer.to == io_host_;
      Add(transfer.to, transfer.start, is_result ? finish_ : last_use_[Index(transfer.to)], copy);
    }
  }

  const Graph& graph_;
  const Timeline& timeline_;
  double finish_;
  std::optional<DeviceId> io_host_;
  std::vector<std::vector<Span>> spans_;
  std::vector<double> last_use_;  // scratch, per device
};

DeviceMemory Sweep(const std::vector<Span>& spans) {
  // What ends at an instant is gone before what starts then: only the level after all changes of an instant counts.
  std::vector<std::pair<double, int64_t>> changes;
  for (const Span& span : spans) {
    changes.emplace_back(span.from, span.holder.bytes);
    if (span.to < kCannotRun) changes.emplace_back(span.to, -span.holder.bytes);
  }
  std::ranges::sort(changes, {}, &std::pair<double, int64_t>::first);
  DeviceMemory memory;
  int64_t level = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    level += changes[i].second;
    if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first) continue;
    if (memory.steps.empty() ? level != 0 : level != memory.steps.back().bytes) {
      memory.steps.push_back({changes[i].first, level});
    }
    if (level > memory.peak_bytes) {
      memory.peak_bytes = level;
      memory.peak_time = changes[i].first;
    }
  }
  for (const Span& span : spans) {
    if (span.from <= memory.peak_time && memory.peak_time < span.to) memory.holders.push_back(span.holder);
  }
  std::ranges::stable_sort(memory.holders, [](const MemoryHolder& a, const MemoryHolder& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.kind != b.kind ? a.kind < b.kind : a.id < b.id;
  });
  return memory;
}

std::string Describe(const Graph& graph, const MemoryHolder& holder) {
  const auto id = static_cast<size_t>(holder.id);
  const std::string bytes = ToString(Bytes{holder.bytes});
  switch (holder.kind) {
    case Kind::kParameter:
      return fmt::format("parameter {} ({})", graph.parameter_name(MakeId<ParameterId>(id)), bytes);
    case Kind::kTensor:
      return fmt::format("tensor {} ({})", graph.tensor_name(MakeId<TensorId>(id)), bytes);
    case Kind::kCopy:
      return fmt::format("copy of {} ({})", graph.tensor_name(MakeId<TensorId>(id)), bytes);
    case Kind::kWorkspace:
      return fmt::format("workspace of {} ({})", graph.op_name(MakeId<OpId>(id)), bytes);
    case Kind::kInput:
      return fmt::format("input {} ({})", graph.input_name(MakeId<InputId>(id)), bytes);
  }
  return {};
}

// One line about the device that lacks most memory: its peak, its limit, the moment and what fills it. Empty when all
// fits.
std::string WhyMemoryLacks(const Problem& problem, const std::vector<DeviceMemory>& memory) {
  int64_t most = 0;
  size_t worst = 0, lacking = 0;
  for (size_t d = 0; d < memory.size(); ++d) {
    const int64_t excess = memory[d].peak_bytes - problem.memory_limit(MakeId<DeviceId>(d));
    lacking += excess > 0;
    if (excess > most) {
      most = excess;
      worst = d;
    }
  }
  if (lacking == 0) return {};
  const DeviceMemory& device = memory[worst];
  const auto id = MakeId<DeviceId>(worst);
  std::string text = fmt::format("{} would hold {} of its {} at {}", problem.cluster().device(id).name,
                                 ToString(Bytes{device.peak_bytes}), ToString(Bytes{problem.memory_limit(id)}),
                                 ToString(problem.ToSeconds(device.peak_time)));
  constexpr size_t kNamed = 3;
  for (size_t i = 0; i < std::min(kNamed, device.holders.size()); ++i) {
    text += i == 0 ? ": " : ", ";
    text += Describe(problem.graph(), device.holders[i]);
  }
  if (device.holders.size() > kNamed) text += fmt::format(" and {} more", device.holders.size() - kNamed);
  if (lacking > 1)
    text +=
        fmt::format("; {} more device{} lack{} memory", lacking - 1, lacking == 2 ? "" : "s", lacking == 2 ? "s" : "");
  return text;
}

}  // namespace

void CompleteTimeline(const Evaluator& evaluator, double finish, Timeline& timeline) {
  std::ranges::sort(timeline.transfers, [](const TransferRun& a, const TransferRun& b) {
    return std::tuple(a.start, !a.is_input, a.tensor, a.to) < std::tuple(b.start, !b.is_input, b.tensor, b.to);
  });
  if (!evaluator.facts().tracks_memory || timeline.score.time == kCannotRun) return;
  SpanCollector collector(evaluator.problem(), timeline, finish, evaluator.facts().io_host());
  for (const std::vector<Span>& spans : collector.Collect()) {
    timeline.memory.push_back(Sweep(spans));
  }
  timeline.infeasible_because = WhyMemoryLacks(evaluator.problem(), timeline.memory);
}

std::string WhyItCannotRun(const Problem& problem, const PlanView& plan) {
  for (const OpId op : problem.graph().ops()) {
    const DeviceId device = plan.device[Index(op)];
    if (problem.can_run(op, device)) continue;
    return fmt::format("op {} cannot run on {}", problem.graph().op_name(op), problem.cluster().device(device).name);
  }
  return {};
}

}  // namespace berth
