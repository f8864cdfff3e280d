// How shape rules are written: one function per op type, in tables by kind of op.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/onnx_node.h"
#include "import/onnx_shapes.h"

namespace berth {

// What a rule works on. A rule sets the outputs that it can tell and answers true; or false, with `problem` saying what
// is not known (Lack) or why no run can compute this op (Fail). Sizes that a run's data decide, and guesses, it sets
// too, and says so with Estimate or Guess. Inputs of doubtful size need not be thought of: they are for whoever calls
// rules.
struct Inference {
  const OnnxNode& node;
  const FileShapes& file;
  NoteList& notes;
  std::vector<OnnxValue>& outputs;
  std::string problem{};
  bool impossible = false;  // set by Fail
  Certainty certainty = Certainty::kKnown;

  const OnnxValue* In(size_t i) const { return node.Input(i); }
  // Whether input i is a tensor of at least `rank` dimensions.
  bool Has(size_t i, size_t rank = 0) const {
    return In(i) != nullptr && !In(i)->is_sequence && In(i)->dims.size() >= rank;
  }
  const Dims& DimsOf(size_t i) const { return In(i)->dims; }
  size_t Rank(size_t i) const { return In(i)->dims.size(); }
  int32_t TypeOf(size_t i) const { return In(i) != nullptr ? In(i)->type : 0; }
  // An attribute that names a type; `otherwise` where it is not given.
  int32_t TypeAttribute(std::string_view name, int32_t otherwise) const {
    return static_cast<int32_t>(std::clamp<int64_t>(node.attributes.Int(name, otherwise), 0, 1000));
  }

  bool Set(size_t output, int32_t type, Dims dims) {
    if (output >= outputs.size()) return true;
    outputs[output].type = type;
    outputs[output].dims = std::move(dims);
    outputs[output].known_dims = true;
    return true;
  }
  bool SetSequence(size_t output, std::vector<OnnxValue> elements) {
    if (output >= outputs.size()) return true;
    outputs[output].is_sequence = outputs[output].known_dims = true;
    outputs[output].elements = std::move(elements);
    if (!outputs[output].elements.empty()) outputs[output].type = outputs[output].elements.front().type;
    return true;
  }
  // A tensor, a sequence or an optional, as `value` is.
  bool SetLike(size_t output, const OnnxValue& value) {
    if (!value.is_sequence) return Set(output, value.type, value.dims);
    SetSequence(output, value.elements);
    outputs[output].is_optional = value.is_optional;
    return true;
  }
  // The inputs' sizes, or the attributes, contradict each other.
  bool Fail(std::string why) {
    impossible = true;
    return Lack(std::move(why));
  }
  // Something is not known that the outputs' sizes follow from.
  bool Lack(std::string what) {
    problem = std::move(what);
    return false;
  }

  // The sizes set are what a run's data decide: at most these, or these on average; `how` is the line of the note.
  void Estimate(const std::string& how = "sizes that only a run's data tell, counted at the most there can be") {
    certainty = std::max(certainty, Certainty::kEstimated);
    notes.Add(how, node.proto.output_size() > 0 ? node.proto.output(0) : "");
  }
  // The sizes set are a guess.
  void Guess() { certainty = Certainty::kUnknown; }
};

using ShapeRule = bool (*)(Inference&);
struct ShapeRuleEntry {
  std::string_view type;  // "Conv"; "com.microsoft.Attention" where another domain means something else by the name
  ShapeRule rule;
};

std::span<const ShapeRuleEntry> ElementwiseShapeRules();
std::span<const ShapeRuleEntry> ProductShapeRules();
std::span<const ShapeRuleEntry> WindowShapeRules();
std::span<const ShapeRuleEntry> ReductionShapeRules();
std::span<const ShapeRuleEntry> MoveShapeRules();
std::span<const ShapeRuleEntry> ViewShapeRules();
std::span<const ShapeRuleEntry> SequenceShapeRules();

// --- What rules share --------------------------------------------------------------------------------------

// The first input's type and dimensions.
bool LikeFirst(Inference& i);
// Dimensions spread over one another, and whether they are a constant's. False, with the reason, when they cannot be.
using BroadcastOperand = std::pair<std::span<const int64_t>, bool>;
bool BroadcastDims(Inference& i, std::span<const BroadcastOperand> operands, Dims& dims);
// The same of all inputs.
bool BroadcastInputs(Inference& i, Dims& dims);
// Where two operands disagree, a constant was written at the file's batch size and the others are as asked for: the
// constant gives way. False when neither or both are constants. `constant` says who decided `size`.
bool Agree(Inference& i, int64_t& size, bool& constant, int64_t other, bool other_constant);

// A dimension from the front, or with a negative axis from the back; 1 where there is none.
int64_t DimAt(const Dims& dims, int axis);
// Throws Error when it is above 2^63.
int64_t Multiply(int64_t a, int64_t b, const OnnxNode& node);
int64_t Add(int64_t a, int64_t b, const OnnxNode& node);
// ceil(a / b) for a >= 0, b > 0.
inline int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
// The one number that an input holds; none where it is not known.
std::optional<long double> ScalarInput(const Inference& i, size_t input);

}  // namespace berth
