// What ops are told beside their data, as attributes in old versions and as inputs in new ones: shapes ask, and
// folding.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/onnx_node.h"

namespace berth {

// The parts of a Split along `axis`; empty when they are not known.
std::vector<int64_t> SplitSizes(const OnnxNode& node, size_t axis);

// Of a Slice, per axis of its input: the first element, the step, and how many there are.
struct SliceCut {
  std::vector<int64_t> start, step;
  Dims size;
};
// None when starts, ends, axes or steps are not known.
std::optional<SliceCut> ReadSlice(const OnnxNode& node);

// Of a Pad, per axis of its input; negative numbers cut. Empty, with the reason, where they do not go together.
struct Padding {
  std::vector<int64_t> before, behind;
  std::string problem{};
};
// None when the numbers or the axes are not known.
std::optional<Padding> ReadPadding(const OnnxNode& node);

// Which axis of the input each axis of a Transpose's output is; none when `perm` is no order of `rank` axes.
std::optional<std::vector<size_t>> TransposeOrder(const OnnxNode& node, size_t rank);

}  // namespace berth
