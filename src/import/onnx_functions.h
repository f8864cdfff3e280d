// Functions that an ONNX file defines for itself (IR version 8 and later).
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace berth {

// Replaces every call of a function by the function's nodes, in bodies of control flow too. Throws Error for functions
// that call themselves.
void InlineFunctions(onnx::ModelProto& model, const std::string& path);

}  // namespace berth
