// What repeated measurements say.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace berth {

// Of at least one value; the mean of the middle two where their number is even.
double Median(std::span<const double> values);

// Of at least one value.
double Mean(std::span<const double> values);

// Each value over the one of `by` in its place; where `by` is empty the values as they are.
std::vector<double> Quotients(std::span<const double> values, std::span<const double> by);

struct Interval {
  double low = 0, high = 0;
};

// Fewer values than this have no interval that holds the median with 95 %.
inline constexpr size_t kLeastForInterval = 6;
// Where the median of what the values were drawn from lies, with at least so much confidence, whatever their
// distribution: between two of the values, counted by the binomial distribution of how many fall below it. The whole
// range where there are too few values for that (5 or fewer for 0.95).
Interval MedianInterval(std::span<const double> values, double confidence = 0.95);

}  // namespace berth
