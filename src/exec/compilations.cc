#include "exec/compilations.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

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
  std::ranges::copy(other.totals, std::back_inserter(mean.totals));
  std::ranges::copy(other.seconds, std::back_inserter(mean.seconds));
}

}  // namespace

Agreement Agreeing(std::span<const std::vector<OpMeasurement>> compilations) {
  std::vector<size_t> order(compilations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (order.size() < kAgreeing) return {.which = std::move(order)};
  std::ranges::stable_sort(order, {}, [&](size_t c) { return LogTime(compilations[c]); });
  const auto from = [&](size_t first) { return std::span(order).subspan(first, kAgreeing); };
  const size_t last = order.size() - kAgreeing;
  size_t best = 0;
  for (size_t first = 1; first <= last; ++first) {
    if (Apart(compilations, from(first)) < Apart(compilations, from(best))) best = first;
  }
  const bool steady = Apart(compilations, from(best)) <= kSameButCompiled;
  const std::span<const size_t> chosen = from(steady ? best : last / 2);
  Agreement agreement{.which = {chosen.begin(), chosen.end()}, .steady = steady};
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
