// If, Loop, Scan and SequenceMap as one op each, which does what its body does (ONNX operator specification, the ops of
// these names). An If whose condition is a constant is its branch.

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "import/onnx_graph.h"

namespace berth {
namespace {

// A trip count above this is how exporters write "until the condition says stop".
constexpr int64_t kEndless = int64_t{1} << 31;

const onnx::GraphProto& BodyOf(const OnnxNode& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.proto.attribute()) {
    if (attribute.name() == name && attribute.has_g()) return attribute.g();
  }
  throw Error("{} has no body '{}'", node.where, name);
}

OnnxValue Element(int32_t type) { return {.type = type, .known_dims = true}; }

// A body's input or output: shape, type and nothing else of the value.
OnnxValue ShapeOf(const OnnxValue& value, std::string_view name = {}) {
  return {.name = name,
          .type = value.type,
          .dims = value.dims,
          .known_dims = true,
          .certainty = value.certainty,
          .is_sequence = value.is_sequence,
          .is_optional = value.is_optional,
          .elements = value.elements};
}

// A sequence of `before` elements after the first round of `rounds`: every round adds as many as the first.
void Grow(OnnxValue& sequence, size_t before, int64_t rounds) {
  constexpr size_t kMostElements = 100'000;
  if (sequence.elements.size() <= before) return;
  const std::vector<OnnxValue> added(sequence.elements.begin() + static_cast<ptrdiff_t>(before),
                                     sequence.elements.end());
  for (int64_t round = 1; round < rounds; ++round) {
    if (sequence.elements.size() + added.size() > kMostElements) {
      sequence.certainty = Certainty::kUnknown;
      return;
    }
    sequence.elements.insert(sequence.elements.end(), added.begin(), added.end());
  }
}

// Outputs in the order of the node's; a body that has fewer is an Error.
const OnnxValue& OutputOf(const OnnxWalk& walk, const OnnxScope& body, const onnx::GraphProto& graph, int i,
                          const OnnxNode& node) {
  if (i >= graph.output_size()) throw Error("{}: its body has {} outputs, too few", node.where, graph.output_size());
  return walk.pool[body.Find(graph.output(i).name())];
}

// Whether a loop's body hands on the condition by which its round began, or says true: whether no round ends the loop.
bool GoesOn(const OnnxWalk& walk, const OnnxScope& body, const onnx::GraphProto& graph, const OnnxNode& node) {
  const OnnxValue& condition = OutputOf(walk, body, graph, 0, node);
  if (condition.content) return condition.content->size() == 1 && condition.content->front() != 0;
  std::string_view name = graph.output(0).name();
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const onnx::NodeProto& maker = graph.node(i);
    const bool hands_on = (maker.op_type() == "Identity" || maker.op_type() == "Cast") && maker.input_size() == 1 &&
                          maker.output_size() == 1;
    if (hands_on && maker.output(0) == name) name = maker.input(0);
  }
  return graph.input_size() > 1 && name == graph.input(1).name();
}

}  // namespace

void OnnxScope::RunControlFlow(const OnnxNode& node) {
  if (node.type == "If") return RunIf(node);
  if (node.type == "Loop") return RunLoop(node);
  return node.type == "Scan" ? RunScan(node) : RunSequenceMap(node);
}

void OnnxScope::AddControlOp(const OnnxNode& node, std::vector<OnnxValue> outputs, const OpWork& work,
                             std::set<size_t> uses) {
  OpWork total = work;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue* input = node.inputs[i];
    if (input != nullptr) total.sizes = std::max(total.sizes, input->certainty);
    if (input != nullptr && !input->constant) uses.insert(Find(node.proto.input(static_cast<int>(i))));
  }
  OnnxOp op{.proto = &node.proto, .uses = {uses.begin(), uses.end()}, .outputs = {}, .work = total, .position = at_};
  ops_.push_back(std::move(op));
  for (size_t i = 0; i < outputs.size(); ++i) {
    CheckedBytes(outputs[i], fmt::format("{}: its output {}", node.where, i));
  }
  DeclareOutputs(node, std::move(outputs), false);
}

// Makes the ops of a body this scope's own, and its outputs the node's.
void OnnxScope::Inline(const OnnxNode& node, const onnx::GraphProto& graph) {
  OnnxScope body(walk_, graph, this);
  body.DeclareInitializers();
  body.Run();
  const auto before = static_cast<ptrdiff_t>(ops_.size());
  for (OnnxValue& value : walk_.pool) {
    if (value.scope != body.id_) continue;
    value.scope = id_;
    if (value.node >= 0) value.node += before;
  }
  for (OnnxOp& op : body.ops_) {
    op.position = at_;
    ops_.push_back(std::move(op));
  }
  for (int i = 0; i < node.proto.output_size(); ++i) {
    const std::string& name = node.proto.output(i);
    if (name.empty()) continue;
    OutputOf(walk_, body, graph, i, node);
    const size_t position = body.Find(graph.output(i).name());
    // What the branch hands on of the scope around it keeps its name.
    if (body.values_.contains(graph.output(i).name())) walk_.pool[position].name = name;
    if (!values_.emplace(name, position).second)
      throw Error("{}: tensor '{}' is made twice; each name must have one maker", walk_.path, name);
  }
}

// The branch that computes more is counted, unless the condition is a constant: then the branch is inlined.
void OnnxScope::RunIf(const OnnxNode& node) {
  const onnx::GraphProto* graphs[] = {&BodyOf(node, "then_branch"), &BodyOf(node, "else_branch")};
  const Content* condition = node.InputContent(0);
  if (condition != nullptr && condition->size() == 1 && node.consulted == Certainty::kKnown) {
    return Inline(node, *graphs[(*condition)[0] != 0 ? 0 : 1]);
  }
  std::set<size_t> uses;
  OpWork works[2];
  std::vector<OnnxValue> outputs(static_cast<size_t>(node.proto.output_size()));
  for (size_t k = 0; k < 2; ++k) {
    OnnxScope body(walk_, *graphs[k], this);
    body.DeclareInitializers();
    body.Run();
    uses.merge(body.Captured());
    works[k] = body.TotalWork();
    for (size_t i = 0; i < outputs.size(); ++i) {
      OnnxValue result = ShapeOf(OutputOf(walk_, body, *graphs[k], static_cast<int>(i), node));
      Certainty certainty = std::max(result.certainty, outputs[i].certainty);
      if (k == 1 && result.dims != outputs[i].dims) certainty = std::max(certainty, Certainty::kEstimated);
      if (k == 0 || Elements(result.dims) > Elements(outputs[i].dims)) outputs[i] = std::move(result);
      outputs[i].certainty = certainty;
    }
  }
  walk_.notes.Add("If ops, counted as the branch that computes more",
                  node.proto.output_size() > 0 ? node.proto.output(0) : "");
  AddControlOp(node, std::move(outputs), LargerBranch(works[0], works[1]), std::move(uses));
}

// Inputs: trip count, condition, carried values. Body: (iteration, condition, carried) -> (condition, carried,
// scanned).
void OnnxScope::RunLoop(const OnnxNode& node) {
  const onnx::GraphProto& graph = BodyOf(node, "body");
  const Content* count = node.InputContent(0);
  int64_t trips = 1;
  Certainty certainty = Certainty::kKnown;
  if (count != nullptr && count->size() == 1 && (*count)[0] >= 0 && (*count)[0] <= static_cast<long double>(kEndless)) {
    trips = ToInt((*count)[0]);
  } else {
    certainty = Certainty::kUnknown;
    walk_.notes.Add("loops whose number of rounds only a run can tell, counted as 1",
                    node.proto.output_size() > 0 ? node.proto.output(0) : "");
  }
  certainty = std::max(certainty, node.consulted);

  OnnxScope body(walk_, graph, this);
  body.DeclareInitializers();
  for (int i = 0; i < graph.input_size(); ++i) {
    const std::string& name = graph.input(i).name();
    if (body.IsDeclared(name)) continue;
    const OnnxValue* given = i >= 2 ? node.Input(static_cast<size_t>(i)) : nullptr;
    if (i >= 2 && given == nullptr)
      throw Error("{}: its body has {} inputs, the op fewer", node.where, graph.input_size());
    body.Declare(ShapeOf(
        given != nullptr ? *given : Element(i == 0 ? onnx::TensorProto::INT64 : onnx::TensorProto::BOOL), name));
  }
  body.Run();
  if (trips > 1 && !GoesOn(walk_, body, graph, node)) {
    certainty = std::max(certainty, Certainty::kEstimated);
    walk_.notes.Add("loops that a run may leave early, counted with all their rounds",
                    node.proto.output_size() > 0 ? node.proto.output(0) : "");
  }
  std::vector<OnnxValue> outputs(static_cast<size_t>(node.proto.output_size()));
  const int carried = std::max(0, graph.input_size() - 2);
  for (int i = 0; i < node.proto.output_size(); ++i) {
    OnnxValue result = ShapeOf(OutputOf(walk_, body, graph, i + 1, node));
    result.certainty = std::max(result.certainty, certainty);
    const OnnxValue* given = i < carried ? node.Input(static_cast<size_t>(i) + 2) : nullptr;
    if (i >= carried) {
      result.dims.insert(result.dims.begin(), trips);
    } else if (given != nullptr && result.is_sequence) {
      Grow(result, given->elements.size(), trips);
    } else if (given != nullptr && given->dims != result.dims && trips != 1) {
      result.certainty = certainty = Certainty::kUnknown;
      walk_.notes.Add("loops whose state changes its size from round to round, counted as the first",
                      node.proto.output(i));
    }
    outputs[static_cast<size_t>(i)] = std::move(result);
  }
  OpWork work = Repeated(body.TotalWork(), trips, node.where);
  work.sizes = std::max(work.sizes, certainty);
  AddControlOp(node, std::move(outputs), work, body.Captured());
}

// Inputs: states, then sequences. Body: (states, an element of each sequence) -> (states, an element of each result).
void OnnxScope::RunScan(const OnnxNode& node) {
  const onnx::GraphProto& graph = BodyOf(node, "body");
  // Opset 8 has the lengths of the sequences first, and a batch before every other axis.
  const bool batched = node.opset < 9;
  const size_t first = batched ? 1 : 0;
  const int64_t sequences = node.attributes.Int("num_scan_inputs", 1);
  const int64_t given = static_cast<int64_t>(node.inputs.size() - std::min(first, node.inputs.size()));
  if (sequences < 1 || sequences > given || graph.input_size() != given) {
    throw Error("{}: it has {} inputs, {} of them sequences, and its body takes {}", node.where, given, sequences,
                graph.input_size());
  }
  const size_t states = static_cast<size_t>(given - sequences);
  const auto axis_of = [&](std::string_view name, size_t k, size_t rank) {
    const auto axes = node.attributes.Ints(name);
    return Axis(node, k < axes.size() ? axes[k] : 0, rank);
  };

  OnnxScope body(walk_, graph, this);
  body.DeclareInitializers();
  int64_t trips = 1, batch = 1;
  for (size_t i = 0; i < static_cast<size_t>(given); ++i) {
    const OnnxValue* input = node.Input(first + i);
    if (input == nullptr) throw Error("{}: its input {} is missing", node.where, first + i);
    OnnxValue element = ShapeOf(*input, graph.input(static_cast<int>(i)).name());
    const auto drop = [&](size_t axis) {
      if (axis >= element.dims.size()) throw Error("{}: its input {} is not a sequence", node.where, first + i);
      const int64_t size = element.dims[axis];
      element.dims.erase(element.dims.begin() + static_cast<ptrdiff_t>(axis));
      return size;
    };
    if (batched) batch = drop(0);
    if (i >= states) {
      const int64_t length = drop(batched ? 0 : axis_of("scan_input_axes", i - states, element.dims.size()));
      trips = i == states ? length : std::min(trips, length);
    }
    body.Declare(std::move(element));
  }
  body.Run();
  std::vector<OnnxValue> outputs(static_cast<size_t>(node.proto.output_size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    OnnxValue result = ShapeOf(OutputOf(walk_, body, graph, static_cast<int>(i), node));
    if (i >= states) {
      const size_t axis = batched ? 0 : axis_of("scan_output_axes", i - states, result.dims.size() + 1);
      result.dims.insert(result.dims.begin() + static_cast<ptrdiff_t>(axis), trips);
    }
    if (batched) result.dims.insert(result.dims.begin(), batch);
    outputs[i] = std::move(result);
  }
  AddControlOp(node, std::move(outputs), Repeated(Repeated(body.TotalWork(), trips, node.where), batch, node.where),
               body.Captured());
}

// Inputs: a sequence, then sequences as long and tensors. The body is run for each element.
void OnnxScope::RunSequenceMap(const OnnxNode& node) {
  const onnx::GraphProto& graph = BodyOf(node, "body");
  const OnnxValue* first = node.Input(0);
  if (first == nullptr || !first->is_sequence || graph.input_size() != static_cast<int>(node.inputs.size())) {
    throw Error("{}: its first input is no sequence, or its body takes other inputs", node.where);
  }
  const size_t count = first->elements.size();
  OnnxScope body(walk_, graph, this);
  body.DeclareInitializers();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue* input = node.Input(i);
    if (input == nullptr) throw Error("{}: its input {} is missing", node.where, i);
    OnnxValue element = input->is_sequence && !input->elements.empty() ? input->elements.front() : *input;
    element.certainty = std::max(element.certainty, input->certainty);
    body.Declare(ShapeOf(element, graph.input(static_cast<int>(i)).name()));
  }
  body.Run();
  std::vector<OnnxValue> outputs(static_cast<size_t>(node.proto.output_size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OnnxValue result = ShapeOf(OutputOf(walk_, body, graph, static_cast<int>(i), node));
    if (result.is_sequence)
      throw Error("{}: output {} of its body is a sequence; only tensors make one", node.where, i);
    outputs[i] = {.type = result.type, .known_dims = true, .certainty = result.certainty, .is_sequence = true};
    outputs[i].elements.assign(count, result);
  }
  AddControlOp(node, std::move(outputs), Repeated(body.TotalWork(), static_cast<int64_t>(count), node.where),
               body.Captured());
}

}  // namespace berth
