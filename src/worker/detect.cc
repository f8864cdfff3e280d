#include "worker/detect.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <openvino/op/ops.hpp>
#include <thread>

#include "base/random.h"
#include "worker/loaded_model.h"
#include "worker/thread_clock.h"

namespace berth {
namespace {

constexpr size_t kRepetitions = 7;
constexpr size_t kBigTensor = size_t{16} << 20;   // elements: 64 MiB, more than the caches of most
constexpr size_t kSharedBytes = size_t{4} << 20;  // what one core writes and another reads: about a large activation

using Node = std::shared_ptr<ov::Node>;

double Now() { return ThreadClock::Now(CLOCK_MONOTONIC); }

Node RandomConstant(const ov::Shape& shape, uint64_t seed, double scale = 0.05) {
  Random random(seed);
  std::vector<float> values(ov::shape_size(shape));
  for (float& value : values) value = static_cast<float>(scale * random.Normal());
  return std::make_shared<ov::op::v0::Constant>(ov::element::f32, shape, values);
}

// A model that is run as it would be as a part of a plan.
class Probe {
 public:
  Probe(ov::Core& core, const RuntimeDevice& device, const Node& result,
        const std::shared_ptr<ov::op::v0::Parameter>& parameter)
      : model_(std::make_shared<ov::Model>(ov::OutputVector{result->output(0)}, ov::ParameterVector{parameter})),
        compiled_(core.compile_model(model_, device.plugin, Settings(device))),
        request_(compiled_.create_infer_request()) {
    ov::Tensor input(ov::element::f32, parameter->get_shape());
    Random random(1);
    // A block of numbers again and again: what they are matters little, that they are numbers does.
    std::vector<float> block(4096);
    for (float& value : block) value = static_cast<float>(random.Normal());
    for (size_t i = 0; i < input.get_size(); ++i) input.data<float>()[i] = block[i % block.size()];
    request_.set_input_tensor(input);
    request_.infer();
  }

  // Seconds of a run, the mean of as many as fit into `budget`, three at least; on the calling thread.
  double Seconds(double budget) {
    const double start = Now();
    size_t runs = 0;
    do {
      request_.infer();
      ++runs;
    } while (runs < 3 || Now() - start < budget);
    return (Now() - start) / static_cast<double>(runs);
  }

 private:
  std::shared_ptr<ov::Model> model_;
  ov::CompiledModel compiled_;
  ov::InferRequest request_;
};

std::shared_ptr<ov::op::v0::Parameter> Input(const ov::Shape& shape) {
  return std::make_shared<ov::op::v0::Parameter>(ov::element::f32, shape);
}

// Three layers of each, as a network has them.
constexpr size_t kLayers = 3;

Probe Products(ov::Core& core, const RuntimeDevice& device, double& flops) {
  constexpr size_t kSize = 512;
  const auto input = Input({kSize, kSize});
  Node last = input;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    last = std::make_shared<ov::op::v0::MatMul>(last, RandomConstant({kSize, kSize}, layer + 1));
  }
  flops = 2.0 * kSize * kSize * kSize * kLayers;
  return Probe(core, device, last, input);
}

Probe Convolutions(ov::Core& core, const RuntimeDevice& device, double& flops) {
  constexpr size_t kChannels = 64, kSide = 56;
  const auto input = Input({1, kChannels, kSide, kSide});
  Node last = input;
  for (size_t layer = 0; layer < kLayers; ++layer) {
    last = std::make_shared<ov::op::v1::Convolution>(last, RandomConstant({kChannels, kChannels, 3, 3}, layer + 1),
                                                     ov::Strides{1, 1}, ov::CoordinateDiff{1, 1},
                                                     ov::CoordinateDiff{1, 1}, ov::Strides{1, 1});
  }
  flops = 2.0 * kChannels * kChannels * 9 * kSide * kSide * kLayers;
  return Probe(core, device, last, input);
}

Probe Elementwise(ov::Core& core, const RuntimeDevice& device) {
  const auto input = Input({kBigTensor});
  return Probe(core, device, std::make_shared<ov::op::v0::Relu>(input), input);
}

// Products, since a runtime makes one kernel of elementwise ops.
constexpr size_t kTinyOps = 64;

Probe TinyOps(ov::Core& core, const RuntimeDevice& device, size_t count) {
  const auto input = Input({4, 4});
  // Values neither grow nor fade from op to op: numbers that are too small for a type's usual form take longer.
  constexpr double kNeutral = 0.57;
  Node last = input;
  for (size_t op = 0; op < count; ++op)
    last = std::make_shared<ov::op::v0::MatMul>(last, RandomConstant({4, 4}, op + 1, kNeutral));
  return Probe(core, device, last, input);
}

nlohmann::json DetectDevice(ov::Core& core, const RuntimeDevice& device, double seconds) {
  RuntimeDevice exact = device;
  exact.precision = ov::element::f32;
  std::vector<RuntimeDevice> precisions = {device};
  if (device.precision != exact.precision) precisions.push_back(exact);
  std::vector<double> bandwidth, overhead;
  nlohmann::json rates = nlohmann::json::object();
  RunPinned(device.cores, [&] {
    const double each = seconds / (static_cast<double>(3 + 2 * precisions.size()) * kRepetitions);
    for (const RuntimeDevice& one : precisions) {
      double matmul_flops = 0, conv_flops = 0;
      Probe products = Products(core, one, matmul_flops);
      Probe convolutions = Convolutions(core, one, conv_flops);
      std::vector<double> matmul, conv;
      for (size_t i = 0; i < kRepetitions; ++i) {
        matmul.push_back(matmul_flops / products.Seconds(each));
        conv.push_back(conv_flops / convolutions.Seconds(each));
      }
      rates[one.precision.get_type_name()] = {{"matmul_flops", matmul}, {"conv_flops", conv}};
    }
    // In f32, since the model's inputs and outputs are: what turns them into another type is no elementwise op.
    Probe elementwise = Elementwise(core, exact);
    Probe many = TinyOps(core, device, kTinyOps), one = TinyOps(core, device, 1);
    for (size_t i = 0; i < kRepetitions; ++i) {
      bandwidth.push_back(2 * 4.0 * static_cast<double>(kBigTensor) / elementwise.Seconds(each));
      overhead.push_back(std::max(1e-9, (many.Seconds(each) - one.Seconds(each)) / (kTinyOps - 1)));
    }
  });
  return {{"rates", rates}, {"bandwidth", bandwidth}, {"op_overhead", overhead}};
}

// From a thread pinned to `from` to one pinned to `to`, as the parts of a plan hand tensors over: a flag that the other
// waits for, then its part begins, and reads what was written.
nlohmann::json DetectLink(ov::Core& core, const RuntimeDevice& from, const RuntimeDevice& to, double seconds) {
  constexpr size_t kHandovers = 2000;
  // To write and read what is shared takes about two milliseconds.
  const size_t reads = static_cast<size_t>(std::clamp(seconds / kRepetitions / 2e-3, 2.0, 20.0));
  std::vector<double> latency, bandwidth;
  std::vector<uint64_t> shared(kSharedBytes / sizeof(uint64_t), 1);
  for (size_t repetition = 0; repetition < kRepetitions; ++repetition) {
    double handover = 0, launch = 0, read = 0;
    // Before the threads begin, since it may throw, which nothing would catch in these.
    RunPinned(to.cores, [&] { launch = TinyOps(core, to, 1).Seconds(seconds / (2 * kRepetitions)); });
    std::atomic<size_t> ball = 0;
    std::atomic<uint64_t> sink = 0;
    const auto sum = [&] {
      uint64_t total = 0;
      for (const uint64_t word : shared) total += word;
      sink = total;
    };
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
