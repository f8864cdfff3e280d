#include "export/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <tuple>
#include <vector>

namespace berth {
namespace {

// The two groups of tracks of the first timeline, which all others count on from; Perfetto shows each as a process.
constexpr int kDevices = 1;
constexpr int kLinks = 2;
constexpr int kGroups = 2;

std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Appends events, one per line.
class Writer {
 public:
  explicit Writer(const Problem& problem) : problem_(problem) {}

  template <typename... Args>
  void Event(fmt::format_string<Args...> format, Args&&... args) {
    text_ += text_.empty() ? "" : ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void Name(std::string_view kind, int process, size_t track, std::string_view name, size_t position) {
    Event(R"({{"ph":"M","pid":{},"tid":{},"name":"{}_name","args":{{"name":{}}}}})", process, track, kind,
          Quoted(name));
    Event(R"({{"ph":"M","pid":{},"tid":{},"name":"{}_sort_index","args":{{"sort_index":{}}}}})", process, track, kind,
          position);
  }

  // A slice; `args` is the inside of a JSON object.
  void Slice(int process, size_t track, std::string_view name, std::string_view category, double start, double end,
             const std::string& args) {
    const int64_t from = Nanoseconds(start), to = Nanoseconds(end);
    Event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":{},"args":{{{}}}}})", process, track,
          Microseconds(from), Microseconds(to - from), Quoted(name), Quoted(category), args);
  }

  // One moment of a flow, within a slice: "s" where it starts, "t" on its way, "f" where it ends.
  void Flow(char phase, size_t flow, int process, size_t track, std::string_view name, int64_t nanoseconds) {
    Event(R"({{"ph":"{}","id":{},"pid":{},"tid":{},"ts":{},"name":{},"cat":"transfer"{}}})", phase, flow, process,
          track, Microseconds(nanoseconds), Quoted(name), phase == 'f' ? R"(,"bp":"e")" : "");
  }

  void Memory(std::string_view device, double time, int64_t bytes) {
    Event(R"({{"ph":"C","pid":{},"ts":{},"name":{},"args":{{"bytes":{}}}}})", devices(),
          Microseconds(Nanoseconds(time)), Quoted(fmt::format("memory {}", device)), bytes);
  }

  // Tracks and flows from here on are another timeline's.
  void Next() { base_ += kGroups; }
  int devices() const { return base_ + kDevices; }
  int links() const { return base_ + kLinks; }
  size_t NewFlow() { return ++flows_; }

  std::string Finish() && { return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + std::move(text_) + "\n]}\n"; }

  // Of a time of the problem's.
  int64_t Nanoseconds(double units) const {
    return static_cast<int64_t>(std::llround(std::min(problem_.ToSeconds(units).value * 1e9, 9e18)));
  }

 private:
  // The format counts in microseconds, with decimals.
  static std::string Microseconds(int64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  }

  const Problem& problem_;
  std::string text_;
  int base_ = 0;
  size_t flows_ = 0;
};

void AddOps(const Problem& problem, const Timeline& timeline, Writer& writer) {
  const Graph& graph = problem.graph();
  for (const OpId op : graph.ops()) {
    const OpRun& run = timeline.ops[Index(op)];
    const OpWork& work = graph.work(op);
    writer.Slice(writer.devices(), Index(run.device) + 1, graph.op_name(op), graph.op_type(op), run.start, run.end,
                 fmt::format(R"("type":{},"flops":{},"bytes_read":{},"bytes_written":{})", Quoted(graph.op_type(op)),
                             work.flops, work.bytes_read, work.bytes_written));
  }
}

// Slices of one track must not overlap, which transfers of a link do where nothing makes them queue: each goes to the
// first lane of its link that is free. Returns the track of each transfer.
std::vector<size_t> AddTransfers(const Problem& problem, const Timeline& timeline, std::string_view of,
                                 Writer& writer) {
  const Graph& graph = problem.graph();
  using Route = std::pair<DeviceId, DeviceId>;
  std::vector<size_t> by_start(timeline.transfers.size());
  std::iota(by_start.begin(), by_start.end(), size_t{0});
  std::ranges::stable_sort(by_start, {}, [&](size_t i) { return timeline.transfers[i].start; });
  std::map<Route, std::vector<double>> lanes;  // per lane, when it is free again
  std::vector<size_t> track(timeline.transfers.size());
  for (const size_t i : by_start) {
    const TransferRun& transfer = timeline.transfers[i];
    std::vector<double>& ends = lanes[{transfer.from, transfer.to}];
    const auto free = std::find_if(ends.begin(), ends.end(), [&](double end) { return end <= transfer.start; });
    track[i] = static_cast<size_t>(free - ends.begin());
    if (free == ends.end()) ends.push_back(0);
    ends[track[i]] = transfer.end;
  }

  std::map<Route, size_t> first_track;
  size_t tracks = 0;
  for (const auto& [route, ends] : lanes) {
    first_track[route] = tracks + 1;
    for (size_t lane = 0; lane < ends.size(); ++lane) {
      ++tracks;
      const std::string& from = problem.cluster().device(route.first).name;
      const std::string& to = problem.cluster().device(route.second).name;
      std::string name =
          route.first == route.second ? fmt::format("{} and host", from) : fmt::format("{} → {}", from, to);
      if (lane > 0) name += fmt::format(" ({})", lane + 1);
      writer.Name("thread", writer.links(), tracks, name, tracks);
    }
  }
  if (tracks > 0)
    writer.Name("process", writer.links(), 0, of.empty() ? "links" : fmt::format("links, {}", of),
                static_cast<size_t>(writer.links()));
  for (const size_t i : by_start) {
    const TransferRun& transfer = timeline.transfers[i];
    track[i] += first_track[{transfer.from, transfer.to}];
    writer.Slice(writer.links(), track[i], TransferName(graph, transfer), "transfer", transfer.start, transfer.end,
                 fmt::format(R"("bytes":{})", TransferBytes(graph, transfer)));
  }
  return track;
}

// Arrows from the op that makes a tensor through its transfer to each op that reads it there.
class Flows {
 public:
  Flows(const Problem& problem, const Timeline& timeline, std::vector<size_t> track, Writer& writer)
      : graph_(problem.graph()), timeline_(timeline), track_(std::move(track)), writer_(writer) {}

  void Add() {
    // What carries one tensor to one device: one transfer, or its two halves.
    std::map<std::tuple<bool, TensorId, DeviceId>, std::vector<size_t>> ways;
    for (size_t i = 0; i < timeline_.transfers.size(); ++i) {
      const TransferRun& transfer = timeline_.transfers[i];
      ways[{transfer.is_input, transfer.tensor, transfer.to}].push_back(i);
    }
    for (auto& [key, way] : ways) {
      const auto& [is_input, tensor, to] = key;
      std::ranges::stable_sort(way, {}, [&](size_t i) { return timeline_.transfers[i].start; });
      std::vector<Step> steps;
      if (!is_input) steps.push_back(OpStep(graph_.producer(tensor), true));
      for (const size_t i : way) {
        const TransferRun& transfer = timeline_.transfers[i];
        steps.push_back({writer_.links(), track_[i], writer_.Nanoseconds(transfer.start)});
      }
      bool read = false;
      for (const OpId consumer :
           is_input ? graph_.input_consumers(MakeId<InputId>(Index(tensor))) : graph_.consumers(tensor)) {
        if (timeline_.ops[Index(consumer)].device != to) continue;
        read = true;
        steps.push_back(OpStep(consumer, false));
        Write(steps, TransferName(graph_, timeline_.transfers[way.front()]));
        steps.pop_back();
      }
      if (!read) Write(steps, TransferName(graph_, timeline_.transfers[way.front()]));
    }
  }

 private:
  struct Step {
    int process;
    size_t track;
    int64_t nanoseconds;
  };

  // Within the slice: its last moment where the op makes a tensor, its first where it reads one.
  Step OpStep(OpId op, bool makes) const {
    const OpRun& run = timeline_.ops[Index(op)];
    const int64_t start = writer_.Nanoseconds(run.start), end = writer_.Nanoseconds(run.end);
    return {writer_.devices(), Index(run.device) + 1, makes ? std::max(start, end - 1) : start};
  }

  // Nothing flows back in time: in a steady state (`pipeline`) what is read may be of an earlier sample.
  void Write(const std::vector<Step>& steps, std::string_view name) {
    if (steps.size() < 2 || !std::ranges::is_sorted(steps, {}, &Step::nanoseconds)) return;
    const size_t flow = writer_.NewFlow();
    for (size_t i = 0; i < steps.size(); ++i) {
      const char phase = i == 0 ? 's' : i + 1 == steps.size() ? 'f' : 't';
      writer_.Flow(phase, flow, steps[i].process, steps[i].track, name, steps[i].nanoseconds);
    }
  }

  const Graph& graph_;
  const Timeline& timeline_;
  std::vector<size_t> track_;  // by transfer
  Writer& writer_;
};

void AddTimeline(const Problem& problem, const NamedTimeline& named, Writer& writer) {
  const Timeline& timeline = named.timeline;
  const std::string of = named.name.empty() ? "" : fmt::format(", {}", named.name);
  writer.Name("process", writer.devices(), 0, fmt::format("devices of {}{}", problem.cluster().name(), of),
              static_cast<size_t>(writer.devices()));
  for (const DeviceId device : problem.cluster().ids()) {
    writer.Name("thread", writer.devices(), Index(device) + 1, problem.cluster().device(device).name,
                Index(device) + 1);
  }
  AddOps(problem, timeline, writer);
  std::vector<size_t> track = AddTransfers(problem, timeline, named.name, writer);
  Flows(problem, timeline, std::move(track), writer).Add();
  for (size_t d = 0; d < timeline.memory.size(); ++d) {
    const std::string& name = problem.cluster().device(MakeId<DeviceId>(d)).name;
    for (const MemoryStep& step : timeline.memory[d].steps) writer.Memory(name, step.time, step.bytes);
  }
}

}  // namespace

std::string WriteTrace(const Problem& problem, const Timeline& timeline) {
  const NamedTimeline one{.name = {}, .timeline = timeline};
  return WriteTrace(problem, std::span(&one, 1));
}

std::string WriteTrace(const Problem& problem, std::span<const NamedTimeline> timelines) {
  Writer writer(problem);
  for (size_t i = 0; i < timelines.size(); ++i) {
    if (i > 0) writer.Next();
    AddTimeline(problem, timelines[i], writer);
  }
  return std::move(writer).Finish();
}

}  // namespace berth
