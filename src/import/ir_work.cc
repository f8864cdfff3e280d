#include "import/ir_work.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "import/body_work.h"

namespace berth {
namespace {

constexpr uint32_t Bits(std::initializer_list<int> which) {
  uint32_t bits = 0;
  for (const int i : which) bits |= 1u << i;
  return bits;
}

// Of a layer that reads nothing but constants: what leaves the graph, what a run before it left, and what is drawn.
bool IsNeverConstant(std::string_view type) {
  return type == "Result" || type == "ReadValue" || type == "RandomUniform" || type == "Multinomial";
}

// OpenVINO's operation sets 1 to 16, as far as they have a counterpart.
constexpr auto kOps = std::to_array<IrOpName>({
    {"Convolution", "Conv"},
    {"GroupConvolution", "Conv"},
    {"ConvolutionBackpropData", "ConvTranspose", Bits({2})},
    {"GroupConvolutionBackpropData", "ConvTranspose", Bits({2})},
    {"DeformableConvolution", "DeformConv"},
    {"MatMul", "MatMul"},
    {"Einsum", "Einsum"},
    {"LSTMSequence", "LSTM", Bits({3})},
    {"GRUSequence", "GRU", Bits({2})},
    {"RNNSequence", "RNN", Bits({2})},
    {"LSTMCell", "LSTM"},
    {"GRUCell", "GRU"},
    {"RNNCell", "RNN"},
    {"ScaledDotProductAttention", "Attention"},
    {"Add", "Add"},
    {"Subtract", "Sub"},
    {"Multiply", "Mul"},
    {"Divide", "Div"},
    {"Mod", "Mod"},
    {"FloorMod", "Mod"},
    {"Power", "Pow"},
    {"Maximum", "Max"},
    {"Minimum", "Min"},
    {"Negative", "Neg"},
    {"Abs", "Abs"},
    {"Sign", "Sign"},
    {"Floor", "Floor"},
    {"Ceiling", "Ceil"},
    {"Round", "Round"},
    {"Sqrt", "Sqrt"},
    {"Exp", "Exp"},
    {"Log", "Log"},
    {"Erf", "Erf"},
    {"Sin", "Sin"},
    {"Cos", "Cos"},
    {"Tan", "Tan"},
    {"Asin", "Asin"},
    {"Acos", "Acos"},
    {"Atan", "Atan"},
    {"Asinh", "Asinh"},
    {"Acosh", "Acosh"},
    {"Atanh", "Atanh"},
    {"Sinh", "Sinh"},
    {"Cosh", "Cosh"},
    {"Tanh", "Tanh"},
    {"ReLU", "Relu"},
    {"PReLU", "PRelu"},
    {"Clamp", "Clip"},
    {"Sigmoid", "Sigmoid"},
    {"HardSigmoid", "HardSigmoid", Bits({1, 2})},
    {"HSigmoid", "HardSigmoid"},
    {"HSwish", "HardSwish"},
    {"Swish", "Swish"},
    {"Elu", "Elu"},
    {"Selu", "Selu", Bits({1, 2})},
    {"SoftPlus", "Softplus"},
    {"SoftSign", "Softsign"},
    {"Mish", "Mish"},
    {"Gelu", "Gelu"},
    {"Equal", "Equal"},
    {"NotEqual", "Equal"},
    {"Less", "Less"},
    {"LessEqual", "LessOrEqual"},
    {"Greater", "Greater"},
    {"GreaterEqual", "GreaterOrEqual"},
    {"LogicalAnd", "And"},
    {"LogicalOr", "Or"},
    {"LogicalXor", "Xor"},
    {"LogicalNot", "Not"},
    {"IsNaN", "IsNaN"},
    {"IsInf", "IsInf"},
    {"IsFinite", "IsInf"},
    {"BitwiseAnd", "BitwiseAnd"},
    {"BitwiseOr", "BitwiseOr"},
    {"BitwiseXor", "BitwiseXor"},
    {"BitwiseNot", "BitwiseNot"},
    {"BitwiseLeftShift", "BitShift"},
    {"BitwiseRightShift", "BitShift"},
    {"RandomUniform", "RandomUniform", Bits({0, 1, 2})},
    {"Select", "Where"},
    {"Convert", "Cast"},
    {"ConvertLike", "CastLike"},
    {"FakeQuantize", "QuantizeLinear"},
    {"Softmax", "Softmax"},
    {"SoftMax", "Softmax"},
    {"LogSoftmax", "LogSoftmax"},
    {"BatchNormInference", "BatchNormalization"},
    {"MVN", "MeanVarianceNormalization", Bits({1})},
    {"GroupNormalization", "GroupNormalization"},
    {"NormalizeL2", "LpNormalization", Bits({1})},
    {"LRN", "LRN", Bits({1})},
    {"ReduceSum", "ReduceSum", Bits({1})},
    {"ReduceMean", "ReduceMean", Bits({1})},
    {"ReduceMax", "ReduceMax", Bits({1})},
    {"ReduceMin", "ReduceMin", Bits({1})},
    {"ReduceProd", "ReduceProd", Bits({1})},
    {"ReduceL1", "ReduceL1", Bits({1})},
    {"ReduceL2", "ReduceL2", Bits({1})},
    {"ReduceLogicalAnd", "ReduceMin", Bits({1})},
    {"ReduceLogicalOr", "ReduceMax", Bits({1})},
    {"CumSum", "CumSum", Bits({1})},
    {"Multinomial", "Multinomial", Bits({1})},
    {"ROIAlign", "RoiAlign"},
    {"Col2Im", "Col2Im", Bits({1, 2})},
    {"TopK", "TopK", Bits({1})},
    {"MaxPool", "MaxPool"},
    {"AvgPool", "AveragePool"},
    {"Transpose", "Transpose", Bits({1})},
    {"Concat", "Concat"},
    {"Split", "Split", Bits({1})},
    {"VariadicSplit", "Split", Bits({1, 2})},
    {"Slice", "Slice", Bits({1, 2, 3, 4})},
    {"StridedSlice", "Slice", Bits({1, 2, 3})},
    {"Gather", "Gather", Bits({2})},
    {"GatherElements", "GatherElements"},
    {"GatherND", "GatherND"},
    {"ScatterUpdate", "ScatterElements", Bits({3})},
    {"ScatterElementsUpdate", "ScatterElements", Bits({3})},
    {"ScatterNDUpdate", "ScatterND"},
    {"Broadcast", "Expand", Bits({1, 2})},
    {"Tile", "Tile", Bits({1})},
    {"Pad", "Pad", Bits({1, 2, 3})},
    {"Interpolate", "Resize", Bits({1, 2, 3})},
    {"GridSample", "GridSample"},
    {"DepthToSpace", "DepthToSpace"},
    {"SpaceToDepth", "SpaceToDepth"},
    {"ReverseSequence", "ReverseSequence"},
    {"OneHot", "OneHot", Bits({1, 2, 3})},
    {"Eye", "EyeLike", Bits({0, 1, 2})},
    {"NonZero", "NonZero"},
    {"Range", "Range", Bits({0, 1, 2})},
    {"Reshape", "Reshape", Bits({1})},
    {"Squeeze", "Squeeze", Bits({1})},
    {"Unsqueeze", "Unsqueeze", Bits({1})},
    {"ShapeOf", "Shape"},
    {"Identity", "Identity"},
    {"ReadValue", "Identity"},
    {"Assign", "Identity"},
});

int BitsOf(std::string_view type) {
  static const std::map<std::string_view, int> kBits = {
      {"f64", 64},    {"i64", 64},   {"u64", 64},   {"f32", 32},   {"i32", 32},  {"u32", 32}, {"f16", 16},
      {"bf16", 16},   {"i16", 16},   {"u16", 16},   {"i8", 8},     {"u8", 8},    {"u6", 6},   {"i4", 4},
      {"u4", 4},      {"nf4", 4},    {"u3", 3},     {"u2", 2},     {"u1", 1},    {"bin", 1},  {"bool", 8},
      {"boolean", 8}, {"f8e4m3", 8}, {"f8e5m2", 8}, {"f8e8m0", 8}, {"f4e2m1", 4}};
  const auto found = kBits.find(type);
  return found == kBits.end() ? 32 : found->second;
}

DataType ComputeType(std::string_view type) {
  if (type == "f16") return DataType::kF16;
  if (type == "bf16") return DataType::kBF16;
  if (type == "i8" || type == "u8") return DataType::kI8;
  if (type == "f64") return DataType::kF64;
  return DataType::kF32;
}

std::vector<int64_t> IntsOf(std::string_view text) {
  std::vector<int64_t> ints;
  while (!text.empty()) {
    const size_t digit = text.find_first_of("-0123456789");
    if (digit == text.npos) break;
    text.remove_prefix(digit);
    int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc()) break;
    ints.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return ints;
}

}  // namespace

const IrOpName* FindIrOp(std::string_view ir_type) {
  static const auto index = [] {
    std::map<std::string_view, const IrOpName*> ops;
    for (const IrOpName& op : kOps) ops.emplace(op.ir, &op);
    return ops;
  }();
  const auto found = index.find(ir_type);
  return found == index.end() ? nullptr : found->second;
}

IrWork::IrWork(const IrNet& net, const std::string& path) : net_(net), path_(path) {
  FindConstants();
  for (size_t i = 0; i < net_.layers.size(); ++i) {
    for (const auto& body : net_.layers[i].bodies) bodies_[i].emplace_back(*body, path_);
  }
}

int64_t IrWork::BytesOf(const IrPort& port) const {
  const double bytes = std::ceil(Elements(port.dims) * BitsOf(port.type) / 8);
  if (!(bytes <= static_cast<double>(kMostTensorBytes)))
    throw Error("{}: a tensor of {} elements is none; check the dimensions", path_, Elements(port.dims));
  return static_cast<int64_t>(bytes);
}

void IrWork::FindConstants() {
  constant_.assign(net_.layers.size(), false);
  stored_bytes_.assign(net_.layers.size(), 0);
  std::vector<size_t> missing, found;
  std::vector<std::vector<size_t>> consumers(net_.layers.size());
  for (size_t i = 0; i < net_.layers.size(); ++i) {
    const IrLayer& l = net_.layers[i];
    for (const IrLayer::Source& source : l.inputs) consumers[source.layer].push_back(i);
    missing.push_back(l.inputs.size());
    if (l.type != "Const") continue;
    for (const IrPort& port : l.outputs) stored_bytes_[i] = std::min(stored_bytes_[i] + BytesOf(port), kMostGraphBytes);
    constant_[i] = true;
    found.push_back(i);
  }
  while (!found.empty()) {
    const size_t i = found.back();
    found.pop_back();
    for (const size_t c : consumers[i]) {
      stored_bytes_[c] = std::min(stored_bytes_[c] + stored_bytes_[i], kMostTensorBytes);
      if (--missing[c] > 0 || constant_[c] || IsNeverConstant(net_.layers[c].type)) continue;
      constant_[c] = true;
      found.push_back(c);
    }
  }
}

// What says how a Loop runs: how many rounds at most, and whether it begins.
bool IrWork::Describes(size_t layer, size_t input) const {
  if (net_.layers[layer].type == "Loop") return input < 2;
  const IrOpName* const name = FindIrOp(net_.layers[layer].type);
  return name != nullptr && input < 32 && (name->describing >> input & 1) != 0;
}

bool IrWork::ReadsWeight(size_t layer, size_t input) const {
  const size_t source = net_.layers[layer].inputs[input].layer;
  return constant_[source] && !constant_[layer] && stored_bytes_[source] > 0 && net_.layers[layer].type != "Result" &&
         !Describes(layer, input);
}

std::vector<IrWeight> IrWork::BodyWeights(size_t layer) const {
  std::vector<IrWeight> weights;
  const auto found = bodies_.find(layer);
  if (found == bodies_.end()) return weights;
  for (const IrWork& body : found->second) {
    std::vector<bool> seen(body.net_.layers.size(), false);
    for (size_t i = 0; i < body.net_.layers.size(); ++i) {
      for (size_t k = 0; k < body.net_.layers[i].inputs.size(); ++k) {
        const size_t source = body.net_.layers[i].inputs[k].layer;
        if (!body.ReadsWeight(i, k) || seen[source]) continue;
        seen[source] = true;
        weights.push_back({.bytes = body.stored_bytes_[source], .name = body.net_.layers[source].name});
      }
      if (!body.constant_[i]) std::ranges::move(body.BodyWeights(i), std::back_inserter(weights));
    }
  }
  return weights;
}

OpWork IrWork::Of(size_t layer, std::vector<std::string>& unknown) const {
  OpWork work = bodies_.contains(layer) ? OfBodies(layer, unknown) : OfFormula(layer, unknown);
  const IrLayer& l = net_.layers[layer];
  for (const IrPort& port : l.outputs) work.sizes = std::max(work.sizes, port.certainty);
  for (const IrLayer::Source& source : l.inputs) work.sizes = std::max(work.sizes, PortOf(source).certainty);
  return work;
}

OpWork IrWork::OfBodies(size_t layer, std::vector<std::string>& unknown) const {
  const IrLayer& l = net_.layers[layer];
  const std::vector<IrWork>& bodies = bodies_.at(layer);
  const OpWork first = bodies.front().OfAll(unknown);
  if (bodies.size() == 2) return LargerBranch(first, bodies.back().OfAll(unknown));
  OpWork work = Repeated(first, l.rounds, fmt::format("{}: layer '{}' ({})", path_, l.name, l.type));
  work.sizes = std::max(work.sizes, l.rounds_certainty);
  return work;
}

OpWork IrWork::OfAll(std::vector<std::string>& unknown) const {
  std::vector<OpWork> works;
  for (size_t i = 0; i < net_.layers.size(); ++i) {
    const std::string& type = net_.layers[i].type;
    if (!constant_[i] && type != "Parameter" && type != "Result") works.push_back(Of(i, unknown));
  }
  return WorkInTurn(works, path_);
}

// The shapes of the inputs as ONNX has them.
std::vector<Dims> IrWork::InputDims(const IrLayer& l) const {
  std::vector<Dims> dims;
  for (const IrLayer::Source& source : l.inputs) dims.push_back(PortOf(source).dims);
  const auto is_true = [&](std::string_view key) {
    const auto found = l.attributes.find(key);
    return found != l.attributes.end() && (found->second == "true" || found->second == "1" || found->second == "True");
  };
  if (l.type == "MatMul" && is_true("transpose_a") && dims.size() == 2 && dims[0].size() >= 2) {
    std::swap(dims[0][dims[0].size() - 1], dims[0][dims[0].size() - 2]);
  }
  // (groups, outputs, inputs, ...) is (groups * outputs, inputs, ...) there.
  if (l.type.starts_with("GroupConvolution") && dims.size() >= 2 && dims[1].size() >= 3) {
    dims[1][1] *= dims[1][0];
    dims[1].erase(dims[1].begin());
  }
  // A third input is the shape of the output, and no bias.
  if (l.type.ends_with("ConvolutionBackpropData") && dims.size() > 2) dims.resize(2);
  // Data, offsets, filter[, mask].
  if (l.type == "DeformableConvolution" && dims.size() >= 3) dims = {dims[0], dims[2]};
  // Query, key, value[, mask, scale]; what stands fourth and fifth in ONNX's op is what came before.
  if (l.type == "ScaledDotProductAttention" && dims.size() > 3) dims.resize(3);
  // X, H0[, C0], lengths, W, R, B: the weights stand at 1 and 2 there.
  if (l.type.ends_with("Sequence") && dims.size() >= 6) {
    const size_t at = l.type == "LSTMSequence" ? 4 : 3;
    dims = {dims[0], dims[at], dims[at + 1]};
  }
  // One step of one direction: X, H0[, C0], W, R, B, without the axis of these.
  const size_t weights = l.type == "LSTMCell" ? 3 : 2;
  if (l.type.ends_with("Cell") && dims.size() > weights + 1) {
    dims = {dims[0], dims[weights], dims[weights + 1]};
    for (Dims& each : dims) each.insert(each.begin(), 1);
  }
  return dims;
}

OpWork IrWork::OfFormula(size_t layer, std::vector<std::string>& unknown) const {
  const IrLayer& l = net_.layers[layer];
  const IrOpName* name = FindIrOp(l.type);
  const OpRule* rule = name == nullptr ? nullptr : FindOpRule("", name->onnx);
  OpWork work{.data_type = l.outputs.empty() ? DataType::kF32 : ComputeType(l.outputs.front().type)};
  if (rule == nullptr) {
    work.bytes_only = true;
    if (std::ranges::find(unknown, l.type) == unknown.end()) unknown.push_back(l.type);
  } else {
    CountLayer(l, *rule, work);
  }
  if (rule != nullptr && rule->traffic == Traffic::kNone) return work;
  // No sum overflows; the builder refuses what reaches the limit.
  for (const IrPort& port : l.outputs) {
    work.bytes_written = std::min(work.bytes_written + BytesOf(port), kMostGraphBytes);
  }
  for (size_t k = 0; k < l.inputs.size(); ++k) {
    if (Describes(layer, k)) continue;
    const int64_t bytes = BytesOf(PortOf(l.inputs[k]));
    const bool selected = rule != nullptr && rule->traffic == Traffic::kSelected && k == 0;
    const int64_t read = selected ? std::min(bytes, work.bytes_written) : bytes;
    work.bytes_read = std::min(work.bytes_read + read, kMostGraphBytes);
  }
  return work;
}

// All but its bytes.
void IrWork::CountLayer(const IrLayer& l, const OpRule& rule, OpWork& work) const {
  Attributes attributes;
  // A sequence of OpenVINO's has the batch first.
  if (l.type.ends_with("Sequence")) attributes.Set("layout", std::vector<int64_t>{1});
  for (const auto& [ir, onnx] : {std::pair("kernel", "kernel_shape"), std::pair("size", "size"),
                                 std::pair("sampling_ratio", "sampling_ratio")}) {
    if (const auto found = l.attributes.find(ir); found != l.attributes.end())
      attributes.Set(onnx, IntsOf(found->second));
  }
  if (const auto equation = l.attributes.find("equation"); equation != l.attributes.end())
    attributes.Set("equation", equation->second);
  if (const auto mode = l.attributes.find("mode"); mode != l.attributes.end()) {
    attributes.Set("mode", mode->second.starts_with("linear") ? std::string("linear") : mode->second);
  }
  const std::vector<Dims> inputs = InputDims(l);
  OpShapes shapes{attributes};
  for (const Dims& dims : inputs) shapes.inputs.push_back(&dims);
  for (const IrPort& port : l.outputs) shapes.outputs.push_back(&port.dims);
  if (!shapes.inputs.empty() && !shapes.outputs.empty()) {
    CountWork(rule, shapes, work);
  } else {
    work.op_class = rule.op_class;
  }
}

}  // namespace berth
