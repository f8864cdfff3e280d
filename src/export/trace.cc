#include "export/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <vector>

namespace berth {
namespace {

// The two groups of tracks; Perfetto shows each as a process.
constexpr int kDevices = 1;
constexpr int kLinks = 2;

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

  void Memory(std::string_view device, double time, int64_t bytes) {
    Event(R"({{"ph":"C","pid":{},"ts":{},"name":{},"args":{{"bytes":{}}}}})", kDevices, Microseconds(Nanoseconds(time)),
          Quoted(fmt::format("memory {}", device)), bytes);
  }

  std::string Finish() && { return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + std::move(text_) + "\n]}\n"; }

 private:
  int64_t Nanoseconds(double units) const {
    return static_cast<int64_t>(std::llround(std::min(problem_.ToSeconds(units).value * 1e9, 9e18)));
  }
  // The format counts in microseconds, with decimals.
  static std::string Microseconds(int64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  }

  const Problem& problem_;
  std::string text_;
};

void AddOps(const Problem& problem, const Timeline& timeline, Writer& writer) {
  const Graph& graph = problem.graph();
  for (const OpId op : graph.ops()) {
    const OpRun& run = timeline.ops[Index(op)];
    const OpWork& work = graph.work(op);
    writer.Slice(kDevices, Index(run.device) + 1, graph.op_name(op), graph.op_type(op), run.start, run.end,
                 fmt::format(R"("type":{},"flops":{},"bytes_read":{},"bytes_written":{})", Quoted(graph.op_type(op)),
                             work.flops, work.bytes_read, work.bytes_written));
  }
}

// Slices of one track must not overlap, which transfers of a link do where nothing makes them queue: each goes to the
// first lane of its link that is free.
void AddTransfers(const Problem& problem, const Timeline& timeline, Writer& writer) {
  const Graph& graph = problem.graph();
  using Route = std::pair<DeviceId, DeviceId>;
  std::vector<const TransferRun*> by_start;
  for (const TransferRun& transfer : timeline.transfers) by_start.push_back(&transfer);
  std::stable_sort(by_start.begin(), by_start.end(), [](const auto* a, const auto* b) { return a->start < b->start; });
  std::map<Route, std::vector<double>> lanes;  // per lane, when it is free again
  std::vector<size_t> lane_of;
  for (const TransferRun* transfer : by_start) {
    std::vector<double>& ends = lanes[{transfer->from, transfer->to}];
    const auto free = std::find_if(ends.begin(), ends.end(), [&](double end) { return end <= transfer->start; });
    lane_of.push_back(static_cast<size_t>(free - ends.begin()));
    if (free == ends.end()) ends.push_back(0);
    ends[lane_of.back()] = transfer->end;
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
      writer.Name("thread", kLinks, tracks, name, tracks);
    }
  }
  if (tracks > 0) writer.Name("process", kLinks, 0, "links", kLinks);
  for (size_t i = 0; i < by_start.size(); ++i) {
    const TransferRun& transfer = *by_start[i];
    const std::string_view name = transfer.is_input ? graph.input_name(MakeId<InputId>(Index(transfer.tensor)))
                                                    : graph.tensor_name(transfer.tensor);
    const int64_t bytes = transfer.is_input ? graph.input_bytes(MakeId<InputId>(Index(transfer.tensor)))
                                            : graph.tensor_bytes(transfer.tensor);
    writer.Slice(kLinks, first_track[{transfer.from, transfer.to}] + lane_of[i], name, "transfer", transfer.start,
                 transfer.end, fmt::format(R"("bytes":{})", bytes));
  }
}

}  // namespace

std::string WriteTrace(const Problem& problem, const Timeline& timeline) {
  Writer writer(problem);
  writer.Name("process", kDevices, 0, fmt::format("devices of {}", problem.cluster().name()), kDevices);
  for (const DeviceId device : problem.cluster().ids()) {
    writer.Name("thread", kDevices, Index(device) + 1, problem.cluster().device(device).name, Index(device) + 1);
  }
  AddOps(problem, timeline, writer);
  AddTransfers(problem, timeline, writer);
  for (size_t d = 0; d < timeline.memory.size(); ++d) {
    const std::string& name = problem.cluster().device(MakeId<DeviceId>(d)).name;
    for (const MemoryStep& step : timeline.memory[d].steps) writer.Memory(name, step.time, step.bytes);
  }
  return std::move(writer).Finish();
}

}  // namespace berth
