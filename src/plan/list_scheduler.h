// List scheduling: which op next, and on which device?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/stop_check.h"
#include "placement/partial_schedule.h"
#include "placement/units.h"
#include "plan/clusters.h"

namespace berth {

// Which op is next, and which device that wants.
enum class Urgency : uint8_t {
  kUpward,      // of those that are ready, the one with the longest way to the end (HEFT, Topcuoglu et al. 2002)
  kOptimistic,  // the same by the optimistic cost table (PEFT, Arabnejad and Barbosa 2014), which also chooses devices
  kCritical,    // the longest way through it; ops of the longest of all share the device that is fastest for them
                // (CPOP, Topcuoglu et al. 2002, section 4.3)
  kEarliest,    // the op and device that can start first (ETF, Hwang et al. 1989)
};

struct ListRules {
  Contention contention = Contention::kNone;
  std::optional<DeviceId> io_host{};
  bool insertion = true;
  // Only devices that would hold everything ever put there, while there is such a device.
  bool mind_memory = false;
  StopCheck stop{};  // asked now and then: whether to give up
};

// Schedules the ops of a problem one at a time. A unit goes to one device, chosen when its first op is next; with
// clusters of several units, so does a cluster, chosen for all of it: where that op ends first once all is done that
// its device has been given so far, all work of the cluster is done there too, and everything that it exchanges with
// clusters placed elsewhere is sent. O(edges x devices) and as many gap searches.
class ListScheduler {
 public:
  ListScheduler(const Units& units, Urgency urgency);

  // `clusters`: null for units on their own.
  PartialSchedule Run(const ListRules& rules, const Clusters* clusters);

  // With each op where it is; the most urgent by PlacedRank of those that are ready next.
  PartialSchedule Order(const ListRules& rules, std::span<const DeviceId> device);

  // How urgent ops are, larger first: priorities for a plan.
  const std::vector<double>& rank() const { return rank_; }
  // Of the last Run.
  const std::vector<DeviceId>& device() const { return device_; }
  // False when it came to an op that could be on none of the devices that were left.
  bool kept_apart() const { return kept_apart_; }
  // Whether `stop` ended it before all ops had a place.
  bool stopped() const { return stopped_; }

 private:
  void SetCritical();
  void Begin(const ListRules& rules, const Clusters* clusters);
  void RunByRank(PartialSchedule& schedule);
  void RunByStart(PartialSchedule& schedule);
  // Of all ops that share its device with this one.
  void PutWithOthers(OpId op, PartialSchedule& schedule);
  DeviceId Choose(OpId op, PartialSchedule& schedule);
  DeviceId ChooseForCluster(OpId op, size_t cluster, PartialSchedule& schedule);
  double ReturnTime(OpId op, DeviceId device) const;
  void Placed(OpId op);
  bool Stopped();

  const Units& units_;
  const Problem& problem_;
  const Urgency urgency_;
  std::vector<double> rank_;
  std::vector<double> ahead_;                // op x device: kOptimistic only
  std::vector<uint8_t> critical_;            // by op: kCritical only
  std::optional<DeviceId> critical_device_;  // kCritical only

  ListRules rules_;
  const Clusters* clusters_ = nullptr;
  std::vector<DeviceId> device_;
  std::vector<DeviceId> device_of_cluster_;
  std::vector<double> pending_;       // by device: work of clusters that were put there, not yet scheduled
  std::vector<int64_t> given_bytes_;  // by device: of all clusters that were put there
  std::vector<size_t> missing_;       // by op: producers not yet scheduled
  size_t placed_ = 0;
  bool kept_apart_ = true, stopped_ = false;
};

}  // namespace berth
