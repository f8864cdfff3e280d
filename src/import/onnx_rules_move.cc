// Shapes of ops that take tensors apart, put them together, look elements up and repeat them.

#include <cmath>

#include "base/error.h"
#include "import/onnx_arguments.h"
#include "import/onnx_rule.h"

namespace berth {
namespace {

using onnx::TensorProto;

bool Concat(Inference& i) {
  if (!i.Has(0)) return false;
  const OnnxValue& first = *i.In(0);
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", i.node.opset < 4 ? 1 : 0), first.dims.size());
  Dims dims = first.dims;
  std::vector<bool> constant(dims.size(), first.constant);
  for (size_t k = 1; k < i.node.inputs.size(); ++k) {
    if (!i.Has(k) || i.Rank(k) != dims.size()) return i.Fail("its inputs have different numbers of dimensions");
    const OnnxValue& input = *i.In(k);
    for (size_t at = 0; at < dims.size(); ++at) {
      bool is_constant = constant[at];
      if (at == axis) {
        dims[at] = Add(dims[at], input.dims[at], i.node);
      } else if (!Agree(i, dims[at], is_constant, input.dims[at], input.constant)) {
        return i.Fail(
            fmt::format("{} and {} cannot be joined along axis {}", ToString(dims), ToString(input.dims), axis));
      }
      constant[at] = is_constant;
    }
  }
  return i.Set(0, first.type, std::move(dims));
}

bool Split(Inference& i) {
  if (!i.Has(0)) return false;
  const Dims& input = i.DimsOf(0);
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", 0), input.size());
  std::vector<int64_t> sizes = SplitSizes(i.node, axis);
  if (sizes.empty() && i.In(1) != nullptr) {
    // Parts that only a run tells: equal ones.
    sizes.assign(i.outputs.size(), DivideUp(input[axis], static_cast<int64_t>(i.outputs.size())));
    i.Guess();
  }
  if (sizes.size() != i.outputs.size())
    return i.Fail(fmt::format("it has {} sizes for {} outputs", sizes.size(), i.outputs.size()));
  for (size_t k = 0; k < sizes.size(); ++k) {
    Dims dims = input;
    dims[axis] = sizes[k];
    i.Set(k, i.TypeOf(0), std::move(dims));
  }
  return true;
}

// Where the cuts are only known in a run, a part is at most the whole.
bool Slice(Inference& i) {
  if (!i.Has(0)) return false;
  const std::optional<SliceCut> cut = ReadSlice(i.node);
  if (!cut) {
    i.Estimate();
    return i.Set(0, i.TypeOf(0), i.DimsOf(0));
  }
  return i.Set(0, i.TypeOf(0), cut->size);
}

bool Gather(Inference& i) {
  if (!i.Has(0, 1) || !i.Has(1)) return false;
  const Dims& data = i.DimsOf(0);
  const auto axis = static_cast<ptrdiff_t>(Axis(i.node, i.node.attributes.Int("axis", 0), data.size()));
  Dims dims(data.begin(), data.begin() + axis);
  dims.insert(dims.end(), i.DimsOf(1).begin(), i.DimsOf(1).end());
  dims.insert(dims.end(), data.begin() + axis + 1, data.end());
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool GatherElements(Inference& i) { return i.Has(0) && i.Has(1) && i.Set(0, i.TypeOf(0), i.DimsOf(1)); }

// The last axis of the indices walks into as many axes of the data, behind the batch's.
bool GatherNd(Inference& i) {
  if (!i.Has(0) || !i.Has(1, 1)) return false;
  const Dims &data = i.DimsOf(0), &indices = i.DimsOf(1);
  const int64_t rank = static_cast<int64_t>(data.size()), batch = i.node.attributes.Int("batch_dims", 0),
                walked = indices.back();
  if (batch < 0 || batch > rank || walked < 0 || walked > rank - batch)
    return i.Fail(fmt::format("indices of {} walk out of {}", ToString(indices), ToString(data)));
  Dims dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + batch + walked, data.end());
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// --- Repeated and filled -----------------------------------------------------------------------------------

// A constant that was written at the file's batch size takes the size asked for.
bool Expand(Inference& i) {
  if (!i.Has(0)) return false;
  const Content* content = i.node.InputContent(1);
  const Dims& input = i.DimsOf(0);
  if (content == nullptr) {
    i.Guess();
    Dims dims = input;
    const size_t rank = i.Has(1, 1) ? static_cast<size_t>(std::clamp<int64_t>(i.DimsOf(1)[0], 0, 16)) : 0;
    if (rank > dims.size()) dims.insert(dims.begin(), rank - dims.size(), 1);
    return i.Set(0, i.TypeOf(0), std::move(dims));
  }
  const Dims target = ToInts(*content);
  Dims dims(std::max(input.size(), target.size()), 1);
  for (size_t back = 1; back <= dims.size(); ++back) {
    const int64_t from = back <= input.size() ? input[input.size() - back] : 1,
                  to = back <= target.size() ? target[target.size() - back] : 1;
    if (from != to && from != 1 && to != 1) {
      if (!i.In(0)->constant || i.file.changes == nullptr)
        return i.Fail(fmt::format("{} cannot be expanded to {}", ToString(input), ToString(target)));
      i.notes.Add("constants whose fixed sizes do not follow the sizes asked for", i.node.proto.output(0));
    }
    dims[dims.size() - back] = to == 1 ? from : to;
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// Opset 1 takes a number of tiles and an axis.
bool Tile(Inference& i) {
  if (!i.Has(0)) return false;
  Dims dims = i.DimsOf(0);
  if (i.node.opset < 6 && i.In(2) != nullptr) {
    const auto tiles = ScalarInput(i, 1), axis = ScalarInput(i, 2);
    if (!tiles || !axis) return i.Lack("its tiles are not known");
    int64_t& dim = dims[Axis(i.node, ToInt(*axis), dims.size())];
    dim = Multiply(dim, ToInt(*tiles), i.node);
    return i.Set(0, i.TypeOf(0), std::move(dims));
  }
  const Content* repeats = i.node.InputContent(1);
  if (repeats == nullptr) {
    i.Guess();
    return i.Set(0, i.TypeOf(0), std::move(dims));
  }
  if (repeats->size() != dims.size())
    return i.Fail(fmt::format("{} repeats for {} axes", repeats->size(), dims.size()));
  for (size_t axis = 0; axis < dims.size(); ++axis) dims[axis] = Multiply(dims[axis], ToInt((*repeats)[axis]), i.node);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// Of unknown sizes: the input as it is, which most paddings hardly change.
bool Pad(Inference& i) {
  if (!i.Has(0)) return false;
  const std::optional<Padding> padding = ReadPadding(i.node);
  if (!padding) {
    i.Guess();
    return i.Set(0, i.TypeOf(0), i.DimsOf(0));
  }
  Dims dims = i.DimsOf(0);
  if (padding->before.size() != dims.size()) return i.Fail(padding->problem);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    dims[axis] = Add(Add(dims[axis], padding->before[axis], i.node), padding->behind[axis], i.node);
    if (dims[axis] < 0) return i.Fail(fmt::format("it cuts more than there is from axis {}", axis));
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// An axis as long as the depth, last or where it is asked for; the type is that of the values for off and on.
bool OneHot(Inference& i) {
  if (!i.Has(0)) return false;
  const auto depth = ScalarInput(i, 1);
  if (!depth) i.Guess();
  Dims dims = i.DimsOf(0);
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", -1), dims.size() + 1);
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), depth ? ToInt(*depth) : 1);
  return i.Set(0, i.TypeOf(2), std::move(dims));
}

bool Range(Inference& i) {
  const auto start = ScalarInput(i, 0), limit = ScalarInput(i, 1), delta = ScalarInput(i, 2);
  if (!start || !limit || !delta || *delta == 0) {
    i.Guess();
    return i.Set(0, i.TypeOf(0), {1});
  }
  return i.Set(0, i.TypeOf(0), {std::max<int64_t>(0, ToInt(std::ceil((*limit - *start) / *delta)))});
}

// Of a shape that only a run tells: ones.
bool ConstantOfShape(Inference& i) {
  int32_t type = TensorProto::FLOAT;
  for (const onnx::AttributeProto& attribute : i.node.proto.attribute()) {
    if (attribute.name() == "value" && attribute.has_t()) type = attribute.t().data_type();
  }
  if (const Content* shape = i.node.InputContent(0)) return i.Set(0, type, ToInts(*shape));
  if (!i.Has(0)) return false;
  i.Guess();
  return i.Set(0, type, Dims(static_cast<size_t>(std::clamp<int64_t>(DimAt(i.DimsOf(0), 0), 0, 16)), 1));
}

constexpr ShapeRuleEntry kMoveShapeRules[] = {
    {"Concat", Concat},
    {"Split", Split},
    {"Slice", Slice},
    {"Gather", Gather},
    {"GatherElements", GatherElements},
    {"GatherND", GatherNd},
    {"Scatter", LikeFirst},
    {"ScatterElements", LikeFirst},
    {"ScatterND", LikeFirst},
    {"TensorScatter", LikeFirst},
    {"Expand", Expand},
    {"Tile", Tile},
    {"Pad", Pad},
    {"OneHot", OneHot},
    {"Range", Range},
    {"ConstantOfShape", ConstantOfShape},
};

}  // namespace

std::span<const ShapeRuleEntry> MoveShapeRules() { return kMoveShapeRules; }

}  // namespace berth
