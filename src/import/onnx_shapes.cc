#include "import/onnx_shapes.h"

#include <unordered_map>

#include "base/error.h"
#include "import/onnx_density.h"
#include "import/onnx_rule.h"

namespace berth {

// --- What rules share --------------------------------------------------------------------------------------

bool LikeFirst(Inference& i) { return i.Has(0) && i.Set(0, i.TypeOf(0), i.DimsOf(0)); }

int64_t DimAt(const Dims& dims, int axis) {
  const int rank = static_cast<int>(dims.size()), at = axis < 0 ? rank + axis : axis;
  return at >= 0 && at < rank ? dims[static_cast<size_t>(at)] : 1;
}

int64_t Multiply(int64_t a, int64_t b, const OnnxNode& node) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    throw Error("{}: a dimension of its output is above 2^63; check the sizes of the inputs", node.where);
  return product;
}

int64_t Add(int64_t a, int64_t b, const OnnxNode& node) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    throw Error("{}: a dimension of its output is above 2^63; check the sizes of the inputs", node.where);
  return sum;
}

std::optional<long double> ScalarInput(const Inference& i, size_t input) {
  const Content* content = i.node.InputContent(input);
  return content != nullptr && content->size() == 1 ? std::optional(content->front()) : std::nullopt;
}

bool Agree(Inference& i, int64_t& size, bool& constant, int64_t other, bool other_constant) {
  if (size == other) {
    constant = constant && other_constant;
    return true;
  }
  if (constant == other_constant) return false;
  if (constant) size = other;
  constant = false;
  i.notes.Add("constants whose fixed sizes do not follow the sizes asked for", i.node.proto.output(0));
  return true;
}

bool BroadcastDims(Inference& i, std::span<const BroadcastOperand> operands, Dims& dims) {
  size_t rank = 0;
  for (const auto& [shape, is_constant] : operands) rank = std::max(rank, shape.size());
  dims.assign(rank, 1);
  std::vector<bool> constant(rank, true);
  for (const auto& [shape, shape_constant] : operands) {
    const size_t skip = rank - shape.size();
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const int64_t dim = shape[axis];
      if (dim == 1) continue;
      bool is_constant = constant[axis + skip];
      if (dims[axis + skip] == 1) {
        dims[axis + skip] = dim;
        is_constant = shape_constant;
      } else if (!Agree(i, dims[axis + skip], is_constant, dim, shape_constant)) {
        return i.Fail(fmt::format("sizes {} and {} do not go together", dims[axis + skip], dim));
      }
      constant[axis + skip] = is_constant;
    }
  }
  return true;
}

bool BroadcastInputs(Inference& i, Dims& dims) {
  // Before opset 7 the second operand was broadcast into the first, from an axis on.
  if (i.node.domain.empty() && i.node.opset < 7 && i.node.attributes.Int("broadcast", 0) != 0) {
    if (!i.Has(0)) return i.Fail("a sequence is no operand");
    dims = i.DimsOf(0);
    return true;
  }
  std::vector<BroadcastOperand> operands;
  for (size_t k = 0; k < i.node.inputs.size(); ++k) {
    if (i.In(k) == nullptr) continue;
    if (!i.Has(k)) return i.Fail("a sequence is no operand");
    operands.emplace_back(i.DimsOf(k), i.In(k)->constant);
  }
  return BroadcastDims(i, operands, dims);
}

// --- Which rule --------------------------------------------------------------------------------------------

namespace {

const std::unordered_map<std::string_view, ShapeRule>& Rules() {
  static const auto all = [] {
    std::unordered_map<std::string_view, ShapeRule> rules;
    for (const auto& table : {ElementwiseShapeRules(), ProductShapeRules(), WindowShapeRules(), ReductionShapeRules(),
                              MoveShapeRules(), ViewShapeRules(), SequenceShapeRules()}) {
      for (const auto& [type, rule] : table) BERTH_CHECK(rules.emplace(type, rule).second, "two rules for {}", type);
    }
    return rules;
  }();
  return all;
}

ShapeRule FindRule(std::string_view domain, std::string_view type) {
  const auto& rules = Rules();
  if (!domain.empty() && domain != "com.microsoft") return nullptr;
  if (!domain.empty()) {
    if (const auto own = rules.find(fmt::format("{}.{}", domain, type)); own != rules.end()) return own->second;
  }
  const auto found = rules.find(type);
  return found == rules.end() ? nullptr : found->second;
}

// What the class of an op says of its shape, where nothing better is known.
bool ApplyClassRule(Inference& i) {
  const OpRule* rule = FindOpRule(i.node.domain, i.node.type);
  if (rule == nullptr) return i.Lack("this op type is not known");
  if (rule->op_class == OpClass::kNormalization) return LikeFirst(i);
  Dims dims;
  return rule->op_class == OpClass::kElementwise && BroadcastInputs(i, dims) && i.Set(0, i.TypeOf(0), std::move(dims));
}

}  // namespace

bool AsksForShape(std::string_view domain, std::string_view type) {
  constexpr std::string_view kTypes[] = {"Shape", "Size", "SequenceLength", "OptionalHasElement"};
  return domain.empty() && std::ranges::count(kTypes, type) > 0;
}

bool IsRandom(std::string_view type) {
  return type.starts_with("Random") || type == "Bernoulli" || type == "Multinomial";
}

bool HasShapeRule(std::string_view domain, std::string_view type) { return FindRule(domain, type) != nullptr; }

InferredShapes InferShapes(const OnnxNode& node, const FileShapes& file_shapes, NoteList& notes) {
  InferredShapes result;
  result.outputs.resize(static_cast<size_t>(node.proto.output_size()));
  if (result.outputs.empty()) return result;
  Inference inference{.node = node, .file = file_shapes, .notes = notes, .outputs = result.outputs};
  const ShapeRule rule = FindRule(node.domain, node.type);
  result.told = rule != nullptr ? rule(inference) : ApplyClassRule(inference);
  if (!result.told) {
    result.problem = std::move(inference.problem);
    result.impossible = inference.impossible;
  }
  const Certainty certainty = std::max(inference.certainty, node.InputCertainty());
  for (OnnxValue& output : result.outputs) output.certainty = certainty;
  // What a tensor is asked for are its dimensions and not their number, which is known where nothing was guessed.
  if (AsksForShape(node.domain, node.type) && certainty == Certainty::kEstimated)
    result.outputs[0].certainty = Certainty::kKnown;
  CarryDensity(node, result.outputs);
  return result;
}

}  // namespace berth
