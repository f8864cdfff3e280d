#include "worker/pace.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <openvino/op/ops.hpp>

#include "worker/thread_clock.h"

namespace berth {

Pace::Pace(ov::Core& core, const RuntimeDevice& device) : cores_(device.cores), alone_(device.one_core()) {
  constexpr size_t kRows = 128, kSize = 512, kChannels = 64, kSide = 28, kElements = size_t{1} << 19;
  const ProbeInput rows = MakeProbeInput({kRows, kSize}), image = MakeProbeInput({1, kChannels, kSide, kSide}),
                   elements = MakeProbeInput({kElements});
  probes_.emplace_back(core, device, ProductBy(rows, kSize, 1), rows);
  probes_.emplace_back(core, device, ConvolutionOf(image, kChannels, 1), image);
  probes_.emplace_back(core, device, std::make_shared<ov::op::v0::Relu>(elements), elements);
}

double Pace::Seconds() {
  double log_sum = 0;
  RunPinned(cores_, alone_, [&] {
    for (Probe& probe : probes_) {
      probe.Run();
      const ThreadClock clock;
      probe.Run();
      // What another process had of the core is no pace of it.
      log_sum += std::log(alone_ ? clock.own_seconds() : clock.seconds());
    }
  });
  return std::exp(log_sum / static_cast<double>(probes_.size()));
}

PaceMeter::PaceMeter(ov::Core& core, const std::vector<RuntimeDevice>& devices) {
  for (const RuntimeDevice& device : devices) {
    meters_.emplace_back();
    if (!device.is_cpu() || !(device.pace > 0)) continue;
    try {
      meters_.back() = std::make_unique<Meter>(device.pace, Pace(core, device));
    } catch (const std::exception&) {
      // Models are measured all the same.
    }
  }
}

void PaceMeter::Begin(const std::set<size_t>& devices) {
  measured_ = devices;
  for (const auto& meter : meters_) {
    if (meter) meter->seconds.clear();
  }
  measurements_ = 0;
  Measure();
}

size_t PaceMeter::Before() {
  constexpr double kEvery = 0.02, kShare = 5;
  if (ThreadClock::Now(CLOCK_MONOTONIC) - last_ >= std::max(kEvery, kShare * took_)) Measure();
  return measurements_ - 1;
}

void PaceMeter::Measure() {
  const double begin = ThreadClock::Now(CLOCK_MONOTONIC);
  for (const size_t device : measured_) {
    if (!Knows(device)) continue;
    try {
      meters_[device]->seconds.push_back(meters_[device]->pace.Seconds());
    } catch (const std::exception&) {
      meters_[device].reset();
    }
  }
  ++measurements_;
  last_ = ThreadClock::Now(CLOCK_MONOTONIC);
  took_ = last_ - begin;
}

double PaceMeter::SlowdownOf(size_t device, size_t before) const {
  if (!Knows(device)) return 1;
  const Meter& meter = *meters_[device];
  const size_t after = std::min(before + 1, meter.seconds.size() - 1);
  return Slowdown((meter.seconds[before] + meter.seconds[after]) / 2, meter.reference);
}

}  // namespace berth
