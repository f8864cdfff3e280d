#include "graph/graph.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/utf8.h"

namespace berth {
namespace {

// Sorts (row, item) pairs into rows, drops repetitions. O(n log n).
template <typename Rows, typename Item>
Rows MakeRows(size_t num_rows, std::vector<std::pair<size_t, Item>> pairs) {
  if (!std::ranges::is_sorted(pairs)) std::ranges::sort(pairs);
  pairs.erase(std::ranges::unique(pairs).begin(), pairs.end());
  Rows rows;
  rows.start.assign(num_rows + 1, 0);
  rows.items.reserve(pairs.size());
  for (const auto& [row, item] : pairs) {
    ++rows.start[row + 1];
    rows.items.push_back(item);
  }
  std::partial_sum(rows.start.begin(), rows.start.end(), rows.start.begin());
  return rows;
}

// The other direction: item -> rows, ascending. O(n).
template <typename Inverse, typename Rows, typename RowId>
Inverse Invert(const Rows& rows, size_t num_items) {
  Inverse inverse;
  inverse.start.assign(num_items + 1, 0);
  for (const auto item : rows.items) ++inverse.start[Index(item) + 1];
  std::partial_sum(inverse.start.begin(), inverse.start.end(), inverse.start.begin());
  inverse.items.resize(rows.items.size());
  std::vector<size_t> next(inverse.start.begin(), inverse.start.end() - 1);
  for (size_t row = 0; row + 1 < rows.start.size(); ++row) {
    for (const auto item : rows[row]) inverse.items[next[Index(item)]++] = MakeId<RowId>(row);
  }
  return inverse;
}

// Names as people see them: never empty, never twice.
class UniqueNames {
 public:
  std::string Make(std::string name, std::string_view fallback, size_t position) {
    if (name.empty()) name = fmt::format("{}_{}", fallback, position);
    if (taken_.insert(name).second) return name;
    size_t& next = next_.try_emplace(name, 2).first->second;  // all before are taken
    for (;; ++next) {
      std::string candidate = fmt::format("{}#{}", name, next);
      if (taken_.insert(candidate).second) return candidate;
    }
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, size_t> next_;  // by a name that was there already
};

}  // namespace

double Graph::total_flops() const {
  double sum = 0;
  for (const OpWork& work : op_work_) sum += work.flops;
  return sum;
}

int64_t Graph::total_parameter_bytes() const {
  return std::reduce(parameter_bytes_.begin(), parameter_bytes_.end(), int64_t{0});
}

int64_t Graph::total_tensor_bytes() const {
  return std::reduce(tensor_bytes_.begin(), tensor_bytes_.end(), int64_t{0});
}

GraphBuilder::GraphBuilder(std::string name) : name_(ToUtf8(std::move(name))) {}

size_t GraphBuilder::AddOp(std::string name, std::string_view file_type, const OpWork& work) {
  const std::string type = ToUtf8(std::string(file_type));
  // Few types, many ops: a linear look from the back would do, but imported graphs may have a hundred types.
  auto found = std::ranges::find(types_, type);
  if (found == types_.end()) found = types_.emplace(types_.end(), type);
  ops_.push_back({ToUtf8(std::move(name)), static_cast<int32_t>(found - types_.begin()), work});
  return ops_.size() - 1;
}

size_t GraphBuilder::AddTensor(size_t producer, int64_t bytes, std::string name, bool is_output) {
  BERTH_CHECK(producer < ops_.size() && bytes >= 0);
  tensors_.push_back({producer, bytes, ToUtf8(std::move(name)), is_output});
  return tensors_.size() - 1;
}

size_t GraphBuilder::AddParameter(int64_t bytes, std::string name) {
  BERTH_CHECK(bytes >= 0);
  parameters_.push_back({0, bytes, ToUtf8(std::move(name)), false});
  return parameters_.size() - 1;
}

size_t GraphBuilder::AddInput(int64_t bytes, std::string name) {
  BERTH_CHECK(bytes >= 0);
  inputs_.push_back({0, bytes, ToUtf8(std::move(name)), false});
  return inputs_.size() - 1;
}

void GraphBuilder::Consume(size_t tensor, size_t op) {
  BERTH_CHECK(tensor < tensors_.size() && op < ops_.size());
  tensor_uses_.emplace_back(tensor, op);
}

void GraphBuilder::UseParameter(size_t parameter, size_t op) {
  BERTH_CHECK(parameter < parameters_.size() && op < ops_.size());
  parameter_uses_.emplace_back(parameter, op);
}

void GraphBuilder::UseInput(size_t input, size_t op) {
  BERTH_CHECK(input < inputs_.size() && op < ops_.size());
  input_uses_.emplace_back(input, op);
}

void GraphBuilder::SetInputShape(size_t input, std::span<const int64_t> shape, std::string type) {
  inputs_[input].shape.assign(shape.begin(), shape.end());
  inputs_[input].type = ToUtf8(std::move(type));
}

// Not inline: GCC 12 warns of what it sees of a string that moves into a vector.
void GraphBuilder::AddNote(std::string note) { notes_.push_back(ToUtf8(std::move(note))); }

std::vector<size_t> GraphBuilder::TopologicalOrder(std::string_view file) const {
  std::vector<size_t> order(ops_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto forward = [&](const auto& use) { return tensors_[use.first].producer < use.second; };
  if (std::ranges::all_of(tensor_uses_, forward)) return order;

  // Kahn's algorithm, smallest position first.
  std::vector<std::vector<size_t>> next(ops_.size());
  std::vector<size_t> missing(ops_.size());
  for (const auto& [tensor, op] : tensor_uses_) {
    next[tensors_[tensor].producer].push_back(op);
    ++missing[op];
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t op = 0; op < ops_.size(); ++op) {
    if (missing[op] == 0) ready.push(op);
  }
  order.clear();
  while (!ready.empty()) {
    const size_t op = ready.top();
    ready.pop();
    order.push_back(op);
    for (const size_t consumer : next[op]) {
      if (--missing[consumer] == 0) ready.push(consumer);
    }
  }
  if (order.size() == ops_.size()) return order;

  // Every op that is left has a producer that is left: walking back must close a cycle.
  std::vector<size_t> producer_left(ops_.size(), ops_.size());
  for (const auto& [tensor, op] : tensor_uses_) {
    if (missing[op] > 0 && missing[tensors_[tensor].producer] > 0) producer_left[op] = tensors_[tensor].producer;
  }
  size_t op = 0;
  while (missing[op] == 0) ++op;
  std::vector<size_t> walk;
  std::vector<bool> seen(ops_.size());
  for (; !seen[op]; op = producer_left[op]) {
    seen[op] = true;
    walk.push_back(op);
  }
  walk.erase(walk.begin(), std::ranges::find(walk, op));
  std::ranges::reverse(walk);
  std::ranges::rotate(walk, std::ranges::min_element(walk));
  std::vector<std::string> names;
  for (size_t i = 0; i < walk.size() && i < 6; ++i) {
    const Op& member = ops_[walk[i]];
    names.push_back(member.name.empty() ? fmt::format("{}_{}", types_[static_cast<size_t>(member.type)], walk[i])
                                        : member.name);
  }
  throw Error("{}{}the graph has a cycle of {} ops: {}{} -> {}; a model must be acyclic", file,
              file.empty() ? "" : ": ", walk.size(), fmt::join(names, " -> "), walk.size() > 6 ? " -> ..." : "",
              names.front());
}

// Throws Error where a size is beyond the limits of graph.h, or what a report adds up would not fit into its number.
void GraphBuilder::CheckSizes(std::string_view file) const {
  const auto place = [&] { return file.empty() ? name_ : std::string(file); };
  double flops = 0;
  int64_t bytes = 0;
  const auto add = [&](int64_t more) {
    // One below zero is a sum that has overflowed.
    if (more < 0 || __builtin_add_overflow(bytes, more, &bytes)) bytes = std::numeric_limits<int64_t>::max();
  };
  const Op* most = nullptr;
  for (const Op& op : ops_) {
    flops += op.work.flops;
    for (const int64_t moved : {op.work.bytes_read, op.work.bytes_written, op.work.workspace_bytes}) add(moved);
    if (most == nullptr || !(op.work.flops <= most->work.flops)) most = &op;
  }
  if (!std::isfinite(flops)) {
    throw Error("{}: the FLOPs of its ops add up to more than a number can hold; correct those of op '{}', {}", place(),
                most->name, most->work.flops);
  }
  const std::pair<std::string_view, const std::vector<Entity>*> kinds[] = {
      {"tensor", &tensors_}, {"parameter", &parameters_}, {"input", &inputs_}};
  for (const auto& [kind, entities] : kinds) {
    for (const Entity& entity : *entities) {
      add(entity.bytes);
      if (entity.bytes <= kMostTensorBytes) continue;
      throw Error("{}: its {} '{}' has {} bytes, more than {} TiB; correct its size", place(), kind,
                  entity.name.empty() && kind == "tensor" ? ops_[entity.producer].name : entity.name, entity.bytes,
                  kMostTensorBytes >> 40);
    }
  }
  if (bytes > kMostGraphBytes) {
    throw Error("{}: its sizes and the bytes that its ops move add up to more than {} PiB; correct the largest",
                place(), kMostGraphBytes >> 50);
  }
}

Graph GraphBuilder::Build(std::string_view file) {
  CheckSizes(file);
  // 1. order the ops, then the tensors by producer
  const std::vector<size_t> op_order = TopologicalOrder(file);
  std::vector<OpId> op_id(ops_.size());
  for (size_t i = 0; i < op_order.size(); ++i) op_id[op_order[i]] = MakeId<OpId>(i);
  std::vector<size_t> tensor_order(tensors_.size());
  std::iota(tensor_order.begin(), tensor_order.end(), size_t{0});
  std::ranges::stable_sort(tensor_order, {}, [&](size_t t) { return Index(op_id[tensors_[t].producer]); });
  std::vector<size_t> tensor_id(tensors_.size());
  for (size_t i = 0; i < tensor_order.size(); ++i) tensor_id[tensor_order[i]] = i;

  // 2. the entities
  Graph graph;
  graph.name_ = std::move(name_);
  graph.op_types_ = std::move(types_);
  graph.file_order_ = std::move(op_id);
  graph.notes_ = std::move(notes_);
  graph.op_work_.reserve(ops_.size());
  UniqueNames op_names, tensor_names, parameter_names, input_names;
  // File order first, so that what is renamed is the later of two, then stored by id.
  std::vector<std::string> names(ops_.size());
  for (size_t p = 0; p < ops_.size(); ++p) {
    names[p] = op_names.Make(std::move(ops_[p].name), graph.op_types_[static_cast<size_t>(ops_[p].type)], p);
  }
  const bool any_backward = std::ranges::any_of(ops_, &Op::is_backward);
  for (const size_t p : op_order) {
    graph.op_names_.Add(names[p]);
    graph.op_work_.push_back(ops_[p].work);
    if (any_backward) graph.is_backward_.push_back(ops_[p].is_backward ? 1 : 0);
    graph.op_type_ids_.push_back(static_cast<Graph::TypeId>(ops_[p].type));
  }
  graph.first_output_.assign(ops_.size() + 1, 0);
  const bool any_constant = std::ranges::any_of(tensors_, &Entity::is_constant);
  for (size_t i = 0; i < tensor_order.size(); ++i) {
    Entity& tensor = tensors_[tensor_order[i]];
    const OpId producer = graph.file_order_[tensor.producer];
    graph.producer_.push_back(producer);
    graph.tensor_bytes_.push_back(tensor.bytes);
    if (any_constant) graph.is_constant_.push_back(tensor.is_constant ? 1 : 0);
    auto& shapes = graph.tensor_shape_;
    shapes.items.insert(shapes.items.end(), tensor.shape.begin(), tensor.shape.end());
    shapes.start.push_back(shapes.items.size());
    graph.is_output_.push_back(tensor.is_output ? 1 : 0);
    graph.tensor_names_.Add(tensor_names.Make(std::move(tensor.name), graph.op_name(producer), i));
    ++graph.first_output_[Index(producer) + 1];
  }
  std::partial_sum(graph.first_output_.begin(), graph.first_output_.end(), graph.first_output_.begin());
  for (Entity& parameter : parameters_) {
    graph.parameter_bytes_.push_back(parameter.bytes);
    graph.parameter_names_.Add(
        parameter_names.Make(std::move(parameter.name), "parameter", graph.parameter_bytes_.size() - 1));
  }
  for (Entity& input : inputs_) {
    graph.input_bytes_.push_back(input.bytes);
    graph.input_shape_.items.insert(graph.input_shape_.items.end(), input.shape.begin(), input.shape.end());
    graph.input_shape_.start.push_back(graph.input_shape_.items.size());
    graph.input_types_.Add(input.type);
    graph.input_names_.Add(input_names.Make(std::move(input.name), "input", graph.input_bytes_.size() - 1));
  }

  // 3. who consumes what, both ways
  const auto renumber = [&](const Uses& uses, const std::vector<size_t>* entity_id) {
    std::vector<std::pair<size_t, OpId>> pairs;
    pairs.reserve(uses.size());
    for (const auto& [entity, op] : uses)
      pairs.emplace_back(entity_id ? (*entity_id)[entity] : entity, graph.file_order_[op]);
    return pairs;
  };
  using OpRows = Graph::Rows<OpId>;
  graph.consumers_ = MakeRows<OpRows>(tensors_.size(), renumber(tensor_uses_, &tensor_id));
  graph.inputs_of_ = Invert<Graph::Rows<TensorId>, OpRows, TensorId>(graph.consumers_, ops_.size());
  graph.parameter_consumers_ = MakeRows<OpRows>(parameters_.size(), renumber(parameter_uses_, nullptr));
  graph.parameters_of_ = Invert<Graph::Rows<ParameterId>, OpRows, ParameterId>(graph.parameter_consumers_, ops_.size());
  graph.input_consumers_ = MakeRows<OpRows>(inputs_.size(), renumber(input_uses_, nullptr));
  graph.graph_inputs_of_ = Invert<Graph::Rows<InputId>, OpRows, InputId>(graph.input_consumers_, ops_.size());

  // 4. the fingerprint
  Hasher hasher;
  hasher.Add(uint64_t{graph.num_ops()})
      .Add(uint64_t{graph.num_tensors()})
      .Add(uint64_t{graph.num_parameters()})
      .Add(uint64_t{graph.num_inputs()});
  for (const OpId op : graph.ops()) {
    const OpWork& work = graph.work(op);
    hasher.Add(graph.op_type(op))
        .Add(work.flops)
        .Add(static_cast<uint64_t>(work.bytes_read))
        .Add(static_cast<uint64_t>(work.bytes_written));
    hasher.Add(static_cast<uint64_t>(work.workspace_bytes)).Add(static_cast<uint64_t>(work.data_type));
    if (work.steps != 1) hasher.Add("steps").Add(static_cast<uint64_t>(work.steps));
    if (graph.is_backward(op)) hasher.Add("backward");
  }
  const auto add_uses = [&](int64_t bytes, std::span<const OpId> consumers) {
    hasher.Add(static_cast<uint64_t>(bytes)).Add(uint64_t{consumers.size()});
    for (const OpId op : consumers) hasher.Add(uint64_t{Index(op)});
  };
  for (const TensorId tensor : graph.tensors()) {
    hasher.Add(uint64_t{Index(graph.producer(tensor))}).Add(uint64_t{graph.is_output(tensor)});
    if (graph.is_constant(tensor)) hasher.Add("constant");
    add_uses(graph.tensor_bytes(tensor), graph.consumers(tensor));
  }
  for (const ParameterId parameter : graph.parameters())
    add_uses(graph.parameter_bytes(parameter), graph.parameter_consumers(parameter));
  for (const InputId input : graph.inputs()) add_uses(graph.input_bytes(input), graph.input_consumers(input));
  graph.fingerprint_ = hasher.value();

  *this = GraphBuilder("");
  return graph;
}

}  // namespace berth
