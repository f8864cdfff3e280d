#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "import/json_numbers.h"
#include "import/readers.h"

namespace berth {
namespace {

using nlohmann::json;

constexpr double kMostTime = 1e15;
constexpr size_t kMostTransfers = 1 << 27;  // times of an edge from one processor to another: 1 GiB

struct Edge {
  size_t from, to;
  double delay;
};

struct File {
  std::string name;
  size_t processors;
  std::vector<std::vector<double>> cost;  // by task and processor
  std::vector<Edge> edges;
  std::vector<std::pair<size_t, double>> planted;  // (processor, start) by task; may be empty
  std::map<std::string, double, std::less<>> published;
};

void ReadPlantedPlan(const json& list, const std::string& path, File& file) {
  const JsonPlace place{path, "planted"};
  ExpectList(list, place, file.cost.size());
  for (const json& raw : list) {
    const JsonPlace here = place[file.planted.size()];
    ExpectList(raw, here, 2);
    const auto processor = static_cast<size_t>(IntOf(raw[0], here[0], 0, static_cast<int64_t>(file.processors) - 1));
    file.planted.emplace_back(processor, NumberOf(raw[1], here[1], 0, kMostTime));
  }
}

File ParseFile(std::string_view content, const std::string& path) {
  const json document = ParseJson(content, path);
  JsonObject top(document, path);
  File file{.name = top.Has("name") ? top.Text("name") : path,
            .processors = static_cast<size_t>(top.Int("procs", 1, kMostDevices)),
            .cost = {},
            .edges = {},
            .planted = {},
            .published = {}};
  for (const json& raw : top.List("cost")) {
    file.cost.push_back(NumbersOf(raw, JsonPlace{path, "cost"}[file.cost.size()], file.processors, 0, kMostTime));
  }
  if (file.cost.empty()) throw top.Mistake("cost", "is empty; there is nothing to place");
  const auto last_task = static_cast<int64_t>(file.cost.size()) - 1;
  for (const json& raw : top.List("edges")) {
    const JsonPlace place = JsonPlace{path, "edges"}[file.edges.size()];
    ExpectList(raw, place, 3);
    file.edges.push_back({.from = static_cast<size_t>(IntOf(raw[0], place[0], 0, last_task)),
                          .to = static_cast<size_t>(IntOf(raw[1], place[1], 0, last_task)),
                          .delay = NumberOf(raw[2], place[2], 0, kMostTime)});
  }
  if (file.edges.size() > kMostTransfers / (file.processors * file.processors)) {
    throw top.Mistake("procs", fmt::format("is {}: too many for {} edges, since {} times of transfers are held at most",
                                           file.processors, file.edges.size(), kMostTransfers));
  }
  if (top.Has("planted")) ReadPlantedPlan(top.List("planted"), path, file);
  for (const char* key : {"optimum", "heft_makespan"}) {
    if (top.Has(key)) file.published[key] = top.Number(key, 0, kMostTime);
  }
  for (const char* key : {"source", "unit"}) {
    if (top.Has(key)) top.Text(key);
  }
  if (top.Has("upward_rank")) NumbersOf(top.List("upward_rank"), {path, "upward_rank"}, file.cost.size(), 0, kMostTime);
  top.Finish();
  return file;
}

// A tensor per edge: tensors of one task are numbered in the order of the file's edges.
Graph BuildGraph(const File& file, const std::string& path) {
  GraphBuilder builder(file.name);
  for (size_t i = 0; i < file.cost.size(); ++i) builder.AddOp(fmt::format("task{}", i), "Task", {});
  for (const Edge& edge : file.edges) builder.Consume(builder.AddTensor(edge.from, 0), edge.to);
  builder.AddNote("times have no stated unit: one unit is one second");
  builder.AddNote("transfers take the delays that the file gives per edge; tensors have no bytes");
  return builder.Build(path);
}

Cluster BuildCluster(const File& file) {
  std::vector<Device> devices(file.processors);
  for (size_t d = 0; d < file.processors; ++d) {
    devices[d].name = fmt::format("p{}", d);
    devices[d].kind = "processor";
  }
  // The file's delays stand for the links.
  std::vector<Link> links(file.processors * file.processors);
  for (Link& link : links) link.bandwidth.value = std::numeric_limits<double>::infinity();
  return Cluster(file.name, std::move(devices), std::move(links));
}

}  // namespace

bool LooksLikePlanted(std::string_view content) {
  return content.find("\"procs\"") != std::string_view::npos && content.find("\"cost\"") != std::string_view::npos;
}

Instance ReadPlanted(std::string_view content, const std::string& path) {
  const File file = ParseFile(content, path);
  const size_t n = file.cost.size(), devices = file.processors;
  Instance instance{.graph = std::make_shared<const Graph>(BuildGraph(file, path)),
                    .cluster = std::make_shared<const Cluster>(BuildCluster(file)),
                    .times = OpTimes{.time = {}, .measured = {}, .source = "file"},
                    .evaluator = "parallel(contention=none,io=everywhere)",
                    .published = file.published};
  const Graph& graph = *instance.graph;
  instance.times->time.resize(n * devices);
  instance.file_ids.resize(n);
  for (size_t p = 0; p < n; ++p) {
    const size_t op = Index(graph.op_at_file_position(p));
    for (size_t d = 0; d < devices; ++d) instance.times->time[op * devices + d] = file.cost[p][d];
    instance.file_ids[op] = static_cast<int64_t>(p);
  }
  instance.options.explicit_transfers.assign(graph.num_tensors() * devices * devices, 0);
  std::vector<size_t> next(n);
  for (const Edge& edge : file.edges) {
    const OpId producer = graph.op_at_file_position(edge.from);
    const size_t tensor = graph.first_output(producer) + next[Index(producer)]++;
    for (size_t from = 0; from < devices; ++from) {
      for (size_t to = 0; to < devices; ++to) {
        if (from != to) instance.options.explicit_transfers[(tensor * devices + from) * devices + to] = edge.delay;
      }
    }
  }
  if (!file.planted.empty()) {
    // Strictly in the planted order: where an input arrives at the very moment when a device is free, priorities would
    // let the device start something else.
    Plan& plan = instance.plan.emplace();
    plan.device.resize(n);
    std::vector<std::pair<double, OpId>> starts;
    for (size_t p = 0; p < n; ++p) {
      const OpId op = graph.op_at_file_position(p);
      plan.device[Index(op)] = MakeId<DeviceId>(file.planted[p].first);
      starts.emplace_back(file.planted[p].second, op);
    }
    std::ranges::sort(starts);
    Sequence& sequence = plan.sequence.emplace();
    for (const auto& [start, op] : starts) {
      sequence.ops.push_back(op);
      for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
        const auto tensor = MakeId<TensorId>(t);
        const DeviceId to = plan.device[Index(graph.consumers(tensor).front())];
        if (to != plan.device[Index(op)]) sequence.transfers.emplace_back(tensor, to);
      }
    }
    plan.SetCause("planted");
  }
  return instance;
}

}  // namespace berth
