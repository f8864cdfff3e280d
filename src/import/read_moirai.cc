#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
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
constexpr double kMostMemory = 1e15;

struct Task {
  int64_t id;
  std::vector<double> time;  // by device
  int64_t memory;
};

struct Edge {
  size_t from, to;           // positions of tasks
  std::vector<double> time;  // devices x devices
};

struct File {
  std::string name;
  size_t devices;
  std::vector<double> memory;  // by device
  std::vector<Task> tasks;
  std::vector<Edge> edges;
};

// Within rounding of a size that the device must still hold.
int64_t WholeBytes(double memory) { return static_cast<int64_t>(std::ceil(memory)); }

Task ReadTask(const json& raw, const std::string& path, size_t position, size_t devices) {
  const std::string place = fmt::format("tasks[{}]", position);
  JsonObject object(raw, path, place);
  Task task{.id = object.Int("id", INT32_MIN, INT32_MAX),
            .time = NumbersOf(object.List("time"), {path, place + ".time"}, devices, 0, kMostTime),
            .memory = WholeBytes(object.Number("mem", 0, static_cast<double>(kMostTensorBytes)))};
  object.Finish();
  return task;
}

Edge ReadEdge(const json& raw, const std::string& path, size_t position, size_t devices,
              const std::unordered_map<int64_t, size_t>& position_of) {
  const std::string place = fmt::format("edges[{}]", position);
  JsonObject object(raw, path, place);
  const auto end = [&](std::string_view key) {
    const int64_t id = object.Int(key, INT32_MIN, INT32_MAX);
    const auto found = position_of.find(id);
    if (found == position_of.end())
      throw object.Mistake(key, fmt::format("no task has the id {}; remove the edge or add the task", id));
    return found->second;
  };
  Edge edge{.from = end("src"), .to = end("dst"), .time = {}};
  const json& rows = object.List("comm");
  const JsonPlace comm{path, place + ".comm"};
  ExpectList(rows, comm, devices);
  for (size_t from = 0; from < devices; ++from) {
    const std::vector<double> row = NumbersOf(rows[from], comm[from], devices, 0, kMostTime);
    if (row[from] != 0) {
      throw Error("{}: {}: is {}; a tensor that stays on its device takes no time", path, comm[from][from].place,
                  row[from]);
    }
    edge.time.insert(edge.time.end(), row.begin(), row.end());
  }
  object.Finish();
  return edge;
}

File ParseFile(std::string_view content, const std::string& path) {
  const json document = ParseJson(content, path);
  JsonObject top(document, path);
  File file{.name = top.Has("name") ? top.Text("name") : path,
            .devices = static_cast<size_t>(top.Int("num_devices", 1, kMostDevices)),
            .memory = {},
            .tasks = {},
            .edges = {}};
  if (top.Has("source")) top.Text("source");
  file.memory = NumbersOf(top.List("memory"), {path, "memory"}, file.devices, 0, kMostMemory);
  std::unordered_map<int64_t, size_t> position_of;
  for (const json& raw : top.List("tasks")) {
    const size_t position = file.tasks.size();
    file.tasks.push_back(ReadTask(raw, path, position, file.devices));
    const int64_t id = file.tasks.back().id;
    if (const auto [other, is_new] = position_of.emplace(id, position); !is_new) {
      throw Error("{}: tasks[{}].id: {} is the id of tasks[{}] already; give each task its own", path, position, id,
                  other->second);
    }
  }
  if (file.tasks.empty()) throw top.Mistake("tasks", "is empty; there is nothing to place");
  for (const json& raw : top.List("edges")) {
    file.edges.push_back(ReadEdge(raw, path, file.edges.size(), file.devices, position_of));
  }
  top.Finish();
  return file;
}

// A tensor per edge: tensors of one task are numbered in the order of the file's edges.
Graph BuildGraph(const File& file, const std::string& path) {
  GraphBuilder builder(file.name);
  for (const Task& task : file.tasks) {
    const size_t op = builder.AddOp(fmt::format("task{}", task.id), "Task", {});
    if (task.memory > 0)
      builder.UseParameter(builder.AddParameter(task.memory, fmt::format("memory of task{}", task.id)), op);
  }
  for (const Edge& edge : file.edges) builder.Consume(builder.AddTensor(edge.from, 0), edge.to);
  builder.AddNote("times and memory have no stated unit: one unit of time is one second, one of memory one byte");
  builder.AddNote("transfers take the times that the file gives per edge; tensors have no bytes");
  return builder.Build(path);
}

Cluster BuildCluster(const File& file) {
  std::vector<Device> devices(file.devices);
  for (size_t d = 0; d < file.devices; ++d) {
    devices[d].name = fmt::format("gpu{}", d);
    devices[d].kind = "gpu";
    devices[d].memory =
        Quantity{.value = std::floor(file.memory[d]), .provenance = Provenance::kMeasured, .source = "the file"};
  }
  // The file's transfer times stand for the links.
  std::vector<Link> links(file.devices * file.devices);
  for (Link& link : links) link.bandwidth.value = std::numeric_limits<double>::infinity();
  return Cluster(file.name, std::move(devices), std::move(links));
}

}  // namespace

bool LooksLikeMoirai(std::string_view content) {
  return content.find("\"tasks\"") != std::string_view::npos &&
         content.find("\"num_devices\"") != std::string_view::npos;
}

Instance ReadMoirai(std::string_view content, const std::string& path) {
  const File file = ParseFile(content, path);
  Instance instance{.graph = std::make_shared<const Graph>(BuildGraph(file, path)),
                    .cluster = std::make_shared<const Cluster>(BuildCluster(file)),
                    .times = OpTimes{.time = {}, .measured = {}, .source = "file"},
                    .evaluator = "parallel(contention=ports,io=everywhere)"};
  const Graph& graph = *instance.graph;
  const size_t n = graph.num_ops();
  instance.times->time.resize(n * file.devices);
  instance.times->measured.assign(n * file.devices, 1);
  instance.file_ids.resize(n);
  for (size_t p = 0; p < n; ++p) {
    const size_t op = Index(graph.op_at_file_position(p));
    for (size_t d = 0; d < file.devices; ++d) instance.times->time[op * file.devices + d] = file.tasks[p].time[d];
    instance.file_ids[op] = file.tasks[p].id;
  }
  const size_t routes = file.devices * file.devices;
  instance.options.explicit_transfers.resize(graph.num_tensors() * routes);
  std::vector<size_t> next(n);
  for (const Edge& edge : file.edges) {
    const OpId from = graph.op_at_file_position(edge.from);
    const size_t tensor = graph.first_output(from) + next[Index(from)]++;
    std::ranges::copy(edge.time,
                      instance.options.explicit_transfers.begin() + static_cast<std::ptrdiff_t>(tensor * routes));
  }
  return instance;
}

}  // namespace berth
