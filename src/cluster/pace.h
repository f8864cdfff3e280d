// Times of a processor at one of its paces (Device::pace), told at another.
#pragma once

#include <cmath>

#include "cluster/cluster.h"

namespace berth {

// By how many times a model takes longer at this pace than at that one, both in seconds. Models follow the pace less
// than in proportion: with this power of it repeated measurements agreed best (docs/decisions/0010-running-models.md).
inline double Slowdown(double pace, double reference) {
  constexpr double kFollows = 0.8;
  return std::pow(pace / reference, kFollows);
}

// The same from what was measured at `reference` to the device's own pace; 1 where one of the two is not known (0), and
// where they are the same but for rounding, so that equal devices stay equal.
inline double SlowdownOf(const Device& device, double reference) {
  constexpr double kRounding = 1e-6;
  if (!(device.pace > 0) || !(reference > 0) || std::abs(device.pace / reference - 1) < kRounding) return 1;
  return Slowdown(device.pace, reference);
}

}  // namespace berth
