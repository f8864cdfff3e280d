// Shapes of products, attention, recurrent layers and transforms of signals.

#include "base/error.h"
#include "import/einsum.h"
#include "import/onnx_rule.h"

namespace berth {
namespace {

using onnx::TensorProto;

// --- Products ----------------------------------------------------------------------------------------------

// As numpy's matmul; `left` and `right` have their last two axes as they are multiplied.
bool SetProduct(Inference& i, Dims left, bool left_constant, Dims right, bool right_constant, int32_t type) {
  if (left.empty() || right.empty()) return i.Fail("a scalar cannot be multiplied as a matrix");
  const bool row = left.size() == 1, column = right.size() == 1;
  if (row) left.insert(left.begin(), 1);
  if (column) right.push_back(1);
  const size_t l = left.size(), r = right.size();
  if (left[l - 1] != right[r - 2]) {
    return i.Fail(fmt::format("{} cannot be multiplied with {}: {} columns meet {} rows", ToString(left),
                              ToString(right), left[l - 1], right[r - 2]));
  }
  const std::span<const int64_t> left_batch(left.data(), l - 2), right_batch(right.data(), r - 2);
  const BroadcastOperand batches[] = {{left_batch, left_constant}, {right_batch, right_constant}};
  Dims dims;
  if (!BroadcastDims(i, batches, dims)) return false;
  if (!row) dims.push_back(left[l - 2]);
  if (!column) dims.push_back(right[r - 1]);
  return i.Set(0, type, std::move(dims));
}

bool Product(Inference& i, size_t left, size_t right, int32_t type) {
  if (!i.Has(left) || !i.Has(right)) return false;
  return SetProduct(i, i.DimsOf(left), i.In(left)->constant, i.DimsOf(right), i.In(right)->constant, type);
}

bool MatMul(Inference& i) { return Product(i, 0, 1, i.TypeOf(0)); }
bool MatMulInteger(Inference& i) { return Product(i, 0, 1, TensorProto::INT32); }
bool MatMulToFloat(Inference& i) { return Product(i, 0, 1, TensorProto::FLOAT); }
bool QLinearMatMul(Inference& i) { return Product(i, 0, 3, i.TypeOf(7)); }

bool FusedMatMul(Inference& i) {
  if (!i.Has(0, 2) || !i.Has(1, 2)) return false;
  Dims left = i.DimsOf(0), right = i.DimsOf(1);
  if (i.node.attributes.Int("transA", 0) != 0) std::swap(left[left.size() - 1], left[left.size() - 2]);
  if (i.node.attributes.Int("transB", 0) != 0) std::swap(right[right.size() - 1], right[right.size() - 2]);
  return SetProduct(i, std::move(left), i.In(0)->constant, std::move(right), i.In(1)->constant, i.TypeOf(0));
}

// The first versions of Gemm take inputs that are matrices once all but the first axis are one; later ones matrices.
bool Gemm(Inference& i) {
  if (!i.Has(0, 2) || !i.Has(1, 2)) return i.Fail("its inputs are no matrices");
  Dims left = i.DimsOf(0), right = i.DimsOf(1);
  for (Dims* dims : {&left, &right}) {
    while (dims->size() > 2) {
      (*dims)[1] = Multiply((*dims)[1], dims->back(), i.node);
      dims->pop_back();
    }
  }
  if (i.node.attributes.Int("transA", 0) != 0) std::swap(left[0], left[1]);
  if (i.node.attributes.Int("transB", 0) != 0) std::swap(right[0], right[1]);
  return SetProduct(i, std::move(left), i.In(0)->constant, std::move(right), i.In(1)->constant, i.TypeOf(0));
}

bool MatMulNBits(Inference& i) {
  if (!i.Has(0, 1)) return false;
  Dims dims = i.DimsOf(0);
  dims.back() = i.node.attributes.Int("N", 1);
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool Einsum(Inference& i) {
  std::vector<const Dims*> operands;
  for (size_t k = 0; k < i.node.inputs.size(); ++k) operands.push_back(i.Has(k) ? &i.DimsOf(k) : nullptr);
  const auto equation = ParseEinsum(i.node.attributes.Text("equation", ""), operands, i.problem);
  if (!equation) return false;
  Dims dims;
  for (const int label : equation->output) dims.push_back(equation->sizes.at(label));
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool Det(Inference& i) {
  if (!i.Has(0, 2)) return false;
  return i.Set(0, i.TypeOf(0), Dims(i.DimsOf(0).begin(), i.DimsOf(0).end() - 2));
}

// --- Recurrent layers --------------------------------------------------------------------------------------

// Y, Y_h and, of an LSTM, Y_c. With layout 1 the batch comes first.
bool Recurrent(Inference& i) {
  if (!i.Has(0, 3) || !i.Has(2, 3)) return i.Fail("its input and weights need three dimensions");
  const bool batch_first = i.node.attributes.Int("layout", 0) != 0;
  const int64_t length = i.DimsOf(0)[batch_first ? 1 : 0], batch = i.DimsOf(0)[batch_first ? 0 : 1];
  const int64_t directions = i.DimsOf(2)[0], hidden = i.DimsOf(2)[2];
  if (i.Has(1, 3) && i.DimsOf(1)[2] != i.DimsOf(0)[2]) {
    return i.Fail(fmt::format("its weights are for {} features, its input has {}", i.DimsOf(1)[2], i.DimsOf(0)[2]));
  }
  const Dims last = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  return i.Set(0, i.TypeOf(0),
               batch_first ? Dims{batch, length, directions, hidden} : Dims{length, directions, batch, hidden}) &&
         i.Set(1, i.TypeOf(0), last) && i.Set(2, i.TypeOf(0), last);
}

// --- Attention ---------------------------------------------------------------------------------------------

// The keys and values so far come out again, longer by the new ones: (2, batch, heads, length, size).
bool PackedAttention(Inference& i) {
  if (!i.Has(0, 3) || !i.Has(1)) return false;
  const auto hidden = i.node.attributes.Ints("qkv_hidden_sizes");
  Dims dims = i.DimsOf(0);
  const int64_t batch = dims[0], length = dims[1];
  dims[2] = hidden.size() == 3 ? hidden[2] : DimAt(i.DimsOf(1), -1) / 3;
  const int64_t keys = hidden.size() == 3 ? hidden[1] : dims[2];
  const int64_t heads = std::max<int64_t>(i.node.attributes.Int("num_heads", 1), 1);
  const int64_t so_far = i.Has(4, 5) ? i.DimsOf(4)[3] : 0;
  return i.Set(0, i.TypeOf(0), std::move(dims)) &&
         i.Set(1, i.TypeOf(0), {2, batch, heads, Add(length, so_far, i.node), keys / heads});
}

// Query, key and value apart; the keys and values so far come out again, longer by the new ones, and, of ONNX's own op,
// the scores.
template <size_t kPastKey>
bool Attention(Inference& i) {
  if (!i.Has(0, 3)) return false;
  const OnnxValue *key = i.In(1), *value = i.In(2);
  Dims dims = i.DimsOf(0);
  // Query, key and value side by side: (batch, length, heads, 3, size).
  if (dims.size() == 5) return i.Set(0, i.TypeOf(0), {dims[0], dims[1], Multiply(dims[2], dims[4], i.node)});
  const bool of_heads = dims.size() == 4;
  constexpr int64_t kMost = 1 << 20;
  const int64_t given =
      i.node.attributes.Int("q_num_heads", i.node.attributes.Int("num_heads", of_heads ? dims[1] : 1));
  const int64_t heads = std::clamp<int64_t>(given, 1, kMost);
  const int64_t key_heads = std::clamp<int64_t>(i.node.attributes.Int("kv_num_heads", heads), 1, kMost);
  if (of_heads && value != nullptr) dims[3] = DimAt(value->dims, 3);
  if (!of_heads && value != nullptr && value->dims.size() == 3)
    dims[2] = Multiply(value->dims[2] / key_heads, heads, i.node);
  // Query, key and value side by side in the first input.
  if (!of_heads && key == nullptr && value == nullptr) dims[2] = dims[2] / (heads + 2 * key_heads) * heads;
  i.Set(0, i.TypeOf(0), std::move(dims));
  int64_t keys = 0;
  for (size_t output = 1; output < 3; ++output) {
    const OnnxValue *fresh = output == 1 ? key : value, *past = i.In(kPastKey + output - 1);
    if (fresh == nullptr) continue;
    const bool apart = fresh->dims.size() == 4;
    const int64_t so_far = past != nullptr ? DimAt(past->dims, -2) : 0;
    const int64_t length = Add(DimAt(fresh->dims, -2), so_far, i.node);
    if (output == 1) keys = length;
    i.Set(output, fresh->type,
          {DimAt(fresh->dims, 0), apart ? DimAt(fresh->dims, 1) : key_heads, length,
           apart ? DimAt(fresh->dims, 3) : DimAt(fresh->dims, 2) / key_heads});
  }
  if (i.node.domain.empty()) {
    const Dims& query = i.DimsOf(0);
    i.Set(3, i.TypeOf(0), {query[0], heads, query[of_heads ? 2 : 1], keys});
  }
  return true;
}

bool LinearAttention(Inference& i) {
  if (!i.Has(0, 3) || !i.Has(1, 3) || !i.Has(2, 3)) return false;
  const int64_t heads = i.node.attributes.Int("q_num_heads", 0), key_heads = i.node.attributes.Int("kv_num_heads", 0);
  if (heads < 1 || key_heads < 1) return i.Lack("its numbers of heads are not given");
  const Dims& query = i.DimsOf(0);
  const int64_t key_size = i.DimsOf(1)[2] / key_heads, value_size = i.DimsOf(2)[2] / key_heads;
  return i.Set(0, i.TypeOf(0), {query[0], query[1], Multiply(value_size, heads, i.node)}) &&
         i.Set(1, i.In(3) != nullptr ? i.TypeOf(3) : i.TypeOf(0), {query[0], key_heads, key_size, value_size});
}

// What it carries to the next call are the last positions but one of its kernel.
bool CausalConvWithState(Inference& i) {
  if (!i.Has(0, 3) || !i.Has(1, 3)) return false;
  const Dims& input = i.DimsOf(0);
  return LikeFirst(i) && i.Set(1, i.TypeOf(0), {input[0], input[1], std::max<int64_t>(0, i.DimsOf(1)[2] - 1)});
}

// --- Signals -----------------------------------------------------------------------------------------------

// Hann's, Hamming's and Blackman's windows.
bool SignalWindow(Inference& i) {
  const auto size = ScalarInput(i, 0);
  if (!size) i.Guess();
  return i.In(0) != nullptr &&
         i.Set(0, i.TypeAttribute("output_datatype", TensorProto::FLOAT), {size ? ToInt(*size) : 1});
}

// Of real signals half of the result says all: onesided. The axis is an attribute before opset 20. With the inverse of
// a onesided transform the half is the input.
bool Dft(Inference& i) {
  if (!i.Has(0, 2)) return false;
  Dims dims = i.DimsOf(0);
  int64_t axis = i.node.attributes.Int("axis", i.node.opset < 20 ? 1 : -2);
  if (i.In(2) != nullptr) {
    const auto given = ScalarInput(i, 2);
    if (!given) return i.Lack("its axis is not known");
    axis = ToInt(*given);
  }
  const size_t along = Axis(i.node, axis, dims.size());
  const bool onesided = i.node.attributes.Int("onesided", 0) != 0, inverse = i.node.attributes.Int("inverse", 0) != 0;
  if (const auto length = ScalarInput(i, 1)) {
    dims[along] = ToInt(*length);
  } else if (i.In(1) != nullptr) {
    i.Guess();
  } else if (onesided && inverse) {
    dims[along] = Multiply(2, std::max<int64_t>(0, dims[along] - 1), i.node);
  }
  if (onesided && !inverse) dims[along] = dims[along] / 2 + 1;
  dims.back() = onesided && inverse ? 1 : 2;
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool Stft(Inference& i) {
  if (!i.Has(0, 2)) return false;
  const auto step = ScalarInput(i, 1), length = ScalarInput(i, 3);
  int64_t frame = length ? ToInt(*length) : -1;
  if (i.In(3) == nullptr && i.Has(2, 1)) frame = i.DimsOf(2)[0];
  if (!step || *step < 1 || frame < 0) return i.Lack("its steps or its frames are not known");
  const int64_t signal = i.DimsOf(0)[1];
  if (frame > signal) return i.Fail(fmt::format("a frame of {} does not fit into a signal of {}", frame, signal));
  const bool onesided = i.node.attributes.Int("onesided", 1) != 0;
  return i.Set(0, i.TypeOf(0),
               {i.DimsOf(0)[0], (signal - frame) / ToInt(*step) + 1, onesided ? frame / 2 + 1 : frame, 2});
}

bool MelWeightMatrix(Inference& i) {
  const auto bins = ScalarInput(i, 0), length = ScalarInput(i, 1);
  if (!bins || !length) return i.Lack("its sizes are not known");
  return i.Set(0, i.TypeAttribute("output_datatype", TensorProto::FLOAT), {ToInt(*length) / 2 + 1, ToInt(*bins)});
}

constexpr ShapeRuleEntry kProductShapeRules[] = {
    {"MatMul", MatMul},
    {"MatMulInteger", MatMulInteger},
    {"QLinearMatMul", QLinearMatMul},
    {"DynamicQuantizeMatMul", MatMulToFloat},
    {"MatMulIntegerToFloat", MatMulToFloat},
    {"FusedMatMul", FusedMatMul},
    {"MatMulNBits", MatMulNBits},
    {"Gemm", Gemm},
    {"FusedGemm", Gemm},
    {"Einsum", Einsum},
    {"Det", Det},
    {"LSTM", Recurrent},
    {"GRU", Recurrent},
    {"RNN", Recurrent},
    {"Attention", Attention<4>},
    {"com.microsoft.Attention", PackedAttention},
    {"MultiHeadAttention", Attention<6>},
    {"GroupQueryAttention", Attention<3>},
    {"LinearAttention", LinearAttention},
    {"CausalConvWithState", CausalConvWithState},
    {"BlackmanWindow", SignalWindow},
    {"HammingWindow", SignalWindow},
    {"HannWindow", SignalWindow},
    {"DFT", Dft},
    {"STFT", Stft},
    {"MelWeightMatrix", MelWeightMatrix},
};

}  // namespace

std::span<const ShapeRuleEntry> ProductShapeRules() { return kProductShapeRules; }

}  // namespace berth
