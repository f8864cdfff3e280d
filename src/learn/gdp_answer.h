// The placements by which GDP's policy answers, from its odds: the likeliest one, and the likeliest one that keeps all
// devices busy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/gdp_task.h"

namespace berth {

// The logarithms of the odds of groups of nodes: the sums of their nodes', with what the groups take on each device.
class GroupOdds {
 public:
  // `log_odds`: nodes x devices, in the task's order; it outlives this, as do the others. Without a coupling each node
  // is a group; numbers that no node has are none. A node that cannot run on its group's device is on its own likeliest
  // one, and counts with that. O(nodes x devices).
  GroupOdds(const GdpTask& task, std::span<const float> log_odds, std::span<const size_t> coupling);

  // The likeliest device of each group, by node; where a node cannot run there, its own likeliest.
  std::vector<int64_t> Likeliest() const;
  // The same where each device has a price for the time that it computes, which is subtracted from the odds. Prices
  // rise where a device has more work than the others and fall where it has less; of some fifty steps that one whose
  // busiest device has the least work. A policy that is too sure of one device puts everything there, on a graph that
  // it has not seen; which ops it would rather have there than others may still be right. O(steps x groups x devices).
  std::vector<int64_t> Balanced() const;

 private:
  size_t num_groups() const { return odds_.size() / devices_; }
  size_t GroupOf(size_t node) const;
  bool IsAllowed(size_t node, size_t device) const;
  size_t LikeliestOf(size_t node) const;
  size_t DeviceOf(size_t group, std::span<const double> price) const;
  std::vector<int64_t> Spread(std::span<const size_t> device_of_group) const;

  const GdpTask& task_;
  std::span<const float> log_odds_;
  std::span<const size_t> coupling_;
  size_t devices_;
  std::vector<double> odds_, time_;  // groups x devices
};

}  // namespace berth
