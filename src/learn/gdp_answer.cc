#include "learn/gdp_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace berth {
namespace {

constexpr int kSteps = 64;  // of prices
// By which the steps of prices shrink, from the odds' own range to a hundredth of it.
constexpr double kShorter = 0.93;

// Of what leaves a node, and its ops' shares of their parameters: one that many ops read lies once on a device.
double BytesOf(const GdpTask& task, size_t node) {
  const Graph& graph = task.problem.graph();
  double bytes = static_cast<double>(task.coarse.quotient.output_bytes[node]);
  for (const OpId op : task.coarse.grouping.ops_of(MakeId<GroupId>(node))) {
    for (const ParameterId each : graph.parameters_of(op)) {
      bytes += static_cast<double>(graph.parameter_bytes(each)) /
               static_cast<double>(graph.parameter_consumers(each).size());
    }
  }
  return bytes;
}

}  // namespace

GroupOdds::GroupOdds(const GdpTask& task, std::span<const float> log_odds, std::span<const size_t> coupling)
    : task_(task), log_odds_(log_odds), coupling_(coupling), devices_(task.problem.num_devices()) {
  const size_t nodes = task.order.size();
  const size_t groups = coupling.empty() ? nodes : *std::ranges::max_element(coupling) + 1;
  odds_.resize(groups * devices_);
  time_.resize(groups * devices_);
  bytes_.resize(groups);
  std::vector<uint8_t> runs(groups * devices_, 0);  // whether one of its nodes may be there
  for (size_t node = 0; node < nodes; ++node) {
    const size_t first = GroupOf(node) * devices_;
    bytes_[GroupOf(node)] += BytesOf(task, static_cast<size_t>(task.order[node]));
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

std::vector<size_t> GroupOdds::DevicesOf(const Prices* prices, double strength) const {
  std::vector<size_t> device(num_groups(), 0);
  for (size_t group = 0; group < num_groups(); ++group) {
    double best_value = -std::numeric_limits<double>::infinity();
    for (size_t d = 0; d < devices_; ++d) {
      const size_t at = group * devices_ + d;
      const double value = odds_[at] - (prices != nullptr ? strength * prices->price[d] * prices->loads[at] : 0);
      if (value > best_value) device[group] = d, best_value = value;
    }
  }
  return device;
}

std::vector<double> GroupOdds::Held(std::span<const size_t> device_of_group, std::span<const double> loads) const {
  std::vector<double> held(devices_, 0);
  for (size_t group = 0; group < num_groups(); ++group) {
    held[device_of_group[group]] += loads[group * devices_ + device_of_group[group]];
  }
  return held;
}

std::vector<int64_t> GroupOdds::Spread(std::span<const size_t> device_of_group) const {
  std::vector<int64_t> device;
  for (size_t node = 0; node < task_.order.size(); ++node) {
    const size_t of_group = device_of_group[GroupOf(node)];
    device.push_back(static_cast<int64_t>(IsAllowed(node, of_group) ? of_group : LikeliestOf(node)));
  }
  return device;
}

std::vector<int64_t> GroupOdds::Likeliest() const { return Spread(DevicesOf(nullptr, 0)); }

std::vector<int64_t> GroupOdds::Likeliest(const Prices& prices, double strength) const {
  return Spread(DevicesOf(&prices, strength));
}

std::vector<int64_t> GroupOdds::OnOneDevice() const {
  const std::vector<double> busy = Held(DevicesOf(nullptr, 0), time_);
  const auto most = static_cast<size_t>(std::ranges::max_element(busy) - busy.begin());
  return Spread(std::vector<size_t>(num_groups(), most));
}

std::vector<double> GroupOdds::LoadsOf(Load load) const {
  std::vector<double> loads = time_;
  const double time = std::reduce(time_.begin(), time_.end()) / static_cast<double>(devices_);
  const double bytes = std::reduce(bytes_.begin(), bytes_.end());
  if (load == Load::kTime || !(bytes > 0) || !(time > 0)) return loads;
  for (size_t i = 0; i < loads.size(); ++i) loads[i] = loads[i] / time + bytes_[i / devices_] / bytes;
  return loads;
}

Prices GroupOdds::Balance(Load load) const {
  Prices prices{.price = std::vector<double>(devices_, 0), .loads = LoadsOf(load)};
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
  std::vector<double> best(devices_, 0);
  double least_busy = std::numeric_limits<double>::infinity(), rate = 1;
  for (int step = 0; step < kSteps; ++step, rate *= kShorter) {
    const std::vector<double> held = Held(DevicesOf(&prices, 1), prices.loads);
    const double busiest = std::ranges::max(held), whole = std::reduce(held.begin(), held.end());
    if (busiest < least_busy) least_busy = busiest, best = prices.price;
    if (!(whole > 0)) break;
    // Nats for the whole load, per unit of it.
    const double unit = rate * range / whole;
    for (size_t d = 0; d < devices_; ++d) {
      prices.price[d] += unit * (held[d] * static_cast<double>(devices_) / whole - 1);
    }
  }
  prices.price = std::move(best);
  return prices;
}

}  // namespace berth
