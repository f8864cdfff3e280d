#include "worker/pace.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <openvino/op/ops.hpp>

#include "worker/thread_clock.h"

namespace berth {
namespace {

constexpr double kEvery = 0.02;  // seconds between two measurements, at least

}  // namespace

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
  RunPinned(cores_, [&] {
    tbb::task_arena arena(1, 1);
    const auto run = [&](Probe& probe) {
      if (alone_) {
        arena.execute([&] { probe.Run(); });
      } else {
        probe.Run();
      }
    };
    for (Probe& probe : probes_) {
      run(probe);
      const ThreadClock clock;
      run(probe);
      log_sum += std::log(clock.seconds());
    }
  });
  return std::exp(log_sum / static_cast<double>(probes_.size()));
}

PaceMeter::PaceMeter(ov::Core& core, const std::vector<RuntimeDevice>& devices) {
  for (const RuntimeDevice& device : devices) {
    meters_.emplace_back();
    if (!device.is_cpu() || !(device.pace > 0)) continue;
    meters_.back() = std::make_unique<Meter>(device.pace, Pace(core, device));
  }
}

void PaceMeter::Begin() {
  for (const auto& meter : meters_) {
    if (meter) meter->seconds.clear();
  }
  measurements_ = 0;
  Measure();
}

size_t PaceMeter::Before() {
  if (ThreadClock::Now(CLOCK_MONOTONIC) - last_ >= kEvery) Measure();
  return measurements_ - 1;
}

void PaceMeter::Measure() {
  for (const auto& meter : meters_) {
    if (meter) meter->seconds.push_back(meter->pace.Seconds());
  }
  ++measurements_;
  last_ = ThreadClock::Now(CLOCK_MONOTONIC);
}

std::optional<double> PaceMeter::SlowdownOf(const std::vector<size_t>& devices, size_t before) const {
  double sum = 0;
  for (const size_t device : devices) {
    if (device >= meters_.size() || !meters_[device]) return std::nullopt;
    const Meter& meter = *meters_[device];
    const size_t after = std::min(before + 1, meter.seconds.size() - 1);
    sum += Slowdown((meter.seconds[before] + meter.seconds[after]) / 2, meter.reference);
  }
  if (devices.empty()) return std::nullopt;
  return sum / static_cast<double>(devices.size());
}

}  // namespace berth
