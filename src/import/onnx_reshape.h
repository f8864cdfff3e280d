// Reshapes: exporters write their targets as constants at the batch size that they happened to have.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "import/onnx_node.h"

namespace berth {

// (size in the file, size asked for) of input dimensions.
using SizeChanges = std::set<std::pair<int64_t, int64_t>>;

// What the operator specification makes of `target` (0: as the input, -1: the rest); none when the elements do not fit.
// Throws Error for other negative sizes.
std::optional<Dims> ResolveReshape(const OnnxNode& node, const Dims& input, Dims target);

// Whether a target is the constant that gave `file_output`, not computed from shapes that have changed since.
bool IsFixedAs(const Dims& target, const Dims& file_output);

struct ReshapeAtOtherSizes {
  const Dims& file_input;
  const Dims& file_output;
  const Dims& input;  // now
  const SizeChanges& changes;
};

// The output of a Reshape whose fixed target gave file_output from file_input, when the input has changed. Each axis
// that has changed passes its factor on to the axis of the output that holds the same elements; a batch of one, which
// could lie on either side of a boundary, goes to an axis of size one if there is one, else to the later side, but not
// to the last axis, which holds features. None when the elements do not fit then.
std::optional<Dims> FollowReshape(const ReshapeAtOtherSizes& reshape);

}  // namespace berth
