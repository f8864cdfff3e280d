// ONNX models written in a few lines, for tests.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "import/import.h"

namespace berth {

// Fills a GraphProto; bodies of control flow are made by another one.
class TestOnnxGraph {
 public:
  explicit TestOnnxGraph(onnx::GraphProto& graph) : graph_(graph) {}

  // A dimension is a number, or a symbol when it is a text.
  struct Dim {
    Dim(int64_t n) : number(n) {}            // NOLINT(runtime/explicit)
    Dim(int n) : number(n) {}                // NOLINT(runtime/explicit)
    Dim(const char* text) : symbol(text) {}  // NOLINT(runtime/explicit)
    int64_t number = 0;
    std::string symbol{};
  };
  using Shape = std::vector<Dim>;

  void Input(const std::string& name, const Shape& shape, int32_t type = onnx::TensorProto::FLOAT) {
    Fill(*graph_.add_input(), name, shape, type);
  }
  void Output(const std::string& name) { graph_.add_output()->set_name(name); }
  void Info(const std::string& name, const Shape& shape) {
    Fill(*graph_.add_value_info(), name, shape, onnx::TensorProto::FLOAT);
  }

  // A weight without data.
  onnx::TensorProto& Weight(const std::string& name, const std::vector<int64_t>& dims,
                            int32_t type = onnx::TensorProto::FLOAT) {
    onnx::TensorProto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    for (const int64_t dim : dims) tensor.add_dims(dim);
    return tensor;
  }
  void Ints(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = Weight(name, {static_cast<int64_t>(values.size())}, onnx::TensorProto::INT64);
    for (const int64_t value : values) tensor.add_int64_data(value);
  }
  void Int(const std::string& name, int64_t value) { Weight(name, {}, onnx::TensorProto::INT64).add_int64_data(value); }

  onnx::NodeProto& Node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = {}) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    for (const std::string& output : outputs) node.add_output(output);
    return node;
  }

  onnx::GraphProto& proto() { return graph_; }

 private:
  static void Fill(onnx::ValueInfoProto& info, const std::string& name, const Shape& shape, int32_t type) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const Dim& dim : shape) {
      auto* added = tensor->mutable_shape()->add_dim();
      if (dim.symbol.empty()) {
        added->set_dim_value(dim.number);
      } else {
        added->set_dim_param(dim.symbol);
      }
    }
  }

  onnx::GraphProto& graph_;
};

inline void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

inline void SetInts(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
}

inline onnx::GraphProto& SetBody(onnx::NodeProto& node, const std::string& name) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::GRAPH);
  return *attribute.mutable_g();
}

class TestOnnxModel : public TestOnnxGraph {
 public:
  explicit TestOnnxModel(int64_t opset = 13, int64_t ir_version = 7)
      : TestOnnxModel(std::make_unique<onnx::ModelProto>(), opset, ir_version) {}

  onnx::ModelProto& model() { return *model_; }
  std::string Bytes() const { return model_->SerializeAsString(); }
  Graph Read(const ImportOptions& options = {}) const { return ReadOnnx(Bytes(), "test.onnx", options); }

 private:
  TestOnnxModel(std::unique_ptr<onnx::ModelProto> model, int64_t opset, int64_t ir_version)
      : TestOnnxGraph(*model->mutable_graph()), model_(std::move(model)) {
    model_->set_ir_version(ir_version);
    model_->add_opset_import()->set_version(opset);
  }

  std::unique_ptr<onnx::ModelProto> model_;
};

// The op of that name; throws std::out_of_range when there is none.
inline OpId FindOp(const Graph& graph, std::string_view name) {
  for (const OpId op : graph.ops()) {
    if (graph.op_name(op) == name) return op;
  }
  throw std::out_of_range(std::string(name));
}

}  // namespace berth
