// Shapes of ops that work element by element, of normalisations and of random numbers.

#include "base/error.h"
#include "import/onnx_rule.h"

namespace berth {
namespace {

using onnx::TensorProto;

bool Broadcast(Inference& i) {
  Dims dims;
  return BroadcastInputs(i, dims) && i.Set(0, i.TypeOf(0), std::move(dims));
}

bool BroadcastToBool(Inference& i) {
  Dims dims;
  return BroadcastInputs(i, dims) && i.Set(0, TensorProto::BOOL, std::move(dims));
}

bool Where(Inference& i) {
  Dims dims;
  return BroadcastInputs(i, dims) && i.Set(0, i.TypeOf(1), std::move(dims));
}

bool LikeFirstToBool(Inference& i) { return i.Has(0) && i.Set(0, TensorProto::BOOL, i.DimsOf(0)); }

bool TypeOfSecond(Inference& i) { return i.Has(0) && i.Set(0, i.TypeOf(1), i.DimsOf(0)); }

bool CastTo(Inference& i) { return i.Has(0) && i.Set(0, i.TypeAttribute("to", TensorProto::FLOAT), i.DimsOf(0)); }

// The type is an attribute or, by default, the input's.
bool LikeFirstOfType(Inference& i) { return i.Has(0) && i.Set(0, i.TypeAttribute("dtype", i.TypeOf(0)), i.DimsOf(0)); }

// A sequence or an optional passes as it is.
bool Identity(Inference& i) { return i.In(0) != nullptr && i.SetLike(0, *i.In(0)); }

// Its second output is the mask.
bool Dropout(Inference& i) { return LikeFirst(i) && i.Set(1, TensorProto::BOOL, i.DimsOf(0)); }

bool QuantizeLinear(Inference& i) {
  const int32_t type = i.TypeAttribute("output_dtype", TensorProto::UINT8);
  return i.Has(0) && i.Set(0, i.In(2) != nullptr ? i.TypeOf(2) : type, i.DimsOf(0));
}

// The type is the scale's; com.microsoft's variants of QuantizeLinear and DequantizeLinear are the same.
bool DequantizeLinear(Inference& i) {
  return i.Has(0) && i.Set(0, i.TypeAttribute("output_dtype", i.TypeOf(1)), i.DimsOf(0));
}

bool DynamicQuantizeLinear(Inference& i) {
  return i.Has(0) && i.Set(0, TensorProto::UINT8, i.DimsOf(0)) && i.Set(1, TensorProto::FLOAT, {}) &&
         i.Set(2, TensorProto::UINT8, {});
}

// --- Normalisations ----------------------------------------------------------------------------------------

// In training it hands on means and variances per channel.
bool BatchNormalization(Inference& i) {
  if (!LikeFirst(i)) return false;
  for (size_t output = 1; output < i.outputs.size(); ++output) {
    i.Set(output, i.TypeOf(0), {i.Rank(0) > 1 ? i.DimsOf(0)[1] : 1});
  }
  return true;
}

// Means and inverse deviations, of the rows, are its second and third output.
bool LayerNormalization(Inference& i) {
  if (!LikeFirst(i)) return false;
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", -1), i.Rank(0));
  Dims rows = i.DimsOf(0);
  std::fill(rows.begin() + static_cast<ptrdiff_t>(axis), rows.end(), 1);
  return i.Set(1, TensorProto::FLOAT, rows) && i.Set(2, TensorProto::FLOAT, rows);
}

// Skip layers hand on the sum before the normalisation as well, as their fourth output.
bool SkipNormalization(Inference& i) { return LikeFirst(i) && i.Set(3, i.TypeOf(0), i.DimsOf(0)); }

// --- Random numbers ----------------------------------------------------------------------------------------

bool RandomOfShape(Inference& i) {
  const auto shape = i.node.attributes.Ints("shape");
  return i.Set(0, i.TypeAttribute("dtype", TensorProto::FLOAT), {shape.begin(), shape.end()});
}

bool Multinomial(Inference& i) {
  return i.Has(0, 1) && i.Set(0, i.TypeAttribute("dtype", TensorProto::INT32),
                              {i.DimsOf(0)[0], i.node.attributes.Int("sample_size", 1)});
}

// --- Texts and images --------------------------------------------------------------------------------------

// Words that are left out make it shorter.
bool StringNormalizer(Inference& i) {
  if (!LikeFirst(i)) return false;
  for (const onnx::AttributeProto& attribute : i.node.proto.attribute()) {
    if (attribute.name() == "stopwords" && attribute.strings_size() > 0) i.Estimate();
  }
  return true;
}

bool StringSplit(Inference& i) {
  if (!i.Has(0)) return false;
  Dims dims = i.DimsOf(0);
  dims.push_back(i.node.attributes.Has("maxsplit") ? Add(i.node.attributes.Int("maxsplit", 0), 1, i.node) : 1);
  if (i.node.attributes.Has("maxsplit")) {
    i.Estimate();
  } else {
    i.Guess();
  }
  return i.Set(0, TensorProto::STRING, std::move(dims)) && i.Set(1, TensorProto::INT64, i.DimsOf(0));
}

// One number per n-gram.
bool TfIdfVectorizer(Inference& i) {
  const auto indexes = i.node.attributes.Ints("ngram_indexes");
  if (!i.Has(0, 1) || indexes.empty()) return false;
  Dims dims(i.DimsOf(0).begin(), i.DimsOf(0).end() - 1);
  dims.push_back(Add(*std::ranges::max_element(indexes), 1, i.node));
  return i.Set(0, TensorProto::FLOAT, std::move(dims));
}

bool ImageDecoder(Inference& i) {
  i.Guess();
  return i.Set(0, TensorProto::UINT8, {1, 1, i.node.attributes.Text("pixel_format", "RGB") == "Grayscale" ? 1 : 3});
}

constexpr ShapeRuleEntry kElementwiseShapeRules[] = {
    {"Abs", LikeFirst},
    {"Acos", LikeFirst},
    {"Acosh", LikeFirst},
    {"Asin", LikeFirst},
    {"Asinh", LikeFirst},
    {"Atan", LikeFirst},
    {"Atanh", LikeFirst},
    {"BitwiseNot", LikeFirst},
    {"Ceil", LikeFirst},
    {"Celu", LikeFirst},
    {"Clip", LikeFirst},
    {"Cos", LikeFirst},
    {"Cosh", LikeFirst},
    {"Elu", LikeFirst},
    {"Erf", LikeFirst},
    {"Exp", LikeFirst},
    {"Floor", LikeFirst},
    {"Gelu", LikeFirst},
    {"HardSigmoid", LikeFirst},
    {"HardSwish", LikeFirst},
    {"LeakyRelu", LikeFirst},
    {"Log", LikeFirst},
    {"Mish", LikeFirst},
    {"Neg", LikeFirst},
    {"PRelu", LikeFirst},
    {"Reciprocal", LikeFirst},
    {"Relu", LikeFirst},
    {"Round", LikeFirst},
    {"Selu", LikeFirst},
    {"Shrink", LikeFirst},
    {"Sigmoid", LikeFirst},
    {"Sign", LikeFirst},
    {"Sin", LikeFirst},
    {"Sinh", LikeFirst},
    {"Softplus", LikeFirst},
    {"Softsign", LikeFirst},
    {"Sqrt", LikeFirst},
    {"SwiGLU", LikeFirst},
    {"Swish", LikeFirst},
    {"Tan", LikeFirst},
    {"Tanh", LikeFirst},
    {"ThresholdedRelu", LikeFirst},
    {"Identity", Identity},
    {"Dropout", Dropout},
    {"RotaryEmbedding", LikeFirst},

    {"Add", Broadcast},
    {"BitShift", Broadcast},
    {"BitwiseAnd", Broadcast},
    {"BitwiseOr", Broadcast},
    {"BitwiseXor", Broadcast},
    {"Div", Broadcast},
    {"Max", Broadcast},
    {"Mean", Broadcast},
    {"Min", Broadcast},
    {"Mod", Broadcast},
    {"Mul", Broadcast},
    {"Pow", Broadcast},
    {"Sub", Broadcast},
    {"Sum", Broadcast},
    {"Where", Where},
    {"And", BroadcastToBool},
    {"Equal", BroadcastToBool},
    {"Greater", BroadcastToBool},
    {"GreaterOrEqual", BroadcastToBool},
    {"Less", BroadcastToBool},
    {"LessOrEqual", BroadcastToBool},
    {"Or", BroadcastToBool},
    {"Xor", BroadcastToBool},
    {"Not", LikeFirstToBool},
    {"IsInf", LikeFirstToBool},
    {"IsNaN", LikeFirstToBool},

    {"BitCast", CastTo},
    {"Cast", CastTo},
    {"CastLike", TypeOfSecond},
    {"QuantizeLinear", QuantizeLinear},
    {"DequantizeLinear", DequantizeLinear},
    {"DynamicQuantizeLinear", DynamicQuantizeLinear},

    {"BatchNormalization", BatchNormalization},
    {"GroupNormalization", LikeFirst},
    {"Hardmax", LikeFirst},
    {"InstanceNormalization", LikeFirst},
    {"LayerNormalization", LayerNormalization},
    {"LogSoftmax", LikeFirst},
    {"LpNormalization", LikeFirst},
    {"LRN", LikeFirst},
    {"MeanVarianceNormalization", LikeFirst},
    {"RMSNormalization", LikeFirst},
    {"SimplifiedLayerNormalization", LayerNormalization},
    {"SkipLayerNormalization", SkipNormalization},
    {"SkipSimplifiedLayerNormalization", SkipNormalization},
    {"Softmax", LikeFirst},

    {"Bernoulli", LikeFirstOfType},
    {"EyeLike", LikeFirstOfType},
    {"RandomNormalLike", LikeFirstOfType},
    {"RandomUniformLike", LikeFirstOfType},
    {"RandomNormal", RandomOfShape},
    {"RandomUniform", RandomOfShape},
    {"Multinomial", Multinomial},

    {"RegexFullMatch", LikeFirstToBool},
    {"StringConcat", Broadcast},
    {"StringNormalizer", StringNormalizer},
    {"StringSplit", StringSplit},
    {"TfIdfVectorizer", TfIdfVectorizer},
    {"ImageDecoder", ImageDecoder},

    {"BiasGelu", LikeFirst},
    {"FastGelu", LikeFirst},
    {"QuickGelu", LikeFirst},
};

}  // namespace

std::span<const ShapeRuleEntry> ElementwiseShapeRules() { return kElementwiseShapeRules; }

}  // namespace berth
