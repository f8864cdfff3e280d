// How fast a processor is at this moment. In a virtual machine others share what its cores compute with: a model may
// take twice as long some milliseconds later, and no counter tells it.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "cluster/pace.h"
#include "worker/devices.h"
#include "worker/probe.h"

namespace berth {

// The pace of a device: how long three small models take on it that never change, a product of matrices, a convolution
// and an elementwise op, about 0.3 ms each on one core in f32.
class Pace {
 public:
  Pace(ov::Core& core, const RuntimeDevice& device);
  // Their geometric mean, seconds: each runs once to warm up, and once.
  double Seconds();

 private:
  std::vector<int> cores_;
  bool alone_;
  std::vector<Probe> probes_;
};

// The paces of several devices, from time to time while models run. A device whose pace cannot be measured is one of
// which nothing is known.
class PaceMeter {
 public:
  PaceMeter() = default;
  // Of the processors whose pace the device file says.
  PaceMeter(ov::Core& core, const std::vector<RuntimeDevice>& devices);

  // Forgets what was measured, and measures these devices from now on.
  void Begin(const std::set<size_t>& devices);
  // Before a run: the number of the last measurement, which is a new one where that was 20 ms ago, or five times as
  // long as it took.
  size_t Before();
  // After the last run.
  void End() { Measure(); }

  // Of any number; false of one that is no device.
  bool Knows(size_t device) const { return device < meters_.size() && meters_[device] != nullptr; }
  // By how many times what began after measurement `before` took longer on this device than at the pace that the device
  // file says: by the mean of that measurement and the next. 1 where nothing is known of it.
  double SlowdownOf(size_t device, size_t before) const;

 private:
  void Measure();

  struct Meter {
    double reference = 0;
    Pace pace;
    std::vector<double> seconds{};  // by measurement
  };
  std::vector<std::unique_ptr<Meter>> meters_;  // by device
  std::set<size_t> measured_;
  size_t measurements_ = 0;
  double last_ = 0, took_ = 0;  // when the last one ended, and how long it took
};

}  // namespace berth
