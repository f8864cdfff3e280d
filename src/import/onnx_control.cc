// If, Loop and Scan as one op each, which does what its body does (ONNX operator specification, the ops of these
// names).

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

OpWork Repeated(OpWork work, int64_t times, const OnnxNode& node) {
  work.flops *= static_cast<double>(times);
  for (int64_t* bytes : {&work.bytes_read, &work.bytes_written}) {
    if (__builtin_mul_overflow(*bytes, times, bytes))
      throw Error("{} moves more than 2^63 bytes in {} rounds", node.where, times);
  }
  return work;
}

Value Element(int32_t type) { return {.type = type, .known_dims = true}; }

// A body's input: shape, type and nothing else of the value that it is given.
Value AsInput(const Value& given, std::string_view name) {
  return {.name = name, .type = given.type, .dims = given.dims, .known_dims = true};
}

// Outputs in the order of the node's; a body that has fewer is an Error.
const Value& OutputOf(const OnnxWalk& walk, const OnnxScope& body, const onnx::GraphProto& graph, int i,
                      const OnnxNode& node) {
  if (i >= graph.output_size()) throw Error("{}: its body has {} outputs, too few", node.where, graph.output_size());
  return walk.pool[body.Find(graph.output(i).name())];
}

Value Result(const Value& of_body) { return {.type = of_body.type, .dims = of_body.dims, .known_dims = true}; }

}  // namespace

void OnnxScope::RunControlFlow(const OnnxNode& node) {
  if (node.type == "If") return RunIf(node);
  return node.type == "Loop" ? RunLoop(node) : RunScan(node);
}

void OnnxScope::AddControlOp(const OnnxNode& node, std::vector<Value> outputs, const OpWork& work,
                             std::set<size_t> uses) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* input = node.inputs[i];
    if (input != nullptr && !input->constant) uses.insert(Find(node.proto.input(static_cast<int>(i))));
  }
  OnnxOp op{.proto = &node.proto, .uses = {uses.begin(), uses.end()}, .outputs = {}, .work = work};
  ops_.push_back(std::move(op));
  for (size_t i = 0; i < outputs.size(); ++i) {
    CheckedBytes(outputs[i].dims, outputs[i].type, fmt::format("{}: its output {}", node.where, i));
  }
  DeclareOutputs(node, std::move(outputs), false);
}

// The branch that computes more is counted, unless the condition is a constant.
void OnnxScope::RunIf(const OnnxNode& node) {
  const onnx::GraphProto* graphs[] = {&BodyOf(node, "then_branch"), &BodyOf(node, "else_branch")};
  const Content* condition = node.InputContent(0);
  const bool decided = condition != nullptr && condition->size() == 1;
  std::set<size_t> uses;
  OpWork work;
  std::vector<Value> outputs(static_cast<size_t>(node.proto.output_size()));
  for (size_t k = 0; k < 2; ++k) {
    if (decided && ((*condition)[0] != 0) != (k == 0)) continue;
    OnnxScope body(walk_, *graphs[k], this);
    body.DeclareInitializers();
    body.Run();
    uses.merge(body.Captured());
    const OpWork of_body = body.TotalWork();
    if (of_body.flops > work.flops || (of_body.flops == work.flops && of_body.bytes_read + of_body.bytes_written >=
                                                                          work.bytes_read + work.bytes_written)) {
      work = of_body;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Value& result = OutputOf(walk_, body, *graphs[k], static_cast<int>(i), node);
      if (!outputs[i].known_dims || Elements(result.dims) > Elements(outputs[i].dims)) outputs[i] = Result(result);
    }
  }
  if (!decided)
    walk_.notes.Add("If ops, counted as the branch that computes more",
                    node.proto.output_size() > 0 ? node.proto.output(0) : "");
  AddControlOp(node, std::move(outputs), work, std::move(uses));
}

// Inputs: trip count, condition, carried values. Body: (iteration, condition, carried) -> (condition, carried,
// scanned).
void OnnxScope::RunLoop(const OnnxNode& node) {
  const onnx::GraphProto& graph = BodyOf(node, "body");
  const Content* count = node.InputContent(0);
  int64_t trips = 1;
  if (count != nullptr && count->size() == 1 && (*count)[0] >= 0 && (*count)[0] <= static_cast<long double>(kEndless)) {
    trips = ToInt((*count)[0]);
  } else {
    walk_.notes.Add("loops whose number of rounds only a run can tell, counted as 1",
                    node.proto.output_size() > 0 ? node.proto.output(0) : "");
  }

  OnnxScope body(walk_, graph, this);
  body.DeclareInitializers();
  for (int i = 0; i < graph.input_size(); ++i) {
    const std::string& name = graph.input(i).name();
    if (body.IsDeclared(name)) continue;
    const Value* given = i >= 2 ? node.Input(static_cast<size_t>(i)) : nullptr;
    if (i >= 2 && given == nullptr)
      throw Error("{}: its body has {} inputs, the op fewer", node.where, graph.input_size());
    body.Declare(AsInput(
        given != nullptr ? *given : Element(i == 0 ? onnx::TensorProto::INT64 : onnx::TensorProto::BOOL), name));
  }
  body.Run();
  std::vector<Value> outputs(static_cast<size_t>(node.proto.output_size()));
  const int carried = std::max(0, graph.input_size() - 2);
  for (int i = 0; i < node.proto.output_size(); ++i) {
    Value result = Result(OutputOf(walk_, body, graph, i + 1, node));
    if (i >= carried) result.dims.insert(result.dims.begin(), trips);
    outputs[static_cast<size_t>(i)] = std::move(result);
  }
  AddControlOp(node, std::move(outputs), Repeated(body.TotalWork(), trips, node), body.Captured());
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
    const Value* input = node.Input(first + i);
    if (input == nullptr) throw Error("{}: its input {} is missing", node.where, first + i);
    Value element = AsInput(*input, graph.input(static_cast<int>(i)).name());
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
  std::vector<Value> outputs(static_cast<size_t>(node.proto.output_size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value result = Result(OutputOf(walk_, body, graph, static_cast<int>(i), node));
    if (i >= states) {
      const size_t axis = batched ? 0 : axis_of("scan_output_axes", i - states, result.dims.size() + 1);
      result.dims.insert(result.dims.begin() + static_cast<ptrdiff_t>(axis), trips);
    }
    if (batched) result.dims.insert(result.dims.begin(), batch);
    outputs[i] = std::move(result);
  }
  AddControlOp(node, std::move(outputs), Repeated(Repeated(body.TotalWork(), trips, node), batch, node),
               body.Captured());
}

}  // namespace berth
