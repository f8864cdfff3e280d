#include "learn/rnn_network.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "learn/nets.h"

namespace berth {
namespace {

at::Tensor Zeros(const at::Tensor& like) { return torch::zeros_like(like, like.options().requires_grad(false)); }

}  // namespace

RnnNetwork::RnnNetwork(const RnnShape& shape, Random random) : shape_(shape) {
  BERTH_CHECK(!shape.bidirectional || shape.hidden % 2 == 0, "hidden={} is odd", shape.hidden);
  at::Generator generator = MakeGenerator(random);
  const int64_t hidden = shape.hidden;
  if (shape.embedded) {
    embed_ = NewWeight(*this, "embed", hidden, shape.features, generator);
    embed_bias_ = register_parameter("embed_bias", torch::zeros({hidden}));
  }
  const auto forget = [&](const char* name) {
    return shape.gate_biases ? at::Tensor() : register_parameter(name, torch::ones({1}));
  };
  const int64_t read = shape.embedded ? hidden : shape.features;
  const at::Tensor of_encoder = forget("encoder_forget");
  if (shape.bidirectional) {
    encoder_.push_back(MakeLstm("encoder_forward", read, hidden / 2, of_encoder, generator));
    encoder_.push_back(MakeLstm("encoder_backward", read, hidden / 2, of_encoder, generator));
  } else {
    encoder_.push_back(MakeLstm("encoder", read, hidden, of_encoder, generator));
  }
  decoder_ = MakeLstm("decoder", shape.aligned ? 2 * hidden : hidden, hidden, forget("decoder_forget"), generator);
  device_ = NewWeight(*this, "device", shape.devices + 1, hidden, generator);
  key_ = NewWeight(*this, "key", hidden, hidden, generator);
  query_ = NewWeight(*this, "query", hidden, hidden, generator);
  score_ = NewWeight(*this, "score", 1, hidden, generator);
  out_ = NewWeight(*this, "out", shape.devices, 2 * hidden, generator);
}

// The forget gates begin open.
RnnNetwork::Lstm RnnNetwork::MakeLstm(const std::string& name, int64_t in, int64_t hidden, const at::Tensor& forget,
                                      at::Generator& generator) {
  Lstm lstm{.input = NewWeight(*this, name + "_input", 4 * hidden, in, generator),
            .recurrent = NewWeight(*this, name + "_recurrent", 4 * hidden, hidden, generator),
            .bias = forget};
  if (forget.defined()) return lstm;
  at::Tensor bias = torch::zeros({4 * hidden});
  bias.slice(0, hidden, 2 * hidden).fill_(1);
  lstm.bias = register_parameter(name + "_bias", bias);
  return lstm;
}

at::Tensor RnnNetwork::Lstm::Biases() const {
  if (bias.size(0) == input.size(0)) return bias;
  const int64_t hidden = recurrent.size(1);
  const at::Tensor none = torch::zeros({hidden}, bias.options().requires_grad(false));
  return torch::cat({none, bias.expand({hidden}), none, none});
}

RnnNetwork::Memory RnnNetwork::Read(const at::Tensor& features) const {
  const bool shared = features.dim() == 2;
  const int64_t count = shared ? 1 : features.size(0), groups = features.size(shared ? 0 : 1);
  at::Tensor x = features.reshape({count * groups, shape_.features});
  if (shape_.embedded) x = torch::addmm(embed_bias_, x, embed_.t());
  std::vector<at::Tensor> weights;
  for (const Lstm& lstm : encoder_) {
    const at::Tensor biases = lstm.Biases();
    for (const at::Tensor& each : {lstm.input, lstm.recurrent, biases, Zeros(biases)}) weights.push_back(each);
  }
  const auto directions = static_cast<int64_t>(encoder_.size());
  const at::Tensor start = torch::zeros({directions, count, shape_.hidden / directions}, x.options());
  const auto [read, h, c] = torch::lstm(x.view({count, groups, -1}).transpose(0, 1), {start, start}, weights, true, 1,
                                        0, false, shape_.bidirectional, false);
  return {.keys = torch::mm(read.transpose(0, 1).reshape({count * groups, shape_.hidden}), key_.t())
                      .view({count, groups, shape_.hidden}),
          .h = h.permute({1, 0, 2}).reshape({count, shape_.hidden}),
          .c = c.permute({1, 0, 2}).reshape({count, shape_.hidden})};
}

RnnNetwork::State RnnNetwork::Begin(const Memory& memory, int64_t placements) const {
  return {.h = memory.h.expand({placements, shape_.hidden}),
          .c = memory.c.expand({placements, shape_.hidden}),
          .previous = torch::full({placements}, shape_.devices, torch::kInt64)};
}

at::Tensor RnnNetwork::Next(const Memory& memory, State& state, const at::Tensor& mask, const at::Tensor& noise) const {
  at::Tensor input = device_.index_select(0, state.previous);
  if (shape_.aligned) input = torch::cat({input, memory.keys.select(1, state.step).expand_as(input)}, 1);
  ++state.step;
  const at::Tensor biases = decoder_.Biases();
  std::tie(state.h, state.c) =
      torch::lstm_cell(input, {state.h, state.c}, decoder_.input, decoder_.recurrent, biases, Zeros(biases));
  return Decide(memory, state.h.unsqueeze(1), mask.dim() == 1 ? mask : mask.unsqueeze(1),
                noise.defined() ? noise.unsqueeze(1) : noise)
      .squeeze(1);
}

at::Tensor RnnNetwork::All(const Memory& memory, const at::Tensor& placements, const at::Tensor& mask,
                           const at::Tensor& noise) const {
  const int64_t count = placements.size(0), groups = placements.size(1);
  const at::Tensor previous = torch::cat(
      {torch::full({1, count}, shape_.devices, torch::kInt64), placements.t().slice(0, 0, groups - 1)});  // by group
  at::Tensor input = device_.index_select(0, previous.reshape({-1})).view({groups, count, shape_.hidden});
  if (shape_.aligned) input = torch::cat({input, memory.keys.transpose(0, 1).expand_as(input)}, 2);
  const State start = Begin(memory, count);
  const at::Tensor biases = decoder_.Biases();
  const at::Tensor h = std::get<0>(
      torch::lstm(input, {start.h.unsqueeze(0).contiguous(), start.c.unsqueeze(0).contiguous()},
                  {decoder_.input, decoder_.recurrent, biases, Zeros(biases)}, true, 1, 0, false, false, false));
  return Decide(memory, h.transpose(0, 1), mask, noise);
}

at::Tensor RnnNetwork::Decide(const Memory& memory, const at::Tensor& h, const at::Tensor& mask,
                              const at::Tensor& noise) const {
  const int64_t count = h.size(0), steps = h.size(1), hidden = shape_.hidden;
  const at::Tensor flat = h.reshape({count * steps, hidden});
  // What all placements share is looked at with all their states as one.
  const at::Tensor query = torch::mm(flat, query_.t()).view({memory.keys.size(0), -1, 1, hidden});
  const at::Tensor compared = torch::tanh(query + memory.keys.unsqueeze(1));
  const at::Tensor attention = torch::softmax(torch::matmul(compared, score_.squeeze(0)), 2);
  const at::Tensor found = torch::bmm(attention, memory.keys).view({count * steps, hidden});
  at::Tensor logits = torch::mm(torch::cat({flat, found}, 1), out_.t()) / shape_.temperature;
  if (shape_.tanh_constant > 0) logits = torch::tanh(logits) * shape_.tanh_constant;
  logits = logits.view({count, steps, shape_.devices});
  if (noise.defined()) logits = logits + noise * torch::sqrt(logits.square().mean(2, true) + 1e-30);
  return MaskedLogSoftmax(logits, mask);
}

}  // namespace berth
