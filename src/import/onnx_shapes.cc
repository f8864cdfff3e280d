#include "import/onnx_shapes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "import/onnx_reshape.h"
#include "import/onnx_schema.h"
#include "import/onnx_windows.h"

namespace berth {
namespace {

using onnx::TensorProto;

// What a rule works on. A rule sets the outputs that it knows and answers false when it knows none.
struct Inference {
  const OnnxNode& node;
  const FileShapes& file;
  NoteList& notes;
  std::vector<Value>& outputs;
  std::string problem{};

  const Value* In(size_t i) const { return node.Input(i); }
  int32_t TypeOf(size_t i) const { return In(i) != nullptr ? In(i)->type : 0; }
  bool Set(size_t output, int32_t type, Dims dims) {
    if (output >= outputs.size()) return true;
    outputs[output].type = type;
    outputs[output].dims = std::move(dims);
    outputs[output].known_dims = true;
    return true;
  }
};

using Rule = bool (*)(Inference&);

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

// --- Shapes that follow the first input --------------------------------------------------------------------

bool LikeFirst(Inference& i) {
  if (i.In(0) == nullptr) return false;
  return i.Set(0, i.TypeOf(0), i.In(0)->dims);
}

// Skip layers hand on the sum before the normalisation as well, as their fourth output.
bool SkipNormalization(Inference& i) {
  if (i.In(0) == nullptr) return false;
  i.Set(0, i.TypeOf(0), i.In(0)->dims);
  return i.Set(3, i.TypeOf(0), i.In(0)->dims);
}

bool LayerNormalization(Inference& i) {
  if (i.In(0) == nullptr) return false;
  i.Set(0, i.TypeOf(0), i.In(0)->dims);
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", -1), i.In(0)->dims.size());
  Dims rows = i.In(0)->dims;
  std::fill(rows.begin() + static_cast<ptrdiff_t>(axis), rows.end(), 1);
  i.Set(1, TensorProto::FLOAT, rows);
  return i.Set(2, TensorProto::FLOAT, rows);
}

// Its second output is the mask.
bool Dropout(Inference& i) { return LikeFirst(i) && i.Set(1, TensorProto::BOOL, i.In(0)->dims); }

bool Quantize(Inference& i) {
  if (i.In(0) == nullptr) return false;
  const int64_t asked = i.node.attributes.Int("output_dtype", 0);
  const int32_t type = i.In(2) != nullptr ? i.TypeOf(2) : asked != 0 ? static_cast<int32_t>(asked) : TensorProto::UINT8;
  return i.Set(0, type, i.In(0)->dims);
}

bool TypeOfSecond(Inference& i) {
  if (i.In(0) == nullptr) return false;
  return i.Set(0, i.TypeOf(1), i.In(0)->dims);
}

// --- Shapes that a file has fixed --------------------------------------------------------------------------

bool Reshape(Inference& i) {
  if (i.In(0) == nullptr) return false;
  const Dims& input = i.In(0)->dims;
  Dims target;
  if (const Content* content = i.node.InputContent(1)) {
    target = ToInts(*content);
  } else if (i.In(1) == nullptr && i.node.attributes.Has("shape")) {  // before opset 5
    const auto shape = i.node.attributes.Ints("shape");
    target.assign(shape.begin(), shape.end());
  } else {
    i.notes.Add("reshaped to what only a run can tell, taken as flat", i.node.proto.output(0));
    return i.Set(0, i.TypeOf(0), {CheckedElements(input, i.node.where)});
  }
  const std::optional<Dims> literal = ResolveReshape(i.node, input, target);
  std::optional<Dims> followed;
  if (i.file.input != nullptr && i.file.output != nullptr && IsFixedAs(target, *i.file.output)) {
    followed = FollowReshape(
        {.file_input = *i.file.input, .file_output = *i.file.output, .input = input, .changes = *i.file.changes});
  }
  if (followed && followed != literal)
    i.notes.Add("fixed shapes in the file that follow the sizes asked for", i.node.proto.output(0));
  if (!followed && !literal) {
    i.problem = fmt::format("{} does not go into {}", ToString(input), ToString(target));
    return false;
  }
  return i.Set(0, i.TypeOf(0), followed ? *followed : *literal);
}

// A constant that was written at the file's batch size takes the size asked for.
bool Expand(Inference& i) {
  const Content* content = i.node.InputContent(1);
  if (i.In(0) == nullptr || content == nullptr) return false;
  const Dims &input = i.In(0)->dims, target = ToInts(*content);
  Dims dims(std::max(input.size(), target.size()), 1);
  for (size_t back = 1; back <= dims.size(); ++back) {
    const int64_t from = back <= input.size() ? input[input.size() - back] : 1,
                  to = back <= target.size() ? target[target.size() - back] : 1;
    if (from != to && from != 1 && to != 1) {
      if (!i.In(0)->constant || i.file.changes == nullptr) return false;
      i.notes.Add("constants whose fixed sizes do not follow the sizes asked for", i.node.proto.output(0));
    }
    dims[dims.size() - back] = to == 1 ? from : to;
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// Where operands disagree, a constant was written at the file's batch size and the others are as asked for.
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

bool Broadcast(Inference& i) {
  constexpr std::string_view kToBool[] = {"Equal",          "Less", "LessOrEqual", "Greater",
                                          "GreaterOrEqual", "And",  "Or",          "Xor"};
  size_t rank = 0;
  for (const Value* input : i.node.inputs) rank = std::max(rank, input != nullptr ? input->dims.size() : 0);
  Dims dims(rank, 1);
  std::vector<bool> constant(rank, true);
  for (const Value* input : i.node.inputs) {
    if (input == nullptr) continue;
    const size_t skip = rank - input->dims.size();
    for (size_t axis = 0; axis < input->dims.size(); ++axis) {
      const int64_t dim = input->dims[axis];
      if (dim == 1) continue;
      bool is_constant = constant[axis + skip];
      if (dims[axis + skip] == 1) {
        dims[axis + skip] = dim;
        is_constant = input->constant;
      } else if (!Agree(i, dims[axis + skip], is_constant, dim, input->constant)) {
        i.problem = fmt::format("sizes {} and {} do not go together", dims[axis + skip], dim);
        return false;
      }
      constant[axis + skip] = is_constant;
    }
  }
  const bool to_bool = std::ranges::count(kToBool, i.node.type) > 0;
  return i.Set(0, to_bool ? TensorProto::BOOL : i.TypeOf(i.node.type == "Where" ? 1 : 0), std::move(dims));
}

bool Concat(Inference& i) {
  const Value* first = i.In(0);
  if (first == nullptr) return false;
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", i.node.opset < 4 ? 1 : 0), first->dims.size());
  Dims dims = first->dims;
  std::vector<bool> constant(dims.size(), first->constant);
  for (size_t k = 1; k < i.node.inputs.size(); ++k) {
    const Value* input = i.In(k);
    if (input == nullptr || input->dims.size() != dims.size()) {
      i.problem = "its inputs have different numbers of dimensions";
      return false;
    }
    for (size_t at = 0; at < dims.size(); ++at) {
      bool is_constant = constant[at];
      if (at == axis) {
        if (__builtin_add_overflow(dims[at], input->dims[at], &dims[at])) return false;
      } else if (!Agree(i, dims[at], is_constant, input->dims[at], input->constant)) {
        i.problem =
            fmt::format("{} and {} cannot be joined along axis {}", ToString(dims), ToString(input->dims), axis);
        return false;
      }
      constant[at] = is_constant;
    }
  }
  return i.Set(0, first->type, std::move(dims));
}

// --- Ops whose newer versions take as inputs what was an attribute -----------------------------------------

bool Reduce(Inference& i) {
  if (i.In(0) == nullptr) return false;
  bool known = true;
  const std::vector<int64_t> axes = Axes(i.node, 1, known);
  if (!known) return false;
  const Dims& input = i.In(0)->dims;
  const bool keeps = i.node.attributes.Int("keepdims", 1) != 0;
  const bool all = axes.empty() && i.node.attributes.Int("noop_with_empty_axes", 0) == 0;
  std::vector<bool> reduced(input.size(), all);
  for (const int64_t axis : axes) reduced[Axis(i.node, axis, input.size())] = true;
  Dims dims;
  for (size_t axis = 0; axis < input.size(); ++axis) {
    if (!reduced[axis]) dims.push_back(input[axis]);
    if (reduced[axis] && keeps) dims.push_back(1);
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool Split(Inference& i) {
  if (i.In(0) == nullptr) return false;
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", 0), i.In(0)->dims.size());
  const std::vector<int64_t> sizes = SplitSizes(i.node, axis);
  if (sizes.size() != i.outputs.size()) return false;
  for (size_t k = 0; k < sizes.size(); ++k) {
    Dims dims = i.In(0)->dims;
    dims[axis] = sizes[k];
    i.Set(k, i.TypeOf(0), std::move(dims));
  }
  return true;
}

bool Pad(Inference& i) {
  if (i.In(0) == nullptr) return false;
  std::vector<int64_t> pads;
  if (const Content* content = i.node.InputContent(1)) {
    pads = ToInts(*content);
  } else if (i.In(1) == nullptr) {
    const auto attribute = i.node.attributes.Ints(i.node.attributes.Has("pads") ? "pads" : "paddings");
    pads.assign(attribute.begin(), attribute.end());
  } else {
    return false;
  }
  Dims dims = i.In(0)->dims;
  std::vector<int64_t> axes(dims.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) axes[axis] = static_cast<int64_t>(axis);
  if (const Content* content = i.node.InputContent(3)) axes = ToInts(*content);
  if (i.In(3) != nullptr && i.node.InputContent(3) == nullptr) return false;
  if (pads.size() != 2 * axes.size()) {
    i.problem = fmt::format("it pads {} axes with {} numbers", axes.size(), pads.size());
    return false;
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    int64_t& dim = dims[Axis(i.node, axes[k], dims.size())];
    if (__builtin_add_overflow(dim, pads[k], &dim) || __builtin_add_overflow(dim, pads[k + axes.size()], &dim))
      return false;
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool Resize(Inference& i) {
  if (i.In(0) == nullptr) return false;
  const Dims& input = i.In(0)->dims;
  const size_t scales_at = i.node.opset < 11 ? 1 : 2;
  const Content *scales = i.node.InputContent(scales_at), *sizes = i.node.InputContent(3);
  const bool by_scales = scales != nullptr && !scales->empty();
  const Content* given = by_scales ? scales : sizes;
  if (given == nullptr) return false;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < input.size(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  if (i.node.attributes.Has("axes")) {
    const auto attribute = i.node.attributes.Ints("axes");
    axes.assign(attribute.begin(), attribute.end());
  }
  if (given->size() != axes.size()) return false;
  // The policies other than stretch keep the proportions: one scale for all, the smallest or the largest that was asked
  // for.
  const std::string_view policy = i.node.attributes.Text("keep_aspect_ratio_policy", "stretch");
  std::vector<long double> factors;
  Dims dims = input;
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t axis = Axis(i.node, axes[k], input.size());
    factors.push_back(by_scales          ? (*given)[k]
                      : input[axis] == 0 ? 1
                                         : (*given)[k] / static_cast<long double>(input[axis]));
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t axis = Axis(i.node, axes[k], input.size());
    const long double size = static_cast<long double>(input[axis]);
    if (by_scales) {
      dims[axis] = ToInt(std::floor(size * factors[k]));
    } else if (policy == "stretch") {
      dims[axis] = ToInt((*given)[k]);
    } else {
      const auto [least, most] = std::ranges::minmax_element(factors);
      dims[axis] = ToInt(std::floor(size * (policy == "not_larger" ? *least : *most) + 0.5L));
    }
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// --- Windows -----------------------------------------------------------------------------------------------

template <size_t kWeight>
bool Convolution(Inference& i) {
  std::optional<Dims> dims = WindowShape(i.node, kWeight, i.problem);
  if (!dims) return false;
  const int32_t type = i.node.type == "ConvInteger"   ? TensorProto::INT32
                       : i.node.type == "QLinearConv" ? i.TypeOf(7)
                                                      : i.TypeOf(0);
  return i.Set(0, type, std::move(*dims));
}

// Its second output, of MaxPool alone, is where each maximum was.
bool Pooling(Inference& i) {
  const std::optional<Dims> dims = WindowShape(i.node, 0, i.problem);
  return dims && i.Set(0, i.TypeOf(0), *dims) && i.Set(1, TensorProto::INT64, *dims);
}

bool ConvTranspose(Inference& i) {
  std::optional<Dims> dims = ConvTransposeShape(i.node, i.problem);
  return dims && i.Set(0, i.TypeOf(0), std::move(*dims));
}

bool GlobalPooling(Inference& i) {
  if (i.In(0) == nullptr || i.In(0)->dims.size() < 2) return false;
  Dims dims = i.In(0)->dims;
  std::fill(dims.begin() + 2, dims.end(), 1);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// --- Products and attention of other domains and newer opsets ----------------------------------------------

bool FusedMatMul(Inference& i) {
  if (i.In(0) == nullptr || i.In(1) == nullptr) return false;
  Dims left = i.In(0)->dims, right = i.In(1)->dims;
  if (left.size() < 2 || right.size() < 2) return false;
  if (i.node.attributes.Int("transA", 0) != 0) std::swap(left[left.size() - 1], left[left.size() - 2]);
  if (i.node.attributes.Int("transB", 0) != 0) std::swap(right[right.size() - 1], right[right.size() - 2]);
  Dims dims = left.size() >= right.size() ? left : right;
  dims[dims.size() - 2] = left[left.size() - 2];
  dims[dims.size() - 1] = right.back();
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool MatMulNBits(Inference& i) {
  if (i.In(0) == nullptr || i.In(0)->dims.empty()) return false;
  Dims dims = i.In(0)->dims;
  dims.back() = i.node.attributes.Int("N", 1);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool PackedAttention(Inference& i) {
  if (i.In(0) == nullptr || i.In(1) == nullptr || i.In(0)->dims.size() != 3) return false;
  const auto hidden = i.node.attributes.Ints("qkv_hidden_sizes");
  Dims dims = i.In(0)->dims;
  dims[2] = hidden.size() == 3 ? hidden[2] : DimAt(i.In(1)->dims, -1) / 3;
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

// Query, key and value apart; the keys and values so far come out again, longer by the new ones.
template <size_t kPastKey>
bool Attention(Inference& i) {
  const Value *query = i.In(0), *key = i.In(1), *value = i.In(2);
  if (query == nullptr || query->dims.size() < 3) return false;
  Dims dims = query->dims;
  const bool of_heads = dims.size() == 4;
  const int64_t heads =
      std::max<int64_t>(1, i.node.attributes.Int("q_num_heads", i.node.attributes.Int("num_heads", 1)));
  const int64_t key_heads = std::max<int64_t>(1, i.node.attributes.Int("kv_num_heads", heads));
  if (of_heads && value != nullptr) dims[3] = DimAt(value->dims, 3);
  if (!of_heads && value != nullptr && value->dims.size() == 3)
    dims[2] = Multiply(value->dims[2] / key_heads, heads, i.node);
  i.Set(0, i.TypeOf(0), std::move(dims));
  for (size_t output = 1; output < 3; ++output) {
    const Value *fresh = output == 1 ? key : value, *past = i.In(kPastKey + output - 1);
    if (fresh == nullptr) continue;
    const bool apart = fresh->dims.size() == 4;
    const int64_t so_far = past != nullptr ? DimAt(past->dims, -2) : 0;
    i.Set(output, fresh->type,
          {DimAt(fresh->dims, 0), apart ? DimAt(fresh->dims, 1) : key_heads, DimAt(fresh->dims, -2) + so_far,
           apart ? DimAt(fresh->dims, 3) : DimAt(fresh->dims, 2) / key_heads});
  }
  return true;
}

// The last axis of the indices walks into as many axes of the data, behind the batch's.
bool GatherNd(Inference& i) {
  const Value *data = i.In(0), *indices = i.In(1);
  if (data == nullptr || indices == nullptr || indices->dims.empty()) return false;
  const int64_t rank = static_cast<int64_t>(data->dims.size()), batch = i.node.attributes.Int("batch_dims", 0),
                walked = indices->dims.back();
  if (batch < 0 || batch > rank || walked > rank - batch) {
    i.problem = fmt::format("indices of {} walk out of {}", ToString(indices->dims), ToString(data->dims));
    return false;
  }
  Dims dims(indices->dims.begin(), indices->dims.end() - 1);
  dims.insert(dims.end(), data->dims.begin() + batch + walked, data->dims.end());
  return i.Set(0, data->type, std::move(dims));
}

// --- Sizes that only the data decides: the largest possible ------------------------------------------------

void NoteLargest(Inference& i) {
  i.notes.Add("sizes that only a run can tell, taken as the largest possible", i.node.proto.output(0));
}

bool NonZero(Inference& i) {
  if (i.In(0) == nullptr) return false;
  int64_t count = CheckedElements(i.In(0)->dims, i.node.where);
  if (const Content* content = i.node.InputContent(0)) {
    count = std::ranges::count_if(*content, [](long double number) { return number != 0; });
  } else {
    NoteLargest(i);
  }
  return i.Set(0, TensorProto::INT64, {static_cast<int64_t>(i.In(0)->dims.size()), count});
}

bool NonMaxSuppression(Inference& i) {
  if (i.In(0) == nullptr || i.In(1) == nullptr) return false;
  const Content* most = i.node.InputContent(2);
  int64_t boxes = DimAt(i.In(0)->dims, 1);
  if (most != nullptr && most->size() == 1) boxes = std::clamp<int64_t>(ToInt((*most)[0]), 0, boxes);
  NoteLargest(i);
  const int64_t batch_classes = Multiply(DimAt(i.In(1)->dims, 0), DimAt(i.In(1)->dims, 1), i.node);
  return i.Set(0, TensorProto::INT64, {Multiply(batch_classes, boxes, i.node), 3});
}

bool Unique(Inference& i) {
  if (i.In(0) == nullptr) return false;
  NoteLargest(i);
  Dims dims = i.In(0)->dims;
  const int64_t count = CheckedElements(dims, i.node.where);
  const bool whole = !i.node.attributes.Has("axis");
  const int64_t along = whole ? count : dims[Axis(i.node, i.node.attributes.Int("axis", 0), dims.size())];
  i.Set(0, i.TypeOf(0), whole ? Dims{count} : dims);
  for (size_t output = 1; output < 4; ++output) i.Set(output, TensorProto::INT64, {along});
  return true;
}

bool Compress(Inference& i) {
  if (i.In(0) == nullptr) return false;
  NoteLargest(i);
  if (i.node.attributes.Has("axis")) return LikeFirst(i);
  return i.Set(0, i.TypeOf(0), {CheckedElements(i.In(0)->dims, i.node.where)});
}

// --- Constants ---------------------------------------------------------------------------------------------

bool ConstantOfShape(Inference& i) {
  const Content* shape = i.node.InputContent(0);
  if (shape == nullptr) return false;
  int32_t type = TensorProto::FLOAT;
  for (const onnx::AttributeProto& attribute : i.node.proto.attribute()) {
    if (attribute.name() == "value" && attribute.has_t()) type = attribute.t().data_type();
  }
  return i.Set(0, type, ToInts(*shape));
}

bool ShapeOf(Inference& i) {
  return i.In(0) != nullptr && i.Set(0, TensorProto::INT64, {static_cast<int64_t>(i.In(0)->dims.size())});
}

const std::unordered_map<std::string_view, Rule>& Rules() {
  static const std::unordered_map<std::string_view, Rule> table = {
      {"Reshape", Reshape},
      {"Expand", Expand},
      {"Concat", Concat},
      {"Split", Split},
      {"Conv", Convolution<1>},
      {"FusedConv", Convolution<1>},
      {"ConvInteger", Convolution<1>},
      {"DeformConv", Convolution<1>},
      {"QLinearConv", Convolution<3>},
      {"MaxPool", Pooling},
      {"AveragePool", Pooling},
      {"LpPool", Pooling},
      {"ConvTranspose", ConvTranspose},
      {"GlobalAveragePool", GlobalPooling},
      {"GlobalMaxPool", GlobalPooling},
      {"GlobalLpPool", GlobalPooling},
      {"Pad", Pad},
      {"Resize", Resize},
      {"ReduceSum", Reduce},
      {"ReduceMean", Reduce},
      {"ReduceMax", Reduce},
      {"ReduceMin", Reduce},
      {"ReduceProd", Reduce},
      {"ReduceL1", Reduce},
      {"ReduceL2", Reduce},
      {"ReduceSumSquare", Reduce},
      {"ReduceLogSum", Reduce},
      {"ReduceLogSumExp", Reduce},
      {"LayerNormalization", LayerNormalization},
      {"SimplifiedLayerNormalization", LayerNormalization},
      {"RMSNormalization", LikeFirst},
      {"GroupNormalization", LikeFirst},
      {"SkipLayerNormalization", SkipNormalization},
      {"SkipSimplifiedLayerNormalization", SkipNormalization},
      {"RotaryEmbedding", LikeFirst},
      {"Dropout", Dropout},
      {"QuantizeLinear", Quantize},
      {"DequantizeLinear", TypeOfSecond},
      {"CastLike", TypeOfSecond},
      {"FusedMatMul", FusedMatMul},
      {"MatMulNBits", MatMulNBits},
      {"Attention", Attention<4>},
      {"com.microsoft.Attention", PackedAttention},
      {"MultiHeadAttention", Attention<6>},
      {"GroupQueryAttention", Attention<3>},
      {"GatherND", GatherNd},
      {"NonZero", NonZero},
      {"NonMaxSuppression", NonMaxSuppression},
      {"Unique", Unique},
      {"Compress", Compress},
      {"ConstantOfShape", ConstantOfShape},
      {"Shape", ShapeOf},
  };
  return table;
}

bool ApplyOwnRule(Inference& inference) {
  const OnnxNode& node = inference.node;
  if (!node.domain.empty() && node.domain != "com.microsoft") return false;
  const auto& rules = Rules();
  auto found = rules.end();
  if (!node.domain.empty()) found = rules.find(fmt::format("{}.{}", node.domain, node.type));
  if (found == rules.end()) found = rules.find(node.type);
  return found != rules.end() && found->second(inference);
}

// What the class of an op says of its shape, where nothing better is known.
bool ApplyClassRule(Inference& inference) {
  const OpRule* rule = FindOpRule(inference.node.domain, inference.node.type);
  if (rule == nullptr || inference.In(0) == nullptr) return false;
  if (rule->op_class == OpClass::kNormalization) return LikeFirst(inference);
  if (rule->op_class != OpClass::kElementwise) return false;
  return Broadcast(inference);
}

}  // namespace

std::vector<int64_t> SplitSizes(const OnnxNode& node, size_t axis) {
  if (const Content* content = node.InputContent(1)) return ToInts(*content);
  if (node.Input(1) != nullptr) return {};
  if (node.attributes.Has("split")) {
    const auto sizes = node.attributes.Ints("split");
    return {sizes.begin(), sizes.end()};
  }
  // Equal parts; since opset 18 the last may be smaller.
  const int64_t parts = node.proto.output_size(), size = node.inputs[0]->dims[axis];
  if (parts == 0) return {};
  const int64_t part = size / parts + (size % parts != 0 ? 1 : 0);
  std::vector<int64_t> sizes;
  for (int64_t k = 0; k < parts; ++k) sizes.push_back(std::clamp<int64_t>(size - k * part, 0, part));
  return sizes;
}

InferredShapes InferShapes(const OnnxNode& node, const FileShapes& file_shapes, NoteList& notes) {
  InferredShapes result;
  result.outputs.resize(static_cast<size_t>(node.proto.output_size()));
  if (result.outputs.empty()) return result;
  Inference inference{.node = node, .file = file_shapes, .notes = notes, .outputs = result.outputs};
  if (ApplyOwnRule(inference)) return result;
  if (inference.problem.empty()) {
    inference.problem = InferBySchema(node, result.outputs);
    if (!result.outputs[0].known_dims && ApplyClassRule(inference)) return result;
  }
  if (!result.outputs[0].known_dims) result.problem = std::move(inference.problem);
  return result;
}

}  // namespace berth
