#include "exec/compilations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "exec/statistics.h"

namespace berth {
namespace {

// The largest difference on one device between these compilations, as a share of the fastest.
double Apart(std::span<const std::vector<OpMeasurement>> compilations, std::span<const size_t> which) {
  double apart = 0;
  for (size_t device = 0; device < compilations[which.front()].size(); ++device) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const size_t c : which) {
      const double time = Median(compilations[c][device].seconds);
      least = std::min(least, time);
      most = std::max(most, time);
    }
    apart = std::max(apart, most / least - 1);
  }
  return apart;
}

double LogTime(const std::vector<OpMeasurement>& compilation) {
  double sum = 0;
  for (const OpMeasurement& device : compilation) sum += std::log(Median(device.seconds));
  return sum;
}

// Adds what another compilation took to the mean of so many before it.
void Add(const OpMeasurement& other, size_t before, OpMeasurement& mean) {
  if (!mean.error.empty()) return;
  if (other.op_seconds.size() != mean.op_seconds.size()) {
    mean.error = "it has other ops each time that it is compiled";
    return;
  }
  const auto count = static_cast<double>(before);
  for (size_t op = 0; op < mean.op_seconds.size(); ++op) {
    mean.op_seconds[op] = (mean.op_seconds[op] * count + other.op_seconds[op]) / (count + 1);
  }
  mean.unassigned = (mean.unassigned * count + other.unassigned) / (count + 1);
  mean.stolen = (mean.stolen * count + other.stolen) / (count + 1);
  if (mean.slowdown && other.slowdown) *mean.slowdown = (*mean.slowdown * count + *other.slowdown) / (count + 1);
  std::ranges::copy(other.totals, std::back_inserter(mean.totals));
  std::ranges::copy(other.seconds, std::back_inserter(mean.seconds));
}

}  // namespace

Agreement Agreeing(std::span<const std::vector<OpMeasurement>> compilations) {
  const size_t count = compilations.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  if (count < kAgreeing) return {.which = std::move(order)};
  std::array<size_t, kAgreeing> best{};
  double least = std::numeric_limits<double>::infinity();
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = a + 1; b < count; ++b) {
      for (size_t c = b + 1; c < count; ++c) {
        const std::array<size_t, kAgreeing> three = {a, b, c};
        const double apart = Apart(compilations, three);
        if (apart < least) std::tie(least, best) = std::pair(apart, three);
      }
    }
  }
  if (least <= kSameButCompiled) return {.which = {best.begin(), best.end()}, .steady = true};
  std::ranges::stable_sort(order, {}, [&](size_t c) { return LogTime(compilations[c]); });
  const std::span<const size_t> middle = std::span(order).subspan((count - kAgreeing) / 2, kAgreeing);
  Agreement agreement{.which = {middle.begin(), middle.end()}};
  std::ranges::sort(agreement.which);
  return agreement;
}

std::vector<OpMeasurement> MeanOf(std::span<const std::vector<OpMeasurement>> compilations,
                                  std::span<const size_t> which) {
  std::vector<OpMeasurement> mean = compilations[which.front()];
  for (size_t i = 1; i < which.size(); ++i) {
    for (size_t device = 0; device < mean.size(); ++device) Add(compilations[which[i]][device], i, mean[device]);
  }
  return mean;
}

}  // namespace berth
