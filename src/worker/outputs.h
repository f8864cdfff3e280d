// Whether two runs of a model gave the same.
#pragma once

#include <nlohmann/json.hpp>
#include <openvino/openvino.hpp>
#include <vector>

namespace berth {

// By how much outputs may differ, as a share of the largest magnitude in the same output: sums in another order, and
// what is fused on one side and not on the other, are rounded differently.
inline constexpr double kOutputTolerance = 1e-4;

// {"equal": bool, "largest_difference": of the worst output, as a share of its largest magnitude, "compared": how many
// outputs, "finite": the share of values that are finite}. Of what is not floating-point all bytes must be equal. What
// is not finite must be so on both sides. Outputs without a tensor are left out.
nlohmann::json CompareOutputs(const std::vector<ov::Tensor>& expected, const std::vector<ov::Tensor>& outputs);

}  // namespace berth
