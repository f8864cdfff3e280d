// The placements by which GDP's policy answers, from its odds: the likeliest one, and likely ones that give all devices
// a share of the work, or of the work and the memory; and how one that does not fit into memory becomes one that does.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "learn/gdp_task.h"
#include "placement/timeline.h"

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
  // `device`, by node, with groups moved off the devices that hold more than their limit at the moment of their peak:
  // first those that free a byte at the least loss of odds, less prices, of the whole group, each to a device that had
  // room for what it holds at that moment. `placement`, by op, is what the task makes of `device`; `memory`, by device,
  // is that of a run of it. Moves change the run, so what comes out may still be too big. Of a group counts what no
  // other op on its device needs, and no input of the graph. Empty where no group can be moved.
  // O(nodes + ops + holders x uses of each + groups x devices^2, sorted).
  std::vector<int64_t> Relieve(std::span<const int64_t> device, std::span<const DeviceId> placement,
                               std::span<const DeviceMemory> memory, const Prices& prices) const;

 private:
  size_t num_groups() const { return odds_.size() / devices_; }
  size_t GroupOf(size_t node) const;
  bool IsAllowed(size_t node, size_t device) const;
  size_t LikeliestOf(size_t node) const;
  // Of a group on a device: its odds less its price, `strength` times; without prices null.
  double Value(size_t group, size_t device, const Prices* prices, double strength) const;
  std::vector<size_t> DevicesOf(const Prices* prices, double strength) const;                              // by group
  std::vector<double> Held(std::span<const size_t> device_of_group, std::span<const double> loads) const;  // by device
  std::vector<int64_t> Spread(std::span<const size_t> device_of_group) const;                              // by node
  std::vector<double> LoadsOf(Load load) const;  // groups x devices
  // Of what each device above its limit holds at its peak, the bytes that are there for one group alone; groups x
  // devices.
  std::vector<int64_t> BytesAtPeak(std::span<const int64_t> device, std::span<const DeviceId> placement,
                                   std::span<const DeviceMemory> memory) const;
  // By group x devices + device, where `bytes` has any: whether all nodes of the group that are there may be on another
  // device, by that device.
  std::unordered_map<size_t, std::vector<uint8_t>> MayMove(std::span<const int64_t> device,
                                                           std::span<const int64_t> bytes) const;

  const GdpTask& task_;
  std::span<const float> log_odds_;
  std::span<const size_t> coupling_;
  size_t devices_;
  std::vector<double> odds_, time_;  // groups x devices
  std::vector<double> bytes_;        // by group
};

// The placements that a policy answers with. On a graph that it has not seen the odds of a layer's ops say together
// what one op's leave open.
class GdpAnswers {
 public:
  // Both outlive it; `log_odds` as those of GroupOdds.
  GdpAnswers(const GdpTask& task, std::span<const float> log_odds);

  static constexpr size_t kMost = 10;
  // Which of them shares the memory the most.
  static constexpr size_t kMemoryShared = 8;
  // By node: the likeliest placements of ops, co-location groups and whole layers; the same with all devices busy, or
  // on the way there; whole layers with the memory shared as well; and all on one device. The first `most` of them, and
  // one alone where the task couples nothing.
  std::vector<std::vector<int64_t>> Placements(size_t most) const;
  // GroupOdds::Relieve with whole layers, or where none of these can move, co-location groups, or ops, by the prices of
  // Balance(kTimeAndBytes), which are made anew.
  std::vector<int64_t> Relieve(std::span<const int64_t> device, std::span<const DeviceId> placement,
                               std::span<const DeviceMemory> memory) const;

 private:
  const GdpTask& task_;
  GroupOdds ops_, groups_, layers_;
};

}  // namespace berth
