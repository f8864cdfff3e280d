// Shapes of ops that put the same elements under another shape or into another order, and of what asks for shapes.

#include "base/error.h"
#include "import/onnx_arguments.h"
#include "import/onnx_reshape.h"
#include "import/onnx_rule.h"

namespace berth {
namespace {

using onnx::TensorProto;

// A target that only a run can tell: everything along the first of as many axes as it has numbers.
bool ReshapeToUnknown(Inference& i) {
  i.Guess();
  const int64_t rank = i.Has(1, 1) ? std::clamp<int64_t>(i.DimsOf(1)[0], 1, 16) : 1;
  Dims dims(static_cast<size_t>(rank), 1);
  dims[0] = CheckedElements(i.DimsOf(0), i.node.where);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool Reshape(Inference& i) {
  if (!i.Has(0)) return false;
  const Dims& input = i.DimsOf(0);
  Dims target;
  if (const Content* content = i.node.InputContent(1)) {
    target = ToInts(*content);
  } else if (i.In(1) == nullptr && i.node.attributes.Has("shape")) {  // before opset 5
    const auto shape = i.node.attributes.Ints("shape");
    target.assign(shape.begin(), shape.end());
  } else {
    return ReshapeToUnknown(i);
  }
  const std::optional<Dims> literal = ResolveReshape(i.node, input, target);
  std::optional<Dims> followed;
  if (i.file.input != nullptr && i.file.output != nullptr && IsFixedAs(target, *i.file.output)) {
    followed = FollowReshape(
        {.file_input = *i.file.input, .file_output = *i.file.output, .input = input, .changes = *i.file.changes});
  }
  if (followed && followed != literal)
    i.notes.Add("fixed shapes in the file that follow the sizes asked for", i.node.proto.output(0));
  if (!followed && !literal) return i.Fail(fmt::format("{} does not go into {}", ToString(input), ToString(target)));
  return i.Set(0, i.TypeOf(0), followed ? *followed : *literal);
}

bool Flatten(Inference& i) {
  if (!i.Has(0)) return false;
  const Dims& input = i.DimsOf(0);
  const int64_t rank = static_cast<int64_t>(input.size()), given = i.node.attributes.Int("axis", 1);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) return i.Fail(fmt::format("axis {} is outside of the {} of its input", given, rank));
  const auto middle = input.begin() + axis;
  return i.Set(
      0, i.TypeOf(0),
      {CheckedElements({input.begin(), middle}, i.node.where), CheckedElements({middle, input.end()}, i.node.where)});
}

// All axes of size one, where none are named.
bool Squeeze(Inference& i) {
  if (!i.Has(0)) return false;
  bool known = true;
  const std::vector<int64_t> axes = Axes(i.node, 1, known);
  if (!known) i.Guess();
  const Dims& input = i.DimsOf(0);
  std::vector<bool> gone(input.size(), false);
  for (const int64_t given : axes) {
    const size_t axis = Axis(i.node, given, input.size());
    if (input[axis] != 1) return i.Fail(fmt::format("axis {} of {} is not of size one", given, ToString(input)));
    gone[axis] = true;
  }
  Dims dims;
  for (size_t axis = 0; axis < input.size(); ++axis) {
    if (!(axes.empty() ? input[axis] == 1 : gone[axis])) dims.push_back(input[axis]);
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool Unsqueeze(Inference& i) {
  if (!i.Has(0)) return false;
  bool known = true;
  const std::vector<int64_t> axes = Axes(i.node, 1, known);
  if (!known) return i.Lack("its axes are not known");
  const size_t rank = i.Rank(0) + axes.size();
  std::vector<bool> added(rank, false);
  for (const int64_t axis : axes) added[Axis(i.node, axis, rank)] = true;
  if (static_cast<size_t>(std::ranges::count(added, true)) != axes.size()) return i.Fail("it adds an axis twice");
  Dims dims;
  auto next = i.DimsOf(0).begin();
  for (size_t axis = 0; axis < rank; ++axis) dims.push_back(added[axis] ? 1 : *next++);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool Transpose(Inference& i) {
  if (!i.Has(0)) return false;
  const Dims& input = i.DimsOf(0);
  const std::optional<std::vector<size_t>> order = TransposeOrder(i.node, input.size());
  if (!order) return i.Fail(fmt::format("perm is no order of the {} axes of its input", input.size()));
  Dims dims;
  for (const size_t axis : *order) dims.push_back(input[axis]);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool ShapeOf(Inference& i) {
  if (!i.Has(0)) return false;
  const int64_t rank = static_cast<int64_t>(i.Rank(0));
  const auto bound = [&](std::string_view name, int64_t otherwise) {
    const int64_t at = i.node.attributes.Int(name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  return i.Set(0, TensorProto::INT64, {std::max<int64_t>(0, bound("end", rank) - bound("start", 0))});
}

bool SizeOf(Inference& i) { return i.In(0) != nullptr && i.Set(0, TensorProto::INT64, {}); }

constexpr ShapeRuleEntry kViewShapeRules[] = {
    {"Reshape", Reshape},     {"Flatten", Flatten},           {"Squeeze", Squeeze},
    {"Unsqueeze", Unsqueeze}, {"Transpose", Transpose},       {"Shape", ShapeOf},
    {"Size", SizeOf},         {"ReverseSequence", LikeFirst}, {"Trilu", LikeFirst},
};

}  // namespace

std::span<const ShapeRuleEntry> ViewShapeRules() { return kViewShapeRules; }

}  // namespace berth
