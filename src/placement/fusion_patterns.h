// Ops that a runtime replaces by one before it looks for kernels: activations and normalisations that were written out.
#pragma once

#include <optional>
#include <vector>

#include "placement/fusion_view.h"

namespace berth {

struct FusionPattern {
  std::vector<OpId> ops{};  // ascending; only the last one's result is read elsewhere
  // Set for activations: the op whose result this is a function of. The others are kernels that nothing joins.
  std::optional<OpId> activates{};

  OpId last() const { return ops.back(); }
};

// Swish, x * sigmoid(x); Gelu, by erf and by tanh; MVN, (x - mean) / sqrt(variance); RMS, x / sqrt(mean of squares);
// attention, softmax(q * k) * v with what scales and masks in between and the transpositions around. No op is in two.
std::vector<FusionPattern> FindFusionPatterns(const FusionView& view);

}  // namespace berth
