// A model that is compiled again is up to a few percent faster or slower on the same device, and the speed of some
// machines changes within seconds: what several compilations say together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/openvino.h"

namespace berth {

// A difference of at most this share between two times of one model may be due to compiling alone.
inline constexpr double kSameButCompiled = 0.05;

// So many compilations that agree are enough.
inline constexpr size_t kAgreeing = 3;

struct Agreement {
  std::vector<size_t> which{};  // of the compilations, ascending; kAgreeing of them, or all where there are fewer
  bool steady = false;          // on no device are these further apart than kSameButCompiled
};

// compilations[c][d]: what compilation `c` took on device `d`, none of them failed. Of all choices of three the one
// whose largest difference on any device, of the median runs without counters, is the smallest: one choice for all
// devices, since these took turns. Where no three agree, the three in the middle when ordered by their time on all
// devices (the sum of the logarithms). Fewer than three are never called steady. Cubic in the compilations.
Agreement Agreeing(std::span<const std::vector<OpMeasurement>> compilations);

// By device, the mean of these compilations' op times and the runs of all of them. A device's error where they do not
// have the same ops.
std::vector<OpMeasurement> MeanOf(std::span<const std::vector<OpMeasurement>> compilations,
                                  std::span<const size_t> which);

}  // namespace berth
