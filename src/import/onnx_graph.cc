#include "import/onnx_graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <span>

#include "base/error.h"
#include "import/onnx_fold.h"

namespace berth {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::TensorProto;

// A constant that is its own, and not a view of another.
constexpr size_t kOwnStorage = SIZE_MAX;

// A constant of these is the same bytes as its input: read in another order or under another shape, or expanded on the
// fly.
bool SharesStorage(std::string_view type) {
  constexpr std::string_view kTypes[] = {"Identity",  "Reshape",   "Flatten", "Squeeze",
                                         "Unsqueeze", "Transpose", "Dropout", "DequantizeLinear"};
  return std::ranges::count(kTypes, type) > 0;
}

// Names that the bodies of a node read, their own included.
void AddCaptures(const NodeProto& node, std::vector<std::string_view>& names) {
  for (const AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    for (const NodeProto& inner : attribute.g().node()) {
      names.insert(names.end(), inner.input().begin(), inner.input().end());
      AddCaptures(inner, names);
    }
    for (const auto& output : attribute.g().output()) names.push_back(output.name());
  }
}

}  // namespace

std::string_view DomainOf(const NodeProto& node) {
  return node.domain() == "ai.onnx" ? std::string_view() : std::string_view(node.domain());
}

bool IsControlFlow(const NodeProto& node) {
  constexpr std::string_view kTypes[] = {"If", "Loop", "Scan", "SequenceMap"};
  return DomainOf(node).empty() && std::ranges::count(kTypes, node.op_type()) > 0;
}

OnnxValue ReadDeclared(const onnx::ValueInfoProto& info) {
  OnnxValue value;
  value.name = info.name();
  if (!info.type().has_tensor_type()) return value;
  const auto& tensor = info.type().tensor_type();
  value.type = tensor.elem_type();
  value.known_dims = tensor.has_shape();
  for (const auto& dim : tensor.shape().dim()) {
    value.known_dims = value.known_dims && !IsOpen(dim);
    value.dims.push_back(IsOpen(dim) ? -1 : dim.dim_value());
  }
  return value;
}

// --- Names -------------------------------------------------------------------------------------------------

std::string OnnxScope::Where(const NodeProto& proto) const {
  if (!proto.name().empty()) return fmt::format("{}: node '{}' ({})", walk_.path, proto.name(), proto.op_type());
  const std::string_view output = proto.output_size() > 0 ? std::string_view(proto.output(0)) : std::string_view();
  return fmt::format("{}: the node that makes '{}' ({})", walk_.path, output, proto.op_type());
}

size_t OnnxScope::Declare(OnnxValue value) {
  const size_t position = walk_.pool.size();
  if (!values_.emplace(value.name, position).second) {
    throw Error("{}: tensor '{}' is made twice; each name must have one maker", walk_.path, value.name);
  }
  value.scope = id_;
  walk_.pool.push_back(std::move(value));
  return position;
}

void OnnxScope::DeclareInitializers() {
  for (const TensorProto& tensor : graph_.initializer()) {
    OnnxValue value = ReadTensor(tensor, fmt::format("{}: initializer '{}'", walk_.path, tensor.name()));
    value.root = walk_.pool.size();
    Declare(std::move(value));
  }
  for (const onnx::SparseTensorProto& sparse : graph_.sparse_initializer()) {
    const std::string where = fmt::format("{}: sparse initializer '{}'", walk_.path, sparse.values().name());
    OnnxValue value = ReadTensor(sparse.values(), where);
    constexpr int64_t kIndexBytes = 8;
    value.stored_bytes += kIndexBytes * CheckedElements(value.dims, where);
    value.dims.assign(sparse.dims().begin(), sparse.dims().end());
    CheckedBytes(value.dims, value.type, where);
    value.content.reset();
    value.root = walk_.pool.size();
    Declare(std::move(value));
  }
}

size_t OnnxScope::Find(std::string_view name) const {
  for (const OnnxScope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (const auto found = scope->values_.find(name); found != scope->values_.end()) return found->second;
  }
  throw Error("{}: nothing makes the tensor '{}'", walk_.path, name);
}

// --- Order -------------------------------------------------------------------------------------------------

// The file's order where that is a topological one, as ONNX asks for, else the nearest.
std::vector<size_t> OnnxScope::Order() const {
  const size_t count = static_cast<size_t>(graph_.node_size());
  std::unordered_map<std::string_view, size_t> maker;
  for (size_t n = 0; n < count; ++n) {
    for (const std::string& output : graph_.node(static_cast<int>(n)).output()) {
      if (output.empty()) continue;
      const bool fresh = maker.emplace(output, n).second && !values_.contains(output);
      if (!fresh)
        throw Error("{} makes the tensor '{}', which is made already", Where(graph_.node(static_cast<int>(n))), output);
    }
  }
  const auto declared_outside = [&](std::string_view name) {
    for (const OnnxScope* scope = this; scope != nullptr; scope = scope->outer_) {
      if (scope->values_.contains(name)) return true;
    }
    return false;
  };

  std::vector<std::vector<size_t>> next(count);
  std::vector<size_t> missing(count, 0);
  for (size_t n = 0; n < count; ++n) {
    const NodeProto& node = graph_.node(static_cast<int>(n));
    std::vector<std::string_view> names(node.input().begin(), node.input().end());
    const size_t own = names.size();
    AddCaptures(node, names);
    for (size_t k = 0; k < names.size(); ++k) {
      const auto found = maker.find(names[k]);
      if (found != maker.end()) {
        next[found->second].push_back(n);
        ++missing[n];
      } else if (k < own && !names[k].empty() && !declared_outside(names[k])) {
        throw Error("{} reads the tensor '{}', which nothing makes", Where(node), names[k]);
      }
    }
  }

  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t n = 0; n < count; ++n) {
    if (missing[n] == 0) ready.push(n);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t n = ready.top();
    ready.pop();
    order.push_back(n);
    for (const size_t consumer : next[n]) {
      if (--missing[consumer] == 0) ready.push(consumer);
    }
  }
  if (order.size() < count) ThrowCycle(next, missing);
  return order;
}

void OnnxScope::ThrowCycle(const std::vector<std::vector<size_t>>& next, const std::vector<size_t>& missing) const {
  // Every node that is left waits for one that is left: walking back must close a cycle.
  std::vector<size_t> before(missing.size(), missing.size());
  for (size_t n = 0; n < next.size(); ++n) {
    for (const size_t consumer : next[n]) {
      if (missing[n] > 0 && missing[consumer] > 0) before[consumer] = n;
    }
  }
  size_t n = 0;
  while (missing[n] == 0) ++n;
  std::vector<size_t> walk;
  for (std::vector<bool> seen(missing.size()); !seen[n]; n = before[n]) {
    seen[n] = true;
    walk.push_back(n);
  }
  walk.erase(walk.begin(), std::ranges::find(walk, n));
  std::ranges::reverse(walk);
  std::ranges::rotate(walk, std::ranges::min_element(walk));
  std::vector<std::string> names;
  for (size_t i = 0; i < walk.size() && i < 6; ++i) {
    const NodeProto& node = graph_.node(static_cast<int>(walk[i]));
    names.push_back(node.name().empty() ? node.output(0) : node.name());
  }
  throw Error("{}: the graph has a cycle of {} nodes: {}{} -> {}; a model must be acyclic", walk_.path, walk.size(),
              fmt::join(names, " -> "), walk.size() > names.size() ? " -> ..." : "", names.front());
}

// --- The walk ----------------------------------------------------------------------------------------------

void OnnxScope::Run() {
  for (const auto* list : {&graph_.value_info(), &graph_.output()}) {
    for (const onnx::ValueInfoProto& info : *list) infos_.emplace(info.name(), &info);
  }
  for (const size_t n : Order()) {
    at_ = n;
    RunNode(graph_.node(static_cast<int>(n)));
  }
}

OnnxNode OnnxScope::View(const NodeProto& proto) const {
  const std::string_view domain = DomainOf(proto);
  const auto opset = walk_.opsets.find(domain);
  OnnxNode node{.proto = proto,
                .type = proto.op_type(),
                .domain = domain,
                .opset = opset == walk_.opsets.end() ? 1 : opset->second,
                .attributes = ReadAttributes(proto),
                .inputs = {},
                .where = Where(proto)};
  for (const std::string& input : proto.input())
    node.inputs.push_back(input.empty() ? nullptr : &walk_.pool[Find(input)]);
  return node;
}

void OnnxScope::RunNode(const NodeProto& proto) {
  const OnnxNode node = View(proto);
  if (IsControlFlow(proto)) return RunControlFlow(node);
  if (node.domain.empty() && node.type == "Constant") return DeclareConstant(node);
  InferredShapes shapes = Infer(node);
  SettleShapes(node, shapes);
  const auto is_constant = [](const OnnxValue* input) { return input == nullptr || input->constant; };
  const bool of_shape = AsksForShape(node.domain, node.type);
  const bool makes_constant = node.domain.empty() && (node.type == "SequenceEmpty" || node.type == "Optional");
  const bool constant =
      (!node.inputs.empty() || makes_constant) && std::ranges::all_of(node.inputs, is_constant) && !IsRandom(node.type);
  if (constant || of_shape) {
    MakeConstants(node, shapes);
  } else {
    AddOp(node, shapes.outputs);
  }
  DeclareOutputs(node, std::move(shapes.outputs), constant || of_shape);
}

// What contradicts a guess is no mistake of the file's: the guess is wrong, and what follows from it is not known.
InferredShapes OnnxScope::Infer(const OnnxNode& node) {
  FileShapes file;
  if (walk_.file_shapes != nullptr && node.proto.input_size() > 0 && node.proto.output_size() > 0) {
    const auto dims_of = [&](const std::string& name) {
      const auto found = walk_.file_shapes->dims.find(name);
      return found == walk_.file_shapes->dims.end() ? nullptr : &found->second;
    };
    file = {.input = dims_of(node.proto.input(0)),
            .output = dims_of(node.proto.output(0)),
            .changes = &walk_.file_shapes->changes};
  }
  try {
    return InferShapes(node, file, walk_.notes);
  } catch (const Error& error) {
    if (node.InputCertainty() == Certainty::kKnown) throw;
    InferredShapes unknown;
    unknown.outputs.resize(static_cast<size_t>(node.proto.output_size()));
    unknown.problem = error.what();
    if (unknown.problem.starts_with(node.where)) unknown.problem.erase(0, node.where.size() + 2);
    return unknown;
  }
}

// A Constant node holds its value in one of several attributes.
void OnnxScope::DeclareConstant(const OnnxNode& node) {
  if (node.proto.output_size() != 1) throw Error("{} must have one output", node.where);
  OnnxValue value;
  value.constant = value.known_dims = true;
  const auto set = [&](int32_t type, Dims dims, Content content) {
    value.type = type;
    value.dims = std::move(dims);
    value.content = std::move(content);
    value.stored_bytes = CheckedBytes(value.dims, type, node.where);
  };
  for (const AttributeProto& attribute : node.proto.attribute()) {
    const std::string& name = attribute.name();
    if (name == "value" && attribute.has_t()) {
      value = ReadTensor(attribute.t(), node.where);
    } else if (name == "value_int") {
      set(TensorProto::INT64, {}, {static_cast<long double>(attribute.i())});
    } else if (name == "value_float") {
      set(TensorProto::FLOAT, {}, {static_cast<long double>(attribute.f())});
    } else if (name == "value_ints") {
      set(TensorProto::INT64, {attribute.ints_size()}, Content(attribute.ints().begin(), attribute.ints().end()));
    } else if (name == "value_floats") {
      set(TensorProto::FLOAT, {attribute.floats_size()}, Content(attribute.floats().begin(), attribute.floats().end()));
    } else if (name == "value_string" || name == "value_strings") {
      set(TensorProto::STRING, {std::max(1, attribute.strings_size())}, {});
      value.content.reset();
    } else if (attribute.has_sparse_tensor()) {
      const auto& dims = attribute.sparse_tensor().dims();
      set(attribute.sparse_tensor().values().data_type(), {dims.begin(), dims.end()}, {});
      value.content.reset();
    }
  }
  value.name = node.proto.output(0);
  value.root = walk_.pool.size();
  Declare(std::move(value));
}

void OnnxScope::DeclareOutputs(const OnnxNode& node, std::vector<OnnxValue> outputs, bool constant) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    OnnxValue& output = outputs[i];
    output.name = node.proto.output(static_cast<int>(i));
    if (output.name.empty()) continue;
    output.node = constant ? -1 : static_cast<ptrdiff_t>(ops_.size()) - 1;
    if (node.type == "DequantizeLinear" && node.Input(0) != nullptr) output.quantized_type = node.Input(0)->type;
    // One that shares nothing is stored where it is declared.
    if (constant && output.root == kOwnStorage) output.root = walk_.pool.size();
    const size_t position = Declare(std::move(output));
    if (!constant) ops_.back().outputs.push_back(position);
  }
}

// Of a node all of whose inputs are constants, and of one that asks for a shape.
void OnnxScope::MakeConstants(const OnnxNode& node, InferredShapes& shapes) {
  std::vector<OnnxValue>& outputs = shapes.outputs;
  for (OnnxValue& output : outputs) {
    output.constant = true;
    output.root = kOwnStorage;
    output.stored_bytes = CheckedBytes(output, node.where);
  }
  const OnnxValue* source = node.Input(0);
  if (outputs.empty()) return;
  if (node.domain.empty() && SharesStorage(node.type) && source != nullptr && source->constant) {
    outputs[0].root = source->root;
    outputs[0].stored_bytes = source->stored_bytes;
  }
  // A rule that could not tell the shapes has seen what folding would trip over.
  if (!shapes.told) return;
  try {
    Fold(node, outputs);
  } catch (const Error&) {
    if (node.InputCertainty() == Certainty::kKnown) throw;
    for (OnnxValue& output : outputs) output.content.reset();
  }
}

void OnnxScope::SettleShapes(const OnnxNode& node, InferredShapes& shapes) {
  for (size_t i = 0; i < shapes.outputs.size(); ++i) {
    const std::string& name = node.proto.output(static_cast<int>(i));
    if (name.empty()) continue;
    OnnxValue& output = shapes.outputs[i];
    const std::optional<Dims> inferred = output.known_dims ? std::optional(output.dims) : std::nullopt;
    SettleShape(node, name, output, shapes);
    // A shape that is not the rule's own is none that folding can rely on.
    if (inferred && *inferred != output.dims) shapes.told = false;
  }
}

// Every output gets dimensions: those inferred, else those that the file declares, else those of another reader, else a
// guess that is noted. Of an op that no run can compute, whatever the file declares is a guess.
void OnnxScope::SettleShape(const OnnxNode& node, const std::string& name, OnnxValue& output,
                            const InferredShapes& shapes) {
  const bool impossible = shapes.impossible && node.InputCertainty() == Certainty::kKnown;
  const auto info = infos_.find(name);
  const OnnxValue declared = info == infos_.end() ? OnnxValue() : ReadDeclared(*info->second);
  if (output.type == 0) output.type = declared.type;
  if (output.is_sequence) return;
  const std::string where = fmt::format("{}: its output '{}'", node.where, name);
  const bool second_opinion = declared.known_dims && walk_.file_shapes == nullptr;
  if (output.known_dims && output.certainty == Certainty::kKnown) {
    CheckedBytes(output.dims, output.type, where);
    if (second_opinion && declared.dims != output.dims) {
      walk_.notes.Add("shapes that the file records otherwise than its ops make them, which is what counts",
                      fmt::format("{} ({} instead of {})", name, ToString(output.dims), ToString(declared.dims)));
    }
    return;
  }
  if (second_opinion && !impossible) {
    CheckedBytes(declared.dims, declared.type, where);
    output.dims = declared.dims;
    output.known_dims = true;
    output.certainty = Certainty::kKnown;
    walk_.notes.Add("shapes that no rule tells, taken from the file's own record",
                    shapes.problem.empty() ? name : fmt::format("{} ({}: {})", name, node.type, shapes.problem));
    return;
  }
  const bool derived = node.InputCertainty() == Certainty::kUnknown;
  const bool open = !output.known_dims || output.certainty == Certainty::kUnknown;
  if (open && !derived && !impossible && outer_ == nullptr && walk_.other != nullptr) {
    // The other reader was asked at the sizes of this walk, so what hangs on a size that the file leaves open would
    // look known: that is why only what follows from known sizes is taken.
    if (const auto told = walk_.other->tensors.find(name); told != walk_.other->tensors.end()) {
      CheckedBytes(told->second, output.type, where);
      output.dims = told->second;
      output.known_dims = true;
      output.certainty = Certainty::kKnown;
      walk_.notes.Add(fmt::format("shapes that no rule tells, taken from the reading of {}", walk_.other->reader),
                      name);
      return;
    }
  }
  std::string why = shapes.problem;
  if (output.known_dims) {
    try {
      CheckedBytes(output.dims, output.type, where);
      if (output.certainty == Certainty::kUnknown && !derived) {
        walk_.guessed = true;
        walk_.notes.Add("shapes that are not known and were guessed", fmt::format("{} ({})", name, node.type));
      }
      return;
    } catch (const Error& error) {
      why = error.what();
    }
  }
  const bool was_known = walk_.file_shapes != nullptr && !walk_.file_shapes->uncertain.contains(name);
  if (was_known && !why.empty()) {
    throw Error(
        "{}: {} at the sizes asked for; give --shape for all inputs that change, or export the model at these sizes",
        node.where, why);
  }
  const OnnxValue* largest = second_opinion ? &declared : nullptr;
  for (const OnnxValue* input : node.inputs) {
    if (second_opinion || input == nullptr || input->constant || input->is_sequence) continue;
    if (largest == nullptr || Elements(input->dims) > Elements(largest->dims)) largest = input;
  }
  if (!derived && !impossible) walk_.guessed = true;
  output.dims.clear();
  if (largest != nullptr) {
    output.dims = largest->dims;
    if (output.type == 0) output.type = largest->type;
  }
  output.known_dims = true;
  output.certainty = Certainty::kUnknown;
  CheckedBytes(output.dims, output.type, where);
  walk_.notes.Add(
      impossible ? "sizes that contradict each other, so that what follows from them was guessed"
                 : "shapes that are not known and were guessed",
      why.empty() ? fmt::format("{} ({})", name, node.type) : fmt::format("{} ({}: {})", name, node.type, why));
}

// --- Costs -------------------------------------------------------------------------------------------------

namespace {

int64_t BytesOf(const OnnxValue& value) {
  return value.constant ? value.stored_bytes : CheckedBytes(value, value.name);
}

DataType TypeOfWork(const OnnxNode& node, const std::vector<OnnxValue>& outputs, OpClass op_class) {
  const bool multiplies = op_class == OpClass::kConv || op_class == OpClass::kMatMul;
  // X, its scale and zero point, then the weights.
  const size_t weights = node.type.starts_with("QLinear") ? 3 : 1;
  const OnnxValue *first = node.Input(0), *second = node.Input(weights);
  if (multiplies && first != nullptr && second != nullptr) {
    const auto is_8_bit = [](const OnnxValue& value) {
      const int32_t type = value.quantized_type != 0 ? value.quantized_type : value.type;
      return ComputeType(type) == DataType::kI8;
    };
    if (is_8_bit(*first) && is_8_bit(*second)) return DataType::kI8;
  }
  if (!outputs.empty() && IsFloating(outputs[0].type)) return ComputeType(outputs[0].type);
  return first != nullptr && IsFloating(first->type) ? ComputeType(first->type) : DataType::kF32;
}

}  // namespace

void OnnxScope::AddOp(const OnnxNode& node, const std::vector<OnnxValue>& outputs) {
  const OpRule* rule = FindOpRule(node.domain, node.type);
  const Traffic traffic = rule != nullptr ? rule->traffic : Traffic::kAll;
  OnnxOp op{.proto = &node.proto, .position = at_};
  OpWork& work = op.work;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.proto.output(static_cast<int>(i)).empty()) continue;
    AddBytes(work.bytes_written, CheckedBytes(outputs[i], node.where), node.where);
    work.sizes = std::max(work.sizes, outputs[i].certainty);
  }
  std::set<size_t> seen;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue* input = node.inputs[i];
    if (input == nullptr) continue;
    work.sizes = std::max(work.sizes, input->certainty);
    const bool describes = rule != nullptr && i < 32 && (rule->describing_inputs >> i & 1) != 0;
    if (describes && input->constant) continue;
    const size_t position = input->constant ? input->root : Find(node.proto.input(static_cast<int>(i)));
    if (!seen.insert(position).second) continue;
    op.uses.push_back(position);
    const int64_t bytes = BytesOf(*input);
    AddBytes(work.bytes_read, traffic == Traffic::kSelected && i == 0 ? std::min(bytes, work.bytes_written) : bytes,
             node.where);
  }
  if (traffic == Traffic::kNone) work.bytes_read = work.bytes_written = 0;

  if (rule != nullptr) {
    OpShapes shapes{.attributes = node.attributes};
    for (const OnnxValue* input : node.inputs) shapes.inputs.push_back(input != nullptr ? &input->dims : nullptr);
    for (const OnnxValue& output : outputs) shapes.outputs.push_back(&output.dims);
    CountWork(*rule, shapes, work);
  } else {
    work.bytes_only = true;
  }
  work.data_type = TypeOfWork(node, outputs, work.op_class);
  ops_.push_back(std::move(op));
}

OpWork OnnxScope::TotalWork() const {
  std::vector<OpWork> works;
  for (const OnnxOp& op : ops_) works.push_back(op.work);
  return WorkInTurn(works, walk_.path);
}

std::set<size_t> OnnxScope::Captured() const {
  std::set<size_t> captured;
  for (const OnnxOp& op : ops_) {
    for (const size_t position : op.uses) {
      const OnnxValue& value = walk_.pool[position];
      if (value.constant || value.scope != id_) captured.insert(position);
    }
  }
  return captured;
}

}  // namespace berth
