// How fast a processor is at this moment. In a virtual machine that changes within milliseconds by up to two thirds,
// since others share what its cores compute with, and no counter tells it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cluster/pace.h"
#include "worker/devices.h"
#include "worker/probe.h"

namespace berth {

// The pace of a device: how long three small models take on it that never change, a product of matrices, a convolution
// and an elementwise op, about 0.3 ms each.
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

// The paces of several devices, from time to time while models run.
class PaceMeter {
 public:
  PaceMeter() = default;
  // Of the processors whose pace the device file says.
  PaceMeter(ov::Core& core, const std::vector<RuntimeDevice>& devices);

  // Forgets what was measured, and measures.
  void Begin();
  // Before a run: the number of the last measurement, which is a new one where that was 20 ms ago or more.
  size_t Before();
  // After the last run.
  void End() { Measure(); }

  // By how many times what began after measurement `before` took longer on these devices than at the paces that the
  // device file says, in the mean over the devices: by the mean of that measurement and the next. None where the pace
  // of one of them is not known.
  std::optional<double> SlowdownOf(const std::vector<size_t>& devices, size_t before) const;

 private:
  void Measure();

  struct Meter {
    double reference = 0;
    Pace pace;
    std::vector<double> seconds{};  // by measurement
  };
  std::vector<std::unique_ptr<Meter>> meters_;  // by device; none where nothing is known
  size_t measurements_ = 0;
  double last_ = 0;  // when the last one ended
};

}  // namespace berth
