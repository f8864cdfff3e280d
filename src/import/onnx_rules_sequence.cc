// Sequences and optionals of tensors. A sequence is known by its elements; where it is not known which elements it has,
// it is what one element says, and a guess.

#include "base/error.h"
#include "import/onnx_rule.h"

namespace berth {
namespace {

using onnx::TensorProto;

// What stays of a value that is put into a sequence or an optional.
OnnxValue AsElement(const OnnxValue& value) {
  return {.type = value.type,
          .dims = value.dims,
          .known_dims = true,
          .certainty = value.certainty,
          .is_sequence = value.is_sequence,
          .is_optional = value.is_optional,
          .elements = value.elements};
}

bool HasSequence(const Inference& i, size_t input) { return i.In(input) != nullptr && i.In(input)->is_sequence; }

// Where in a sequence of `size` a position input points; none where that is not known or outside.
std::optional<size_t> Position(const Inference& i, size_t input, size_t size, int64_t otherwise) {
  const auto given =
      i.In(input) == nullptr ? std::optional(static_cast<long double>(otherwise)) : ScalarInput(i, input);
  if (!given) return std::nullopt;
  const int64_t count = static_cast<int64_t>(size), at = ToInt(*given) < 0 ? ToInt(*given) + count : ToInt(*given);
  return at >= 0 && at < count ? std::optional(static_cast<size_t>(at)) : std::nullopt;
}

bool SequenceConstruct(Inference& i) {
  std::vector<OnnxValue> elements;
  for (size_t k = 0; k < i.node.inputs.size(); ++k) {
    if (!i.Has(k)) return false;
    elements.push_back(AsElement(*i.In(k)));
  }
  return i.SetSequence(0, std::move(elements));
}

bool SequenceEmpty(Inference& i) { return i.SetSequence(0, {}); }

bool SequenceInsert(Inference& i) {
  if (!HasSequence(i, 0) || !i.Has(1)) return false;
  std::vector<OnnxValue> elements = i.In(0)->elements;
  // One more place than there are elements: behind the last.
  const std::optional<size_t> at = Position(i, 2, elements.size() + 1, static_cast<int64_t>(elements.size()));
  if (!at) i.Guess();
  elements.insert(elements.begin() + static_cast<ptrdiff_t>(at.value_or(elements.size())), AsElement(*i.In(1)));
  return i.SetSequence(0, std::move(elements));
}

bool SequenceErase(Inference& i) {
  if (!HasSequence(i, 0) || i.In(0)->elements.empty()) return false;
  std::vector<OnnxValue> elements = i.In(0)->elements;
  const std::optional<size_t> at = Position(i, 1, elements.size(), -1);
  if (!at) i.Guess();
  elements.erase(elements.begin() + static_cast<ptrdiff_t>(at.value_or(elements.size() - 1)));
  return i.SetSequence(0, std::move(elements));
}

// Which one does not matter where all are alike.
bool SequenceAt(Inference& i) {
  if (!HasSequence(i, 0) || i.In(0)->elements.empty()) return false;
  const std::vector<OnnxValue>& elements = i.In(0)->elements;
  const std::optional<size_t> at = Position(i, 1, elements.size(), 0);
  const bool alike =
      std::ranges::all_of(elements, [&](const OnnxValue& other) { return other.dims == elements.front().dims; });
  if (!at && !alike) i.Guess();
  return i.SetLike(0, elements[at.value_or(0)]);
}

bool SequenceLength(Inference& i) { return HasSequence(i, 0) && i.Set(0, TensorProto::INT64, {}); }

// Into single slices where no sizes are given, which lose their axis unless it is kept; into parts of one size where
// one is given.
bool SplitToSequence(Inference& i) {
  if (!i.Has(0)) return false;
  const Dims& input = i.DimsOf(0);
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", 0), input.size());
  std::vector<int64_t> sizes;
  constexpr int64_t kMostElements = 100'000;
  const auto equal_parts = [&](int64_t part) {
    for (int64_t from = 0; from < input[axis]; from += part) sizes.push_back(std::min(part, input[axis] - from));
  };
  const bool single = i.In(1) == nullptr;
  if (single) {
    if (input[axis] > kMostElements) return i.Lack("it is split into too many parts");
    equal_parts(1);
  } else if (const Content* content = i.node.InputContent(1)) {
    const int64_t part = content->empty() ? 1 : ToInt(content->front());
    if (!i.DimsOf(1).empty()) {
      sizes = ToInts(*content);
    } else if (part < 1 || input[axis] / part > kMostElements) {
      return i.Fail(fmt::format("it is split into parts of {}", part));
    } else {
      equal_parts(part);
    }
  } else {
    i.Guess();
    sizes.push_back(input[axis]);
  }
  std::vector<OnnxValue> elements;
  for (const int64_t size : sizes) {
    OnnxValue element{.type = i.TypeOf(0), .dims = input, .known_dims = true};
    element.dims[axis] = size;
    if (single && i.node.attributes.Int("keepdims", 1) == 0)
      element.dims.erase(element.dims.begin() + static_cast<ptrdiff_t>(axis));
    elements.push_back(std::move(element));
  }
  return i.SetSequence(0, std::move(elements));
}

bool ConcatFromSequence(Inference& i) {
  if (!HasSequence(i, 0) || i.In(0)->elements.empty()) return false;
  const std::vector<OnnxValue>& elements = i.In(0)->elements;
  Dims dims = elements.front().dims;
  const bool stacks = i.node.attributes.Int("new_axis", 0) != 0;
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", 0), dims.size() + (stacks ? 1 : 0));
  if (stacks) dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), static_cast<int64_t>(elements.size()));
  for (size_t k = 1; k < elements.size() && !stacks; ++k) {
    if (elements[k].dims.size() != dims.size()) return i.Fail("its elements have different numbers of dimensions");
    dims[axis] = Add(dims[axis], elements[k].dims[axis], i.node);
  }
  return i.Set(0, elements.front().type, std::move(dims));
}

// --- Optionals: sequences of one element, or of none -------------------------------------------------------

bool Optional(Inference& i) {
  i.SetSequence(0, i.In(0) != nullptr ? std::vector<OnnxValue>{AsElement(*i.In(0))} : std::vector<OnnxValue>{});
  i.outputs[0].is_optional = true;
  return true;
}

bool OptionalHasElement(Inference& i) { return i.Set(0, TensorProto::BOOL, {}); }

// Of an optional; a tensor or a sequence is its own element.
bool OptionalGetElement(Inference& i) {
  if (i.In(0) == nullptr || !i.In(0)->is_optional) return i.In(0) != nullptr && i.SetLike(0, *i.In(0));
  return !i.In(0)->elements.empty() && i.SetLike(0, i.In(0)->elements.front());
}

constexpr ShapeRuleEntry kSequenceShapeRules[] = {
    {"SequenceConstruct", SequenceConstruct},
    {"SequenceEmpty", SequenceEmpty},
    {"SequenceInsert", SequenceInsert},
    {"SequenceErase", SequenceErase},
    {"SequenceAt", SequenceAt},
    {"SequenceLength", SequenceLength},
    {"SplitToSequence", SplitToSequence},
    {"ConcatFromSequence", ConcatFromSequence},
    {"Optional", Optional},
    {"OptionalHasElement", OptionalHasElement},
    {"OptionalGetElement", OptionalGetElement},
};

}  // namespace

std::span<const ShapeRuleEntry> SequenceShapeRules() { return kSequenceShapeRules; }

}  // namespace berth
