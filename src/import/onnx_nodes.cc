#include "import/onnx_nodes.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_set>

#include "base/error.h"
#include "import/onnx_graph.h"

namespace berth {
namespace {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr int32_t kNone = -1;

// Calls visit(body) for each graph that the node holds.
void ForEachBody(const NodeProto& node, const std::function<void(const GraphProto&)>& visit) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) visit(attribute.g());
    for (const GraphProto& graph : attribute.graphs()) visit(graph);
  }
}

// Names that a body reads and does not make itself.
void AddCaptures(const GraphProto& body, std::vector<std::string>& names) {
  std::unordered_set<std::string> own;
  for (const auto& input : body.input()) own.insert(input.name());
  for (const auto& tensor : body.initializer()) own.insert(tensor.name());
  for (const auto& tensor : body.sparse_initializer()) own.insert(tensor.values().name());
  for (const NodeProto& node : body.node()) own.insert(node.output().begin(), node.output().end());
  std::vector<std::string> read;
  for (const NodeProto& node : body.node()) {
    read.insert(read.end(), node.input().begin(), node.input().end());
    ForEachBody(node, [&](const GraphProto& inner) { AddCaptures(inner, read); });
  }
  for (const auto& output : body.output()) read.push_back(output.name());
  for (std::string& name : read) {
    if (!name.empty() && !own.contains(name)) names.push_back(std::move(name));
  }
}

std::vector<std::string> NamesRead(const NodeProto& node) {
  std::vector<std::string> names;
  for (const std::string& input : node.input()) {
    if (!input.empty()) names.push_back(input);
  }
  ForEachBody(node, [&](const GraphProto& body) { AddCaptures(body, names); });
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

bool HasBody(const NodeProto& node) {
  bool has = false;
  ForEachBody(node, [&](const GraphProto&) { has = true; });
  return has;
}

void AddOpsWithin(const NodeProto& node, const std::unordered_map<std::string, int32_t>& by_tensor,
                  std::vector<int32_t>& ops) {
  for (const std::string& output : node.output()) {
    if (const auto known = by_tensor.find(output); known != by_tensor.end()) ops.push_back(known->second);
  }
  ForEachBody(node, [&](const GraphProto& body) {
    for (const NodeProto& inner : body.node()) AddOpsWithin(inner, by_tensor, ops);
  });
}

}  // namespace

OnnxNodes::OnnxNodes(const GraphProto& model, const Graph& graph) {
  for (int i = 0; i < model.node_size(); ++i) {
    reads.push_back(NamesRead(model.node(i)));
    for (const std::string& output : model.node(i).output()) {
      if (!output.empty()) maker.emplace(output, static_cast<size_t>(i));
    }
  }
  Order(model);
  FindConstants(model);
  Number();
  FindOps(model, graph);
}

void OnnxNodes::Order(const GraphProto& model) {
  const size_t count = reads.size();
  std::vector<bool> needed(count, false);
  std::vector<size_t> stack;
  const auto need = [&](const std::string& name) {
    const auto made = maker.find(name);
    if (made == maker.end() || needed[made->second]) return;
    needed[made->second] = true;
    stack.push_back(made->second);
  };
  for (const auto& output : model.output()) need(output.name());
  while (!stack.empty()) {
    const size_t node = stack.back();
    stack.pop_back();
    for (const std::string& name : reads[node]) need(name);
  }

  std::vector<std::vector<size_t>> next(count);
  std::vector<size_t> waits(count, 0);
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t node = 0; node < count; ++node) {
    if (!needed[node]) continue;
    for (const std::string& name : reads[node]) {
      if (const auto made = maker.find(name); made != maker.end()) next[made->second].push_back(node), ++waits[node];
    }
    if (waits[node] == 0) ready.push(node);
  }
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const size_t consumer : next[order.back()]) {
      if (--waits[consumer] == 0) ready.push(consumer);
    }
  }
  BERTH_CHECK(static_cast<ptrdiff_t>(order.size()) == std::ranges::count(needed, true), "ReadOnnx refuses cycles");
}

void OnnxNodes::FindConstants(const GraphProto& model) {
  std::unordered_set<std::string> fed;
  for (const auto& input : model.input()) fed.insert(input.name());
  for (const auto& tensor : model.initializer()) fed.erase(tensor.name());
  for (const auto& tensor : model.sparse_initializer()) fed.erase(tensor.values().name());
  constant.assign(reads.size(), false);
  for (const size_t node : order) {
    const NodeProto& proto = model.node(static_cast<int>(node));
    constant[node] =
        !IsRandom(proto.op_type()) && !HasBody(proto) && std::ranges::all_of(reads[node], [&](const auto& name) {
          const auto made = maker.find(name);
          return made == maker.end() ? !fed.contains(name) : static_cast<bool>(constant[made->second]);
        });
  }
}

void OnnxNodes::Number() {
  std::unordered_map<size_t, int32_t> number;
  for (const size_t node : order) {
    if (constant[node]) continue;
    number.emplace(node, static_cast<int32_t>(position.size()));
    position.push_back(node);
    std::vector<int32_t>& before = predecessors.emplace_back();
    for (const std::string& name : reads[node]) {
      const auto made = maker.find(name);
      if (made != maker.end() && !constant[made->second]) before.push_back(number.at(made->second));
    }
    std::ranges::sort(before);
    before.erase(std::ranges::unique(before).begin(), before.end());
  }
}

void OnnxNodes::FindOps(const GraphProto& model, const Graph& graph) {
  std::unordered_map<std::string, int32_t> by_tensor;
  for (const TensorId tensor : graph.tensors()) {
    by_tensor.emplace(graph.tensor_name(tensor), static_cast<int32_t>(Index(graph.producer(tensor))));
  }
  const auto node_of = [&](size_t number) -> const NodeProto& {
    return model.node(static_cast<int>(position[number]));
  };
  std::vector<int32_t> owner(position.size(), kNone), first_consumer(position.size(), kNone);
  for (size_t node = 0; node < position.size(); ++node) {
    std::vector<int32_t> ops;
    AddOpsWithin(node_of(node), by_tensor, ops);
    if (!ops.empty()) owner[node] = ops.front();
    std::ranges::sort(ops);
    ops.erase(std::ranges::unique(ops).begin(), ops.end());
    if (ops.size() > 1) ops_within_others += ops.size() - 1;
    for (const int32_t from : predecessors[node]) {
      int32_t& first = first_consumer[static_cast<size_t>(from)];
      if (first == kNone) first = static_cast<int32_t>(node);
    }
  }
  for (size_t node = position.size(); node-- > 0;) {
    if (owner[node] != kNone || first_consumer[node] == kNone) continue;
    if (AsksForShape(DomainOf(node_of(node)), node_of(node).op_type()) && !predecessors[node].empty()) continue;
    owner[node] = owner[static_cast<size_t>(first_consumer[node])];
  }
  // What is left asks for a shape, or is at the end: it goes with its producer.
  for (size_t node = 0; node < position.size(); ++node) {
    if (owner[node] == kNone && !predecessors[node].empty()) {
      owner[node] = owner[static_cast<size_t>(predecessors[node].front())];
    }
    op.push_back(MakeId<OpId>(static_cast<size_t>(std::max(owner[node], 0))));
  }
}

}  // namespace berth
