// What a run's data will be like on average, where the graph tells: of a choice among n, each is taken by one n-th. A
// mixture of experts sends every token to k of its n experts, so that an expert gets k/n of them.
#pragma once

#include <vector>

#include "import/onnx_node.h"

namespace berth {

// Sets `choices` and `density` of the outputs from those of the inputs: TopK, ArgMax and ArgMin make choices; OneHot,
// Equal and scattered elements have a density; what moves elements keeps both. The outputs' dimensions are known.
void CarryDensity(const OnnxNode& node, std::vector<OnnxValue>& outputs);

}  // namespace berth
