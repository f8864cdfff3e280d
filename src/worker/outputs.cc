#include "worker/outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/devices.h"

namespace berth {
namespace {

struct Difference {
  double largest = 0;  // as a share
  double finite = 0, count = 0;
};

template <typename Element>
void Compare(const ov::Tensor& expected, const ov::Tensor& output, Difference& difference) {
  const auto* a = expected.data<const Element>();
  const auto* b = output.data<const Element>();
  double apart = 0, magnitude = 0;
  bool odd = false;
  for (size_t i = 0; i < expected.get_size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference.count += 1;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      odd |= std::isnan(x) != std::isnan(y) || (!std::isnan(x) && x != y);
      continue;
    }
    difference.finite += 1;
    apart = std::max(apart, std::abs(x - y));
    magnitude = std::max(magnitude, std::abs(x));
  }
  if (odd) apart = std::max(1.0, magnitude);
  if (apart > 0) difference.largest = std::max(difference.largest, apart / std::max(magnitude, 1e-30));
}

}  // namespace

double OutputTolerance(ov::element::Type precision) {
  return precision == ov::element::f32 ? 1e-4 : 16 * UnitRoundoff(precision);
}

nlohmann::json CompareOutputs(const std::vector<ov::Tensor>& expected, const std::vector<ov::Tensor>& outputs,
                              double tolerance) {
  Difference difference;
  size_t compared = 0;
  for (size_t i = 0; i < expected.size() && i < outputs.size(); ++i) {
    if (!expected[i] || !outputs[i]) continue;
    ++compared;
    const ov::element::Type type = expected[i].get_element_type();
    if (expected[i].get_shape() != outputs[i].get_shape() || type != outputs[i].get_element_type()) {
      difference.largest = 1;
    } else if (type == ov::element::f32) {
      Compare<float>(expected[i], outputs[i], difference);
    } else if (type == ov::element::f16) {
      Compare<ov::float16>(expected[i], outputs[i], difference);
    } else if (type == ov::element::bf16) {
      Compare<ov::bfloat16>(expected[i], outputs[i], difference);
    } else if (type == ov::element::f64) {
      Compare<double>(expected[i], outputs[i], difference);
    } else {
      difference.count += static_cast<double>(expected[i].get_size());
      difference.finite += static_cast<double>(expected[i].get_size());
      if (std::memcmp(expected[i].data(), outputs[i].data(), expected[i].get_byte_size()) != 0) difference.largest = 1;
    }
  }
  // Two runs that overflow everywhere say nothing of one another.
  const bool some = compared > 0 && (difference.finite > 0 || !(difference.count > 0));
  return {{"equal", some && difference.largest <= tolerance},
          {"largest_difference", difference.largest},
          {"tolerance", tolerance},
          {"compared", compared},
          {"finite", difference.count > 0 ? difference.finite / difference.count : 1.0}};
}

}  // namespace berth
