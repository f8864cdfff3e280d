#include "worker/detect.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <openvino/op/ops.hpp>
#include <optional>
#include <thread>

#include "exec/statistics.h"
#include "worker/loaded_model.h"
#include "worker/pace.h"
#include "worker/probe.h"
#include "worker/thread_clock.h"

namespace berth {
namespace {

constexpr size_t kRepetitions = 7;
constexpr size_t kBigTensor = size_t{16} << 20;   // elements: 64 MiB, more than the caches of most
constexpr size_t kSharedBytes = size_t{4} << 20;  // what one core writes and another reads: about a large activation

double Now() { return ThreadClock::Now(CLOCK_MONOTONIC); }

// Three layers of each, as a network has them.
constexpr size_t kLayers = 3;

Probe Products(ov::Core& core, const RuntimeDevice& device, bool in_8_bits, double& flops) {
  constexpr size_t kSize = 512;
  const ProbeInput input = MakeProbeInput({kSize, kSize});
  ProbeNode last = input;
  for (size_t layer = 0; layer < kLayers; ++layer) last = ProductBy(last, kSize, layer + 1, in_8_bits);
  flops = 2.0 * kSize * kSize * kSize * kLayers;
  return Probe(core, device, last, input);
}

Probe Convolutions(ov::Core& core, const RuntimeDevice& device, bool in_8_bits, double& flops) {
  constexpr size_t kChannels = 64, kSide = 56;
  const ProbeInput input = MakeProbeInput({1, kChannels, kSide, kSide});
  ProbeNode last = input;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    last = ConvolutionOf(last, kChannels, layer + 1, in_8_bits);
  }
  flops = 2.0 * kChannels * kChannels * 9 * kSide * kSide * kLayers;
  return Probe(core, device, last, input);
}

Probe Elementwise(ov::Core& core, const RuntimeDevice& device) {
  const ProbeInput input = MakeProbeInput({kBigTensor});
  return Probe(core, device, std::make_shared<ov::op::v0::Relu>(input), input);
}

// Products, since a runtime makes one kernel of elementwise ops.
constexpr size_t kTinyOps = 64;

Probe TinyOps(ov::Core& core, const RuntimeDevice& device, size_t count) {
  const ProbeInput input = MakeProbeInput({4, 4});
  // Values neither grow nor fade from op to op: numbers that are too small for a type's usual form take longer.
  constexpr double kNeutral = 0.57;
  ProbeNode last = input;
  for (size_t op = 0; op < count; ++op)
    last = std::make_shared<ov::op::v0::MatMul>(last, RandomConstant({4, 4}, op + 1, kNeutral));
  return Probe(core, device, last, input);
}

// Times of runs that are a moment apart, told at the pace of the moment in the middle.
class PacedTimes {
 public:
  // Of a processor; of another device nothing is known but the times.
  PacedTimes(ov::Core& core, const RuntimeDevice& device) {
    if (device.is_cpu()) pace_.emplace(core, device);
  }

  // Remembers what a run takes, and the pace before it. Answers its number.
  size_t Time(Probe& probe, double budget) {
    if (pace_) paces_.push_back(pace_->Seconds());
    seconds_.push_back(probe.Seconds(budget));
    return seconds_.size() - 1;
  }
  // By number; at the median of all paces.
  std::vector<double> Seconds() const {
    std::vector<double> seconds = seconds_;
    if (!pace_) return seconds;
    const double reference = Median(paces_);
    for (size_t i = 0; i < seconds.size(); ++i) {
      const double after = paces_[std::min(i + 1, paces_.size() - 1)];
      seconds[i] /= Slowdown((paces_[i] + after) / 2, reference);
    }
    return seconds;
  }
  const std::vector<double>& paces() const { return paces_; }

 private:
  std::optional<Pace> pace_;
  std::vector<double> paces_, seconds_;
};

nlohmann::json DetectDevice(ov::Core& core, const RuntimeDevice& device, double seconds) {
  RuntimeDevice exact = device;
  exact.precision = ov::element::f32;
  PacedTimes times(core, device);
  struct Rate {
    std::string type{};
    Probe products, convolutions;
    double matmul_flops = 0, conv_flops = 0;
    std::vector<size_t> matmul{}, conv{};  // numbers of times
  };
  std::vector<Rate> measured;
  std::vector<size_t> elementwise_runs, many_runs, one_runs;
  RunPinned(device.cores, device.one_core(), [&] {
    const auto add = [&](const std::string& type, const RuntimeDevice& one, bool in_8_bits) {
      double matmul_flops = 0, conv_flops = 0;
      Probe products = Products(core, one, in_8_bits, matmul_flops);
      Probe convolutions = Convolutions(core, one, in_8_bits, conv_flops);
      if (in_8_bits && !(products.ComputesIn8Bits() && convolutions.ComputesIn8Bits())) return;
      measured.push_back({type, std::move(products), std::move(convolutions), matmul_flops, conv_flops});
    };
    add(device.precision.get_type_name(), device, false);
    if (device.precision != exact.precision) add("f32", exact, false);
    // Quantized models run in 8 bits whatever the precision; a model's ops in f16 or bf16 run in the device's.
    try {
      const std::vector<std::string> has = core.get_property(device.runs_on, ov::device::capabilities);
      if (std::ranges::count(has, "INT8") > 0) add("i8", exact, true);
    } catch (const std::exception&) {
      // A device that does not take them is measured without.
    }
    const double each = seconds / (static_cast<double>(3 + 2 * measured.size()) * kRepetitions);
    for (Rate& rate : measured) {
      for (size_t i = 0; i < kRepetitions; ++i) {
        rate.matmul.push_back(times.Time(rate.products, each));
        rate.conv.push_back(times.Time(rate.convolutions, each));
      }
    }
    // In f32, since the model's inputs and outputs are: what turns them into another type is no elementwise op.
    Probe elementwise = Elementwise(core, exact);
    Probe many = TinyOps(core, device, kTinyOps), one = TinyOps(core, device, 1);
    for (size_t i = 0; i < kRepetitions; ++i) {
      elementwise_runs.push_back(times.Time(elementwise, each));
      many_runs.push_back(times.Time(many, each));
      one_runs.push_back(times.Time(one, each));
    }
  });
  const std::vector<double> took = times.Seconds();
  nlohmann::json rates = nlohmann::json::object();
  for (const Rate& rate : measured) {
    std::vector<double> matmul, conv;
    for (const size_t run : rate.matmul) matmul.push_back(rate.matmul_flops / took[run]);
    for (const size_t run : rate.conv) conv.push_back(rate.conv_flops / took[run]);
    rates[rate.type] = {{"matmul_flops", matmul}, {"conv_flops", conv}};
  }
  std::vector<double> bandwidth, overhead;
  for (const size_t run : elementwise_runs) bandwidth.push_back(2 * 4.0 * static_cast<double>(kBigTensor) / took[run]);
  for (size_t i = 0; i < kRepetitions; ++i) {
    overhead.push_back(std::max(1e-9, (took[many_runs[i]] - took[one_runs[i]]) / (kTinyOps - 1)));
  }
  return {{"rates", rates}, {"bandwidth", bandwidth}, {"op_overhead", overhead}, {"pace", times.paces()}};
}

// From a thread pinned to `from` to one pinned to `to`, as the parts of a plan hand tensors over: a flag that the other
// waits for, then its part begins, and reads what was written.
nlohmann::json DetectLink(ov::Core& core, const RuntimeDevice& from, const RuntimeDevice& to, double seconds) {
  constexpr size_t kHandovers = 2000;
  // To write and read what is shared takes about two milliseconds.
  const size_t reads = static_cast<size_t>(std::clamp(seconds / kRepetitions / 2e-3, 2.0, 20.0));
  std::vector<double> latency, bandwidth;
  std::vector<uint64_t> shared(kSharedBytes / sizeof(uint64_t), 1);
  std::atomic<uint64_t> sink = 0;
  const auto sum = [&] {
    uint64_t total = 0;
    for (const uint64_t word : shared) total += word;
    sink = total;
  };
  std::optional<Probe> tiny;
  for (size_t repetition = 0; repetition < kRepetitions; ++repetition) {
    double handover = 0, launch = 0, read = 0;
    // Before the threads begin, since it may throw, which nothing would catch in these.
    RunPinned(to.cores, to.one_core(), [&] {
      if (!tiny) tiny = TinyOps(core, to, 1);
      std::vector<double> launches;
      const ThreadClock since;
      // In a run of a plan, what other parts read and write has gone through the caches since the last time.
      do {
        sum();
        const double begin = Now();
        tiny->Run();
        launches.push_back(Now() - begin);
      } while (launches.size() < 3 || since.seconds() < seconds / (2 * kRepetitions));
      launch = Median(launches);
    });
    std::atomic<size_t> ball = 0;
    const auto wait = [&](size_t value) {
      while (ball.load(std::memory_order_acquire) != value) {
      }
    };
    std::thread reader([&] {
      PinTo(to.cores);
      ball = 1;
      for (size_t i = 1; i <= kHandovers; ++i) {
        wait(2 * i);
        ball.store(2 * i + 1, std::memory_order_release);
      }
      for (size_t i = 0; i < reads; ++i) {
        wait(3 * kHandovers + 2 * i);
        const double start = Now();
        sum();
        read += Now() - start;
        ball.store(3 * kHandovers + 2 * i + 1, std::memory_order_release);
      }
    });
    std::thread writer([&] {
      PinTo(from.cores);
      wait(1);
      const double start = Now();
      for (size_t i = 1; i <= kHandovers; ++i) {
        ball.store(2 * i, std::memory_order_release);
        wait(2 * i + 1);
      }
      handover = (Now() - start) / (2 * kHandovers);
      for (size_t i = 0; i < reads; ++i) {
        std::ranges::fill(shared, i + repetition);
        ball.store(3 * kHandovers + 2 * i, std::memory_order_release);
        wait(3 * kHandovers + 2 * i + 1);
      }
    });
    reader.join();
    writer.join();
    latency.push_back(handover + launch);
    bandwidth.push_back(static_cast<double>(reads * kSharedBytes) / read);
  }
  return {{"latency", latency}, {"bandwidth", bandwidth}};
}

}  // namespace

nlohmann::json Detect(ov::Core& core, const std::vector<RuntimeDevice>& devices, double seconds) {
  const size_t count = devices.size();
  const double each = seconds / static_cast<double>(count + count * (count - 1) / 2);
  nlohmann::json found = nlohmann::json::array(), links = nlohmann::json::array();
  for (const RuntimeDevice& device : devices) {
    // A device that does not take a probe, as one without f32, is no reason to measure none of the others.
    try {
      found.push_back(DetectDevice(core, device, each));
    } catch (const std::exception& exception) {
      found.push_back({{"error", Brief(exception)}});
    }
  }
  for (size_t from = 0; from < count; ++from) {
    for (size_t to = 0; to < count; ++to) {
      const bool measured = !found[from].contains("error") && !found[to].contains("error");
      const bool cores = from != to && devices[from].is_cpu() && devices[to].is_cpu();
      links.push_back(nlohmann::json());
      if (!measured || !cores) continue;
      try {
        links.back() = DetectLink(core, devices[from], devices[to], each / 2);
      } catch (const std::exception& exception) {
        links.back() = {{"error", Brief(exception)}};
      }
    }
  }
  return {{"devices", found}, {"links", links}};
}

}  // namespace berth
