// Folding of ops that move elements: look-ups, cuts, joins, repetitions.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "import/onnx_arguments.h"
#include "import/onnx_fold.h"
#include "import/onnx_index.h"

namespace berth {
namespace {

using Number = long double;

size_t CountOf(const OnnxValue& value, const OnnxNode& node) {
  return static_cast<size_t>(CheckedElements(value.dims, node.where));
}

// Fills an output: from(index) is the position in `data` of each element; none leaves it out of reach, and all unknown.
template <typename From>
bool Pick(const OnnxNode& node, OnnxValue& output, const Content& data, const From& from) {
  Content content(CountOf(output, node));
  bool inside = true;
  ForEachIndex(output.dims, [&](size_t position, const Place& index) {
    const size_t at = inside ? from(index) : data.size();
    inside = inside && at < data.size();
    if (inside) content[position] = data[at];
  });
  if (inside) output.content = std::move(content);
  return inside;
}

bool Copy(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* input = node.InputContent(0);
  if (input == nullptr) return false;
  outputs[0].content = *input;
  return true;
}

// --- Look-ups ----------------------------------------------------------------------------------------------

// An index counts from the back where it is negative; throws Error when it is outside.
int64_t Looked(Number wanted, int64_t size, const OnnxNode& node) {
  const int64_t at = ToInt(wanted) < 0 ? ToInt(wanted) + size : ToInt(wanted);
  if (at < 0 || at >= size)
    throw Error("{}: index {} is outside of a dimension of {}", node.where, ToInt(wanted), size);
  return at;
}

bool Gather(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *data = node.InputContent(0), *indices = node.InputContent(1);
  if (data == nullptr || indices == nullptr) return false;
  const Dims &dims = node.inputs[0]->dims, &looked = node.inputs[1]->dims;
  const size_t axis = Axis(node, node.attributes.Int("axis", 0), dims.size());
  return Pick(node, outputs[0], *data, [&](const Place& index) {
    const std::span<const int64_t> all(index), of_indices = all.subspan(axis, looked.size());
    Place from;
    Append(from, all.first(axis));
    from.push_back(Looked((*indices)[PositionAt(of_indices, looked)], dims[axis], node));
    Append(from, all.subspan(axis + looked.size()));
    return PositionAt(from, dims);
  });
}

bool GatherElements(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *data = node.InputContent(0), *indices = node.InputContent(1);
  if (data == nullptr || indices == nullptr) return false;
  const Dims &dims = node.inputs[0]->dims, &looked = node.inputs[1]->dims;
  if (dims.size() != looked.size()) return false;
  const size_t axis = Axis(node, node.attributes.Int("axis", 0), dims.size());
  return Pick(node, outputs[0], *data, [&](Place index) {
    index[axis] = Looked((*indices)[PositionAt(index, looked)], dims[axis], node);
    for (size_t k = 0; k < dims.size(); ++k) {
      if (index[k] >= dims[k]) return data->size();
    }
    return PositionAt(index, dims);
  });
}

// Position in `dims` that a row of indices leads to, behind the axes in `before`.
Place Walk(const Content& indices, size_t row, size_t walked, Place before, const Dims& dims, const OnnxNode& node) {
  for (size_t k = 0; k < walked; ++k) {
    const int64_t size = before.size() < dims.size() ? dims[before.size()] : 0;
    before.push_back(Looked(indices[row * walked + k], size, node));
  }
  return before;
}

bool GatherNd(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *data = node.InputContent(0), *indices = node.InputContent(1);
  if (data == nullptr || indices == nullptr) return false;
  const Dims &dims = node.inputs[0]->dims, &looked = node.inputs[1]->dims;
  const size_t walked = static_cast<size_t>(looked.back()), rows = looked.size() - 1;
  const auto batch = static_cast<ptrdiff_t>(node.attributes.Int("batch_dims", 0));
  if (batch < 0 || static_cast<size_t>(batch) > rows) return false;
  const Dims row_dims(looked.begin(), looked.end() - 1);
  return Pick(node, outputs[0], *data, [&](const Place& index) {
    Place from =
        Walk(*indices, PositionAt(index, row_dims), walked, {index.begin(), index.begin() + batch}, dims, node);
    Append(from, std::span(index).subspan(rows));
    return from.size() == dims.size() ? PositionAt(from, dims) : data->size();
  });
}

// --- Scattered ---------------------------------------------------------------------------------------------

void Merge(Number& element, Number update, std::string_view how) {
  element = how == "add"   ? element + update
            : how == "mul" ? element * update
            : how == "max" ? std::max(element, update)
            : how == "min" ? std::min(element, update)
                           : update;
}

bool ScatterElements(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *data = node.InputContent(0), *indices = node.InputContent(1), *updates = node.InputContent(2);
  if (data == nullptr || indices == nullptr || updates == nullptr || updates->size() != indices->size()) return false;
  const Dims &dims = node.inputs[0]->dims, &looked = node.inputs[1]->dims;
  if (dims.size() != looked.size()) return false;
  const size_t axis = Axis(node, node.attributes.Int("axis", 0), dims.size());
  const std::string_view how = node.attributes.Text("reduction", "none");
  Content content = *data;
  bool inside = true;
  ForEachIndex(looked, [&](size_t position, Place index) {
    index[axis] = Looked((*indices)[position], dims[axis], node);
    for (size_t k = 0; k < dims.size(); ++k) inside = inside && index[k] < dims[k];
    if (inside) Merge(content[PositionAt(index, dims)], (*updates)[position], how);
  });
  outputs[0].content = std::move(content);
  return inside;
}

bool ScatterNd(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *data = node.InputContent(0), *indices = node.InputContent(1), *updates = node.InputContent(2);
  if (data == nullptr || indices == nullptr || updates == nullptr) return false;
  const Dims &dims = node.inputs[0]->dims, &looked = node.inputs[1]->dims, &update_dims = node.inputs[2]->dims;
  if (looked.empty() || looked.back() > static_cast<int64_t>(dims.size())) return false;
  const size_t walked = static_cast<size_t>(looked.back()), rows = looked.size() - 1;
  if (update_dims.size() != rows + dims.size() - walked) return false;
  const Dims row_dims(looked.begin(), looked.end() - 1);
  const std::string_view how = node.attributes.Text("reduction", "none");
  Content content = *data;
  bool inside = true;
  ForEachIndex(update_dims, [&](size_t position, const Place& index) {
    for (size_t k = 0; k < rows; ++k) inside = inside && index[k] < row_dims[k];
    if (!inside) return;
    Place to = Walk(*indices, PositionAt(index, row_dims), walked, {}, dims, node);
    Append(to, std::span(index).subspan(rows));
    for (size_t k = 0; k < dims.size(); ++k) inside = inside && to[k] < dims[k];
    if (inside) Merge(content[PositionAt(to, dims)], (*updates)[position], how);
  });
  outputs[0].content = std::move(content);
  return inside;
}

// --- Cuts and joins ----------------------------------------------------------------------------------------

bool Concat(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Dims& dims = outputs[0].dims;
  const size_t axis = Axis(node, node.attributes.Int("axis", node.opset < 4 ? 1 : 0), dims.size());
  size_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(dims[i]);
  Content content;
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Content* part = node.InputContent(i);
      if (part == nullptr) return false;
      const size_t size = part->size() / outer;
      const auto from = part->begin() + static_cast<ptrdiff_t>(o * size);
      content.insert(content.end(), from, from + static_cast<ptrdiff_t>(size));
    }
  }
  outputs[0].content = std::move(content);
  return true;
}

// Starts and steps of a cut along every axis.
bool Cut(const OnnxNode& node, OnnxValue& output, const std::vector<int64_t>& start, const std::vector<int64_t>& step) {
  const Content* data = node.InputContent(0);
  const Dims& dims = node.inputs[0]->dims;
  if (data == nullptr || dims.size() != output.dims.size()) return false;
  return Pick(node, output, *data, [&](const Place& index) {
    Place from(dims.size());
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t offset = 0;
      if (__builtin_mul_overflow(index[axis], step[axis], &offset) ||
          __builtin_add_overflow(start[axis], offset, &from[axis]) || from[axis] < 0 || from[axis] >= dims[axis]) {
        return data->size();
      }
    }
    return PositionAt(from, dims);
  });
}

bool Slice(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const std::optional<SliceCut> cut = ReadSlice(node);
  return cut && Cut(node, outputs[0], cut->start, cut->step);
}

bool Split(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Dims& dims = node.inputs[0]->dims;
  const size_t axis = Axis(node, node.attributes.Int("axis", 0), dims.size());
  std::vector<int64_t> start(dims.size(), 0), step(dims.size(), 1);
  for (OnnxValue& output : outputs) {
    if (!Cut(node, output, start, step) || __builtin_add_overflow(start[axis], output.dims[axis], &start[axis]))
      return false;
  }
  return true;
}

bool Compress(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *data = node.InputContent(0), *condition = node.InputContent(1);
  if (data == nullptr || condition == nullptr) return false;
  const bool whole = !node.attributes.Has("axis");
  const Dims& dims = whole ? Dims{static_cast<int64_t>(data->size())} : node.inputs[0]->dims;
  const size_t axis = whole ? 0 : Axis(node, node.attributes.Int("axis", 0), dims.size());
  std::vector<int64_t> kept;
  for (size_t k = 0; k < condition->size() && static_cast<int64_t>(k) < dims[axis]; ++k) {
    if ((*condition)[k] != 0) kept.push_back(static_cast<int64_t>(k));
  }
  return Pick(node, outputs[0], *data, [&](Place index) {
    index[axis] = kept[static_cast<size_t>(index[axis])];
    return PositionAt(index, dims);
  });
}

// --- Orders ------------------------------------------------------------------------------------------------

bool Transpose(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* data = node.InputContent(0);
  const Dims& dims = node.inputs[0]->dims;
  const auto order = TransposeOrder(node, dims.size());
  if (data == nullptr || !order) return false;
  return Pick(node, outputs[0], *data, [&](const Place& index) {
    Place from(dims.size());
    for (size_t axis = 0; axis < dims.size(); ++axis) from[(*order)[axis]] = index[axis];
    return PositionAt(from, dims);
  });
}

bool ReverseSequence(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *data = node.InputContent(0), *lengths = node.InputContent(1);
  if (data == nullptr || lengths == nullptr) return false;
  const Dims& dims = node.inputs[0]->dims;
  const size_t batch = Axis(node, node.attributes.Int("batch_axis", 1), dims.size()),
               time = Axis(node, node.attributes.Int("time_axis", 0), dims.size());
  return Pick(node, outputs[0], *data, [&](Place index) {
    const auto sample = static_cast<size_t>(index[batch]);
    if (sample >= lengths->size()) return data->size();
    const int64_t length = ToInt((*lengths)[sample]);
    if (length > dims[time]) return data->size();
    if (index[time] < length) index[time] = length - 1 - index[time];
    return PositionAt(index, dims);
  });
}

// Channels into blocks of space: depth, column, row order as the mode says.
bool DepthToSpace(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* data = node.InputContent(0);
  const int64_t block = node.attributes.Int("blocksize", 0);
  if (data == nullptr || block < 1) return false;
  const Dims& dims = node.inputs[0]->dims;
  const int64_t channels = outputs[0].dims[1];
  const bool blocks_first = node.attributes.Text("mode", "DCR") == "DCR";
  return Pick(node, outputs[0], *data, [&](const Place& index) {
    const int64_t offset = index[2] % block * block + index[3] % block;
    const int64_t channel = blocks_first ? offset * channels + index[1] : index[1] * block * block + offset;
    return PositionAt(Place{index[0], channel, index[2] / block, index[3] / block}, dims);
  });
}

bool SpaceToDepth(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* data = node.InputContent(0);
  const int64_t block = node.attributes.Int("blocksize", 0);
  if (data == nullptr || block < 1) return false;
  const Dims& dims = node.inputs[0]->dims;
  const bool blocks_first = node.attributes.Text("mode", "DCR") == "DCR";
  return Pick(node, outputs[0], *data, [&](const Place& index) {
    const int64_t offset = blocks_first ? index[1] / dims[1] : index[1] % (block * block);
    const int64_t channel = blocks_first ? index[1] % dims[1] : index[1] / (block * block);
    return PositionAt(Place{index[0], channel, index[2] * block + offset / block, index[3] * block + offset % block},
                      dims);
  });
}

// --- Repeated and filled -----------------------------------------------------------------------------------

bool Expand(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* data = node.InputContent(0);
  const Dims& dims = node.inputs[0]->dims;
  if (data == nullptr || !Broadcasts(dims, outputs[0].dims)) return false;
  return Pick(node, outputs[0], *data, [&](const Place& index) { return BroadcastPosition(index, dims); });
}

bool Tile(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* data = node.InputContent(0);
  const Dims& dims = node.inputs[0]->dims;
  if (data == nullptr || dims.size() != outputs[0].dims.size()) return false;
  return Pick(node, outputs[0], *data, [&](Place index) {
    for (size_t axis = 0; axis < dims.size(); ++axis) index[axis] %= dims[axis];
    return PositionAt(index, dims);
  });
}

// Where in an axis of `size` a place outside of it is read; -1: nowhere.
int64_t PaddedFrom(int64_t at, int64_t size, std::string_view mode) {
  if (at >= 0 && at < size) return at;
  if (mode == "edge") return std::clamp<int64_t>(at, 0, size - 1);
  if (mode == "wrap") return (at % size + size) % size;
  if (mode != "reflect") return -1;
  const int64_t period = std::max<int64_t>(1, 2 * (size - 1)), place = (at % period + period) % period;
  return place < size ? place : period - place;
}

bool Pad(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* data = node.InputContent(0);
  const std::optional<Padding> padding = ReadPadding(node);
  const Dims& dims = node.inputs[0]->dims;
  if (data == nullptr || !padding || padding->before.size() != dims.size()) return false;
  Number filling = 0;
  if (const auto given = node.attributes.Reals("value"); given.size() == 1) filling = given[0];
  if (node.Input(2) != nullptr) {
    const Content* value = node.InputContent(2);
    if (value == nullptr || value->size() != 1) return false;
    filling = value->front();
  }
  const std::string_view mode = node.attributes.Text("mode", "constant");
  Content content(CountOf(outputs[0], node));
  ForEachIndex(outputs[0].dims, [&](size_t position, Place index) {
    bool outside = false;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      int64_t from = 0;
      const bool far = __builtin_sub_overflow(index[axis], padding->before[axis], &from);
      index[axis] = dims[axis] > 0 && !far ? PaddedFrom(from, dims[axis], mode) : -1;
      outside |= index[axis] < 0;
    }
    content[position] = outside ? filling : (*data)[PositionAt(index, dims)];
  });
  outputs[0].content = std::move(content);
  return true;
}

bool OneHot(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *indices = node.InputContent(0), *values = node.InputContent(2);
  if (indices == nullptr || values == nullptr || values->size() != 2) return false;
  const Dims& dims = node.inputs[0]->dims;
  const size_t axis = Axis(node, node.attributes.Int("axis", -1), dims.size() + 1);
  const int64_t depth = outputs[0].dims[axis];
  Content content(CountOf(outputs[0], node));
  ForEachIndex(outputs[0].dims, [&](size_t position, Place index) {
    const int64_t at = index[axis];
    index.erase(index.begin() + static_cast<ptrdiff_t>(axis));
    const int64_t given = ToInt((*indices)[PositionAt(index, dims)]);
    content[position] = (*values)[(given < 0 ? given + depth : given) == at ? 1 : 0];
  });
  outputs[0].content = std::move(content);
  return true;
}

bool Range(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *start = node.InputContent(0), *delta = node.InputContent(2);
  if (start == nullptr || delta == nullptr || start->size() != 1 || delta->size() != 1) return false;
  Content content(CountOf(outputs[0], node));
  for (size_t i = 0; i < content.size(); ++i)
    content[i] = AsType((*start)[0] + static_cast<Number>(i) * (*delta)[0], outputs[0].type);
  outputs[0].content = std::move(content);
  return true;
}

bool ConstantOfShape(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  Number filling = 0;
  for (const onnx::AttributeProto& attribute : node.proto.attribute()) {
    if (attribute.name() != "value" || !attribute.has_t()) continue;
    const OnnxValue value = ReadTensor(attribute.t(), node.where);
    if (!value.content || value.content->size() != 1) return false;
    filling = (*value.content)[0];
  }
  outputs[0].content = Content(CountOf(outputs[0], node), filling);
  return true;
}

bool EyeLike(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  if (outputs[0].dims.size() != 2) return false;
  const int64_t diagonal = node.attributes.Int("k", 0);
  Content content(CountOf(outputs[0], node));
  ForEachIndex(outputs[0].dims, [&](size_t position, const Place& index) {
    int64_t at = 0;
    const bool set = !__builtin_add_overflow(index[0], diagonal, &at) && at == index[1];
    content[position] = static_cast<Number>(set);
  });
  outputs[0].content = std::move(content);
  return true;
}

bool Trilu(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* data = node.InputContent(0);
  const Dims& dims = outputs[0].dims;
  if (data == nullptr || dims.size() < 2) return false;
  int64_t diagonal = 0;
  if (node.Input(1) != nullptr) {
    const Content* given = node.InputContent(1);
    if (given == nullptr || given->size() != 1) return false;
    diagonal = std::clamp<int64_t>(ToInt(given->front()), -kMaxContent, kMaxContent);
  }
  const bool upper = node.attributes.Int("upper", 1) != 0;
  Content content = *data;
  ForEachIndex(dims, [&](size_t position, const Place& index) {
    const int64_t above = index[dims.size() - 1] - index[dims.size() - 2] - diagonal;
    if (upper ? above < 0 : above > 0) content[position] = 0;
  });
  outputs[0].content = std::move(content);
  return true;
}

// --- Sizes -------------------------------------------------------------------------------------------------

bool ShapeOf(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Dims& dims = node.inputs[0]->dims;
  const int64_t rank = static_cast<int64_t>(dims.size()), start = node.attributes.Int("start", 0);
  const int64_t from = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  const auto first = dims.begin() + from;
  outputs[0].content = Content(first, first + std::min(outputs[0].dims[0], rank - from));
  return true;
}

bool SizeOf(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  outputs[0].content = Content{static_cast<Number>(CheckedElements(node.inputs[0]->dims, node.where))};
  return true;
}

bool SequenceLength(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  outputs[0].content = Content{static_cast<Number>(node.inputs[0]->elements.size())};
  return true;
}

bool OptionalHasElement(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const OnnxValue* input = node.Input(0);
  outputs[0].content =
      Content{static_cast<Number>(input != nullptr && !(input->is_optional && input->elements.empty()))};
  return true;
}

constexpr FoldRuleEntry kMoveFoldRules[] = {
    {"Identity", Copy},
    {"Reshape", Copy},
    {"Flatten", Copy},
    {"Squeeze", Copy},
    {"Unsqueeze", Copy},
    {"Gather", Gather},
    {"GatherElements", GatherElements},
    {"GatherND", GatherNd},
    {"Scatter", ScatterElements},
    {"ScatterElements", ScatterElements},
    {"ScatterND", ScatterNd},
    {"Concat", Concat},
    {"Slice", Slice},
    {"Split", Split},
    {"Compress", Compress},
    {"Transpose", Transpose},
    {"ReverseSequence", ReverseSequence},
    {"DepthToSpace", DepthToSpace},
    {"SpaceToDepth", SpaceToDepth},
    {"Expand", Expand},
    {"Tile", Tile},
    {"Pad", Pad},
    {"OneHot", OneHot},
    {"Range", Range},
    {"ConstantOfShape", ConstantOfShape},
    {"EyeLike", EyeLike},
    {"Trilu", Trilu},
    {"Shape", ShapeOf},
    {"Size", SizeOf},
    {"SequenceLength", SequenceLength},
    {"OptionalHasElement", OptionalHasElement},
};

}  // namespace

std::span<const FoldRuleEntry> MoveFoldRules() { return kMoveFoldRules; }

}  // namespace berth
