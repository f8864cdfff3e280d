// List scheduling: which op next, and on which device?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/stop_check.h"
#include "moves/clusters.h"
#include "placement/partial_schedule.h"
#include "placement/units.h"

namespace berth {

// Which op is next, and which device that wants.
enum class Urgency : uint8_t {
  kUpward,      // of those that are ready, the one with the longest way to the end (HEFT, Topcuoglu et al. 2002)
  kOptimistic,  // the same by the optimistic cost table (PEFT, Arabnejad and Barbosa 2014), which also chooses devices
  kCritical,    // the longest way through it; ops of the longest of all share the device that is fastest for them
                // (CPOP, Topcuoglu et al. 2002, section 4.3)
  kEarliest,    // the op and device that can start first (ETF, Hwang et al. 1989); with favourites as SCT has it
};

struct ListRules {
  Contention contention = Contention::kNone;
  std::optional<DeviceId> io_host{};
  bool insertion = true;  // kEarliest never inserts
  // Only devices that would hold everything ever put there, while there is such a device.
  bool mind_memory = false;
  StopCheck stop{};  // asked now and then: whether to give up
};

// Schedules the ops of a problem one at a time. A unit goes to one device, chosen when its first op is next; with
// clusters of several units, so does a cluster, chosen for all of it: where that op ends first once all is done that
// its device has been given so far, all work of the cluster is done there too, and everything that it exchanges with
// clusters placed elsewhere is sent. O(edges x devices) and as many gap searches.
//
// kEarliest: of all pairs of a ready op and a device that with the earliest start, of these the op of the highest rank
// (Hwang et al. 1989 leave ties to a priority list). What waits for a device alone is kept by rank, the rest by when
// its inputs are there at best, and only what may be next is asked for: O((edges + asked) x devices), with asked = ops
// where transfers do not queue, and in each step at most all that wait for a port.
//
// With favourites (SCT, Hanen and Munier 1995; Jeon et al. 2020, section 4.3) a device whose last op has a favourite
// child that is ready, and that starts nowhere earlier, is kept for it: other ops have it only from when their inputs
// could be on every device. That asks O(devices^2) more in each step.
class ListScheduler {
 public:
  // `favourite`: by op, its favourite child or OpId{-1}; empty for none. Only kEarliest has them.
  ListScheduler(const Units& units, Urgency urgency, std::vector<OpId> favourite = {});

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
  class Offers;
  bool MayBe(OpId op, DeviceId device) const;
  void RunByStart(PartialSchedule& schedule);
  // Of all ops that share its device with this one.
  void PutWithOthers(OpId op, PartialSchedule& schedule);
  DeviceId Choose(OpId op, PartialSchedule& schedule);
  DeviceId ChooseForCluster(OpId op, size_t cluster, PartialSchedule& schedule);
  double ReturnTime(OpId op, DeviceId device) const;
  void SetOwnBytes();
  int64_t OwnBytes(size_t unit) const;
  void Put(size_t unit, DeviceId device);
  void Placed(OpId op);
  bool Stopped();

  const Units& units_;
  const Problem& problem_;
  const Urgency urgency_;
  const std::vector<OpId> favourite_;
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
  // By op, with mind_memory: its outputs, and the parameters that no op before it in its unit reads.
  std::vector<int64_t> own_bytes_;
  std::vector<int64_t> waiting_bytes_;  // by device, with mind_memory: of ops that were put there, not yet scheduled
  std::vector<size_t> missing_;         // by op: producers not yet scheduled
  size_t placed_ = 0;
  bool kept_apart_ = true, stopped_ = false;
};

}  // namespace berth
