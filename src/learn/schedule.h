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

// Training that begins anew after every so many updates: what was drawn is remembered, the policy is as at first. The
// last round has the rest of the planned updates and more than `every` of them, and is the only one where `every` is 0
// or more than half of them.
struct Rounds {
  int64_t every = 0;
  int64_t planned = 1;

  int64_t count() const { return every > 0 ? std::max<int64_t>(planned / every, 1) : 1; }
  int64_t Of(int64_t update) const { return every > 0 ? std::min(update / every, count() - 1) : 0; }
  bool Begins(int64_t update) const { return update > 0 && Of(update) != Of(update - 1); }
  // Of the planned updates of a round, those that are over after so many of all; above 1 beyond the last.
  double Share(int64_t round, double updates) const {
    const int64_t first = round * every, size = round + 1 < count() ? every : planned - first;
    return (updates - static_cast<double>(first)) / static_cast<double>(size);
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
