// The networks of the hierarchical placer of Mirhoseini et al. 2018: a feed-forward one puts each op into a group, and
// a sequence-to-sequence one (rnn_network.h) writes a device for each group.
#pragma once

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "learn/libtorch.h"
#include "learn/rnn_network.h"

namespace berth {

struct HdpShape {
  int64_t features = 0;  // columns per op
  int64_t groups = 0;
  int64_t grouper_hidden = 64;
  double grouper_scale = 1;  // of the grouper's last weights at first, over Glorot's
  RnnShape placer{};
};

class HdpNetwork : public torch::nn::Module {
 public:
  HdpNetwork(const HdpShape& shape, Random random);

  // Log-probabilities of each op's group, ops x groups. The layers have neither biases nor anything between them.
  at::Tensor Group(const at::Tensor& ops) const;
  const RnnNetwork& placer() const { return *placer_; }

 private:
  HdpShape shape_;
  at::Tensor hidden_, out_;
  std::shared_ptr<RnnNetwork> placer_;
};

}  // namespace berth
