#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/json_object.h"
#include "import/readers.h"

namespace berth {
namespace {

using nlohmann::json;

constexpr double kMostMilliseconds = 1e12;
constexpr double kMostMemory = 1e15;
constexpr auto kMostBytes = static_cast<double>(kMostTensorBytes);
// What a staging cost says of a tensor's size: the data set's files were made with 2 GiB/s between accelerator and
// host.
constexpr double kBytesPerSecond = 2147483648.0;
constexpr double kBytesPerMillisecond = kBytesPerSecond / 1000;
constexpr double kMostCost = 1000 * (kMostBytes / kBytesPerSecond);
// Upstream takes costs of one node's edges for equal up to this.
constexpr double kSameCost = 1e-6;

struct Node {
  int64_t id;
  std::string name;
  bool on_accelerator;
  double cpu_time, accelerator_time;
  bool is_backward;
  std::optional<int64_t> colour;
  int64_t bytes;
  // Of its output, from the edges.
  double cost = 0;
  size_t first_edge = 0;  // 1 + its position; 0: it has none
};

struct Edge {
  size_t source, target;  // positions of nodes
};

struct File {
  int64_t bytes_per_accelerator;
  size_t accelerators, cpus;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  size_t odd_sizes = 0;  // edges whose size is not their cost's worth
};

// The files write true and false, and 1 and 0 as well.
bool Flag(JsonObject& object, const json& raw, std::string_view key) {
  const auto value = raw.find(key);
  if (value != raw.end() && value->is_number_integer()) return object.Int(key, 0, 1) != 0;
  return object.Bool(key);
}

Node ReadNode(const json& raw, const std::string& path, size_t position) {
  JsonObject object(raw, path, fmt::format("nodes[{}]", position));
  Node node{.id = object.Int("id", INT32_MIN, INT32_MAX),
            .name = object.Has("name") ? object.Text("name") : std::string(),
            .on_accelerator = Flag(object, raw, "supportedOnFpga"),
            .cpu_time = object.Number("cpuLatency", 0, kMostMilliseconds),
            .accelerator_time = object.Number("fpgaLatency", 0, kMostMilliseconds),
            .is_backward = Flag(object, raw, "isBackwardNode"),
            .colour = std::nullopt,
            .bytes = 0};
  if (node.name.empty()) node.name = fmt::format("node{}", node.id);
  if (object.Has("colorClass")) node.colour = object.Int("colorClass", INT32_MIN, INT32_MAX);
  if (object.Has("size")) node.bytes = static_cast<int64_t>(std::ceil(object.Number("size", 0, kMostBytes)));
  if (object.Has("layerId")) object.Int("layerId", INT32_MIN, INT32_MAX);
  object.Finish();
  return node;
}

// An output has one cost, on each of its edges.
void ReadEdge(const json& raw, const std::string& path, const std::unordered_map<int64_t, size_t>& position_of,
              File& file) {
  const size_t position = file.edges.size();
  JsonObject object(raw, path, fmt::format("edges[{}]", position));
  const auto end = [&](std::string_view key) {
    const int64_t id = object.Int(key, INT32_MIN, INT32_MAX);
    const auto found = position_of.find(id);
    if (found == position_of.end())
      throw object.Mistake(key, fmt::format("no node has the id {}; remove the edge or add the node", id));
    return found->second;
  };
  const Edge edge{.source = end("sourceId"), .target = end("destId")};
  const double cost = object.Number("cost", 0, kMostCost);
  Node& source = file.nodes[edge.source];
  if (source.first_edge == 0) {
    source.cost = cost;
    source.first_edge = position + 1;
  } else if (std::abs(source.cost - cost) > kSameCost) {
    throw object.Mistake(
        "cost", fmt::format("is {}, but edges[{}] out of the same node {} costs {}; give all edges of a node one cost",
                            cost, source.first_edge - 1, source.id, source.cost));
  }
  if (object.Has("size")) {
    const double bytes = object.Number("size", 0, kMostBytes);
    if (std::abs(bytes - cost * kBytesPerMillisecond) > 0.01 * bytes + 1) ++file.odd_sizes;
  }
  object.Finish();
  file.edges.push_back(edge);
}

File ParseFile(std::string_view content, const std::string& path) {
  const json document = ParseJson(content, path);
  JsonObject top(document, path);
  File file{.bytes_per_accelerator = static_cast<int64_t>(top.Number("maxSizePerFPGA", 0, kMostMemory)),
            .accelerators = static_cast<size_t>(top.Int("maxFPGAs", 0, kMostDevices)),
            .cpus = static_cast<size_t>(top.Int("maxCPUs", 0, kMostDevices)),
            .nodes = {},
            .edges = {}};
  if (file.accelerators + file.cpus == 0)
    throw top.Mistake("maxFPGAs", "is 0 and so is maxCPUs; there must be a device");
  if (file.accelerators + file.cpus > kMostDevices) {
    throw top.Mistake("maxFPGAs", fmt::format("is {} and maxCPUs {}; at most {} devices together", file.accelerators,
                                              file.cpus, kMostDevices));
  }
  std::unordered_map<int64_t, size_t> position_of;
  for (const json& raw : top.List("nodes")) {
    const size_t position = file.nodes.size();
    Node node = ReadNode(raw, path, position);
    if (const auto [other, is_new] = position_of.emplace(node.id, position); !is_new) {
      throw Error("{}: nodes[{}].id: {} is the id of nodes[{}] already; give each node its own", path, position,
                  node.id, other->second);
    }
    file.nodes.push_back(std::move(node));
  }
  if (file.nodes.empty()) throw top.Mistake("nodes", "is empty; there is nothing to place");
  for (const json& raw : top.List("edges")) ReadEdge(raw, path, position_of, file);
  top.Finish();
  return file;
}

using ColourClasses = std::map<int64_t, std::vector<size_t>>;  // positions of nodes

ColourClasses FindColourClasses(const File& file, const std::string& path) {
  ColourClasses classes;
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    if (file.nodes[i].colour) classes[*file.nodes[i].colour].push_back(i);
  }
  for (const auto& [colour, members] : classes) {
    if (file.cpus > 0) continue;  // a CPU runs and holds everything
    double bytes = 0;
    for (const size_t i : members) {
      const Node& node = file.nodes[i];
      bytes += static_cast<double>(node.bytes);
      if (!node.on_accelerator) {
        throw Error(
            "{}: nodes[{}]: node {} of colorClass {} ({} nodes, one device) runs on no accelerator and there is no "
            "CPU; raise maxCPUs",
            path, i, node.id, colour, members.size());
      }
    }
    if (bytes > static_cast<double>(file.bytes_per_accelerator)) {
      throw Error(
          "{}: colorClass {}: its {} nodes cannot share a device: they need {} bytes, an accelerator holds {} and "
          "there is no CPU; raise maxSizePerFPGA or maxCPUs, or split the class",
          path, colour, members.size(), bytes, file.bytes_per_accelerator);
    }
  }
  return classes;
}

// Between accelerators a tensor passes through the host's memory, so it is moved twice. CPUs find it there.
Cluster MakeCluster(const File& file, size_t accelerators) {
  std::vector<Device> devices;
  for (size_t i = 0; i < accelerators; ++i) {
    devices.push_back({.name = fmt::format("fpga{}", i),
                       .kind = "acc",
                       .memory = Quantity{.value = static_cast<double>(file.bytes_per_accelerator),
                                          .source = "maxSizePerFPGA of the data set"}});
  }
  for (size_t i = 0; i < file.cpus; ++i) devices.push_back({.name = fmt::format("cpu{}", i), .kind = "cpu"});
  const size_t count = devices.size();
  std::vector<Link> kinds(3);  // by how often a tensor is moved
  for (size_t moves = 0; moves < kinds.size(); ++moves) {
    kinds[moves].bandwidth = {
        .value = moves == 0 ? std::numeric_limits<double>::infinity() : kBytesPerSecond / static_cast<double>(moves),
        .source = "2 GiB/s between accelerator and host, as the data set was made"};
  }
  std::vector<uint32_t> kind_of(count * count);
  for (size_t pair = 0; pair < kind_of.size(); ++pair) {
    kind_of[pair] = (pair / count < accelerators ? 1 : 0) + (pair % count < accelerators ? 1 : 0);
  }
  return Cluster("msr", std::move(devices), std::move(kinds), std::move(kind_of));
}

std::shared_ptr<const Graph> MakeGraph(const File& file, const std::string& path) {
  GraphBuilder builder(std::filesystem::path(path).stem().string());
  std::vector<size_t> tensor_of(file.nodes.size());
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    const Node& node = file.nodes[i];
    const auto tensor_bytes = std::llround(node.cost * kBytesPerMillisecond);
    const size_t op = builder.AddOp(node.name, "Node", {.bytes_written = tensor_bytes});
    if (node.is_backward) builder.MarkBackward(op);
    if (node.first_edge > 0) tensor_of[i] = builder.AddTensor(op, tensor_bytes);
    if (node.bytes > 0) builder.UseParameter(builder.AddParameter(node.bytes, node.name), op);
  }
  for (const Edge& edge : file.edges) builder.Consume(tensor_of[edge.source], edge.target);
  builder.AddNote("times in milliseconds, as the data set has them");
  builder.AddNote(
      "a node's size counts as a parameter of its own: the data set's static memory, weights and activations together");
  builder.AddNote("a tensor's bytes are its cost at 2 GiB/s, the data set's link between accelerator and host");
  if (file.odd_sizes > 0) {
    builder.AddNote(fmt::format("the cost counts where an edge's size does not agree with it: {} of {}", file.odd_sizes,
                                Counted(static_cast<int64_t>(file.edges.size()), "edge")));
  }
  return std::make_shared<const Graph>(builder.Build(path));
}

}  // namespace

bool LooksLikeMsr(std::string_view content) {
  return content.find("\"maxSizePerFPGA\"") != content.npos || content.find("\"supportedOnFpga\"") != content.npos;
}

Instance ReadMsr(std::string_view content, const std::string& path, const MsrOptions& options) {
  const File file = ParseFile(content, path);
  const ColourClasses classes = FindColourClasses(file, path);
  const size_t accelerators = std::max(file.accelerators, options.least_accelerators);
  Instance instance;
  instance.graph = MakeGraph(file, path);
  instance.cluster = std::make_shared<const Cluster>(MakeCluster(file, accelerators));
  instance.evaluator = "pipeline";
  instance.options.seconds_per_unit = 1e-3;

  const Graph& graph = *instance.graph;
  const size_t devices = accelerators + file.cpus;
  OpTimes& times =
      instance.times.emplace(OpTimes{.time = std::vector<double>(graph.num_ops() * devices), .source = "data set"});
  instance.options.staging.resize(graph.num_tensors());
  instance.file_ids.resize(graph.num_ops());
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    const Node& node = file.nodes[i];
    const OpId op = graph.op_at_file_position(i);
    instance.file_ids[Index(op)] = node.id;
    for (size_t d = 0; d < devices; ++d) {
      const double accelerator_time = node.on_accelerator ? node.accelerator_time : kCannotRun;
      times.time[Index(op) * devices + d] = d < accelerators ? accelerator_time : node.cpu_time;
    }
    if (node.first_edge > 0) instance.options.staging[graph.first_output(op)] = node.cost;
  }
  for (const auto& [colour, members] : classes) {
    if (members.size() < 2) continue;
    std::vector<OpId>& group = instance.options.constraints.colocate.emplace_back();
    for (const size_t i : members) group.push_back(graph.op_at_file_position(i));
    std::ranges::sort(group);
  }
  return instance;
}

}  // namespace berth
