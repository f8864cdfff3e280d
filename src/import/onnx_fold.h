// Shape arithmetic: what small constants become when ops are applied to them, so that these ops need no device.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "import/onnx_node.h"

namespace berth {

// The number as an element of this type: whole, wrapped around, rounded to single precision.
long double AsType(long double number, int32_t type);

// Sets the content, and its certainty, of outputs whose types and dimensions are known and which have at most
// kMaxContent elements each; leaves it out where the op is not one of shape arithmetic (activations and weights are not
// computed) or where an input's content is not known. All inputs are constants, but for Shape and Size.
void Fold(const OnnxNode& node, std::vector<OnnxValue>& outputs);

// Whether constants go through this op of ai.onnx with their contents.
bool CanFold(std::string_view type);

// The different slices of a Unique's input: where each stands first, in the order of the output; and which of them
// every slice is. None where its content is not known.
struct DistinctSlices {
  std::vector<size_t> first{}, which{};
};
std::optional<DistinctSlices> FindDistinct(const OnnxNode& node);

// --- How folding is written: one function per op type, in tables by kind of op ------------------------------

// Sets the contents of outputs, false when it cannot tell.
using FoldRule = bool (*)(const OnnxNode& node, std::vector<OnnxValue>& outputs);
struct FoldRuleEntry {
  std::string_view type;
  FoldRule rule;
};
std::span<const FoldRuleEntry> ElementwiseFoldRules();
std::span<const FoldRuleEntry> MoveFoldRules();
std::span<const FoldRuleEntry> ReductionFoldRules();

}  // namespace berth
