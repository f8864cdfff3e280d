#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "import/ir_net.h"

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

// OpenVINO's operation sets 1 to 15, as far as they have a counterpart.
constexpr auto kOps = std::to_array<IrOpName>({
    {"Convolution", "Conv"},
    {"GroupConvolution", "Conv"},
    {"ConvolutionBackpropData", "ConvTranspose", Bits({2})},
    {"GroupConvolutionBackpropData", "ConvTranspose", Bits({2})},
    {"DeformableConvolution", "DeformConv"},
    {"MatMul", "MatMul"},
    {"LSTMSequence", "LSTM", Bits({3})},
    {"GRUSequence", "GRU", Bits({2})},
    {"RNNSequence", "RNN", Bits({2})},
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
    {"CumSum", "CumSum", Bits({1})},
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

class GraphMaker {
 public:
  GraphMaker(const IrNet& net, IrView view, const std::string& path)
      : net_(net), view_(view), path_(path), builder_(net.name) {}

  Graph Make() {
    FindConstants();
    AddOps();
    if (builder_.num_ops() == 0) {
      throw Error("{}: has inputs, constants and results alone; a model with a layer that computes was expected",
                  path_);
    }
    for (size_t i = 0; i < net_.layers.size(); ++i) Connect(i);
    for (const std::string& note : net_.notes) builder_.AddNote(note);
    if (!unknown_.empty()) {
      builder_.AddNote(fmt::format("costed by their bytes, no formula is known: {}", fmt::join(unknown_, ", ")));
    }
    builder_.AddNote(
        view_ == IrView::kRaw
            ? "raw view: every layer of the IR is an op; constants and what is made of them cost and transfer nothing"
            : "folded view: constants are parameters, inputs and results are no ops");
    return builder_.Build(path_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  const IrLayer& layer(size_t i) const { return net_.layers[i]; }
  bool is_op(size_t i) const { return op_[i] != kNone; }

  int64_t BytesOf(const IrPort& port) const {
    const double bytes = std::ceil(Elements(port.dims) * BitsOf(port.type) / 8);
    if (!(bytes <= static_cast<double>(kMostTensorBytes)))
      throw Error("{}: a tensor of {} elements is none; check the dimensions", path_, Elements(port.dims));
    return static_cast<int64_t>(bytes);
  }

  // A layer is constant when it is a constant, or when all its inputs are. A weight is stored as the constants that it
  // is made of, so compressed ones count compressed.
  void FindConstants() {
    constant_.assign(net_.layers.size(), false);
    stored_bytes_.assign(net_.layers.size(), 0);
    std::vector<size_t> missing, found;
    std::vector<std::vector<size_t>> consumers(net_.layers.size());
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      const IrLayer& l = layer(i);
      for (const IrLayer::Source& source : l.inputs) consumers[source.layer].push_back(i);
      missing.push_back(l.inputs.size());
      if (l.type != "Const") continue;
      for (const IrPort& port : l.outputs)
        stored_bytes_[i] = std::min(stored_bytes_[i] + BytesOf(port), kMostGraphBytes);
      constant_[i] = true;
      found.push_back(i);
    }
    while (!found.empty()) {
      const size_t i = found.back();
      found.pop_back();
      for (const size_t c : consumers[i]) {
        stored_bytes_[c] = std::min(stored_bytes_[c] + stored_bytes_[i], kMostTensorBytes);
        if (--missing[c] > 0 || constant_[c] || IsNeverConstant(layer(c).type)) continue;
        constant_[c] = true;
        found.push_back(c);
      }
    }
  }

  void AddOps() {
    op_.assign(net_.layers.size(), kNone);
    entity_.resize(net_.layers.size());
    parameter_.assign(net_.layers.size(), kNone);
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      const IrLayer& l = layer(i);
      const bool ends = l.type == "Parameter" || l.type == "Result";
      if (view_ == IrView::kFolded && (constant_[i] || ends)) {
        if (l.type != "Parameter") continue;
        for (const IrPort& port : l.outputs) {
          entity_[i].push_back(builder_.AddInput(BytesOf(port), l.name));
          builder_.SetInputShape(entity_[i].back(), port.dims, port.type);
        }
        continue;
      }
      op_[i] =
          builder_.AddOp(l.name, l.type, constant_[i] || ends ? OpWork{.op_class = OpClass::kDataMovement} : WorkOf(i));
      for (const IrPort& port : l.outputs) {
        entity_[i].push_back(builder_.AddTensor(op_[i], constant_[i] ? 0 : BytesOf(port)));
        builder_.SetShape(entity_[i].back(), port.dims);
        if (constant_[i]) builder_.MarkConstant(entity_[i].back());
      }
    }
  }

  void Connect(size_t i) {
    const IrOpName* name = FindIrOp(layer(i).type);
    if (layer(i).type == "Result" && view_ == IrView::kFolded) {
      for (const IrLayer::Source& source : layer(i).inputs) {
        if (is_op(source.layer)) builder_.MarkOutput(entity_[source.layer][source.output]);
      }
      return;
    }
    if (!is_op(i)) return;
    for (size_t k = 0; k < layer(i).inputs.size(); ++k) {
      const auto [source, output] = layer(i).inputs[k];
      if (is_op(source)) {
        builder_.Consume(entity_[source][output], op_[i]);
      } else if (!constant_[source]) {
        builder_.UseInput(entity_[source][output], op_[i]);
      }
      // A constant that says how (a shape, axes) is part of the op, and no weight.
      const bool describes = name != nullptr && k < 32 && (name->describing >> k & 1) != 0;
      if (constant_[source] && !constant_[i] && !describes && stored_bytes_[source] > 0 && layer(i).type != "Result") {
        if (parameter_[source] == kNone)
          parameter_[source] = builder_.AddParameter(stored_bytes_[source], layer(source).name);
        builder_.UseParameter(parameter_[source], op_[i]);
      }
    }
  }

  const IrPort& PortOf(const IrLayer::Source& source) const { return layer(source.layer).outputs[source.output]; }

  // The shapes of the inputs as ONNX has them.
  std::vector<Dims> InputDims(const IrLayer& l) const {
    std::vector<Dims> dims;
    for (const IrLayer::Source& source : l.inputs) dims.push_back(PortOf(source).dims);
    const auto is_true = [&](std::string_view key) {
      const auto found = l.attributes.find(key);
      return found != l.attributes.end() &&
             (found->second == "true" || found->second == "1" || found->second == "True");
    };
    if (l.type == "MatMul" && is_true("transpose_a") && dims.size() == 2 && dims[0].size() >= 2) {
      std::swap(dims[0][dims[0].size() - 1], dims[0][dims[0].size() - 2]);
    }
    // (groups, outputs, inputs, ...) is (groups * outputs, inputs, ...) there.
    if (l.type.starts_with("GroupConvolution") && dims.size() >= 2 && dims[1].size() >= 3) {
      dims[1][1] *= dims[1][0];
      dims[1].erase(dims[1].begin());
    }
    // Data, offsets, filter[, mask].
    if (l.type == "DeformableConvolution" && dims.size() >= 3) dims = {dims[0], dims[2]};
    // Query, key, value[, mask, scale]; what stands fourth and fifth in ONNX's op is what came before.
    if (l.type == "ScaledDotProductAttention" && dims.size() > 3) dims.resize(3);
    // X, H0[, C0], lengths, W, R, B: the weights stand at 1 and 2 there.
    if (l.type.ends_with("Sequence") && dims.size() >= 6) {
      const size_t weights = l.type == "LSTMSequence" ? 4 : 3;
      dims = {dims[0], dims[weights], dims[weights + 1]};
    }
    return dims;
  }

  OpWork WorkOf(size_t i) {
    const IrLayer& l = layer(i);
    const IrOpName* name = FindIrOp(l.type);
    const OpRule* rule = name == nullptr ? nullptr : FindOpRule("", name->onnx);
    OpWork work{.data_type = l.outputs.empty() ? DataType::kF32 : ComputeType(l.outputs.front().type)};
    if (rule == nullptr) {
      work.bytes_only = true;
      if (std::ranges::find(unknown_, l.type) == unknown_.end()) unknown_.push_back(l.type);
    } else {
      CountLayer(l, *rule, work);
    }
    for (const IrPort& port : l.outputs) work.sizes = std::max(work.sizes, port.certainty);
    for (const IrLayer::Source& source : l.inputs) work.sizes = std::max(work.sizes, PortOf(source).certainty);
    if (rule != nullptr && rule->traffic == Traffic::kNone) return work;
    // No sum overflows; the builder refuses what reaches the limit.
    for (const IrPort& port : l.outputs) {
      work.bytes_written = std::min(work.bytes_written + BytesOf(port), kMostGraphBytes);
    }
    for (size_t k = 0; k < l.inputs.size(); ++k) {
      if (name != nullptr && k < 32 && (name->describing >> k & 1) != 0) continue;
      const int64_t bytes = BytesOf(PortOf(l.inputs[k]));
      const bool selected = rule != nullptr && rule->traffic == Traffic::kSelected && k == 0;
      const int64_t read = selected ? std::min(bytes, work.bytes_written) : bytes;
      work.bytes_read = std::min(work.bytes_read + read, kMostGraphBytes);
    }
    return work;
  }

  // All but its bytes.
  void CountLayer(const IrLayer& l, const OpRule& rule, OpWork& work) const {
    Attributes attributes;
    // A sequence of OpenVINO's has the batch first.
    if (l.type.ends_with("Sequence")) attributes.Set("layout", std::vector<int64_t>{1});
    if (const auto kernel = l.attributes.find("kernel"); kernel != l.attributes.end()) {
      attributes.Set("kernel_shape", IntsOf(kernel->second));
    }
    if (const auto size = l.attributes.find("size"); size != l.attributes.end())
      attributes.Set("size", IntsOf(size->second));
    if (const auto mode = l.attributes.find("mode"); mode != l.attributes.end()) {
      attributes.Set("mode", mode->second.starts_with("linear") ? std::string("linear") : mode->second);
    }
    const std::vector<Dims> inputs = InputDims(l);
    OpShapes shapes{attributes};
    for (const Dims& dims : inputs) shapes.inputs.push_back(&dims);
    for (const IrPort& port : l.outputs) shapes.outputs.push_back(&port.dims);
    work.op_class = rule.op_class;
    if (!shapes.inputs.empty() && !shapes.outputs.empty()) CountWork(rule, shapes, work);
  }

  const IrNet& net_;
  const IrView view_;
  const std::string& path_;
  GraphBuilder builder_;
  std::vector<bool> constant_;
  std::vector<int64_t> stored_bytes_;        // of a constant layer
  std::vector<size_t> op_;                   // or kNone
  std::vector<std::vector<size_t>> entity_;  // by output: a tensor, or an input in the folded view
  std::vector<size_t> parameter_;            // or kNone
  std::vector<std::string> unknown_;
};

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

Graph BuildIrGraph(const IrNet& net, IrView view, const std::string& path) {
  return GraphMaker(net, view, path).Make();
}

}  // namespace berth
