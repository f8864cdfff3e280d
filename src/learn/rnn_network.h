// The sequence-to-sequence network of Mirhoseini et al. 2017 (section 3.2): an LSTM reads the groups of a graph one
// after another, a second one writes a device for each, with attention to all that was read. The attention is that of
// the code that the same group published in 2018: additive, asked with the decoder's state after its step, of the
// transformed memory; what it finds goes into the logits and not back into the decoder.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace berth {

struct RnnShape {
  int64_t features = 0;  // columns per group
  int64_t devices = 2;
  int64_t hidden = 128;       // even where bidirectional
  bool bidirectional = true;  // the encoder; half of `hidden` each way
  // Logits are tanh_constant * tanh(logits / temperature); tanh_constant 0: as they are, over the temperature.
  double tanh_constant = 0, temperature = 1;
};

class RnnNetwork : public torch::nn::Module {
 public:
  RnnNetwork(const RnnShape& shape, Random random);

  const RnnShape& shape() const { return shape_; }

  // The encoder's output.
  struct Memory {
    at::Tensor keys;  // groups x hidden
    at::Tensor h, c;  // 1 x hidden: where the decoder begins
  };
  // `features`: groups x columns, in the order in which they are read.
  Memory Read(const at::Tensor& features) const;

  // Writing one device after another, for several placements side by side.
  struct State {
    at::Tensor h, c;      // placements x hidden
    at::Tensor previous;  // int64, placements: the device that was written last
  };
  State Begin(const Memory& memory, int64_t placements) const;
  // Log-probabilities of the next device, placements x devices. `mask` (devices) is added to the logits.
  at::Tensor Next(const Memory& memory, State& state, const at::Tensor& mask) const;

  // The same for whole placements that are known (int64, placements x groups): placements x groups x devices. `mask`:
  // groups x devices. O(placements groups^2 hidden) in time and, for the backward pass, in memory.
  at::Tensor All(const Memory& memory, const at::Tensor& placements, const at::Tensor& mask) const;

 private:
  struct Lstm {
    at::Tensor input, recurrent, bias;  // gates i, f, g, o
  };
  Lstm MakeLstm(const std::string& name, int64_t in, int64_t hidden, at::Generator& generator);
  at::Tensor MakeWeight(const std::string& name, int64_t out, int64_t in, at::Generator& generator);
  // From decoder states (rows x hidden) to log-probabilities (rows x devices); `mask` as large, or one row of it.
  at::Tensor Decide(const Memory& memory, const at::Tensor& h, const at::Tensor& mask) const;

  RnnShape shape_;
  at::Tensor embed_, embed_bias_;  // features
  std::vector<Lstm> encoder_;      // one, or one per direction
  Lstm decoder_;
  at::Tensor device_;               // (devices + 1) x hidden: what was written; the last row for nothing yet
  at::Tensor key_, query_, score_;  // of the attention
  at::Tensor out_;                  // devices x 2 hidden
};

}  // namespace berth
