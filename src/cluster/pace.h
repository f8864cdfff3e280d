// Times of a processor at one of its paces (Device::pace), told at another.
#pragma once

#include <cmath>

#include "cluster/cluster.h"

namespace berth {

// By how many times a model takes longer at this pace than at that one, both in seconds. Models follow the pace less
// than in proportion (docs/decisions/0010-running-models.md says how the power was found).
inline double Slowdown(double pace, double reference) {
  constexpr double kFollows = 0.8;
  return std::pow(pace / reference, kFollows);
}

}  // namespace berth
