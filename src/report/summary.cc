#include "report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "placement/energy.h"
#include "report/table.h"

namespace berth {
namespace {

// Walks a timeline backwards along what each event waited for. Events are ops (0 .. ops - 1), then transfers.
class PathFinder {
 public:
  PathFinder(const Graph& graph, const Timeline& timeline)
      : graph_(graph),
        timeline_(timeline),
        num_ops_(timeline.ops.size()),
        visited_(num_ops_ + timeline.transfers.size()) {
    by_end_.resize(visited_.size());
    std::iota(by_end_.begin(), by_end_.end(), size_t{0});
    std::sort(by_end_.begin(), by_end_.end(),
              [&](size_t a, size_t b) { return std::pair(End(a), a) < std::pair(End(b), b); });
  }

  std::vector<PathStep> Find() {
    std::vector<PathStep> path;
    if (by_end_.empty()) return path;
    size_t event = by_end_.back();
    while (event != kNone) {
      visited_[event] = true;
      const bool is_transfer = event >= num_ops_;
      path.push_back({.is_transfer = is_transfer,
                      .index = is_transfer ? event - num_ops_ : event,
                      .start = Start(event),
                      .end = End(event)});
      event = Start(event) > 0 ? Before(event) : kNone;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  const OpRun& Op(size_t event) const { return timeline_.ops[event]; }
  const TransferRun& Transfer(size_t event) const { return timeline_.transfers[event - num_ops_]; }
  double Start(size_t event) const { return event < num_ops_ ? Op(event).start : Transfer(event).start; }
  double End(size_t event) const { return event < num_ops_ ? Op(event).end : Transfer(event).end; }

  // How directly `other`, which ended when `event` started, made it wait: 0 its data, 1 its device or port, 2 nothing
  // but the execution model.
  int Directness(size_t event, size_t other) const {
    if (event < num_ops_) {
      const OpId op = MakeId<OpId>(event);
      const DeviceId device = Op(event).device;
      if (other >= num_ops_) {
        const TransferRun& transfer = Transfer(other);
        const auto consumers = transfer.is_input ? graph_.input_consumers(MakeId<InputId>(Index(transfer.tensor)))
                                                 : graph_.consumers(transfer.tensor);
        return transfer.to == device && std::binary_search(consumers.begin(), consumers.end(), op) ? 0 : 2;
      }
      if (Op(other).device != device) return 2;
      const auto inputs = graph_.inputs_of(op);
      const bool feeds = std::any_of(inputs.begin(), inputs.end(),
                                     [&](TensorId tensor) { return Index(graph_.producer(tensor)) == other; });
      return feeds ? 0 : 1;
    }
    const TransferRun& transfer = Transfer(event);
    if (other < num_ops_) return !transfer.is_input && Index(graph_.producer(transfer.tensor)) == other ? 0 : 2;
    return Transfer(other).from == transfer.from || Transfer(other).to == transfer.to ? 1 : 2;
  }

  size_t Before(size_t event) const {
    const double start = Start(event);
    const auto above = std::upper_bound(by_end_.begin(), by_end_.end(), start,
                                        [&](double time, size_t other) { return time < End(other); });
    size_t best = kNone;
    int best_directness = 3;
    for (auto at = above; at != by_end_.begin();) {
      const size_t other = *--at;
      if (visited_[other]) continue;
      if (End(other) < start) {
        // Nothing ended just then: the path goes on at the last event before the gap.
        if (best == kNone) best = other;
        break;
      }
      if (const int directness = Directness(event, other); directness < best_directness) {
        best = other;
        best_directness = directness;
        if (directness == 0) break;
      }
    }
    return best;
  }

  const Graph& graph_;
  const Timeline& timeline_;
  size_t num_ops_;
  std::vector<bool> visited_;
  std::vector<size_t> by_end_;
};

}  // namespace

size_t RunSummary::busiest() const {
  return static_cast<size_t>(std::max_element(devices.begin(), devices.end(),
                                              [](const DeviceUse& a, const DeviceUse& b) { return a.busy < b.busy; }) -
                             devices.begin());
}

RunSummary Summarize(const Problem& problem, const Timeline& timeline) {
  const Graph& graph = problem.graph();
  RunSummary summary;
  summary.makespan = timeline.score.time;
  summary.untold_because = timeline.untold_because;
  if (summary.untold_because.empty() && !timeline.score.failed() && WithoutWatts(problem.cluster()).empty()) {
    summary.joules = Joules(problem, timeline);
  }
  summary.devices.resize(problem.num_devices());
  for (const OpRun& run : timeline.ops) {
    DeviceUse& use = summary.devices[Index(run.device)];
    ++use.ops;
    use.busy += run.end - run.start;
  }
  for (const TransferRun& transfer : timeline.transfers) {
    const int64_t bytes = TransferBytes(graph, transfer);
    DeviceUse& from = summary.devices[Index(transfer.from)];
    DeviceUse& to = summary.devices[Index(transfer.to)];
    // A transfer in halves is counted where each half is.
    if (transfer.part != TransferPart::kReceive) {
      ++from.transfers_out;
      from.bytes_out += bytes;
      ++summary.transfers;
      summary.transfer_bytes += bytes;
    }
    if (transfer.part != TransferPart::kSend) {
      ++to.transfers_in;
      to.bytes_in += bytes;
    }
  }

  summary.path = PathFinder(graph, timeline).Find();
  summary.path_by_device.resize(problem.num_devices());
  double covered = 0;
  for (const PathStep& step : summary.path) {
    const double length = step.end - step.start;
    (step.is_transfer ? summary.path_transfers : summary.path_by_device[Index(timeline.ops[step.index].device)]) +=
        length;
    covered += length;
  }
  summary.path_other = std::max(0.0, summary.makespan - covered);
  return summary;
}

std::string DescribeLimit(const Problem& problem, const RunSummary& summary) {
  if (!summary.untold_because.empty()) return "something that is not known: " + summary.untold_because;
  if (!(summary.makespan > 0)) return "nothing: it takes no time";
  const size_t busiest = summary.busiest();
  const double busy = summary.devices[busiest].busy / summary.makespan;
  const double waiting = summary.path_transfers / summary.makespan;
  const std::string name = LegibleName(problem.cluster(), MakeId<DeviceId>(busiest));
  if (busy >= 0.9) return fmt::format("{}, which computes {} of the time", name, Percent(busy));
  if (waiting >= 0.3) return fmt::format("transfers, which take {} of the critical path", Percent(waiting));
  const bool alone = std::ranges::count_if(summary.devices, [](const DeviceUse& use) { return use.busy > 0; }) < 2;
  std::string text = alone ? fmt::format("{}, which computes {} of the time", name, Percent(busy))
                           : fmt::format("{} (even the busiest device, {}, computes only {} of the time)",
                                         summary.in_turns ? "devices that take turns" : "dependencies between ops",
                                         name, Percent(busy));
  if (waiting >= 0.02) text += fmt::format(", and transfers, which take {} of the critical path", Percent(waiting));
  return text;
}

HolderNames NamesOf(const Graph& graph, const MemoryHolder& holder) {
  const auto index = static_cast<size_t>(holder.id);
  const auto tensor = [&](std::string_view kind) -> HolderNames {
    const auto id = MakeId<TensorId>(index);
    return {.kind = kind, .name = graph.tensor_name(id), .op = graph.op_name(graph.producer(id))};
  };
  switch (holder.kind) {
    case MemoryHolder::Kind::kParameter:
      return {.kind = "weight", .name = graph.parameter_name(MakeId<ParameterId>(index))};
    case MemoryHolder::Kind::kTensor:
      return tensor("tensor");
    case MemoryHolder::Kind::kCopy:
      return tensor("copy");
    case MemoryHolder::Kind::kWorkspace:
      return {.kind = "workspace", .op = graph.op_name(MakeId<OpId>(index))};
    case MemoryHolder::Kind::kInput:
      return {.kind = "input", .name = graph.input_name(MakeId<InputId>(index))};
  }
  return {};
}

std::string DescribeHolder(const Graph& graph, const MemoryHolder& holder) {
  const HolderNames names = NamesOf(graph, holder);
  std::string text(names.kind);
  if (!names.name.empty()) text += " " + Shorten(names.name, 40);
  if (!names.op.empty()) text += " of " + Shorten(names.op, 40);
  return fmt::format("{} ({})", text, ToString(Bytes{holder.bytes}));
}

}  // namespace berth
