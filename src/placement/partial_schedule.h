// What a list scheduler asks while it builds: when would this op start there, given what is placed so far?
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "placement/evaluator.h"
#include "placement/plan.h"
#include "placement/problem.h"

namespace berth {

// The free times of a device or a port, from 0 on: gaps in blocks, each block with its longest gap, so that a search
// skips what is too short without looking at it.
class Calendar {
 public:
  // No request will be shorter than `shortest`: shorter gaps are forgotten. With 0 the instants between two bookings
  // stay free for requests of length zero.
  explicit Calendar(double shortest = 0);

  // The smallest start >= from at which `length` is free. O(log gaps + block + skipped blocks).
  double FirstGap(double from, double length) const;
  // Takes [start, end), which must be free.
  void Book(double start, double end);
  // After the last booking.
  double end() const { return end_; }
  size_t num_gaps() const;

 private:
  struct Gap {
    double start, end;
  };
  struct Block {
    std::vector<Gap> gaps;  // ascending, never empty
  };

  void Summarise(size_t block);
  void Replace(size_t block, size_t gap, std::span<const Gap> pieces);

  double shortest_;
  double end_ = 0;
  std::vector<Block> blocks_;
  std::vector<double> block_end_;      // the end of each block's last gap
  std::vector<double> block_longest_;  // of its gaps
};

// A schedule of some of the ops, grown one op at a time after its producers. Ops may be inserted into idle gaps of a
// device (HEFT's rule, Topcuoglu et al. 2002, section 4.2). Under Contention::kEgress and kPorts transfers take the
// first gap that their ports have, and are booked when the op is placed; kLinks is treated as kPorts. A tensor that is
// on a device already is not sent again. Graph inputs are sent from `io_host` when an op first needs them elsewhere;
// without one they are everywhere.
class PartialSchedule {
 public:
  PartialSchedule(const Problem& problem, Contention contention, bool insertion = true,
                  std::optional<DeviceId> io_host = {});

  struct Slot {
    double start;
    double end;
    // Its inputs are there no earlier, whatever is placed before it. The start itself may become earlier where
    // transfers queue: another op may have one of the inputs sent, before the one that it would have had to wait for.
    double least_arrival;
  };
  // Where the op would run on `device`; start = kCannotRun where it cannot. All its producers must be placed.
  // O(inputs) gap searches.
  Slot Find(OpId op, DeviceId device);
  // Books the op and the transfers that it needs. Returns its slot.
  Slot Place(OpId op, DeviceId device);

  bool placed(OpId op) const { return device_[Index(op)] >= 0; }
  DeviceId device(OpId op) const { return static_cast<DeviceId>(device_[Index(op)]); }
  double start(OpId op) const { return start_[Index(op)]; }
  double end(OpId op) const { return end_[Index(op)]; }
  double makespan() const { return makespan_; }
  // After the last op of the device.
  double free_from(DeviceId device) const { return devices_[Index(device)].end(); }

  // Bytes of parameters, and of tensors and inputs produced or copied, that lie on a device: an upper estimate of its
  // peak, but for workspace.
  int64_t resident_bytes(DeviceId device) const { return resident_bytes_[Index(device)]; }
  // What placing the op there would add to it.
  int64_t added_bytes(OpId op, DeviceId device) const;

  // All ops, and all transfers of tensors to ops, in the order of their starts. An evaluator that keeps this order ends
  // no later than makespan(), where graph inputs are everywhere. With a host it sends inputs in the order of their
  // numbers, which need not be the order here, and outputs return after makespan().
  Sequence InOrder() const;

 private:
  struct Transfer {
    bool is_input;
    int32_t id;  // of a tensor, or of a graph input
    DeviceId from, to;
    double start, end;
    double alone, length;  // Instants::alone
  };

  double Arrival(TensorId tensor, DeviceId to);
  double InputArrival(InputId input, DeviceId to);
  double Send(bool is_input, int32_t id, DeviceId from, DeviceId to, double request, double length);
  double& arrival(bool is_input, int32_t id, DeviceId to) {
    return (is_input ? input_arrival_ : arrival_)[static_cast<size_t>(id) * problem_.num_devices() + Index(to)];
  }
  struct Instants {
    double start, alone;  // alone: if the op at hand wanted nothing else
  };
  Instants FirstStart(DeviceId from, DeviceId to, double request, double length) const;
  double LeastArrival(double there, double ready) const;

  const Problem& problem_;
  Contention contention_;
  bool insertion_;
  double makespan_ = 0;
  std::vector<int32_t> device_;
  std::vector<double> start_, end_;
  std::vector<double> arrival_;        // tensor x device: when it is there; infinity when it is not sent
  std::vector<double> input_arrival_;  // the same of graph inputs
  std::optional<DeviceId> io_host_;
  std::vector<Calendar> devices_, egress_, ingress_;
  std::vector<int64_t> resident_bytes_;
  std::vector<uint8_t> parameter_there_;  // parameter x device
  std::vector<OpId> placed_;              // in the order of Place
  std::vector<Transfer> transfers_;       // in the order of booking
  std::vector<Transfer> wanted_;          // by the last Find
  std::vector<TensorId> by_request_;      // scratch
};

}  // namespace berth
