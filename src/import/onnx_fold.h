// Shape arithmetic: what small constants become when ops are applied to them, so that these ops need no device.
#pragma once

#include <optional>

#include "import/onnx_node.h"

namespace berth {

// The content of the node's first output, whose type and dimensions are known and which has at most kMaxContent
// elements; none when the op is not one of shape arithmetic or an input's content is not known. (Split: see FoldSplit.)
std::optional<Content> Fold(const OnnxNode& node, const Value& output);

// The content of output `position` of a Split along one axis, starting at element `start` of that axis.
std::optional<Content> FoldSplit(const OnnxNode& node, const Value& output, size_t axis, int64_t start);

}  // namespace berth
