#include "worker/probe.h"

#include <openvino/op/ops.hpp>
#include <vector>

#include "base/random.h"
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

ProbeNode ProductBy(const ProbeNode& input, size_t size, uint64_t seed) {
  return std::make_shared<ov::op::v0::MatMul>(input, RandomConstant({size, size}, seed));
}

ProbeNode ConvolutionOf(const ProbeNode& input, size_t channels, uint64_t seed) {
  return std::make_shared<ov::op::v1::Convolution>(input, RandomConstant({channels, channels, 3, 3}, seed),
                                                   ov::Strides{1, 1}, ov::CoordinateDiff{1, 1},
                                                   ov::CoordinateDiff{1, 1}, ov::Strides{1, 1});
}

Probe::Probe(ov::Core& core, const RuntimeDevice& device, const ProbeNode& result, const ProbeInput& input)
    : model_(std::make_shared<ov::Model>(ov::OutputVector{result->output(0)}, ov::ParameterVector{input})),
      compiled_(core.compile_model(model_, device.plugin, Settings(device))),
      request_(compiled_.create_infer_request()) {
  ov::Tensor values(ov::element::f32, input->get_shape());
  Random random(1);
  // A block of numbers again and again: what they are matters little, that they are numbers does.
  std::vector<float> block(4096);
  for (float& value : block) value = static_cast<float>(random.Normal());
  for (size_t i = 0; i < values.get_size(); ++i) values.data<float>()[i] = block[i % block.size()];
  request_.set_input_tensor(values);
  request_.infer();
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
