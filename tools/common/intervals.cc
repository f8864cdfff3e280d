#include "tools/common/intervals.h"

#include <fmt/format.h>

#include <cmath>

#include "exec/statistics.h"

namespace berth {

std::string WithInterval(const std::vector<double>& values, double factor, int digits) {
  if (values.empty()) return "";
  const auto text = [&](double value) {
    return std::isfinite(value) ? fmt::format("{:.{}f}", value * factor, digits) : std::string("none");
  };
  const Interval interval = MedianInterval(values);
  if (text(interval.low) == text(interval.high)) return text(Median(values));
  return fmt::format("{} ({} to {})", text(Median(values)), text(interval.low), text(interval.high));
}

double GeometricMean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace berth
