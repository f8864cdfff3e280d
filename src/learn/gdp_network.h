// The network of GDP (Zhou et al. 2019): messages between neighbours by GraphSAGE with the largest of what they say,
// then attention over all nodes in their order, then odds for each node by itself. A reconstruction from what is known
// of it; docs/decisions/0005-learning.md says what is a choice of ours.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "learn/libtorch.h"
#include "learn/nets.h"
#include "learn/segment_placer.h"

namespace berth {

// Op types are hashed into so many rows of a table of so many columns.
inline constexpr int64_t kGdpTypes = 256, kGdpTypeColumns = 32;

struct GdpShape {
  int64_t features = 0;     // columns per node beside the type
  int64_t sage_layers = 3;  // each reaches the neighbours' neighbours once more
  int64_t refinements = 0;  // further passes that see the odds of the pass before
  // The placer; its layers are gated by the mean over the graph's nodes where `gated`: parameter superposition (Cheung
  // et al. 2019), as conditioning on the graph.
  SegmentShape placer{};
  int64_t levels = 0;  // of the placer's outputs, the last so many are levels of priority
};

struct GdpInput {
  at::Tensor type;        // int64, per node
  at::Tensor features;    // nodes x columns
  SparseRows neighbours;  // whatever the edges' direction
};

class GdpNetwork : public torch::nn::Module {
 public:
  GdpNetwork(const GdpShape& shape, Random random);

  const GdpShape& shape() const { return shape_; }

  // Logits, nodes x outputs: devices, then levels of priority. Nodes are in the order in which the placer reads them.
  // `input` must outlive the backward pass.
  at::Tensor Forward(const GdpInput& input, int64_t threads) const;

 private:
  struct Sage {
    at::Tensor message, message_bias;  // sigmoid(message h + bias) of each neighbour, of which the largest counts
    at::Tensor join, join_bias;        // relu(join [h, largest] + bias)
  };
  at::Tensor MakeBias(const std::string& name, int64_t size);
  at::Tensor Pass(const GdpInput& input, const at::Tensor& odds, int64_t threads) const;

  GdpShape shape_;
  at::Tensor types_, embed_, embed_bias_;
  std::vector<Sage> sage_;
  at::Tensor gate_, gate_bias_;  // layers width x width
  std::shared_ptr<SegmentPlacer> placer_;
};

}  // namespace berth
