// Small models of known work, by which a device is measured.
#pragma once

#include <cstdint>
#include <memory>
#include <openvino/openvino.hpp>

#include "worker/devices.h"

namespace berth {

using ProbeNode = std::shared_ptr<ov::Node>;
using ProbeInput = std::shared_ptr<ov::op::v0::Parameter>;

ProbeInput MakeProbeInput(const ov::Shape& shape);
// Normal numbers times `scale`.
ProbeNode RandomConstant(const ov::Shape& shape, uint64_t seed, double scale = 0.05);
// A square product of matrices, and a convolution 3x3 that keeps the size of its input. With `in_8_bits` their operands
// are rounded to 256 values first, weights to 255, as in a quantized model.
ProbeNode ProductBy(const ProbeNode& input, size_t size, uint64_t seed, bool in_8_bits = false);
ProbeNode ConvolutionOf(const ProbeNode& input, size_t channels, uint64_t seed, bool in_8_bits = false);

// A model that is run as it would be as a part of a plan; within RunPinned.
class Probe {
 public:
  Probe(ov::Core& core, const RuntimeDevice& device, const ProbeNode& result, const ProbeInput& input);

  // On the calling thread.
  void Run() { request_.infer(); }
  // Seconds of a run, the mean of as many as fit into `budget`, three at least; on the calling thread.
  double Seconds(double budget);
  // Whether the device computes all products and convolutions with 8-bit operands, as OpenVINO tells of its kernels: it
  // may take a quantized model and compute in floating point all the same.
  bool ComputesIn8Bits() const;

 private:
  std::shared_ptr<ov::Model> model_;
  ov::CompiledModel compiled_;
  ov::InferRequest request_;
};

}  // namespace berth
