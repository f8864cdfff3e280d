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
  embed_ = MakeWeight("embed", hidden, shape.features, generator);
  embed_bias_ = register_parameter("embed_bias", torch::zeros({hidden}));
  if (shape.bidirectional) {
    encoder_.push_back(MakeLstm("encoder_forward", hidden, hidden / 2, generator));
    encoder_.push_back(MakeLstm("encoder_backward", hidden, hidden / 2, generator));
  } else {
    encoder_.push_back(MakeLstm("encoder", hidden, hidden, generator));
  }
  decoder_ = MakeLstm("decoder", hidden, hidden, generator);
  device_ = MakeWeight("device", shape.devices + 1, hidden, generator);
  key_ = MakeWeight("key", hidden, hidden, generator);
  query_ = MakeWeight("query", hidden, hidden, generator);
  score_ = MakeWeight("score", 1, hidden, generator);
  out_ = MakeWeight("out", shape.devices, 2 * hidden, generator);
}

at::Tensor RnnNetwork::MakeWeight(const std::string& name, int64_t out, int64_t in, at::Generator& generator) {
  at::Tensor weight = torch::empty({out, in});
  GlorotUniform(weight, generator);
  return register_parameter(name, weight);
}

// The forget gates begin open.
RnnNetwork::Lstm RnnNetwork::MakeLstm(const std::string& name, int64_t in, int64_t hidden, at::Generator& generator) {
  Lstm lstm{.input = MakeWeight(name + "_input", 4 * hidden, in, generator),
            .recurrent = MakeWeight(name + "_recurrent", 4 * hidden, hidden, generator),
            .bias = {}};
  at::Tensor bias = torch::zeros({4 * hidden});
  bias.slice(0, hidden, 2 * hidden).fill_(1);
  lstm.bias = register_parameter(name + "_bias", bias);
  return lstm;
}

RnnNetwork::Memory RnnNetwork::Read(const at::Tensor& features) const {
  const at::Tensor x = torch::addmm(embed_bias_, features, embed_.t()).unsqueeze(1);
  std::vector<at::Tensor> weights;
  for (const Lstm& lstm : encoder_) {
    for (const at::Tensor& each : {lstm.input, lstm.recurrent, lstm.bias}) weights.push_back(each);
    weights.push_back(Zeros(lstm.bias));
  }
  const auto directions = static_cast<int64_t>(encoder_.size());
  const at::Tensor start = torch::zeros({directions, 1, shape_.hidden / directions});
  const auto [read, h, c] = torch::lstm(x, {start, start}, weights, true, 1, 0, false, shape_.bidirectional, false);
  return {.keys = torch::mm(read.squeeze(1), key_.t()),
          .h = h.permute({1, 0, 2}).reshape({1, shape_.hidden}),
          .c = c.permute({1, 0, 2}).reshape({1, shape_.hidden})};
}

RnnNetwork::State RnnNetwork::Begin(const Memory& memory, int64_t placements) const {
  return {.h = memory.h.expand({placements, shape_.hidden}),
          .c = memory.c.expand({placements, shape_.hidden}),
          .previous = torch::full({placements}, shape_.devices, torch::kInt64)};
}

at::Tensor RnnNetwork::Next(const Memory& memory, State& state, const at::Tensor& mask) const {
  std::tie(state.h, state.c) =
      torch::lstm_cell(device_.index_select(0, state.previous), {state.h, state.c}, decoder_.input, decoder_.recurrent,
                       decoder_.bias, Zeros(decoder_.bias));
  return Decide(memory, state.h, mask);
}

at::Tensor RnnNetwork::All(const Memory& memory, const at::Tensor& placements, const at::Tensor& mask) const {
  const int64_t count = placements.size(0), groups = placements.size(1);
  const at::Tensor previous = torch::cat(
      {torch::full({1, count}, shape_.devices, torch::kInt64), placements.t().slice(0, 0, groups - 1)});  // by group
  const at::Tensor input = device_.index_select(0, previous.reshape({-1})).view({groups, count, shape_.hidden});
  const State start = Begin(memory, count);
  const at::Tensor h = std::get<0>(torch::lstm(
      input, {start.h.unsqueeze(0).contiguous(), start.c.unsqueeze(0).contiguous()},
      {decoder_.input, decoder_.recurrent, decoder_.bias, Zeros(decoder_.bias)}, true, 1, 0, false, false, false));
  return Decide(memory, h.reshape({groups * count, shape_.hidden}), mask.repeat_interleave(count, 0))
      .view({groups, count, shape_.devices})
      .transpose(0, 1);
}

at::Tensor RnnNetwork::Decide(const Memory& memory, const at::Tensor& h, const at::Tensor& mask) const {
  const at::Tensor compared = torch::tanh(torch::mm(h, query_.t()).unsqueeze(1) + memory.keys.unsqueeze(0));
  const at::Tensor attention = torch::softmax(torch::matmul(compared, score_.squeeze(0)), 1);
  at::Tensor logits = torch::mm(torch::cat({h, torch::mm(attention, memory.keys)}, 1), out_.t()) / shape_.temperature;
  if (shape_.tanh_constant > 0) logits = torch::tanh(logits) * shape_.tanh_constant;
  return MaskedLogSoftmax(logits, mask);
}

}  // namespace berth
