#include <utility>
#include <vector>

#include "import/model_families.h"
#include "import/net_builder.h"
#include "import/network_formulas.h"

namespace berth {
namespace {

using Value = NetBuilder::Value;

struct State {
  Value hidden, cell;
};

// What a layer begins with; constants of the model, as exporters keep them.
State InitialState(NetBuilder& net, std::string_view layer, int64_t batch, int64_t hidden) {
  const NetBuilder::Scope scope(net, layer);
  return {net.Weight("hidden", {batch, hidden}), net.Weight("cell", {batch, hidden})};
}

// One step of an LSTM, gate by gate (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000):
// fifteen ops. What goes in is joined by a single Concat, however many parts it has.
State LstmStep(NetBuilder& net, const NetBuilder::LinearWeights& weights, std::vector<Value> inputs,
               const State& state) {
  inputs.push_back(state.hidden);
  const Value joined = net.Concat(inputs, 1);
  const Value gates = net.Gemm(joined, weights);
  const auto gate = [&](std::string_view name) { return net.Op("Slice", {gates}, state.hidden.dims, {}, name); };
  const Value input = gate("input"), forget = gate("forget"), candidate = gate("candidate"), output = gate("output");
  const Value kept = net.Binary("Mul", net.Unary("Sigmoid", forget), state.cell);
  const Value added = net.Binary("Mul", net.Unary("Sigmoid", input), net.Unary("Tanh", candidate));
  const Value cell = net.Binary("Add", kept, added);
  const Value hidden = net.Binary("Mul", net.Unary("Sigmoid", output), net.Unary("Tanh", cell));
  return {hidden, cell};
}

// The words of one step as vectors: a column of the indices, then rows of the table.
Value EmbedStep(NetBuilder& net, const Value& table, const Value& indices) {
  return net.Embed(table, net.Op("Gather", {indices}, {indices.Dim(0)}));
}

// (batch, features) per step -> (batch, steps, features).
Value Stack(NetBuilder& net, const std::vector<Value>& steps) {
  std::vector<Value> parts;
  for (const Value& step : steps) parts.push_back(net.Op("Unsqueeze", {step}, {step.Dim(0), 1, step.Dim(1)}));
  return net.Concat(parts, 1);
}

struct Sizes {
  int64_t layers, hidden, steps, batch, vocabulary;
  explicit Sizes(const Params& params)
      : layers(params.Int("layers")),
        hidden(params.Int("hidden")),
        steps(params.Int("steps")),
        batch(params.Int("batch")),
        vocabulary(params.Int("vocabulary")) {}
};

std::vector<Parameter> SizeParameters(int64_t layers, int64_t hidden, int64_t steps, int64_t batch,
                                      int64_t vocabulary) {
  return {Count("layers", layers, "stacked LSTM layers"), Count("hidden", hidden, "units per layer"),
          Count("steps", steps, "words that the network is unrolled over"), Count("batch", batch, "sentences at once"),
          Count("vocabulary", vocabulary, "words in the table and in the result")};
}

Graph MakeRnnlm(const Params& params) {
  const Sizes size(params);
  NetBuilder net(params.canonical());
  const Value words = net.Input("ids", {size.batch, size.steps});
  const Value table = net.Weight("embedding", {size.vocabulary, size.hidden});
  std::vector<NetBuilder::LinearWeights> cells;
  for (int64_t layer = 0; layer < size.layers; ++layer)
    cells.push_back(net.MakeLinear(2 * size.hidden, 4 * size.hidden, fmt::format("cell{}", layer)));
  const NetBuilder::LinearWeights project = net.MakeLinear(size.hidden, size.vocabulary, "output");
  std::vector<State> states;
  for (size_t layer = 0; layer < cells.size(); ++layer)
    states.push_back(InitialState(net, fmt::format("cell{}", layer), size.batch, size.hidden));
  std::vector<Value> results;
  for (int64_t step = 0; step < size.steps; ++step) {
    const NetBuilder::Scope step_scope(net, fmt::format("step{}", step));
    Value x = EmbedStep(net, table, words);
    for (size_t layer = 0; layer < cells.size(); ++layer) {
      const NetBuilder::Scope scope(net, fmt::format("layer{}", layer));
      states[layer] = LstmStep(net, cells[layer], {x}, states[layer]);
      x = states[layer].hidden;
    }
    results.push_back(net.Gemm(x, project));
  }
  net.Output(net.Unary("Softmax", Stack(net, results)));
  return net.Build();
}

// A value per step.
using Steps = std::vector<Value>;

// All steps of one layer over sequences that are read side by side, forwards or backwards.
Steps RunLayer(NetBuilder& net, std::string_view name, const std::vector<Steps>& sequences, int64_t hidden,
               bool backwards = false) {
  int64_t inputs = hidden;
  for (const Steps& sequence : sequences) inputs += sequence.front().Dim(1);
  const NetBuilder::LinearWeights weights = net.MakeLinear(inputs, 4 * hidden, name);
  const NetBuilder::Scope scope(net, name);
  State state = InitialState(net, "initial", sequences.front().front().Dim(0), hidden);
  Steps result = sequences.front();
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t step = backwards ? result.size() - 1 - i : i;
    const NetBuilder::Scope step_scope(net, fmt::format("step{}", step));
    std::vector<Value> parts;
    for (const Steps& sequence : sequences) parts.push_back(sequence[step]);
    state = LstmStep(net, weights, std::move(parts), state);
    result[step] = state.hidden;
  }
  return result;
}

// Wu et al. 2016: a bidirectional first encoder layer, residual connections above the second, additive attention
// (Bahdanau et al. 2015) from the first decoder layer to all others.
Graph MakeGnmt(const Params& params) {
  const Sizes size(params);
  NetBuilder net(params.canonical());
  const Value source = net.Input("src", {size.batch, size.steps}), target = net.Input("tgt", {size.batch, size.steps});
  const auto each_step = [&](auto make) {
    std::vector<Value> values;
    for (int64_t step = 0; step < size.steps; ++step) values.push_back(make(static_cast<size_t>(step)));
    return values;
  };

  // 1. the encoder
  const Value source_table = net.Weight("encoder/embedding", {size.vocabulary, size.hidden});
  const Steps words = each_step([&](size_t) { return EmbedStep(net, source_table, source); });
  std::vector<Steps> below = {RunLayer(net, "encoder/forward", {words}, size.hidden),
                              RunLayer(net, "encoder/backward", {words}, size.hidden, true)};
  for (int64_t layer = 0; layer + 1 < size.layers; ++layer) {
    Steps above = RunLayer(net, fmt::format("encoder/layer{}", layer), below, size.hidden);
    if (layer > 0) above = each_step([&](size_t step) { return net.Binary("Add", above[step], below.front()[step]); });
    below = {std::move(above)};
  }
  // With one layer only, the two directions are added, so that the memory has the width that attention expects.
  const Steps encoded = below.size() == 1
                            ? below.front()
                            : each_step([&](size_t step) { return net.Binary("Add", below[0][step], below[1][step]); });
  const Value memory = Stack(net, encoded);

  // 2. the decoder, one word after another
  const Value keys = net.Linear(memory, size.hidden, "attention/key", false);
  const Value query_weight = net.Weight("attention/query", {size.hidden, size.hidden});
  const Value score_weight = net.Weight("attention/score", {size.hidden, 1});
  const Value target_table = net.Weight("decoder/embedding", {size.vocabulary, size.hidden});
  std::vector<NetBuilder::LinearWeights> cells;
  for (int64_t layer = 0; layer < size.layers; ++layer)
    cells.push_back(net.MakeLinear(3 * size.hidden, 4 * size.hidden, fmt::format("decoder/layer{}", layer)));
  const NetBuilder::LinearWeights project = net.MakeLinear(size.hidden, size.vocabulary, "decoder/output");
  std::vector<State> states;
  for (size_t layer = 0; layer < cells.size(); ++layer)
    states.push_back(InitialState(net, fmt::format("decoder/layer{}", layer), size.batch, size.hidden));
  Value context = states.front().hidden;
  const std::vector<Value> results = each_step([&](size_t step) {
    const NetBuilder::Scope step_scope(net, fmt::format("decoder/step{}", step));
    Value x = EmbedStep(net, target_table, target);
    for (size_t layer = 0; layer < cells.size(); ++layer) {
      const NetBuilder::Scope scope(net, fmt::format("layer{}", layer));
      states[layer] = LstmStep(net, cells[layer], {x, context}, states[layer]);
      const Value hidden = states[layer].hidden;
      x = layer > 1 ? net.Binary("Add", hidden, x) : hidden;
      if (layer == 0) {
        const Value query = net.MatMul(hidden, query_weight);
        const Value spread = net.Op("Unsqueeze", {query}, {size.batch, 1, size.hidden});
        const Value weights =
            net.Unary("Softmax", net.MatMul(net.Unary("Tanh", net.Binary("Add", spread, keys)), score_weight));
        context = net.Op("ReduceSum", {net.Binary("Mul", weights, memory)}, {size.batch, size.hidden});
      }
    }
    return net.Gemm(x, project);
  });
  net.Output(Stack(net, results));
  return net.Build();
}

}  // namespace

Graph MakeTranslator(std::string name, const Translator& size) {
  NetBuilder net(std::move(name));
  const Value source = net.Input("src", {size.batch, size.source_words}),
              target = net.Input("tgt", {size.batch, size.target_words});
  const Value source_table = net.Weight("encoder/embedding", {size.vocabulary, size.hidden});
  const Value target_table = net.Weight("decoder/embedding", {size.vocabulary, size.hidden});
  Steps encoded, decoded;
  for (int64_t step = 0; step < size.source_words; ++step) encoded.push_back(EmbedStep(net, source_table, source));
  for (int64_t step = 0; step < size.target_words; ++step) decoded.push_back(EmbedStep(net, target_table, target));
  for (int64_t layer = 0; layer < size.layers; ++layer)
    encoded = RunLayer(net, fmt::format("encoder/layer{}", layer), {encoded}, size.hidden);
  for (int64_t layer = 0; layer < size.layers; ++layer)
    decoded = RunLayer(net, fmt::format("decoder/layer{}", layer), {decoded}, size.hidden);
  const Value memory = Stack(net, encoded);
  const Value keys = net.Transpose(memory, {0, 2, 1});
  const NetBuilder::LinearWeights combine = net.MakeLinear(2 * size.hidden, size.hidden, "attention"),
                                  project = net.MakeLinear(size.hidden, size.vocabulary, "output");
  std::vector<Value> results;
  for (size_t step = 0; step < decoded.size(); ++step) {
    const NetBuilder::Scope scope(net, fmt::format("attention/step{}", step));
    const Value query = net.Op("Unsqueeze", {decoded[step]}, {size.batch, 1, size.hidden});
    const Value context = net.MatMul(net.Unary("Softmax", net.MatMul(query, keys)), memory);
    const Value flat = net.Op("Squeeze", {context}, {size.batch, size.hidden});
    results.push_back(net.Gemm(net.Unary("Tanh", net.Gemm(net.Concat({flat, decoded[step]}, 1), combine)), project));
  }
  net.Output(Stack(net, results));
  return net.Build();
}

void RegisterRecurrentModels(ModelCatalog& catalog) {
  catalog.Add(
      {.name = "rnnlm",
       .sentence = "A recurrent language model, unrolled gate by gate.",
       .source = "Jozefowicz et al. 2016, arXiv 1602.02410; the defaults are those of the shipped rnnlm_2l_t35_b64",
       .parameters = SizeParameters(2, 2048, 35, 64, 10000)},
      MakeRnnlm);
  catalog.Add({.name = "gnmt",
               .sentence = "Google's translation network with attention, unrolled; layers=8,steps=284 has 80,000 ops.",
               .source = "Wu et al. 2016, arXiv 1609.08144; the defaults are those of the shipped gnmt_4l_t20_b64",
               .parameters = SizeParameters(4, 1024, 20, 64, 32000)},
              MakeGnmt);
  catalog.Add({.name = "nmt",
               .sentence = "A plain sequence-to-sequence network with dot attention, unrolled.",
               .source = "Luong et al. 2015, arXiv 1508.04025, section 3.1",
               .parameters = SizeParameters(2, 512, 40, 128, 17191)},
              [](const Params& params) {
                const Sizes size(params);
                return MakeTranslator(params.canonical(), {.layers = size.layers,
                                                           .hidden = size.hidden,
                                                           .source_words = size.steps,
                                                           .target_words = size.steps,
                                                           .batch = size.batch,
                                                           .vocabulary = size.vocabulary});
              });
}

}  // namespace berth
