#include "learn/gdp_network.h"

#include <utility>

#include "learn/row_layer.h"

namespace berth {

GdpNetwork::GdpNetwork(const GdpShape& shape, Random random) : shape_(shape) {
  at::Generator generator = MakeGenerator(random);
  const int64_t width = shape.placer.width;
  types_ = NewWeight(*this, "types", kGdpTypes, kGdpTypeColumns, generator);
  const int64_t odds = shape.refinements > 0 ? shape.placer.outputs : 0;
  embed_ = NewWeight(*this, "embed", width, kGdpTypeColumns + shape.features + odds, generator);
  embed_bias_ = MakeBias("embed_bias", width);
  for (int64_t l = 0; l < shape.sage_layers; ++l) {
    const std::string prefix = "sage" + std::to_string(l) + "_";
    sage_.push_back({.message = NewWeight(*this, prefix + "message", width, width, generator),
                     .message_bias = MakeBias(prefix + "message_bias", width),
                     .join = NewWeight(*this, prefix + "join", width, 2 * width, generator),
                     .join_bias = MakeBias(prefix + "join_bias", width)});
  }
  if (shape.placer.gated) {
    gate_ = NewWeight(*this, "gate", shape.placer.layers * width, width, generator);
    gate_bias_ = MakeBias("gate_bias", shape.placer.layers * width);
  }
  placer_ = register_module("placer", std::make_shared<SegmentPlacer>(shape.placer, generator));
}

at::Tensor GdpNetwork::MakeBias(const std::string& name, int64_t size) {
  return register_parameter(name, torch::zeros({size}));
}

at::Tensor GdpNetwork::Pass(const GdpInput& input, const at::Tensor& odds, int64_t threads) const {
  std::vector<at::Tensor> columns{types_.index_select(0, input.type), input.features.to(types_.scalar_type())};
  if (shape_.refinements > 0) columns.push_back(odds);
  at::Tensor h = RowLayer(columns, embed_, embed_bias_, Activation::kNone, threads);
  for (const Sage& sage : sage_) {
    const at::Tensor said = RowLayer({h}, sage.message, sage.message_bias, Activation::kSigmoid, threads);
    h = RowLayer({h, GatherMax(said, input.neighbours, threads)}, sage.join, sage.join_bias, Activation::kRelu,
                 threads);
  }
  at::Tensor gate;
  if (shape_.placer.gated) {
    gate = torch::sigmoid(torch::addmv(gate_bias_, gate_, h.mean(0))).view({shape_.placer.layers, shape_.placer.width});
  }
  return placer_->Forward(h, gate, threads);
}

at::Tensor GdpNetwork::Forward(const GdpInput& input, int64_t threads) const {
  at::Tensor odds;
  if (shape_.refinements > 0) odds = torch::zeros({input.type.size(0), shape_.placer.outputs}, types_.options());
  for (int64_t pass = 0; pass < shape_.refinements; ++pass) {
    const torch::NoGradGuard no_gradient;
    const at::Tensor logits = Pass(input, odds, threads);
    const int64_t devices = shape_.placer.outputs - shape_.levels;
    odds = torch::softmax(logits.narrow(1, 0, devices), 1);
    if (shape_.levels > 0) {
      odds = torch::cat({odds, torch::softmax(logits.narrow(1, devices, shape_.levels), 1)}, 1);
    }
  }
  return Pass(input, odds, threads);
}

}  // namespace berth
