// The placements by which GDP's policy answers, from its odds: the likeliest one, and likely ones that give all devices
// a share of the work, or of the work and the memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/gdp_task.h"

namespace berth {

// What devices get equal shares of: kTime, the time that they compute; kTimeAndBytes, the sum of a group's share of all
// time and its share of all bytes (tensors that leave its nodes, and parameters), where there are any: equal times
// alone may overfill a device's memory.
enum class Load : uint8_t { kTime, kTimeAndBytes };

// What load costs on each device, in nats per unit, and the loads, groups x devices, of the GroupOdds that made them.
struct Prices {
  std::vector<double> price, loads;
};

// The logarithms of the odds of groups of nodes: the sums of their nodes', with what the groups take on each device.
class GroupOdds {
 public:
  // `log_odds`: nodes x devices, in the task's order; it outlives this, as do the others. Without a coupling each node
  // is a group; numbers that no node has are none. A node that cannot run on its group's device is on its own likeliest
  // one, and counts with that. O(nodes x devices + ops + uses of parameters).
  GroupOdds(const GdpTask& task, std::span<const float> log_odds, std::span<const size_t> coupling);

  // The likeliest device of each group, by node; where a node cannot run there, its own likeliest.
  std::vector<int64_t> Likeliest() const;
  // The same where each device has a price for its load, which is subtracted from the odds, `strength` times: with 0 it
  // is the likeliest placement.
  std::vector<int64_t> Likeliest(const Prices& prices, double strength) const;
  // Prices that rise where a device has more load than the others and fall where it has less; of some sixty steps those
  // that leave the busiest device the least load. A policy that is too sure of one device puts everything there, on a
  // graph that it has not seen; which ops it would rather have there than others may still be right.
  // O(steps x groups x devices).
  Prices Balance(Load load) const;
  // All on the device that has the most work in the likeliest placement, but for nodes that cannot run there.
  std::vector<int64_t> OnOneDevice() const;

 private:
  size_t num_groups() const { return odds_.size() / devices_; }
  size_t GroupOf(size_t node) const;
  bool IsAllowed(size_t node, size_t device) const;
  size_t LikeliestOf(size_t node) const;
  std::vector<size_t> DevicesOf(const Prices* prices, double strength) const;  // by group; without prices null
  std::vector<double> Held(std::span<const size_t> device_of_group, std::span<const double> loads) const;  // by device
  std::vector<int64_t> Spread(std::span<const size_t> device_of_group) const;                              // by node
  std::vector<double> LoadsOf(Load load) const;  // groups x devices

  const GdpTask& task_;
  std::span<const float> log_odds_;
  std::span<const size_t> coupling_;
  size_t devices_;
  std::vector<double> odds_, time_;  // groups x devices
  std::vector<double> bytes_;        // by group
};

}  // namespace berth
