// Folding of what is computed element by element.

#include <algorithm>
#include <cmath>

#include "import/onnx_fold.h"
#include "import/onnx_index.h"

namespace berth {
namespace {

using onnx::TensorProto;
using Number = long double;

// Integers are computed modulo 2^64, as ONNX runtimes do.
Number Wrapped(uint64_t value) { return static_cast<Number>(static_cast<int64_t>(value)); }
uint64_t Bits(Number value) {
  return value >= 0x1p63L && value < 0x1p64L ? static_cast<uint64_t>(value) : static_cast<uint64_t>(ToInt(value));
}

int64_t WrapTo(int64_t value, int bits, bool is_signed) {
  const auto low = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  const bool negative = is_signed && (low >> (bits - 1)) != 0;
  return static_cast<int64_t>(negative ? low | ~((uint64_t{1} << bits) - 1) : low);
}

// --- One operand -------------------------------------------------------------------------------------------

template <Number (*kApply)(Number)>
bool Unary(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* input = node.InputContent(0);
  if (input == nullptr) return false;
  Content content(input->size());
  std::ranges::transform(*input, content.begin(), [&](Number x) { return AsType(kApply(x), outputs[0].type); });
  outputs[0].content = std::move(content);
  return true;
}

Number Itself(Number x) { return x; }
Number Negate(Number x) { return -x; }
Number Absolute(Number x) { return std::fabs(x); }
Number Floor(Number x) { return std::floor(x); }
Number Ceil(Number x) { return std::ceil(x); }
Number RoundToEven(Number x) { return std::nearbyint(x); }
Number Root(Number x) { return std::sqrt(x); }
Number Reciprocal(Number x) { return 1 / x; }
Number SignOf(Number x) { return static_cast<Number>((x > 0) - (x < 0)); }
Number Not(Number x) { return static_cast<Number>(x == 0); }
Number Exp(Number x) { return std::exp(x); }
Number Log(Number x) { return std::log(x); }
Number Erf(Number x) { return std::erf(x); }
Number Relu(Number x) { return std::isnan(x) ? x : std::max<Number>(x, 0); }
Number Sigmoid(Number x) { return 1 / (1 + std::exp(-x)); }
Number Sin(Number x) { return std::sin(x); }
Number Cos(Number x) { return std::cos(x); }
Number Tan(Number x) { return std::tan(x); }
Number Asin(Number x) { return std::asin(x); }
Number Acos(Number x) { return std::acos(x); }
Number Atan(Number x) { return std::atan(x); }
Number Sinh(Number x) { return std::sinh(x); }
Number Cosh(Number x) { return std::cosh(x); }
Number Tanh(Number x) { return std::tanh(x); }
Number Asinh(Number x) { return std::asinh(x); }
Number Acosh(Number x) { return std::acosh(x); }
Number Atanh(Number x) { return std::atanh(x); }
Number IsNan(Number x) { return static_cast<Number>(std::isnan(x)); }
Number BitwiseNot(Number x) { return Wrapped(~Bits(x)); }

bool IsInf(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* input = node.InputContent(0);
  if (input == nullptr) return false;
  const bool up = node.attributes.Int("detect_positive", 1) != 0, down = node.attributes.Int("detect_negative", 1) != 0;
  Content content;
  for (const Number x : *input) content.push_back(static_cast<Number>(std::isinf(x) && (x > 0 ? up : down)));
  outputs[0].content = std::move(content);
  return true;
}

// Bounds are inputs or, before opset 11, attributes; one that is not given is none.
bool Clip(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content* input = node.InputContent(0);
  if (input == nullptr) return false;
  const auto bound = [&](size_t at, std::string_view name, Number& limit) {
    if (const auto given = node.attributes.Reals(name); given.size() == 1) limit = given[0];
    if (node.Input(at) == nullptr) return true;
    const Content* content = node.InputContent(at);
    if (content == nullptr || content->size() != 1) return false;
    limit = content->front();
    return true;
  };
  Number least = -std::numeric_limits<Number>::infinity(), most = std::numeric_limits<Number>::infinity();
  if (!bound(1, "min", least) || !bound(2, "max", most)) return false;
  Content content;
  for (const Number x : *input) content.push_back(std::min(std::max(x, least), most));
  outputs[0].content = std::move(content);
  return true;
}

// --- Two operands or more ----------------------------------------------------------------------------------

// Applied from the left to all operands, spread over the output.
template <typename Apply>
bool Combine(const OnnxNode& node, std::vector<OnnxValue>& outputs, const Apply& apply) {
  const Dims& dims = outputs[0].dims;
  Content result(static_cast<size_t>(CheckedElements(dims, node.where)));
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Content* operand = node.InputContent(i);
    if (operand == nullptr || !Broadcasts(node.inputs[i]->dims, dims)) return false;
    ForEachIndex(dims, [&](size_t position, const Place& index) {
      const Number x = (*operand)[BroadcastPosition(index, node.inputs[i]->dims)];
      result[position] = i == 0 ? x : apply(result[position], x);
    });
  }
  for (Number& x : result) x = AsType(x, outputs[0].type);
  outputs[0].content = std::move(result);
  return !node.inputs.empty();
}

bool OfIntegers(const OnnxNode& node) { return node.Input(0) != nullptr && !IsFloating(node.inputs[0]->type); }

template <Number (*kApply)(Number, Number, bool)>
bool Binary(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  return Combine(node, outputs, [integer = OfIntegers(node)](Number a, Number b) { return kApply(a, b, integer); });
}

Number Sum(Number a, Number b, bool i) { return i ? Wrapped(Bits(a) + Bits(b)) : a + b; }
Number Subtract(Number a, Number b, bool i) { return i ? Wrapped(Bits(a) - Bits(b)) : a - b; }
Number Product(Number a, Number b, bool i) { return i ? Wrapped(Bits(a) * Bits(b)) : a * b; }
Number Divide(Number a, Number b, bool i) { return !i ? a / b : b == 0 ? 0 : std::trunc(a / b); }
Number Power(Number a, Number b, bool) { return std::pow(a, b); }
Number Larger(Number a, Number b, bool) { return std::isnan(a) || a > b ? a : b; }
Number Smaller(Number a, Number b, bool) { return std::isnan(a) || a < b ? a : b; }
Number Equal(Number a, Number b, bool) { return static_cast<Number>(a == b); }
Number Less(Number a, Number b, bool) { return static_cast<Number>(a < b); }
Number LessOrEqual(Number a, Number b, bool) { return static_cast<Number>(a <= b); }
Number Greater(Number a, Number b, bool) { return static_cast<Number>(a > b); }
Number GreaterOrEqual(Number a, Number b, bool) { return static_cast<Number>(a >= b); }
Number And(Number a, Number b, bool) { return static_cast<Number>(a != 0 && b != 0); }
Number Or(Number a, Number b, bool) { return static_cast<Number>(a != 0 || b != 0); }
Number Xor(Number a, Number b, bool) { return static_cast<Number>((a != 0) != (b != 0)); }
Number BitwiseAnd(Number a, Number b, bool) { return Wrapped(Bits(a) & Bits(b)); }
Number BitwiseOr(Number a, Number b, bool) { return Wrapped(Bits(a) | Bits(b)); }
Number BitwiseXor(Number a, Number b, bool) { return Wrapped(Bits(a) ^ Bits(b)); }

// As the divisor's sign, or with fmod as the dividend's.
bool Modulo(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const bool as_dividend = node.attributes.Int("fmod", 0) != 0;
  return Combine(node, outputs, [&](Number a, Number b) -> Number {
    if (b == 0) return OfIntegers(node) ? Number{0} : std::numeric_limits<Number>::quiet_NaN();
    const Number rest = std::fmod(a, b);
    return !as_dividend && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  });
}

bool BitShift(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const bool left = node.attributes.Text("direction", "LEFT") == "LEFT";
  return Combine(node, outputs, [&](Number a, Number b) {
    const uint64_t by = Bits(b);
    return by > 63 ? Number{0} : static_cast<Number>(left ? Bits(a) << by : Bits(a) >> by);
  });
}

bool Mean(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  if (!Combine(node, outputs, [](Number a, Number b) { return a + b; })) return false;
  for (Number& x : *outputs[0].content) x = AsType(x / static_cast<Number>(node.inputs.size()), outputs[0].type);
  return true;
}

bool Where(const OnnxNode& node, std::vector<OnnxValue>& outputs) {
  const Content *condition = node.InputContent(0), *yes = node.InputContent(1), *no = node.InputContent(2);
  if (condition == nullptr || yes == nullptr || no == nullptr) return false;
  const Dims& dims = outputs[0].dims;
  for (size_t i = 0; i < 3; ++i) {
    if (!Broadcasts(node.inputs[i]->dims, dims)) return false;
  }
  Content content(static_cast<size_t>(CheckedElements(dims, node.where)));
  ForEachIndex(dims, [&](size_t position, const Place& index) {
    const bool chosen = (*condition)[BroadcastPosition(index, node.inputs[0]->dims)] != 0;
    content[position] = chosen ? (*yes)[BroadcastPosition(index, node.inputs[1]->dims)]
                               : (*no)[BroadcastPosition(index, node.inputs[2]->dims)];
  });
  outputs[0].content = std::move(content);
  return true;
}

constexpr FoldRuleEntry kElementwiseFoldRules[] = {
    {"Abs", Unary<Absolute>},
    {"Acos", Unary<Acos>},
    {"Acosh", Unary<Acosh>},
    {"Asin", Unary<Asin>},
    {"Asinh", Unary<Asinh>},
    {"Atan", Unary<Atan>},
    {"Atanh", Unary<Atanh>},
    {"BitwiseNot", Unary<BitwiseNot>},
    {"Cast", Unary<Itself>},
    {"CastLike", Unary<Itself>},
    {"Ceil", Unary<Ceil>},
    {"Cos", Unary<Cos>},
    {"Cosh", Unary<Cosh>},
    {"Erf", Unary<Erf>},
    {"Exp", Unary<Exp>},
    {"Floor", Unary<Floor>},
    {"IsNaN", Unary<IsNan>},
    {"Log", Unary<Log>},
    {"Neg", Unary<Negate>},
    {"Not", Unary<Not>},
    {"Reciprocal", Unary<Reciprocal>},
    {"Relu", Unary<Relu>},
    {"Round", Unary<RoundToEven>},
    {"Sigmoid", Unary<Sigmoid>},
    {"Sign", Unary<SignOf>},
    {"Sin", Unary<Sin>},
    {"Sinh", Unary<Sinh>},
    {"Sqrt", Unary<Root>},
    {"Tan", Unary<Tan>},
    {"Tanh", Unary<Tanh>},
    {"IsInf", IsInf},
    {"Clip", Clip},

    {"Add", Binary<Sum>},
    {"And", Binary<And>},
    {"BitwiseAnd", Binary<BitwiseAnd>},
    {"BitwiseOr", Binary<BitwiseOr>},
    {"BitwiseXor", Binary<BitwiseXor>},
    {"Div", Binary<Divide>},
    {"Equal", Binary<Equal>},
    {"Greater", Binary<Greater>},
    {"GreaterOrEqual", Binary<GreaterOrEqual>},
    {"Less", Binary<Less>},
    {"LessOrEqual", Binary<LessOrEqual>},
    {"Max", Binary<Larger>},
    {"Min", Binary<Smaller>},
    {"Mul", Binary<Product>},
    {"Or", Binary<Or>},
    {"Pow", Binary<Power>},
    {"Sub", Binary<Subtract>},
    {"Sum", Binary<Sum>},
    {"Xor", Binary<Xor>},
    {"BitShift", BitShift},
    {"Mean", Mean},
    {"Mod", Modulo},
    {"Where", Where},
};

}  // namespace

long double AsType(long double number, int32_t type) {
  switch (type) {
    case TensorProto::FLOAT:
      return static_cast<Number>(static_cast<float>(number));
    case TensorProto::DOUBLE:
      return static_cast<Number>(static_cast<double>(number));
    case TensorProto::BOOL:
      return static_cast<Number>(number != 0);
    case TensorProto::INT8:
    case TensorProto::INT16:
    case TensorProto::INT32:
      return static_cast<Number>(WrapTo(ToInt(number), ElementBits(type), true));
    case TensorProto::UINT8:
    case TensorProto::UINT16:
    case TensorProto::UINT32:
      return static_cast<Number>(WrapTo(ToInt(number), ElementBits(type), false));
    case TensorProto::INT64:
      return static_cast<Number>(ToInt(number));
    case TensorProto::UINT64:
      return static_cast<Number>(Bits(std::trunc(number)));
    default:
      return number;
  }
}

std::span<const FoldRuleEntry> ElementwiseFoldRules() { return kElementwiseFoldRules; }

}  // namespace berth
