// The placer of GDP (Zhou et al. 2019): attention over a long sequence that is cut into segments, each of which looks
// at itself and at the segment before (Dai et al. 2019, Transformer-XL), without positions. Of the published form only
// its parts are known; docs/decisions/0005-learning.md says what is a choice of ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learn/libtorch.h"

namespace berth {

struct SegmentShape {
  int64_t width = 128;  // a multiple of heads
  int64_t heads = 8;
  int64_t inner = 512;    // of the two layers behind each attention
  int64_t layers = 2;     // 0: outputs are made of the input alone
  int64_t segment = 256;  // rows that are read together, and as many that are remembered
  int64_t outputs = 2;
  bool gated = false;  // each layer's input is multiplied by a gate, and normalised
};

// A layer works on u, its input (gated: LayerNorm(gate * h)):
//   a = softmax((u Wq) (c Wk)^T / sqrt(width / heads)) (c Wv), c: the rows of the segment before and of this one
//   y = LayerNorm(u + a Wo), h' = LayerNorm(y + relu(y W1 + b1) W2 + b2)
// No gradient flows into the segment before, so segments are independent on the way back: only the inputs of the layers
// are kept, and each segment is worked out again.
class SegmentPlacer : public torch::nn::Module {
 public:
  SegmentPlacer(const SegmentShape& shape, at::Generator generator);

  const SegmentShape& shape() const { return shape_; }

  // x: rows x width; gate: layers x width where the shape is gated. Returns rows x outputs. Work is divided among so
  // many threads, and the same bytes come out on any number of them.
  // O(rows width (segment + width + inner)) in time; for the backward pass layers + 1 copies of x are kept.
  at::Tensor Forward(const at::Tensor& x, const at::Tensor& gate, int64_t threads) const;

 private:
  friend struct SegmentFunction;

  struct Layer {
    at::Tensor query, key, value, out;  // width x width
    at::Tensor in, in_bias, back, back_bias;
    at::Tensor norm, norm_bias, last_norm, last_norm_bias;
    at::Tensor gate_norm, gate_norm_bias;  // where gated
  };

  // What a layer attends with; `gate` is its row.
  at::Tensor Gated(const Layer& layer, const at::Tensor& h, const at::Tensor& gate) const;
  // `before`: u of the segment before, of no rows for the first one.
  at::Tensor Apply(const Layer& layer, const at::Tensor& before, const at::Tensor& u) const;
  at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;

  // The outputs without gradients; `inputs` receives u of each layer, rows x width.
  at::Tensor Run(const at::Tensor& x, const at::Tensor& gate, int64_t threads, std::vector<at::Tensor>& inputs) const;

  SegmentShape shape_;
  std::vector<Layer> layers_;
  at::Tensor head_, head_bias_;
};

}  // namespace berth
