#include "import/op_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "import/einsum.h"

namespace berth {
namespace {

// --- Operands ----------------------------------------------------------------------------------------------

const Dims& DimsOf(const std::vector<const Dims*>& list, size_t i) {
  static const Dims none = {0};
  return i < list.size() && list[i] != nullptr ? *list[i] : none;
}

const Dims& In(const OpShapes& op, size_t i) { return DimsOf(op.inputs, i); }
const Dims& Out(const OpShapes& op, size_t i = 0) { return DimsOf(op.outputs, i); }
bool HasInput(const OpShapes& op, size_t i) { return i < op.inputs.size() && op.inputs[i] != nullptr; }

// A dimension from the front, or with a negative `axis` from the back; 1 where the tensor has fewer.
double Dim(const Dims& dims, int64_t axis) {
  const int64_t rank = std::ssize(dims);
  const int64_t at = axis < 0 ? rank + axis : axis;
  return at >= 0 && at < rank ? static_cast<double>(dims[static_cast<size_t>(at)]) : 1;
}

// A number of heads or the like, of which there is at least one, whatever a file says.
double Number(const OpShapes& op, std::string_view name, int64_t otherwise = 1) {
  return static_cast<double>(std::max<int64_t>(1, op.attributes.Int(name, otherwise)));
}

// Elements per index of the first axis: of a filter, what one output channel multiplies.
double PerFirst(const Dims& dims) {
  double product = 1;
  for (size_t i = 1; i < dims.size(); ++i) product *= static_cast<double>(dims[i]);
  return product;
}

double AllOutputs(const OpShapes& op) {
  double sum = 0;
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i] != nullptr) sum += Elements(*op.outputs[i]);
  }
  return sum;
}

// --- Formulas ----------------------------------------------------------------------------------------------
// A multiply-add is two operations; an elementary function (exp, tanh, erf, sqrt) and a comparison are one each.

double Nothing(const OpShapes&) { return 0; }

template <int kCount>
double PerOutput(const OpShapes& op) {
  return kCount * Elements(Out(op));
}

template <int kCount>
double PerInput(const OpShapes& op) {
  return kCount * Elements(In(op, 0));
}

// Sum, Mean, Max, Min of any number of tensors.
double Variadic(const OpShapes& op) {
  return static_cast<double>(std::max<size_t>(op.inputs.size(), 2) - 1) * Elements(Out(op));
}

template <size_t kWeight, size_t kBias>
double Conv(const OpShapes& op) {
  const double bias = HasInput(op, kBias) ? 1 : 0;
  return Elements(Out(op)) * (2 * PerFirst(In(op, kWeight)) + bias);
}

double ConvTranspose(const OpShapes& op) {
  const double bias = HasInput(op, 2) ? 1 : 0;
  return 2 * Elements(In(op, 0)) * PerFirst(In(op, 1)) + bias * Elements(Out(op));
}

double MatMul(const OpShapes& op) { return 2 * Elements(Out(op)) * Dim(In(op, 0), -1); }

double FusedMatMul(const OpShapes& op) {
  return 2 * Elements(Out(op)) * Dim(In(op, 0), op.attributes.Int("transA", 0) != 0 ? -2 : -1);
}

double Gemm(const OpShapes& op) {
  const double bias = HasInput(op, 2) ? 1 : 0;
  return Elements(Out(op)) * (2 * Dim(In(op, 0), op.attributes.Int("transA", 0) != 0 ? 0 : 1) + bias);
}

double MatMulNBits(const OpShapes& op) { return 2 * Elements(In(op, 0)) * Number(op, "N"); }

// Every combination of the labels is one product; it is added up where a label is missing from the result.
double Einsum(const OpShapes& op) {
  std::string problem;
  const auto equation = ParseEinsum(op.attributes.Text("equation", ""), op.inputs, problem);
  if (!equation) return 0;
  return equation->combinations() * (static_cast<double>(op.inputs.size()) - 1 + (equation->sums() ? 1 : 0));
}

// Per step, sample and direction: the products with W and R, and per hidden unit the additions, gates and state
// updates.
template <int kGates, int kPerUnit>
double Recurrent(const OpShapes& op) {
  const double input = Dim(In(op, 0), -1);
  const double samples = input > 0 ? Elements(In(op, 0)) / input : 0;
  const double directions = Dim(In(op, 2), 0), hidden = Dim(In(op, 2), -1);
  return samples * directions * hidden * (2 * kGates * (input + hidden) + kPerUnit);
}

// X: (steps, batch, input), with layout 1 (batch, steps, input).
double RecurrentSteps(const OpShapes& op) {
  return Dim(In(op, 0), op.attributes.Int("layout", 0) != 0 ? 1 : 0) * Dim(In(op, 2), 0);
}

double Pool(const OpShapes& op) {
  double area = 1;
  for (const int64_t side : op.attributes.Ints("kernel_shape")) area *= static_cast<double>(std::max<int64_t>(1, side));
  return area * Elements(Out(op));
}

double Lrn(const OpShapes& op) { return (2 * Number(op, "size") + 4) * Elements(Out(op)); }

// Of k elements that become one, the first costs nothing.
double Reduce(const OpShapes& op) { return std::max(0.0, Elements(In(op, 0)) - Elements(Out(op))); }

// A weighted sum of 2^d neighbours for linear, of 4^d for cubic interpolation over the d axes that change.
double Resize(const OpShapes& op) {
  const std::string_view mode = op.attributes.Text("mode", "nearest");
  const double neighbours = mode == "linear" ? 2 : mode == "cubic" ? 4 : 0;
  if (neighbours == 0) return 0;
  int axes = 0;
  for (size_t i = 0; i < Out(op).size() && i < In(op, 0).size(); ++i) axes += Out(op)[i] != In(op, 0)[i] ? 1 : 0;
  return 2 * std::pow(neighbours, axes) * Elements(Out(op));
}

// A weighted sum of 2^d neighbours for linear, of 4^d for cubic interpolation over d axes.
double GridSample(const OpShapes& op) {
  const std::string_view mode = op.attributes.Text("mode", "linear");
  const double neighbours = mode.ends_with("linear") ? 2 : mode.ends_with("cubic") ? 4 : 0;
  const double axes = Dim(In(op, 1), -1);
  return neighbours == 0 ? 0 : 2 * std::pow(neighbours, axes) * Elements(Out(op));
}

// Samples per output, each of four neighbours, and one more operation to pool each.
double RoiAlign(const OpShapes& op) {
  constexpr double kAdaptive = 2;  // what a ratio of 0 comes to where regions are about twice as large as the output
  const auto ratio = static_cast<double>(op.attributes.Int("sampling_ratio", 0));
  const double side = ratio > 0 ? ratio : kAdaptive;
  return Elements(Out(op)) * side * side * 9;
}

double RoiPool(const OpShapes& op) { return Dim(In(op, 1), 0) * PerFirst(In(op, 0)); }

// Each box that is kept is compared with all boxes; an overlap of two takes 14 operations.
double NonMaxSuppression(const OpShapes& op) { return 14 * Dim(Out(op), 0) * Dim(In(op, 0), 1); }

double Log2(double x) { return x > 1 ? std::log2(x) : 0; }

// The usual count of a fast transform of n numbers, 5 n log2(n).
double Dft(const OpShapes& op) {
  const int64_t axis = op.attributes.Int("axis", -2);
  const double length = std::max(Dim(In(op, 0), axis), Dim(Out(op), axis));
  const double last = std::max(1.0, Dim(In(op, 0), -1));
  return 5 * Elements(In(op, 0)) / last * Log2(length);
}

double Stft(const OpShapes& op) {
  const double bins = Dim(Out(op), 2);
  const double length = op.attributes.Int("onesided", 1) != 0 ? 2 * std::max(0.0, bins - 1) : bins;
  return Dim(Out(op), 0) * Dim(Out(op), 1) * length * (5 * Log2(length) + 1);
}

// Elimination: two thirds of n^3 per matrix.
double Det(const OpShapes& op) { return 2.0 / 3 * Elements(In(op, 0)) * Dim(In(op, 0), -1); }

double AffineGrid(const OpShapes& op) { return 2 * Elements(Out(op)) * (Dim(Out(op), -1) + 1); }

double CausalConv(const OpShapes& op) {
  return Elements(Out(op)) * (2 * Dim(In(op, 1), -1) + (HasInput(op, 2) ? 1 : 0));
}

// Per token: the state of each key head takes an outer product, forgets, and is corrected by what it predicts, as the
// rule says; each query head multiplies with it.
double LinearAttention(const OpShapes& op) {
  const double heads = Number(op, "q_num_heads"), key_heads = Number(op, "kv_num_heads");
  const std::string_view rule = op.attributes.Text("update_rule", "gated_delta");
  const double state = Dim(In(op, 1), -1) / key_heads * (Dim(In(op, 2), -1) / key_heads);
  const double tokens = Dim(In(op, 0), 0) * Dim(In(op, 0), 1);
  const double update = 2 + (rule.starts_with("gated") ? 1 : 0) + (rule.ends_with("delta") ? 2 : 0);
  return tokens * state * (key_heads * update + 2 * heads);
}

// Scores and weighted values are a multiply-add per query element and key, the softmax between is 5 per score.
double AttentionOver(const OpShapes& op, double query_elements, double queries, double keys, double heads) {
  return 2 * query_elements * keys + 5 * heads * queries * keys + 2 * Elements(Out(op)) * keys;
}

// Query, key and value apart: (batch, length, hidden) or (batch, heads, length, size).
template <size_t kPastKey>
double Attention(const OpShapes& op) {
  const Dims &query = In(op, 0), &key = HasInput(op, 1) ? In(op, 1) : In(op, 0);
  // Side by side: (batch, length, heads, 3, size), or with keys and values of fewer heads (batch, length, hidden).
  const bool packed = !HasInput(op, 1);
  const double past = HasInput(op, kPastKey) ? Dim(In(op, kPastKey), -2) : 0;
  double heads = query.size() == 4 ? Dim(query, 1) : 1;
  for (const std::string_view name : {"q_num_heads", "num_heads"}) {
    if (op.attributes.Has(name)) heads = Number(op, name);
  }
  double query_elements = Elements(query);
  if (query.size() == 5) {
    heads = Dim(query, 2);
    query_elements /= std::max(1.0, Dim(query, 3));
  } else if (packed && query.size() == 3 && heads > 0) {
    const double key_heads = op.attributes.Has("kv_num_heads") ? Number(op, "kv_num_heads") : heads;
    query_elements *= heads / (heads + 2 * key_heads);
  }
  const double keys = key.size() == 5 ? Dim(key, 1) : Dim(key, -2);
  return AttentionOver(op, query_elements, Dim(query, 0) * Dim(query, query.size() == 4 ? 2 : 1), keys + past, heads);
}

// One input for all three, multiplied with packed weights first.
double PackedAttention(const OpShapes& op) {
  const Dims& input = In(op, 0);
  const double length = Dim(input, 1), heads = Number(op, "num_heads");
  const double past = HasInput(op, 4) ? Dim(In(op, 4), 3) : 0;
  return 2 * Elements(input) * Dim(In(op, 1), -1) +
         AttentionOver(op, Elements(Out(op)), Dim(input, 0) * length, length + past, heads);
}

// --- The table ---------------------------------------------------------------------------------------------

constexpr uint32_t Inputs(std::initializer_list<int> which) {
  uint32_t bits = 0;
  for (const int i : which) bits |= 1u << i;
  return bits;
}

constexpr OpClass kMatMul = OpClass::kMatMul, kConv = OpClass::kConv, kElementwise = OpClass::kElementwise,
                  kNormalization = OpClass::kNormalization, kReduction = OpClass::kReduction,
                  kMove = OpClass::kDataMovement, kRecurrent = OpClass::kRecurrent, kOther = OpClass::kOther;

// Sources. "spec": counted on the definition of the op in the ONNX operator specification (onnx/docs/Operators.md; for
// com.microsoft, onnxruntime/docs/ContribOperators.md). "TF": the same count as TensorFlow's profiler registers
// (tensorflow/python/profiler/internal/flops_registry.py). n: elements of the output, m: of the first input.
constexpr auto kOpRules = std::to_array<OpRule>({
    // Products
    {"Conv", kConv, Conv<1, 2>, "n (2 C/group kernel + bias): spec; 2 C/group kernel: TF"},
    {"FusedConv", kConv, Conv<1, 2>, "as Conv; its activation is not counted: spec"},
    {"ConvInteger", kConv, Conv<1, 9>, "as Conv without bias: spec"},
    {"QLinearConv", kConv, Conv<3, 8>, "as Conv, requantisation is not counted: spec"},
    {"DeformConv", kConv, Conv<1, 3>, "as Conv, interpolation is not counted: spec"},
    {"ConvTranspose", kConv, ConvTranspose, "2 m M/group kernel + n bias: spec"},
    {"MatMul", kMatMul, MatMul, "2 n K: spec, TF"},
    {"MatMulInteger", kMatMul, MatMul, "2 n K: spec"},
    {"QLinearMatMul", kMatMul, MatMul, "2 n K, requantisation is not counted: spec"},
    {"DynamicQuantizeMatMul", kMatMul, MatMul, "2 n K, quantisation is not counted: spec"},
    {"MatMulIntegerToFloat", kMatMul, MatMul, "2 n K, scaling is not counted: spec"},
    {"FusedMatMul", kMatMul, FusedMatMul, "2 n K: spec"},
    {"MatMulNBits", kMatMul, MatMulNBits, "2 m N, unpacking is not counted: spec"},
    {"Gemm", kMatMul, Gemm, "n (2 K + bias): spec"},
    {"FusedGemm", kMatMul, Gemm, "as Gemm; its activation is not counted: spec"},
    {"Einsum", kMatMul, Einsum,
     "a multiplication per operand but one, an addition if a label is summed, for every combination of labels: spec"},
    {"Det", kMatMul, Det, "2/3 N^3 per matrix: spec (by elimination)"},
    {"DFT", kOther, Dft, "5 N log2 N per signal: spec (by a fast transform)"},
    {"STFT", kOther, Stft, "N (5 log2 N + 1) per frame: spec (a window, then as DFT)"},
    {"AffineGrid", kMatMul, AffineGrid, "2 n (axes + 1): spec"},
    {"CausalConvWithState", kConv, CausalConv, "n (2 kernel + bias): spec"},
    {"LSTM", kRecurrent, Recurrent<4, 30>,
     "per step, sample, direction and unit 8 (I + H) + 30: spec (12 additions, 3 sigmoids of 4, 2 tanh, 4 for the "
     "states)"},
    {"GRU", kRecurrent, Recurrent<3, 23>,
     "per step, sample, direction and unit 6 (I + H) + 23: spec (9 additions, 2 sigmoids of 4, 1 tanh, 5 for the "
     "state)"},
    {"RNN", kRecurrent, Recurrent<1, 4>,
     "per step, sample, direction and unit 2 (I + H) + 4: spec (3 additions, 1 tanh)"},
    {"Attention", kMatMul, Attention<4>, "4 Q keys + 5 per score: spec"},
    {"MultiHeadAttention", kMatMul, Attention<6>, "4 Q keys + 5 per score: spec"},
    {"LinearAttention", kMatMul, LinearAttention,
     "per token and number in the state 2 for the update, 1 to forget, 2 for the delta rule, 2 per query: spec"},
    {"GroupQueryAttention", kMatMul, Attention<3>, "4 Q keys + 5 per score: spec"},
    {"com.microsoft.Attention", kMatMul, PackedAttention, "2 m N for the packed weights, then as Attention: spec"},

    // One or a few operations per element
    {"Add", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Sub", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Mul", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Div", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Mod", kElementwise, PerOutput<1>, "n: spec"},
    {"Pow", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Sum", kElementwise, Variadic, "n (inputs - 1): spec, TF"},
    {"Mean", kElementwise, Variadic, "n (inputs - 1): spec"},
    {"Max", kElementwise, Variadic, "n (inputs - 1): spec, TF"},
    {"Min", kElementwise, Variadic, "n (inputs - 1): spec, TF"},
    {"Neg", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Abs", kElementwise, PerOutput<1>, "n: spec"},
    {"Sign", kElementwise, PerOutput<1>, "n: spec"},
    {"Floor", kElementwise, PerOutput<1>, "n: spec"},
    {"Ceil", kElementwise, PerOutput<1>, "n: spec"},
    {"Round", kElementwise, PerOutput<1>, "n: spec"},
    {"Reciprocal", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Sqrt", kElementwise, PerOutput<1>, "n: spec"},
    {"Exp", kElementwise, PerOutput<1>, "n: spec"},
    {"Log", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Erf", kElementwise, PerOutput<1>, "n: spec"},
    {"Sin", kElementwise, PerOutput<1>, "n: spec"},
    {"Cos", kElementwise, PerOutput<1>, "n: spec"},
    {"Tan", kElementwise, PerOutput<1>, "n: spec"},
    {"Asin", kElementwise, PerOutput<1>, "n: spec"},
    {"Acos", kElementwise, PerOutput<1>, "n: spec"},
    {"Atan", kElementwise, PerOutput<1>, "n: spec"},
    {"Sinh", kElementwise, PerOutput<1>, "n: spec"},
    {"Cosh", kElementwise, PerOutput<1>, "n: spec"},
    {"Asinh", kElementwise, PerOutput<1>, "n: spec"},
    {"Acosh", kElementwise, PerOutput<1>, "n: spec"},
    {"Atanh", kElementwise, PerOutput<1>, "n: spec"},
    {"Tanh", kElementwise, PerOutput<1>, "n: spec"},
    {"Relu", kElementwise, PerOutput<1>, "n: spec"},
    {"LeakyRelu", kElementwise, PerOutput<2>, "2 n: spec (compare, multiply)"},
    {"PRelu", kElementwise, PerOutput<2>, "2 n: spec (compare, multiply)"},
    {"ThresholdedRelu", kElementwise, PerOutput<1>, "n: spec"},
    {"Clip", kElementwise, PerOutput<2>, "2 n: spec (two comparisons)", Traffic::kAll, Inputs({1, 2})},
    {"Sigmoid", kElementwise, PerOutput<4>, "4 n: spec (negate, exp, add, divide)"},
    {"HardSigmoid", kElementwise, PerOutput<4>, "4 n: spec (multiply, add, two comparisons)"},
    {"HardSwish", kElementwise, PerOutput<5>, "5 n: spec (HardSigmoid, multiply)"},
    {"Swish", kElementwise, PerOutput<5>, "5 n: spec (Sigmoid, multiply)"},
    {"QuickGelu", kElementwise, PerOutput<6>, "6 n: spec (multiply, Sigmoid, multiply)"},
    {"Elu", kElementwise, PerOutput<4>, "4 n: spec (compare, exp, subtract, multiply)"},
    {"Selu", kElementwise, PerOutput<5>, "5 n: spec (Elu, multiply)"},
    {"Celu", kElementwise, PerOutput<5>, "5 n: spec (Elu, divide)"},
    {"Softplus", kElementwise, PerOutput<3>, "3 n: spec (exp, add, log)"},
    {"Softsign", kElementwise, PerOutput<3>, "3 n: spec (abs, add, divide)"},
    {"Mish", kElementwise, PerOutput<5>, "5 n: spec (Softplus, tanh, multiply)"},
    {"Gelu", kElementwise, PerOutput<5>, "5 n: spec (divide, erf, add, two multiplications)"},
    {"BiasGelu", kElementwise, PerOutput<6>, "6 n: spec (add, Gelu)"},
    {"FastGelu", kElementwise, PerOutput<9>, "9 n: spec (with bias and the tanh polynomial)"},
    {"SwiGLU", kElementwise, PerOutput<6>, "6 n: spec (Swish, multiply)"},
    {"Shrink", kElementwise, PerOutput<3>, "3 n: spec (two comparisons, add)"},
    {"Bernoulli", kElementwise, PerOutput<1>, "n: spec"},
    {"RandomNormal", kElementwise, PerOutput<1>, "n: spec"},
    {"RandomNormalLike", kElementwise, PerOutput<1>, "n: spec"},
    {"RandomUniform", kElementwise, PerOutput<1>, "n: spec"},
    {"RandomUniformLike", kElementwise, PerOutput<1>, "n: spec"},
    {"HannWindow", kElementwise, PerOutput<3>, "3 n: spec (cosine, multiply, subtract)", Traffic::kAll, Inputs({0})},
    {"HammingWindow", kElementwise, PerOutput<3>, "3 n: spec (as HannWindow)", Traffic::kAll, Inputs({0})},
    {"BlackmanWindow", kElementwise, PerOutput<6>, "6 n: spec (two cosines)", Traffic::kAll, Inputs({0})},
    {"MelWeightMatrix", kElementwise, PerOutput<4>, "4 n: spec (two slopes, two comparisons)", Traffic::kAll,
     Inputs({0, 1, 2, 3, 4})},
    {"RotaryEmbedding", kElementwise, PerOutput<3>, "3 n: spec (two multiplications, add)"},
    {"Equal", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Less", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"LessOrEqual", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"Greater", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"GreaterOrEqual", kElementwise, PerOutput<1>, "n: spec, TF"},
    {"And", kElementwise, PerOutput<1>, "n: spec"},
    {"Or", kElementwise, PerOutput<1>, "n: spec"},
    {"Xor", kElementwise, PerOutput<1>, "n: spec"},
    {"Not", kElementwise, PerOutput<1>, "n: spec"},
    {"BitShift", kElementwise, PerOutput<1>, "n: spec"},
    {"BitwiseAnd", kElementwise, PerOutput<1>, "n: spec"},
    {"BitwiseOr", kElementwise, PerOutput<1>, "n: spec"},
    {"BitwiseXor", kElementwise, PerOutput<1>, "n: spec"},
    {"BitwiseNot", kElementwise, PerOutput<1>, "n: spec"},
    {"IsNaN", kElementwise, PerOutput<1>, "n: spec"},
    {"IsInf", kElementwise, PerOutput<1>, "n: spec"},
    {"Where", kElementwise, PerOutput<1>, "n: spec"},
    {"Cast", kElementwise, PerOutput<1>, "n: spec"},
    {"CastLike", kElementwise, PerOutput<1>, "n: spec"},
    {"QuantizeLinear", kElementwise, PerOutput<5>, "5 n: spec (divide, round, add, two comparisons)"},
    {"DequantizeLinear", kElementwise, PerOutput<2>, "2 n: spec (subtract, multiply)"},
    {"DynamicQuantizeLinear", kElementwise, PerOutput<7>, "7 n: spec (minimum, maximum, QuantizeLinear)"},

    // Normalisations and softmax
    {"Softmax", kNormalization, PerOutput<5>, "5 n: TF; spec (maximum, subtract, exp, add, divide)"},
    {"LogSoftmax", kNormalization, PerOutput<5>, "5 n: spec (maximum, subtract, exp, add, subtract)"},
    {"Hardmax", kNormalization, PerOutput<2>, "2 n: spec (maximum, compare)"},
    {"BatchNormalization", kNormalization, PerOutput<2>, "2 n: spec (scale and shift, made once per channel)"},
    {"LayerNormalization", kNormalization, PerOutput<7>,
     "7 n: spec (add, subtract, square, add, divide, scale, shift)"},
    {"InstanceNormalization", kNormalization, PerOutput<7>, "7 n: spec (as LayerNormalization)"},
    {"GroupNormalization", kNormalization, PerOutput<7>, "7 n: spec (as LayerNormalization)"},
    {"MeanVarianceNormalization", kNormalization, PerOutput<5>,
     "5 n: spec (as LayerNormalization without scale and shift)"},
    {"SkipLayerNormalization", kNormalization, PerOutput<8>, "8 n: spec (add, LayerNormalization)"},
    {"RMSNormalization", kNormalization, PerOutput<4>, "4 n: spec (square, add, divide, scale)"},
    {"SimplifiedLayerNormalization", kNormalization, PerOutput<4>, "4 n: spec (as RMSNormalization)"},
    {"SkipSimplifiedLayerNormalization", kNormalization, PerOutput<5>, "5 n: spec (add, RMSNormalization)"},
    {"LpNormalization", kNormalization, PerOutput<3>, "3 n: spec (square, add, divide)"},
    {"LRN", kNormalization, Lrn, "n (2 size + 4): spec (squares and additions, multiply, add, power, divide)"},

    // Reductions
    {"ReduceSum", kReduction, Reduce, "m - n: spec, TF", Traffic::kAll, Inputs({1})},
    {"ReduceMean", kReduction, PerInput<1>, "m: spec, TF", Traffic::kAll, Inputs({1})},
    {"ReduceMax", kReduction, Reduce, "m - n: spec", Traffic::kAll, Inputs({1})},
    {"ReduceMin", kReduction, Reduce, "m - n: spec", Traffic::kAll, Inputs({1})},
    {"ReduceProd", kReduction, Reduce, "m - n: spec", Traffic::kAll, Inputs({1})},
    {"ReduceL1", kReduction, PerInput<2>, "2 m: spec", Traffic::kAll, Inputs({1})},
    {"ReduceL2", kReduction, PerInput<2>, "2 m: spec", Traffic::kAll, Inputs({1})},
    {"ReduceSumSquare", kReduction, PerInput<2>, "2 m: spec", Traffic::kAll, Inputs({1})},
    {"ReduceLogSum", kReduction, PerInput<1>, "m: spec", Traffic::kAll, Inputs({1})},
    {"ReduceLogSumExp", kReduction, PerInput<2>, "2 m: spec", Traffic::kAll, Inputs({1})},
    {"ArgMax", kReduction, Reduce, "m - n: spec, TF"},
    {"ArgMin", kReduction, Reduce, "m - n: spec, TF"},
    {"CumSum", kReduction, PerInput<1>, "m: spec", Traffic::kAll, Inputs({1})},
    {"CumProd", kReduction, PerInput<1>, "m: spec", Traffic::kAll, Inputs({1})},
    {"Unique", kReduction, PerInput<1>, "m comparisons, at least: spec"},
    {"Multinomial", kReduction, PerInput<1>, "m: spec (sums of the probabilities)"},
    {"NegativeLogLikelihoodLoss", kReduction, PerOutput<2>, "2 n: spec (multiply, add)"},
    {"SoftmaxCrossEntropyLoss", kReduction, PerInput<5>, "5 m: spec (as LogSoftmax)"},
    {"NonMaxSuppression", kReduction, NonMaxSuppression, "14 per box that is kept and box: spec", Traffic::kAll,
     Inputs({2, 3, 4})},
    {"MaxRoiPool", kReduction, RoiPool, "m / N per region, if it is the whole image: spec"},
    {"RoiAlign", kReduction, RoiAlign, "9 n samples, 4 per output where the ratio is left open: spec"},
    {"Col2Im", kReduction, PerInput<1>, "m: spec", Traffic::kAll, Inputs({1, 2})},
    {"TopK", kReduction, PerInput<1>, "m comparisons, at least: spec", Traffic::kAll, Inputs({1})},
    {"MaxPool", kReduction, Pool, "n kernel: spec, TF"},
    {"AveragePool", kReduction, Pool, "n kernel: spec, TF"},
    {"LpPool", kReduction, Pool, "n kernel: spec"},
    {"GlobalAveragePool", kReduction, PerInput<1>, "m: spec"},
    {"GlobalMaxPool", kReduction, PerInput<1>, "m: spec"},
    {"GlobalLpPool", kReduction, PerInput<2>, "2 m: spec"},

    // Data movement
    {"Transpose", kMove, Nothing, "0: spec"},
    {"Concat", kMove, Nothing, "0: spec"},
    {"Split", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({1})},
    {"Slice", kMove, Nothing, "0: spec", Traffic::kSelected, Inputs({1, 2, 3, 4})},
    {"Gather", kMove, Nothing, "0: spec", Traffic::kSelected},
    {"GatherElements", kMove, Nothing, "0: spec", Traffic::kSelected},
    {"GatherND", kMove, Nothing, "0: spec", Traffic::kSelected},
    {"Compress", kMove, Nothing, "0: spec", Traffic::kSelected},
    {"ScatterElements", kMove, Nothing, "0: spec"},
    {"Scatter", kMove, Nothing, "0: spec"},
    {"ScatterND", kMove, Nothing, "0: spec"},
    {"Expand", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({1})},
    {"Tile", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({1})},
    {"Pad", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({1, 2, 3})},
    {"Resize", kMove, Resize, "2 n 2^axes for linear, 2 n 4^axes for cubic, 0 for nearest: spec", Traffic::kAll,
     Inputs({1, 2, 3})},
    {"Upsample", kMove, Resize, "as Resize: spec", Traffic::kAll, Inputs({1})},
    {"GridSample", kMove, GridSample, "2 n 2^axes for linear, 2 n 4^axes for cubic, 0 for nearest: spec"},
    {"MaxUnpool", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({2})},
    {"CenterCropPad", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({1})},
    {"TensorScatter", kMove, Nothing, "0: spec"},
    {"SplitToSequence", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({1})},
    {"ConcatFromSequence", kMove, Nothing, "0: spec"},
    {"RegexFullMatch", kMove, Nothing, "0, texts are not counted: spec"},
    {"StringConcat", kMove, Nothing, "0, texts are not counted: spec"},
    {"StringNormalizer", kMove, Nothing, "0, texts are not counted: spec"},
    {"StringSplit", kMove, Nothing, "0, texts are not counted: spec"},
    {"TfIdfVectorizer", kMove, PerInput<1>, "m: spec"},
    {"ImageDecoder", kMove, Nothing, "0, decoding is not counted: spec"},
    {"DepthToSpace", kMove, Nothing, "0: spec"},
    {"SpaceToDepth", kMove, Nothing, "0: spec"},
    {"ReverseSequence", kMove, Nothing, "0: spec"},
    {"Trilu", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({1})},
    {"OneHot", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({1})},
    {"EyeLike", kMove, Nothing, "0: spec"},
    {"NonZero", kMove, PerInput<1>, "m: spec"},
    {"Range", kMove, AllOutputs, "n: spec", Traffic::kAll, Inputs({0, 1, 2})},
    {"ConstantOfShape", kMove, Nothing, "0: spec", Traffic::kAll, Inputs({0})},

    // Views: a runtime hands the same bytes on under another shape.
    {"Reshape", kMove, Nothing, "0, a view: spec", Traffic::kNone, Inputs({1})},
    {"Flatten", kMove, Nothing, "0, a view: spec", Traffic::kNone},
    {"Squeeze", kMove, Nothing, "0, a view: spec", Traffic::kNone, Inputs({1})},
    {"Unsqueeze", kMove, Nothing, "0, a view: spec", Traffic::kNone, Inputs({1})},
    {"Identity", kMove, Nothing, "0, a view: spec", Traffic::kNone},
    {"BitCast", kMove, Nothing, "0, a view: spec", Traffic::kNone},
    {"SequenceConstruct", kMove, Nothing, "0, a view: spec", Traffic::kNone},
    {"SequenceEmpty", kMove, Nothing, "0, a view: spec", Traffic::kNone},
    {"SequenceInsert", kMove, Nothing, "0, a view: spec", Traffic::kNone, Inputs({2})},
    {"SequenceErase", kMove, Nothing, "0, a view: spec", Traffic::kNone, Inputs({1})},
    {"SequenceAt", kMove, Nothing, "0, a view: spec", Traffic::kNone, Inputs({1})},
    {"SequenceLength", kMove, Nothing, "0, known without the data: spec", Traffic::kNone},
    {"Optional", kMove, Nothing, "0, a view: spec", Traffic::kNone},
    {"OptionalGetElement", kMove, Nothing, "0, a view: spec", Traffic::kNone},
    {"OptionalHasElement", kMove, Nothing, "0, known without the data: spec", Traffic::kNone},
    {"Dropout", kMove, Nothing, "0, a view: inference keeps everything: spec", Traffic::kNone, Inputs({1, 2})},
    {"Shape", kMove, Nothing, "0, known without the data: spec", Traffic::kNone},
    {"Size", kMove, Nothing, "0, known without the data: spec", Traffic::kNone},
});

}  // namespace

const Attributes::Item* Attributes::Find(std::string_view name) const {
  const auto found = std::ranges::find(items_, name, &Item::name);
  return found == items_.end() ? nullptr : &*found;
}

int64_t Attributes::Int(std::string_view name, int64_t otherwise) const {
  const Item* item = Find(name);
  return item != nullptr && item->ints.size() == 1 ? item->ints[0] : otherwise;
}

std::span<const int64_t> Attributes::Ints(std::string_view name) const {
  const Item* item = Find(name);
  return item != nullptr ? std::span<const int64_t>(item->ints) : std::span<const int64_t>();
}

std::span<const double> Attributes::Reals(std::string_view name) const {
  const Item* item = Find(name);
  return item != nullptr ? std::span<const double>(item->reals) : std::span<const double>();
}

std::string_view Attributes::Text(std::string_view name, std::string_view otherwise) const {
  const Item* item = Find(name);
  return item != nullptr && !item->text.empty() ? std::string_view(item->text) : otherwise;
}

double Elements(const Dims& dims) {
  double product = 1;
  for (const int64_t dim : dims) product *= static_cast<double>(dim);
  return product;
}

std::span<const OpRule> OpRules() { return kOpRules; }

void CountWork(const OpRule& rule, const OpShapes& op, OpWork& work) {
  work.op_class = rule.op_class;
  work.flops = rule.flops(op);
  const double steps = rule.op_class == OpClass::kRecurrent ? RecurrentSteps(op) : 1;
  work.steps = static_cast<int64_t>(std::clamp(steps, 1.0, static_cast<double>(kMostSteps)));
}

const OpRule* FindOpRule(std::string_view domain, std::string_view type) {
  static const auto index = [] {
    std::unordered_map<std::string_view, const OpRule*> rules;
    for (const OpRule& rule : kOpRules) rules.emplace(rule.type, &rule);
    return rules;
  }();
  if (domain == "com.microsoft") {
    const auto found = index.find("com.microsoft." + std::string(type));
    if (found != index.end()) return found->second;
  } else if (!domain.empty() && domain != "ai.onnx") {
    return nullptr;
  }
  const auto found = index.find(type);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace berth
