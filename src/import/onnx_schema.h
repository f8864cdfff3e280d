// libonnx's own shape inference for one node.
#pragma once

#include <string>
#include <vector>

#include "import/onnx_node.h"

namespace berth {

// Fills type, dims and known_dims of `outputs` as far as the library can tell; a dimension that it cannot tell is -1.
// Returns what it says is wrong, empty when nothing is.
std::string InferBySchema(const OnnxNode& node, std::vector<Value>& outputs);

// The newest opset of ai.onnx that the library knows.
int64_t NewestKnownOpset();

}  // namespace berth
