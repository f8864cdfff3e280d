// Whether two runs of a model gave the same.
#pragma once

#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>
#include <vector>

namespace berth {

// By how much outputs may differ from those in f32, as a share of the largest magnitude in the same output, where
// something was computed in this precision. In f32 sums in another order, and what is fused on one side and not on the
// other, are rounded differently. In f16 and bf16 each layer rounds what it reads and makes; errors of independent
// roundings grow with the root of their number (Higham and Mary 2019), so 16 unit roundoffs are 256 layers, one after
// another.
double OutputTolerance(ov::element::Type precision);

// {"equal": bool, "tolerance": a share, "largest_difference": of the worst output, as a share of its largest magnitude,
// "compared": how many outputs, "finite": the share of values that are finite}. Of what is not floating-point all bytes
// must be equal. What is not finite must be so on both sides; where nothing is finite, nothing is equal. Outputs
// without a tensor are left out.
nlohmann::json CompareOutputs(const std::vector<ov::Tensor>& expected, const std::vector<ov::Tensor>& outputs,
                              double tolerance);

}  // namespace berth
