// An ONNX file before it is a Graph.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "import/import.h"
#include "import/onnx_value.h"

namespace berth {

// Functions of its own are inlined. Throws Error with `path`.
onnx::ModelProto ParseOnnx(std::string_view content, const std::string& path);

struct TensorType {
  int32_t type = 0;  // onnx::TensorProto::DataType, 0: unknown
  Dims dims{};
  bool known_dims = false;  // for certain
};
// Of the tensors of the main graph, sequences left out, at the sizes that are asked for.
using TensorTypes = std::unordered_map<std::string, TensorType>;
TensorTypes FindTensorTypes(const onnx::ModelProto& model, const std::string& path, const ImportOptions& options);

}  // namespace berth
