#include "import/onnx_schema.h"

#include <onnx/defs/schema.h>
#include <onnx/defs/shape_inference.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/error.h"

namespace berth {
namespace {

using onnx::TensorProto;
using onnx::TypeProto;

// What libonnx's inference functions ask of the node that they are applied to. Control flow does not come here.
class NodeContext final : public onnx::InferenceContext {
 public:
  explicit NodeContext(const OnnxNode& node)
      : node_(node),
        input_types_(node.inputs.size()),
        input_data_(node.inputs.size()),
        output_types_(static_cast<size_t>(node.proto.output_size())) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == nullptr) continue;
      SetType(*node.inputs[i], input_types_[i]);
      SetData(*node.inputs[i], input_data_[i]);
    }
  }

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    const auto& attributes = node_.proto.attribute();
    const auto found = std::ranges::find(attributes, name, &onnx::AttributeProto::name);
    return found == attributes.end() ? nullptr : &*found;
  }
  size_t getNumInputs() const override { return input_types_.size(); }
  const TypeProto* getInputType(size_t i) const override {
    return node_.Input(i) == nullptr || node_.Input(i)->type == 0 ? nullptr : &input_types_[i];
  }
  const TensorProto* getInputData(size_t i) const override {
    return i < input_data_.size() && input_data_[i].has_data_type() ? &input_data_[i] : nullptr;
  }
  size_t getNumOutputs() const override { return output_types_.size(); }
  TypeProto* getOutputType(size_t i) override {
    if (i >= output_types_.size()) fail_type_inference("it has no output ", i);
    return &output_types_[i];
  }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override {
    fail_type_inference("it has a body");
  }
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t) const override { return nullptr; }

  const TypeProto& output_type(size_t i) const { return output_types_[i]; }

 private:
  static void SetType(const Value& value, TypeProto& type) {
    auto* tensor = type.mutable_tensor_type();
    tensor->set_elem_type(value.type);
    auto* shape = tensor->mutable_shape();
    for (const int64_t dim : value.dims) shape->add_dim()->set_dim_value(dim);
    // Rules of the library read axes that a broken model does not have. Protobuf keeps removed elements, empty: such an
    // axis is one of unknown size then, not a stray pointer.
    constexpr int kSpareAxes = 6;
    for (int i = 0; i < kSpareAxes; ++i) shape->add_dim();
    for (int i = 0; i < kSpareAxes; ++i) shape->mutable_dim()->RemoveLast();
  }

  static void SetData(const Value& value, TensorProto& data) {
    if (!value.content) return;
    const Content& content = *value.content;
    switch (value.type) {
      case TensorProto::INT64:
        for (const long double number : content) data.add_int64_data(ToInt(number));
        break;
      case TensorProto::INT32:
      case TensorProto::BOOL:
        for (const long double number : content) {
          data.add_int32_data(static_cast<int32_t>(std::clamp<int64_t>(ToInt(number), INT32_MIN, INT32_MAX)));
        }
        break;
      case TensorProto::FLOAT:
        for (const long double number : content) data.add_float_data(static_cast<float>(number));
        break;
      case TensorProto::DOUBLE:
        for (const long double number : content) data.add_double_data(static_cast<double>(number));
        break;
      default:
        return;
    }
    for (const int64_t dim : value.dims) data.add_dims(dim);
    data.set_data_type(value.type);
  }

  const OnnxNode& node_;
  std::vector<TypeProto> input_types_;
  std::vector<TensorProto> input_data_;
  std::vector<TypeProto> output_types_;
};

// The library divides by some of these and believes the others.
void CheckAttributes(const OnnxNode& node) {
  constexpr std::array<std::string_view, 7> kPositive = {"strides",   "dilations",   "kernel_shape", "group",
                                                         "blocksize", "hidden_size", "size"};
  constexpr int64_t kMost = int64_t{1} << 31;
  for (const std::string_view name : kPositive) {
    for (const int64_t number : node.attributes.Ints(name)) {
      if (number < 1 || number > kMost)
        throw Error("{}: {} is {}; it must be from 1 to 2^31", node.where, name, number);
    }
  }
  for (const std::string_view name : {"pads", "output_padding", "output_shape"}) {
    for (const int64_t number : node.attributes.Ints(name)) {
      if (number < -kMost || number > kMost)
        throw Error("{}: {} has {}; it must be from -2^31 to 2^31", node.where, name, number);
    }
  }
}

}  // namespace

std::string InferBySchema(const OnnxNode& node, std::vector<Value>& outputs) {
  const onnx::OpSchema* schema =
      onnx::OpSchemaRegistry::Schema(std::string(node.type), static_cast<int>(node.opset), std::string(node.domain));
  if (schema == nullptr) return "this op type is not known";
  if (!schema->has_type_and_shape_inference_function()) return "no shape inference is known";
  CheckAttributes(node);
  const int given = static_cast<int>(node.inputs.size());
  if (given < schema->min_input() || given > schema->max_input()) return fmt::format("it has {} inputs", given);
  for (size_t i = 0; i < node.inputs.size() && i < schema->inputs().size(); ++i) {
    const bool required = schema->inputs()[i].GetOption() == onnx::OpSchema::Single;
    if (required && (node.inputs[i] == nullptr || node.inputs[i]->type == 0))
      return fmt::format("its input {} is missing", i);
  }

  NodeContext context(node);
  std::string problem;
  try {
    schema->GetTypeAndShapeInferenceFunction()(context);
  } catch (const std::exception& error) {
    problem = error.what();
    problem = problem.substr(0, problem.find('\n'));
    if (const size_t prefix = problem.find("] "); problem.starts_with("[") && prefix != std::string::npos)
      problem = problem.substr(prefix + 2);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TypeProto& type = context.output_type(i);
    if (!type.has_tensor_type()) continue;
    outputs[i].type = type.tensor_type().elem_type();
    if (!type.tensor_type().has_shape() || !problem.empty()) continue;
    for (const auto& dim : type.tensor_type().shape().dim())
      outputs[i].dims.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    outputs[i].known_dims = true;
  }
  return problem;
}

int64_t NewestKnownOpset() { return onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second; }

}  // namespace berth
