#include "import/net_builder.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace berth {
namespace {

constexpr double kBytesPerValue = 4;

// No more than what Build refuses.
int64_t BytesOf(const Dims& dims) {
  return static_cast<int64_t>(std::min(Elements(dims) * kBytesPerValue, static_cast<double>(kMostGraphBytes)));
}

// The shape of an element-wise result (NumPy's broadcasting).
Dims Broadcast(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()), 1);
  for (size_t i = 1; i <= result.size(); ++i) {
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    BERTH_CHECK(x == y || x == 1 || y == 1, "shapes do not fit: {} against {}", x, y);
    result[result.size() - i] = std::max(x, y);
  }
  return result;
}

}  // namespace

NetBuilder::Scope::Scope(NetBuilder& net, std::string_view name) : net_(net), length_(net.scope_.size()) {
  net.scope_ += fmt::format("{}/", name);
}

NetBuilder::Scope::~Scope() { net_.scope_.resize(length_); }

std::string NetBuilder::Named(std::string_view name) { return scope_ + std::string(name); }

NetBuilder::Value NetBuilder::Input(std::string name, Dims dims) {
  const size_t position = builder_.AddInput(BytesOf(dims), std::move(name));
  builder_.SetInputShape(position, dims, "float32");
  return {Value::Kind::kInput, position, std::move(dims)};
}

NetBuilder::Value NetBuilder::Weight(std::string_view name, Dims dims) {
  const size_t position = builder_.AddParameter(BytesOf(dims), Named(name));
  return {Value::Kind::kParameter, position, std::move(dims)};
}

std::vector<NetBuilder::Value> NetBuilder::Ops(std::string_view type, const std::vector<Value>& inputs,
                                               const std::vector<Dims>& results) {
  return Add(type, inputs, results, {}, {});
}

NetBuilder::Value NetBuilder::Op(std::string_view type, const std::vector<Value>& inputs, Dims result,
                                 const Attributes& attributes, std::string_view name) {
  return Add(type, inputs, {std::move(result)}, attributes, name).front();
}

std::vector<NetBuilder::Value> NetBuilder::Add(std::string_view type, const std::vector<Value>& inputs,
                                               const std::vector<Dims>& results, const Attributes& attributes,
                                               std::string_view name) {
  const OpRule* rule = FindOpRule("", type);
  BERTH_CHECK(rule != nullptr, "no rule for op type {}", type);
  OpShapes shapes{.attributes = attributes};
  for (const Value& input : inputs) shapes.inputs.push_back(&input.dims);
  for (const Dims& result : results) shapes.outputs.push_back(&result);
  OpWork work;
  CountWork(*rule, shapes, work);
  if (rule->traffic != Traffic::kNone) {
    const auto add = [](int64_t& sum, int64_t bytes) { sum = std::min(sum + bytes, kMostGraphBytes); };
    for (const Dims& result : results) add(work.bytes_written, BytesOf(result));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool selected = i == 0 && rule->traffic == Traffic::kSelected;
      add(work.bytes_read, selected ? work.bytes_written : BytesOf(inputs[i].dims));
    }
  }
  const std::string op_name = Named(name.empty() ? type : name);
  const size_t op = builder_.AddOp(op_name, type, work);
  if (op >= kMostFormulaOps) {
    throw Error("a model of more than {} ops is not made; choose smaller parameters", kMostFormulaOps);
  }
  for (const Value& input : inputs) {
    switch (input.kind) {
      case Value::Kind::kTensor:
        builder_.Consume(input.position, op);
        break;
      case Value::Kind::kInput:
        builder_.UseInput(input.position, op);
        break;
      case Value::Kind::kParameter:
        builder_.UseParameter(input.position, op);
        break;
    }
  }
  std::vector<Value> values;
  for (const Dims& result : results) {
    const size_t tensor = builder_.AddTensor(op, BytesOf(result), fmt::format("{}:{}", op_name, values.size()));
    builder_.SetShape(tensor, result);
    values.push_back({Value::Kind::kTensor, tensor, result});
  }
  return values;
}

NetBuilder::Value NetBuilder::Binary(std::string_view type, const Value& a, const Value& b) {
  return Op(type, {a, b}, Broadcast(a.dims, b.dims));
}

NetBuilder::Value NetBuilder::MatMul(const Value& a, const Value& b) {
  BERTH_CHECK(a.Dim(-1) == b.Dim(-2), "{} columns against {} rows", a.Dim(-1), b.Dim(-2));
  Dims result = Broadcast(Dims(a.dims.begin(), a.dims.end() - 2), Dims(b.dims.begin(), b.dims.end() - 2));
  result.push_back(a.Dim(-2));
  result.push_back(b.Dim(-1));
  return Op("MatMul", {a, b}, std::move(result));
}

NetBuilder::Value NetBuilder::Transpose(const Value& x, const std::vector<size_t>& order) {
  Dims result;
  for (const size_t axis : order) result.push_back(x.dims[axis]);
  return Op("Transpose", {x}, std::move(result));
}

NetBuilder::Value NetBuilder::Concat(const std::vector<Value>& parts, int axis) {
  Dims result = parts.front().dims;
  const size_t at = axis < 0 ? result.size() - static_cast<size_t>(-axis) : static_cast<size_t>(axis);
  result[at] = 0;
  for (const Value& part : parts) result[at] += part.dims[at];
  return Op("Concat", parts, std::move(result));
}

NetBuilder::LinearWeights NetBuilder::MakeLinear(int64_t inputs, int64_t features, std::string_view name) {
  return {Weight(fmt::format("{}/weight", name), {features, inputs}), Weight(fmt::format("{}/bias", name), {features})};
}

NetBuilder::Value NetBuilder::Gemm(const Value& x, const LinearWeights& weights) {
  Attributes attributes;
  attributes.Set("transB", std::vector<int64_t>{1});
  return Op("Gemm", {x, weights.weight, weights.bias}, {x.Dim(0), weights.weight.Dim(0)}, attributes);
}

NetBuilder::Value NetBuilder::Linear(const Value& x, int64_t features, std::string_view name, bool bias) {
  const Scope scope(*this, name);
  if (x.dims.size() == 2 && bias) return Gemm(x, {Weight("weight", {features, x.Dim(-1)}), Weight("bias", {features})});
  const Value product = MatMul(x, Weight("weight", {x.Dim(-1), features}));
  return bias ? Binary("Add", product, Weight("bias", {features})) : product;
}

NetBuilder::Value NetBuilder::Embed(const Value& table, const Value& indices) {
  Dims result = indices.dims;
  result.push_back(table.Dim(-1));
  return Op("Gather", {table, indices}, std::move(result));
}

void NetBuilder::Output(const Value& tensor) {
  BERTH_CHECK(tensor.kind == Value::Kind::kTensor);
  builder_.MarkOutput(tensor.position);
}

}  // namespace berth
