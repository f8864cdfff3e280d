// Models that ship have no weights: here they get random ones, which tell branches and orders apart.
#pragma once

#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace berth::testing {

// Writes models/NAME.onnx to `path` with a random initialiser in place of each ConstantOfShape, drawn so that values
// stay of one size through the layers. With `beside`, a file name, the weights are in that file in the model's folder.
inline void WriteModelWithWeights(const std::string& name, const std::string& path, const std::string& beside = {}) {
  onnx::ModelProto model;
  std::ifstream in(std::string(BERTH_SOURCE_DIR) + "/models/" + name + ".onnx", std::ios::binary);
  if (!model.ParseFromIstream(&in)) throw std::runtime_error(name + " is not there");
  onnx::GraphProto& graph = *model.mutable_graph();
  std::unordered_map<std::string, std::vector<int64_t>> ints;
  const auto read_ints = [&](const std::string& tensor_name, const onnx::TensorProto& tensor) {
    if (tensor.data_type() != onnx::TensorProto::INT64) return;
    std::vector<int64_t>& values = ints[tensor_name];
    values.assign(tensor.int64_data().begin(), tensor.int64_data().end());
    if (!values.empty() || tensor.raw_data().empty()) return;
    values.resize(tensor.raw_data().size() / sizeof(int64_t));
    std::memcpy(values.data(), tensor.raw_data().data(), values.size() * sizeof(int64_t));
  };
  for (const onnx::TensorProto& tensor : graph.initializer()) read_ints(tensor.name(), tensor);
  for (const onnx::NodeProto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (node.op_type() == "Constant" && attribute.has_t()) read_ints(node.output(0), attribute.t());
    }
  }

  std::ofstream stored;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (!beside.empty()) stored.open(folder + beside, std::ios::binary);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<onnx::NodeProto> kept;
  size_t filled = 0;
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "ConstantOfShape" || !ints.contains(node.input(0))) {
      kept.push_back(node);
      continue;
    }
    ++filled;
    onnx::TensorProto& weight = *graph.add_initializer();
    weight.set_name(node.output(0));
    weight.set_data_type(onnx::TensorProto::FLOAT);
    size_t count = 1, fan_in = 1;
    const std::vector<int64_t>& dims = ints.at(node.input(0));
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      weight.add_dims(dims[axis]);
      count *= static_cast<size_t>(dims[axis]);
      if (axis > 0) fan_in *= static_cast<size_t>(dims[axis]);
    }
    std::vector<float> values(count);
    for (float& value : values) {
      const float drawn = normal(random);
      value = dims.size() > 1 ? drawn * std::sqrt(2.0f / static_cast<float>(fan_in)) : 0.5f + std::abs(0.1f * drawn);
    }
    const std::string bytes(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
    if (beside.empty()) {
      weight.set_raw_data(bytes);
      continue;
    }
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto add = [&](const char* key, const std::string& value) {
      auto& entry = *weight.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    add("location", beside);
    add("offset", std::to_string(static_cast<int64_t>(stored.tellp())));
    add("length", std::to_string(bytes.size()));
    stored << bytes;
  }
  if (filled == 0) throw std::runtime_error(name + " has no weights to fill");
  graph.clear_node();
  for (onnx::NodeProto& node : kept) *graph.add_node() = std::move(node);
  std::ofstream out(path, std::ios::binary);
  if (!model.SerializeToOstream(&out)) throw std::runtime_error(path + " cannot be written");
}

}  // namespace berth::testing
