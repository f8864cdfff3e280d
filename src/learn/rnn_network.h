// The sequence-to-sequence network of Mirhoseini et al. 2017 (section 3.2): an LSTM reads the groups of a graph one
// after another, a second one writes a device for each, with attention to all that was read. The attention is that of
// the code that the same group published in 2018: additive, asked with the decoder's state after its step, of the
// transformed memory; what it finds goes into the logits and not back into the decoder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "learn/libtorch.h"

namespace berth {

struct RnnShape {
  int64_t features = 0;  // columns per group
  int64_t devices = 2;
  int64_t hidden = 128;       // even where bidirectional
  bool bidirectional = true;  // the encoder; half of `hidden` each way
  // Logits are tanh_constant * tanh(logits / temperature); tanh_constant 0: as they are, over the temperature.
  double tanh_constant = 0, temperature = 1;
  // An affine layer before the encoder, and a bias for each gate. The code of 2018 has no such layer, and one bias for
  // all forget gates of the encoder, one for those of the decoder.
  bool embedded = true, gate_biases = true;
  // Ours: the decoder is shown what was read of the group whose device it writes, beside the device before.
  bool aligned = false;
};

class RnnNetwork : public torch::nn::Module {
 public:
  RnnNetwork(const RnnShape& shape, Random random);

  const RnnShape& shape() const { return shape_; }

  // The encoder's output, for all placements or for each its own.
  struct Memory {
    at::Tensor keys;  // (1 or placements) x groups x hidden
    at::Tensor h, c;  // (1 or placements) x hidden: where the decoder begins
  };
  // `features`: groups x columns, in the order in which they are read; or placements x groups x columns.
  Memory Read(const at::Tensor& features) const;

  // Writing one device after another, for several placements side by side.
  struct State {
    at::Tensor h, c;      // placements x hidden
    at::Tensor previous;  // int64, placements: the device that was written last
    int64_t step = 0;     // how many were written
  };
  State Begin(const Memory& memory, int64_t placements) const;
  // Log-probabilities of the next device, placements x devices. `mask` (devices, or a row for each placement) is added
  // to the logits. `noise` (placements x devices, or undefined for none) times the root mean square of a placement's
  // logits is added, too.
  at::Tensor Next(const Memory& memory, State& state, const at::Tensor& mask, const at::Tensor& noise = {}) const;

  // The same for whole placements that are known (int64, placements x groups): placements x groups x devices. `mask`:
  // groups x devices, perhaps for each placement; `noise`: placements x groups x devices. O(placements groups^2 hidden)
  // in time and, for the backward pass, in memory.
  at::Tensor All(const Memory& memory, const at::Tensor& placements, const at::Tensor& mask,
                 const at::Tensor& noise = {}) const;

  // What All and its backward pass keep of so many placements of so many groups; about (Policy::recalled_numbers).
  double kept_numbers(int64_t placements, int64_t groups) const {
    constexpr double kPerPair = 3, kPerStep = 24;
    const auto steps = static_cast<double>(placements) * static_cast<double>(groups);
    return steps * static_cast<double>(shape_.hidden) * (kPerPair * static_cast<double>(groups) + kPerStep);
  }

 private:
  struct Lstm {
    at::Tensor input, recurrent;  // gates i, f, g, o
    at::Tensor bias;              // of all gates; of one number where it is that of all forget gates
    at::Tensor Biases() const;
  };
  // `forget`: the bias of all forget gates; undefined for one of each gate.
  Lstm MakeLstm(const std::string& name, int64_t in, int64_t hidden, const at::Tensor& forget,
                at::Generator& generator);
  // From decoder states (placements x steps x hidden) to log-probabilities (placements x steps x devices).
  at::Tensor Decide(const Memory& memory, const at::Tensor& h, const at::Tensor& mask, const at::Tensor& noise) const;

  RnnShape shape_;
  at::Tensor embed_, embed_bias_;  // features
  std::vector<Lstm> encoder_;      // one, or one per direction
  Lstm decoder_;
  at::Tensor device_;               // (devices + 1) x hidden: what was written; the last row for nothing yet
  at::Tensor key_, query_, score_;  // of the attention
  at::Tensor out_;                  // devices x 2 hidden
};

}  // namespace berth
