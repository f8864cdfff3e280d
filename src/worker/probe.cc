#include "worker/probe.h"

#include <memory>
#include <openvino/op/ops.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "worker/kernels.h"
#include "worker/thread_clock.h"

namespace berth {

ProbeInput MakeProbeInput(const ov::Shape& shape) {
  return std::make_shared<ov::op::v0::Parameter>(ov::element::f32, shape);
}

ProbeNode RandomConstant(const ov::Shape& shape, uint64_t seed, double scale) {
  Random random(seed);
  std::vector<float> values(ov::shape_size(shape));
  for (float& value : values) value = static_cast<float>(scale * random.Normal());
  return std::make_shared<ov::op::v0::Constant>(ov::element::f32, shape, values);
}

namespace {

// Ranges that hold nearly all values.
constexpr float kActivations = 4, kWeights = 0.2F;

// To one of `levels` values from -range to range, as quantized models say it; OpenVINO makes 8-bit kernels of that.
ProbeNode Rounded(const ProbeNode& values, float range, size_t levels) {
  const auto bound = [](float value) { return ov::op::v0::Constant::create(ov::element::f32, {}, {value}); };
  const auto least = bound(-range), most = bound(range);
  return std::make_shared<ov::op::v0::FakeQuantize>(values, least, most, least, most, levels);
}

struct Operands {
  ProbeNode input, weights;
};

Operands WithWeights(const ProbeNode& input, const ov::Shape& shape, uint64_t seed, bool in_8_bits) {
  const ProbeNode weights = RandomConstant(shape, seed);
  if (!in_8_bits) return {input, weights};
  return {Rounded(input, kActivations, 256), Rounded(weights, kWeights, 255)};
}

}  // namespace

ProbeNode ProductBy(const ProbeNode& input, size_t size, uint64_t seed, bool in_8_bits) {
  const auto [rows, weights] = WithWeights(input, {size, size}, seed, in_8_bits);
  return std::make_shared<ov::op::v0::MatMul>(rows, weights);
}

ProbeNode ConvolutionOf(const ProbeNode& input, size_t channels, uint64_t seed, bool in_8_bits) {
  const auto [image, weights] = WithWeights(input, {channels, channels, 3, 3}, seed, in_8_bits);
  return std::make_shared<ov::op::v1::Convolution>(image, weights, ov::Strides{1, 1}, ov::CoordinateDiff{1, 1},
                                                   ov::CoordinateDiff{1, 1}, ov::Strides{1, 1});
}

Probe::Probe(ov::Core& core, const RuntimeDevice& device, const ProbeNode& result, const ProbeInput& input)
    : model_(std::make_shared<ov::Model>(ov::OutputVector{result->output(0)}, ov::ParameterVector{input})),
      compiled_(CompileFor(core, model_, device)),
      request_(compiled_.create_infer_request()) {
  ov::Tensor values(ov::element::f32, input->get_shape());
  Random random(1);
  // A block of numbers again and again: what they are matters little, that they are numbers does.
  std::vector<float> block(4096);
  for (float& value : block) value = static_cast<float>(random.Normal());
  for (size_t i = 0; i < values.get_size(); ++i) values.data<float>()[i] = block[i % block.size()];
  request_.set_input_tensor(values);
  OnThisThread(device.one_core(), [&] { Run(); });
}

bool Probe::ComputesIn8Bits() const {
  bool any = false;
  for (const std::shared_ptr<ov::Node>& kernel : compiled_.get_runtime_model()->get_ordered_ops()) {
    const std::string type = KernelInfo(*kernel, "layerType"), precision = KernelInfo(*kernel, "runtimePrecision");
    if (type != "FullyConnected" && type != "MatMul" && type != "Convolution") continue;
    any = true;
    if (precision != "i8" && precision != "u8") return false;
  }
  return any;
}

double Probe::Seconds(double budget) {
  const ThreadClock clock;
  size_t runs = 0;
  do {
    Run();
    ++runs;
  } while (runs < 3 || clock.seconds() < budget);
  return clock.seconds() / static_cast<double>(runs);
}

}  // namespace berth
