#include "learn/hdp_network.h"

#include "learn/nets.h"

namespace berth {

HdpNetwork::HdpNetwork(const HdpShape& shape, Random random) : shape_(shape) {
  Random of_grouper = random.Fork(1);
  at::Generator generator = MakeGenerator(of_grouper);
  hidden_ = NewWeight(*this, "grouper_hidden", shape.grouper_hidden, shape.features, generator);
  out_ = NewWeight(*this, "grouper_out", shape.groups, shape.grouper_hidden, generator);
  {
    const torch::NoGradGuard no_gradient;
    out_ *= shape.grouper_scale;
  }
  placer_ = register_module("placer", std::make_shared<RnnNetwork>(shape.placer, random.Fork(2)));
}

at::Tensor HdpNetwork::Group(const at::Tensor& ops) const {
  return torch::log_softmax(torch::mm(torch::mm(ops, hidden_.t()), out_.t()), 1).clamp_min(-1e4);
}

}  // namespace berth
