// Output shapes of ops that slide a window: convolutions and poolings. libonnx's own rules for them read beyond the
// ranks of broken models.
#pragma once

#include <optional>
#include <string>

#include "import/onnx_node.h"

namespace berth {

// Conv, ConvInteger, QLinearConv, FusedConv, DeformConv; MaxPool, AveragePool, LpPool. `weight` is the input that holds
// the filter, or 0 for a pooling. None, with the reason in `problem`, when ranks do not go together. Throws Error for
// attributes that no such op can have.
std::optional<Dims> WindowShape(const OnnxNode& node, size_t weight, std::string& problem);
std::optional<Dims> ConvTransposeShape(const OnnxNode& node, std::string& problem);

}  // namespace berth
