#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
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

constexpr int64_t kMostMicroseconds = 1'000'000'000'000;
constexpr int64_t kMostOutputs = 65536;
constexpr size_t kMostUnlisted = 1'000'000;  // outputs that edges name and nodes do not list, of all nodes

struct Node {
  int64_t id;
  std::string name, op;
  int64_t cost_us;
  std::map<std::string, double> cost;  // microseconds by kind of device
  std::vector<int64_t> out_bytes;
  int64_t bytes;  // "mem"
};

struct File {
  std::string name;
  std::vector<Node> nodes;
  // By consumer: (producer, output), in the order of the file.
  std::vector<std::vector<std::pair<size_t, size_t>>> inputs;
  size_t several_outputs = 0;  // edges that another edge between the same nodes replaced
};

Node ReadNode(const json& raw, const std::string& path, size_t position) {
  const std::string place = fmt::format("nodes[{}]", position);
  JsonObject object(raw, path, place);
  Node node{.id = object.Int("id", 0, INT32_MAX),
            .name = object.Has("name") ? object.Text("name") : std::string(),
            .op = object.Has("op") ? object.Text("op") : "Op",
            .cost_us = object.Int("cost_us", 0, kMostMicroseconds),
            .cost = {},
            .out_bytes = {},
            .bytes = 0};
  if (object.Has("cost")) {
    JsonObject costs = object.Object("cost");
    for (const auto& [kind, seconds] : raw.at("cost").items()) {
      node.cost[kind] = 1e6 * costs.Number(kind, 0, static_cast<double>(kMostMicroseconds) * 1e-6);
    }
  }
  // The published costs are whole microseconds of a GPU; the seconds beside them are the same, rounded.
  node.cost["gpu"] = static_cast<double>(node.cost_us);
  const json& outputs = object.List("out_bytes");
  if (outputs.size() > static_cast<size_t>(kMostOutputs)) {
    throw object.Mistake("out_bytes", fmt::format("has {} entries; expected at most {}", outputs.size(), kMostOutputs));
  }
  for (const json& bytes : outputs) {
    node.out_bytes.push_back(
        IntOf(bytes, JsonPlace{path, place + ".out_bytes"}[node.out_bytes.size()], 0, kMostTensorBytes));
  }
  if (object.Has("mem"))
    node.bytes = static_cast<int64_t>(object.Number("mem", 0, static_cast<double>(kMostTensorBytes)));
  object.Finish();
  return node;
}

void ReadEdges(const json& list, const std::string& path, File& file) {
  std::unordered_map<int64_t, size_t> position_of;
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    if (const auto [other, is_new] = position_of.emplace(file.nodes[i].id, i); !is_new) {
      throw Error("{}: nodes[{}].id: {} is the id of nodes[{}] already; give each node its own", path, i,
                  file.nodes[i].id, other->second);
    }
  }
  file.inputs.resize(file.nodes.size());
  size_t position = 0, unlisted = 0;
  for (const json& raw : list) {
    const JsonPlace place{path, fmt::format("edges[{}]", position++)};
    ExpectList(raw, place, 3);
    const auto end = [&](size_t i) {
      const int64_t id = IntOf(raw[i], place[i], 0, INT32_MAX);
      const auto found = position_of.find(id);
      if (found == position_of.end()) {
        throw Error("{}: {}[{}]: no node has the id {}; remove the edge or add the node", path, place.place, i, id);
      }
      return found->second;
    };
    const size_t from = end(0), to = end(1);
    const auto output = static_cast<size_t>(IntOf(raw[2], place[2], 0, kMostOutputs - 1));
    // Published rules: an output that the node does not list has no bytes; of several outputs that go from one node to
    // another the last counts.
    std::vector<int64_t>& bytes = file.nodes[from].out_bytes;
    if (output >= bytes.size()) {
      unlisted += output + 1 - bytes.size();
      if (unlisted > kMostUnlisted) {
        throw Error("{}: {}: output {} and those before it: more than {} outputs that no out_bytes lists", path,
                    place.place, output, kMostUnlisted);
      }
      bytes.resize(output + 1, 0);
    }
    const auto earlier = std::ranges::find(file.inputs[to], from, &std::pair<size_t, size_t>::first);
    if (earlier == file.inputs[to].end()) {
      file.inputs[to].emplace_back(from, output);
    } else if (earlier->second != output) {
      earlier->second = output;
      ++file.several_outputs;
    }
  }
}

File ParseFile(std::string_view content, const std::string& path) {
  const json document = ParseJson(content, path);
  JsonObject top(document, path);
  File file;
  file.name = top.Has("name") ? top.Text("name") : path;
  for (const char* key : {"source", "licence", "note"}) {
    if (top.Has(key)) top.Text(key);
  }
  if (top.Has("units")) {
    JsonObject units = top.Object("units");
    const std::string unit = units.Has("cost_us") ? units.Text("cost_us") : "microseconds";
    if (!unit.starts_with("microseconds")) throw units.Mistake("cost_us", "expected microseconds");
  }
  for (const json& raw : top.List("nodes")) file.nodes.push_back(ReadNode(raw, path, file.nodes.size()));
  if (file.nodes.empty()) throw top.Mistake("nodes", "is empty; there is nothing to place");
  ReadEdges(top.List("edges"), path, file);
  const auto agrees = [&](std::string_view key, size_t there) {
    if (!top.Has(key)) return;
    const int64_t said = top.Int(key, 0, INT32_MAX);
    if (said != static_cast<int64_t>(there)) {
      throw top.Mistake(key, fmt::format("is {}, but there are {}; the file is cut or was edited", said, there));
    }
  };
  agrees("n_nodes", file.nodes.size());
  agrees("n_edges", top.List("edges").size());
  if (top.Has("topo_order")) ExpectList(top.List("topo_order"), {path, "topo_order"}, file.nodes.size());
  top.Finish();
  return file;
}

Graph BuildGraph(const File& file, const std::string& path) {
  GraphBuilder builder(file.name);
  std::vector<std::vector<size_t>> tensors;
  size_t other_bytes = 0;
  for (const Node& node : file.nodes) {
    OpWork work;
    for (const int64_t bytes : node.out_bytes) work.bytes_written += bytes;
    const size_t op = builder.AddOp(node.name, node.op, work);
    if (node.bytes > 0 && node.bytes != work.bytes_written) ++other_bytes;
    tensors.emplace_back();
    for (const int64_t bytes : node.out_bytes) tensors.back().push_back(builder.AddTensor(op, bytes));
  }
  std::vector<bool> has_consumer(file.nodes.size());
  for (size_t consumer = 0; consumer < file.nodes.size(); ++consumer) {
    for (const auto& [producer, output] : file.inputs[consumer]) {
      builder.Consume(tensors[producer][output], consumer);
      has_consumer[producer] = true;
    }
  }
  for (size_t v = 0; v < file.nodes.size(); ++v) {
    if (has_consumer[v]) continue;
    for (const size_t tensor : tensors[v]) builder.MarkOutput(tensor);
  }
  builder.AddNote("costs are microseconds, by kind of device");
  if (other_bytes > 0) {
    builder.AddNote(fmt::format("\"mem\" is not the sum of the outputs at {}; Placeto's simulator does not use it",
                                Counted(static_cast<int64_t>(other_bytes), "node")));
  }
  if (file.several_outputs > 0) {
    builder.AddNote(
        fmt::format("only the last counts of several outputs that a node consumes of another, as in the published "
                    "simulator: {}",
                    Counted(static_cast<int64_t>(file.several_outputs), "node")));
  }
  return builder.Build(path);
}

}  // namespace

bool LooksLikePlaceto(std::string_view content) {
  return content.find("\"cost_us\"") != std::string_view::npos &&
         content.find("\"out_bytes\"") != std::string_view::npos;
}

Instance ReadPlaceto(std::string_view content, const std::string& path) {
  const File file = ParseFile(content, path);
  Instance instance{.graph = std::make_shared<const Graph>(BuildGraph(file, path)),
                    .options = {.seconds_per_unit = 1e-6},
                    .evaluator = "placeto"};
  instance.file_ids.resize(file.nodes.size());
  for (size_t p = 0; p < file.nodes.size(); ++p) {
    instance.file_ids[Index(instance.graph->op_at_file_position(p))] = file.nodes[p].id;
  }
  // A kind of device that some node has no cost for has no column.
  for (const auto& [kind, cost] : file.nodes.front().cost) {
    if (!std::ranges::all_of(file.nodes, [&](const Node& node) { return node.cost.contains(kind); })) continue;
    std::vector<double>& column = instance.times_by_kind[kind];
    column.resize(file.nodes.size());
    for (size_t p = 0; p < file.nodes.size(); ++p) {
      column[Index(instance.graph->op_at_file_position(p))] = file.nodes[p].cost.at(kind);
    }
  }
  return instance;
}

}  // namespace berth
