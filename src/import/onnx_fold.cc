#include "import/onnx_fold.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

namespace berth {
namespace {

using onnx::TensorProto;
using Number = long double;
using Unary = Number (*)(Number);
using Binary = Number (*)(Number, Number, bool);  // bool: of integers

bool IsInteger(int32_t type) { return !IsFloating(type); }

// Calls visit(position, index) for every element of `dims` in row-major order.
template <typename Visit>
void ForEachIndex(const Dims& dims, const Visit& visit) {
  const size_t count = static_cast<size_t>(CheckedElements(dims, "a constant"));
  std::vector<int64_t> index(dims.size(), 0);
  for (size_t position = 0; position < count; ++position) {
    visit(position, index);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

// Where the element at `index` of a broadcast result lies in an operand.
size_t BroadcastPosition(const std::vector<int64_t>& index, const Dims& dims) {
  size_t position = 0;
  const size_t skip = index.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    position =
        position * static_cast<size_t>(dims[axis]) + static_cast<size_t>(dims[axis] == 1 ? 0 : index[axis + skip]);
  }
  return position;
}

// Whether `dims` can be spread over `over`.
bool Broadcasts(const Dims& dims, const Dims& over) {
  if (dims.size() > over.size()) return false;
  const size_t skip = over.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1 && dims[axis] != over[axis + skip]) return false;
  }
  return true;
}

// --- Elementwise -------------------------------------------------------------------------------------------

// Integers are computed modulo 2^64, as ONNX runtimes do.
Number Wrapped(uint64_t value) { return static_cast<Number>(static_cast<int64_t>(value)); }
uint64_t Bits(Number value) { return static_cast<uint64_t>(ToInt(value)); }

Number Divide(Number a, Number b, bool integer) {
  if (!integer) return a / b;
  return b == 0 ? 0 : std::trunc(a / b);
}

Number Modulo(Number a, Number b, bool integer) {
  if (b == 0) return 0;
  const Number rest = std::fmod(a, b);
  return integer && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

const std::unordered_map<std::string_view, Binary>& Binaries() {
  static const std::unordered_map<std::string_view, Binary> table = {
      {"Add", [](Number a, Number b, bool i) { return i ? Wrapped(Bits(a) + Bits(b)) : a + b; }},
      {"Sub", [](Number a, Number b, bool i) { return i ? Wrapped(Bits(a) - Bits(b)) : a - b; }},
      {"Mul", [](Number a, Number b, bool i) { return i ? Wrapped(Bits(a) * Bits(b)) : a * b; }},
      {"Div", Divide},
      {"Mod", Modulo},
      {"Pow", [](Number a, Number b, bool i) { return i ? std::trunc(std::pow(a, b)) : std::pow(a, b); }},
      {"Max", [](Number a, Number b, bool) { return std::max(a, b); }},
      {"Min", [](Number a, Number b, bool) { return std::min(a, b); }},
      {"Equal", [](Number a, Number b, bool) { return static_cast<Number>(a == b); }},
      {"Less", [](Number a, Number b, bool) { return static_cast<Number>(a < b); }},
      {"LessOrEqual", [](Number a, Number b, bool) { return static_cast<Number>(a <= b); }},
      {"Greater", [](Number a, Number b, bool) { return static_cast<Number>(a > b); }},
      {"GreaterOrEqual", [](Number a, Number b, bool) { return static_cast<Number>(a >= b); }},
      {"And", [](Number a, Number b, bool) { return static_cast<Number>(a != 0 && b != 0); }},
      {"Or", [](Number a, Number b, bool) { return static_cast<Number>(a != 0 || b != 0); }},
  };
  return table;
}

const std::unordered_map<std::string_view, Unary>& Unaries() {
  static const std::unordered_map<std::string_view, Unary> table = {
      {"Neg", [](Number a) { return -a; }},
      {"Abs", [](Number a) { return std::fabs(a); }},
      {"Floor", [](Number a) { return std::floor(a); }},
      {"Ceil", [](Number a) { return std::ceil(a); }},
      {"Round", [](Number a) { return std::nearbyint(a); }},
      {"Sqrt", [](Number a) { return std::sqrt(a); }},
      {"Reciprocal", [](Number a) { return 1 / a; }},
      {"Not", [](Number a) { return static_cast<Number>(a == 0); }},
  };
  return table;
}

std::optional<Content> FoldBinary(const OnnxNode& node, const Value& output, Binary apply) {
  const Content* result = node.InputContent(0);
  if (result == nullptr || node.inputs.empty()) return std::nullopt;
  Content folded;
  const bool integer = IsInteger(node.inputs[0]->type);
  Dims dims = node.inputs[0]->dims;
  folded = *result;
  for (size_t i = 1; i < node.inputs.size(); ++i) {  // Max and Min take any number
    const Content* other = node.InputContent(i);
    if (other == nullptr || !Broadcasts(dims, output.dims) || !Broadcasts(node.inputs[i]->dims, output.dims))
      return std::nullopt;
    Content next(static_cast<size_t>(CheckedElements(output.dims, node.where)));
    ForEachIndex(output.dims, [&](size_t position, const std::vector<int64_t>& index) {
      next[position] = apply(folded[BroadcastPosition(index, dims)],
                             (*other)[BroadcastPosition(index, node.inputs[i]->dims)], integer);
    });
    folded = std::move(next);
    dims = output.dims;
  }
  return folded;
}

std::optional<Content> FoldWhere(const OnnxNode& node, const Value& output) {
  const Content *condition = node.InputContent(0), *yes = node.InputContent(1), *no = node.InputContent(2);
  if (condition == nullptr || yes == nullptr || no == nullptr) return std::nullopt;
  for (size_t i = 0; i < 3; ++i) {
    if (!Broadcasts(node.inputs[i]->dims, output.dims)) return std::nullopt;
  }
  Content content(static_cast<size_t>(CheckedElements(output.dims, node.where)));
  ForEachIndex(output.dims, [&](size_t position, const std::vector<int64_t>& index) {
    const bool chosen = (*condition)[BroadcastPosition(index, node.inputs[0]->dims)] != 0;
    content[position] = chosen ? (*yes)[BroadcastPosition(index, node.inputs[1]->dims)]
                               : (*no)[BroadcastPosition(index, node.inputs[2]->dims)];
  });
  return content;
}

std::optional<Content> FoldCast(const OnnxNode& node, const Value& output) {
  const Content* input = node.InputContent(0);
  if (input == nullptr) return std::nullopt;
  Content content = *input;
  for (Number& number : content) {
    if (output.type == TensorProto::BOOL) {
      number = static_cast<Number>(number != 0);
    } else if (IsInteger(output.type)) {
      number = static_cast<Number>(ToInt(number));
    }
  }
  return content;
}

// --- Pieces ------------------------------------------------------------------------------------------------

std::optional<Content> FoldGather(const OnnxNode& node, const Value& output) {
  const Content *data = node.InputContent(0), *indices = node.InputContent(1);
  if (data == nullptr || indices == nullptr) return std::nullopt;
  const Dims& dims = node.inputs[0]->dims;
  const size_t axis = Axis(node, node.attributes.Int("axis", 0), dims.size());
  size_t inner = 1, outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(dims[i]);
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<size_t>(dims[i]);
  Content content;
  content.reserve(static_cast<size_t>(CheckedElements(output.dims, node.where)));
  for (size_t o = 0; o < outer; ++o) {
    for (const Number wanted : *indices) {
      const int64_t at = ToInt(wanted) < 0 ? ToInt(wanted) + dims[axis] : ToInt(wanted);
      if (at < 0 || at >= dims[axis]) {
        throw Error("{}: index {} is outside of a dimension of {}", node.where, ToInt(wanted), dims[axis]);
      }
      const size_t from = (o * static_cast<size_t>(dims[axis]) + static_cast<size_t>(at)) * inner;
      content.insert(content.end(), data->begin() + static_cast<ptrdiff_t>(from),
                     data->begin() + static_cast<ptrdiff_t>(from + inner));
    }
  }
  return content;
}

std::optional<Content> FoldConcat(const OnnxNode& node, const Value& output) {
  const size_t axis = Axis(node, node.attributes.Int("axis", 0), output.dims.size());
  size_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(output.dims[i]);
  Content content;
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Content* part = node.InputContent(i);
      if (part == nullptr) return std::nullopt;
      const size_t size = part->size() / outer;
      const auto from = part->begin() + static_cast<ptrdiff_t>(o * size);
      content.insert(content.end(), from, from + static_cast<ptrdiff_t>(size));
    }
  }
  return content;
}

// Starts and steps of a Slice per axis of its input; none when they are not known.
struct Cut {
  std::vector<int64_t> start, step;
};
std::optional<Cut> ReadCut(const OnnxNode& node) {
  const Dims& dims = node.inputs[0]->dims;
  const auto list = [&](size_t input, std::string_view name) -> std::optional<std::vector<int64_t>> {
    if (const Content* content = node.InputContent(input)) return ToInts(*content);
    if (node.Input(input) != nullptr) return std::nullopt;
    const std::span<const int64_t> ints = node.attributes.Ints(name);
    return std::vector<int64_t>(ints.begin(), ints.end());
  };
  const auto starts = list(1, "starts"), axes = list(3, "axes"), steps = list(4, "steps");
  if (!starts || !axes || !steps) return std::nullopt;
  Cut cut{std::vector<int64_t>(dims.size(), 0), std::vector<int64_t>(dims.size(), 1)};
  for (size_t i = 0; i < starts->size(); ++i) {
    const size_t axis = Axis(node, i < axes->size() ? (*axes)[i] : static_cast<int64_t>(i), dims.size());
    const int64_t step = i < steps->size() ? (*steps)[i] : 1, size = dims[axis];
    const int64_t start = (*starts)[i] < 0 ? std::max<int64_t>((*starts)[i], -size) + size : (*starts)[i];
    cut.start[axis] = std::clamp<int64_t>(start, 0, step < 0 ? std::max<int64_t>(size - 1, 0) : size);
    cut.step[axis] = step;
  }
  return cut;
}

std::optional<Content> Pick(const OnnxNode& node, const Value& output, const Cut& cut) {
  const Content* data = node.InputContent(0);
  const Dims& dims = node.inputs[0]->dims;
  if (data == nullptr || data->empty() || dims.size() != output.dims.size()) return std::nullopt;
  Content content(static_cast<size_t>(CheckedElements(output.dims, node.where)));
  bool inside = true;
  ForEachIndex(output.dims, [&](size_t position, const std::vector<int64_t>& index) {
    int64_t from = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t offset = 0, at = 0;
      inside = inside && !__builtin_mul_overflow(index[axis], cut.step[axis], &offset) &&
               !__builtin_add_overflow(cut.start[axis], offset, &at) && at >= 0 && at < dims[axis];
      from = inside ? from * dims[axis] + at : 0;
    }
    content[position] = (*data)[static_cast<size_t>(from)];
  });
  return inside ? std::optional(std::move(content)) : std::nullopt;
}

std::optional<Content> FoldSlice(const OnnxNode& node, const Value& output) {
  const std::optional<Cut> cut = ReadCut(node);
  const bool empty = std::ranges::count(output.dims, 0) > 0;
  if (empty) return Content();
  return cut ? Pick(node, output, *cut) : std::nullopt;
}

// --- Others ------------------------------------------------------------------------------------------------

std::optional<Content> FoldExpand(const OnnxNode& node, const Value& output) {
  const Content* input = node.InputContent(0);
  if (input == nullptr || !Broadcasts(node.inputs[0]->dims, output.dims)) return std::nullopt;
  Content content(static_cast<size_t>(CheckedElements(output.dims, node.where)));
  ForEachIndex(output.dims, [&](size_t position, const std::vector<int64_t>& index) {
    content[position] = (*input)[BroadcastPosition(index, node.inputs[0]->dims)];
  });
  return content;
}

std::optional<Content> FoldRange(const OnnxNode& node, const Value& output) {
  const Content *start = node.InputContent(0), *delta = node.InputContent(2);
  if (start == nullptr || delta == nullptr || start->size() != 1 || delta->size() != 1) return std::nullopt;
  Content content(static_cast<size_t>(CheckedElements(output.dims, node.where)));
  for (size_t i = 0; i < content.size(); ++i) content[i] = (*start)[0] + static_cast<Number>(i) * (*delta)[0];
  return content;
}

// Over all elements: ReduceProd of a shape is its number of elements.
std::optional<Content> FoldReduce(const OnnxNode& node, const Value& output) {
  const Content* input = node.InputContent(0);
  if (input == nullptr || input->empty() || CheckedElements(output.dims, node.where) != 1) return std::nullopt;
  Number result = (*input)[0];
  for (size_t i = 1; i < input->size(); ++i) {
    const Number next = (*input)[i];
    result = node.type == "ReduceProd"  ? result * next
             : node.type == "ReduceSum" ? result + next
             : node.type == "ReduceMax" ? std::max(result, next)
                                        : std::min(result, next);
  }
  return Content{result};
}

std::optional<Content> FoldCopy(const OnnxNode& node, const Value& output) {
  const Content* input = node.InputContent(0);
  if (input == nullptr || static_cast<int64_t>(input->size()) != CheckedElements(output.dims, node.where))
    return std::nullopt;
  return *input;
}

std::optional<Content> FoldConstantOfShape(const OnnxNode& node, const Value& output) {
  Number filling = 0;
  for (const onnx::AttributeProto& attribute : node.proto.attribute()) {
    if (attribute.name() != "value" || !attribute.has_t()) continue;
    const Value value = ReadTensor(attribute.t(), node.where);
    if (!value.content || value.content->size() != 1) return std::nullopt;
    filling = (*value.content)[0];
  }
  return Content(static_cast<size_t>(CheckedElements(output.dims, node.where)), filling);
}

using Folder = std::optional<Content> (*)(const OnnxNode&, const Value&);

const std::unordered_map<std::string_view, Folder>& Folders() {
  static const std::unordered_map<std::string_view, Folder> table = {
      {"Gather", FoldGather},
      {"Concat", FoldConcat},
      {"Slice", FoldSlice},
      {"Where", FoldWhere},
      {"Cast", FoldCast},
      {"Expand", FoldExpand},
      {"Range", FoldRange},
      {"ReduceProd", FoldReduce},
      {"ReduceSum", FoldReduce},
      {"ReduceMax", FoldReduce},
      {"ReduceMin", FoldReduce},
      {"Identity", FoldCopy},
      {"Reshape", FoldCopy},
      {"Flatten", FoldCopy},
      {"Squeeze", FoldCopy},
      {"Unsqueeze", FoldCopy},
      {"ConstantOfShape", FoldConstantOfShape},
  };
  return table;
}

}  // namespace

std::optional<Content> Fold(const OnnxNode& node, const Value& output) {
  if (!node.domain.empty()) return std::nullopt;
  if (const auto found = Folders().find(node.type); found != Folders().end()) return found->second(node, output);
  if (const auto found = Binaries().find(node.type); found != Binaries().end())
    return FoldBinary(node, output, found->second);
  if (const auto found = Unaries().find(node.type); found != Unaries().end()) {
    std::optional<Content> content = FoldCopy(node, output);
    if (content) std::ranges::transform(*content, content->begin(), found->second);
    return content;
  }
  return std::nullopt;
}

std::optional<Content> FoldSplit(const OnnxNode& node, const Value& output, size_t axis, int64_t start) {
  Cut cut{std::vector<int64_t>(output.dims.size(), 0), std::vector<int64_t>(output.dims.size(), 1)};
  if (axis >= cut.start.size()) return std::nullopt;
  cut.start[axis] = start;
  return Pick(node, output, cut);
}

}  // namespace berth
