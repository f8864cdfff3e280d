#include "learn/gdp_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace berth {
namespace {

constexpr int kSteps = 64;  // of prices
// By which the steps of prices shrink, from the odds' own range to a hundredth of it.
constexpr double kShorter = 0.93;

}  // namespace

GroupOdds::GroupOdds(const GdpTask& task, std::span<const float> log_odds, std::span<const size_t> coupling)
    : task_(task), log_odds_(log_odds), coupling_(coupling), devices_(task.problem.num_devices()) {
  const size_t nodes = task.order.size();
  const size_t groups = coupling.empty() ? nodes : *std::ranges::max_element(coupling) + 1;
  odds_.resize(groups * devices_);
  time_.resize(groups * devices_);
  std::vector<uint8_t> runs(groups * devices_, 0);  // whether one of its nodes may be there
  for (size_t node = 0; node < nodes; ++node) {
    const size_t first = GroupOf(node) * devices_;
    const std::span<const float> own = log_odds.subspan(node * devices_, devices_);
    const size_t likeliest = LikeliestOf(node);
    for (size_t d = 0; d < devices_; ++d) {
      const size_t there = IsAllowed(node, d) ? d : likeliest;
      odds_[first + d] += static_cast<double>(own[there]);
      const double time = task.coarse.quotient.time[static_cast<size_t>(task.order[node]) * devices_ + there];
      if (time < kCannotRun) time_[first + d] += time;
      if (there == d) runs[first + d] = 1;
    }
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i] == 0) odds_[i] = -std::numeric_limits<double>::infinity();
  }
}

size_t GroupOdds::GroupOf(size_t node) const { return coupling_.empty() ? node : coupling_[node]; }

bool GroupOdds::IsAllowed(size_t node, size_t device) const {
  return task_.mask.const_data_ptr<float>()[node * devices_ + device] == 0;
}

size_t GroupOdds::LikeliestOf(size_t node) const {
  const std::span<const float> row = log_odds_.subspan(node * devices_, devices_);
  return static_cast<size_t>(std::ranges::max_element(row) - row.begin());
}

size_t GroupOdds::DeviceOf(size_t group, std::span<const double> price) const {
  size_t best = 0;
  double best_value = -std::numeric_limits<double>::infinity();
  for (size_t d = 0; d < devices_; ++d) {
    const double value = odds_[group * devices_ + d] - price[d] * time_[group * devices_ + d];
    if (value > best_value) best = d, best_value = value;
  }
  return best;
}

std::vector<int64_t> GroupOdds::Spread(std::span<const size_t> device_of_group) const {
  std::vector<int64_t> device;
  for (size_t node = 0; node < task_.order.size(); ++node) {
    const size_t of_group = device_of_group[GroupOf(node)];
    device.push_back(static_cast<int64_t>(IsAllowed(node, of_group) ? of_group : LikeliestOf(node)));
  }
  return device;
}

std::vector<int64_t> GroupOdds::Likeliest() const {
  const std::vector<double> free(devices_, 0);
  std::vector<size_t> device;
  for (size_t group = 0; group < num_groups(); ++group) device.push_back(DeviceOf(group, free));
  return Spread(device);
}

std::vector<int64_t> GroupOdds::Balanced() const {
  double range = 0;  // of the odds
  for (size_t group = 0; group < num_groups(); ++group) {
    const std::span<const double> of_group = std::span(odds_).subspan(group * devices_, devices_);
    const double most = std::ranges::max(of_group);
    if (!std::isfinite(most)) continue;  // a number of the coupling that no node has
    double least = most;
    for (const double each : of_group) {
      if (std::isfinite(each)) least = std::min(least, each);
    }
    range += most - least;
  }
  std::vector<double> price(devices_, 0), load(devices_);
  std::vector<size_t> device(num_groups()), best;
  double least_busy = std::numeric_limits<double>::infinity(), rate = 1;
  for (int step = 0; step < kSteps; ++step, rate *= kShorter) {
    std::ranges::fill(load, 0);
    for (size_t group = 0; group < num_groups(); ++group) {
      device[group] = DeviceOf(group, price);
      load[device[group]] += time_[group * devices_ + device[group]];
    }
    const double busiest = std::ranges::max(load), whole = std::reduce(load.begin(), load.end());
    if (busiest < least_busy) least_busy = busiest, best = device;
    if (!(whole > 0)) break;
    // Nats for all that is computed, per unit of that time.
    const double unit = rate * range / whole;
    for (size_t d = 0; d < devices_; ++d) {
      price[d] += unit * (load[d] * static_cast<double>(devices_) / whole - 1);
    }
  }
  return Spread(best);
}

}  // namespace berth
