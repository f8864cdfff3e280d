// Sums of times that do not depend on their order, so that a load from which a time is taken away again is the same to
// the last bit as one that never had it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace berth {

// Times as multiples of one small power of two, in 128 bits. Adding and subtracting is exact, and so is a time that is
// not below 2^-47 of the largest sum; what is smaller loses less than 2^-100 of that sum.
class FixedPoint {
 public:
  __extension__ using Number = __int128;

  // `largest`: no sum of finite times will be greater.
  explicit FixedPoint(double largest) : unit_(largest > 0 ? std::ilogb(largest) + 1 - kBits : 0) {}

  Number From(double time) const {
    const auto bits = std::bit_cast<uint64_t>(time);
    const int exponent = static_cast<int>(bits >> 52);  // a time has no sign
    if (exponent == kInfiniteExponent) return kInfinite;
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
    const Number mantissa = exponent > 0 ? (uint64_t{1} << 52) | fraction : fraction;
    const int shift = (exponent > 0 ? exponent : 1) - 1075 - unit_;
    if (shift >= 0) return mantissa << shift;
    return shift > -64 ? mantissa >> -shift : 0;
  }

  // The nearest double.
  double ToDouble(Number sum) const {
    return sum >= kInfinite ? std::numeric_limits<double>::infinity() : std::ldexp(static_cast<double>(sum), unit_);
  }

 private:
  static constexpr int kBits = 100;
  static constexpr int kInfiniteExponent = 2047;
  // Above all sums of finite times; a million of them do not overflow.
  static constexpr Number kInfinite = Number{1} << 106;

  int unit_;
};

}  // namespace berth
