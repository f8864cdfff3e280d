#include "exec/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace berth {

double Median(std::span<const double> values) {
  BERTH_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double Mean(std::span<const double> values) {
  BERTH_CHECK(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> Quotients(std::span<const double> values, std::span<const double> by) {
  BERTH_CHECK(by.empty() || by.size() == values.size());
  std::vector<double> quotients(values.begin(), values.end());
  for (size_t i = 0; i < by.size(); ++i) quotients[i] /= by[i];
  return quotients;
}

Interval MedianInterval(std::span<const double> values, double confidence) {
  BERTH_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  // Between the k-th smallest and the k-th largest: missed where fewer than k values fall on one side.
  size_t k = 0;
  // In logarithms, since 2^-n is no double from n = 1075 on.
  double miss = 0, log_probability = -static_cast<double>(n) * std::log(2.0);
  while (k < (n + 1) / 2 - 1) {
    miss += 2 * std::exp(log_probability);
    if (miss > 1 - confidence) break;
    ++k;
    log_probability += std::log(static_cast<double>(n - k + 1) / static_cast<double>(k));
  }
  const size_t left_out = k == 0 ? 0 : k - 1;
  return {sorted[left_out], sorted[n - 1 - left_out]};
}

}  // namespace berth
