// A number that changes while a policy is trained.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace berth {

// From `first` to `last` over the planned updates.
struct Schedule {
  enum class Shape { kLinear, kGeometric } shape = Shape::kLinear;
  double first = 0, last = 0;

  // `share`: of the planned updates; below 0 and above 1 as at these. A geometric schedule that begins or ends at 0 is
  // linear.
  double At(double share) const {
    share = std::clamp(share, 0.0, 1.0);
    if (shape == Shape::kGeometric && first > 0 && last > 0) return first * std::pow(last / first, share);
    return first + (last - first) * share;
  }
};

// A factor that is multiplied by itself after every so many updates.
struct Staircase {
  double factor = 1;
  int64_t every = 1;
  int64_t after = 0;  // updates before its first step begins

  double At(int64_t update) const {
    return update < after ? 1 : std::pow(factor, static_cast<double>((update - after) / every));
  }
};

}  // namespace berth
