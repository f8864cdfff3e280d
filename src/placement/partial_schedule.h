// What a list scheduler asks while it builds: when would this op start there, given what is placed so far?
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "placement/evaluator.h"
#include "placement/problem.h"

namespace berth {

// A schedule of some of the ops, grown one op at a time after its producers. Ops may be inserted into idle gaps of a device
// (HEFT's rule, Topcuoglu et al. 2002, section 4.2); under Contention::kPorts transfers take the first gap that both ports
// have, and are booked when the op is placed. A tensor that is on a device already is not sent again.
class PartialSchedule {
 public:
  PartialSchedule(const Problem& problem, Contention contention, bool insertion = true);

  struct Slot {
    double start;
    double end;
  };
  // Where the op would run on `device`; start = kCannotRun where it cannot. All its producers must be placed.
  // O(inputs log gaps) on average.
  Slot Find(OpId op, DeviceId device);
  // Books the op and the transfers that it needs. Returns its slot.
  Slot Place(OpId op, DeviceId device);

  bool placed(OpId op) const { return device_[Index(op)] >= 0; }
  DeviceId device(OpId op) const { return static_cast<DeviceId>(device_[Index(op)]); }
  double start(OpId op) const { return start_[Index(op)]; }
  double end(OpId op) const { return end_[Index(op)]; }
  double makespan() const { return makespan_; }
  // Bytes of parameters, and of tensors produced or copied, that lie on a device: an upper estimate of its peak.
  int64_t resident_bytes(DeviceId device) const { return resident_bytes_[Index(device)]; }

 private:
  struct Interval {
    double start, end;
  };
  // Busy intervals, sorted, merged where they touch.
  struct Calendar {
    std::vector<Interval> busy;
    double FirstGap(double from, double length, bool insertion) const;
    void Book(double start, double end);
  };

  double Arrival(TensorId tensor, DeviceId to, bool book);

  const Problem& problem_;
  Contention contention_;
  bool insertion_;
  double makespan_ = 0;
  std::vector<int32_t> device_;
  std::vector<double> start_, end_;
  std::vector<double> arrival_;  // tensor x device: when it is there; infinity when it is not sent
  std::vector<Calendar> devices_, egress_, ingress_;
  std::vector<int64_t> resident_bytes_;
  std::vector<uint8_t> parameter_there_;  // parameter x device
};

}  // namespace berth
