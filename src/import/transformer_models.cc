#include <utility>
#include <vector>

#include "import/model_families.h"
#include "import/net_builder.h"

namespace berth {
namespace {

using Value = NetBuilder::Value;

// Over the last axis, as exporters before opset 17 write it: nine ops (Ba et al. 2016, arXiv 1607.06450).
Value LayerNorm(NetBuilder& net, const Value& x, std::string_view name) {
  const NetBuilder::Scope scope(net, name);
  Dims one = x.dims;
  one.back() = 1;
  const Value scalar = net.Weight("exponent", {1});
  const Value centred = net.Binary("Sub", x, net.Op("ReduceMean", {x}, one));
  const Value variance = net.Op("ReduceMean", {net.Binary("Pow", centred, scalar)}, one);
  const Value deviation = net.Unary("Sqrt", net.Binary("Add", variance, net.Weight("epsilon", {1})));
  const Value scaled = net.Binary("Mul", net.Binary("Div", centred, deviation), net.Weight("weight", {x.Dim(-1)}));
  return net.Binary("Add", scaled, net.Weight("bias", {x.Dim(-1)}));
}

// Hendrycks and Gimpel 2016, written out: x / sqrt(2), erf, + 1, * x, * 0.5.
Value Gelu(NetBuilder& net, const Value& x) {
  const Value erf = net.Unary("Erf", net.Binary("Div", x, net.Weight("sqrt2", {1})));
  return net.Binary("Mul", net.Binary("Mul", x, net.Binary("Add", erf, net.Weight("one", {1}))),
                    net.Weight("half", {1}));
}

Value FeedForward(NetBuilder& net, const Value& x, int64_t inner) {
  return net.Linear(Gelu(net, net.Linear(x, inner, "inner")), x.Dim(-1), "outer");
}

// (batch, length, hidden) -> (batch, heads, length, size), or with the last two axes swapped for keys.
Value SplitHeads(NetBuilder& net, const Value& x, int64_t heads, bool keys) {
  const Value apart = net.Reshape(x, {x.Dim(0), x.Dim(1), heads, x.Dim(2) / heads});
  return keys ? net.Transpose(apart, {0, 2, 3, 1}) : net.Transpose(apart, {0, 2, 1, 3});
}

Value JoinHeads(NetBuilder& net, const Value& x) {
  return net.Reshape(net.Transpose(x, {0, 2, 1, 3}), {x.Dim(0), x.Dim(2), x.Dim(1) * x.Dim(3)});
}

// Vaswani et al. 2017, section 3.2.
Value SelfAttention(NetBuilder& net, const Value& x, const Value& mask, int64_t heads) {
  const NetBuilder::Scope scope(net, "attention");
  const Value query = SplitHeads(net, net.Linear(x, x.Dim(-1), "query"), heads, false);
  const Value key = SplitHeads(net, net.Linear(x, x.Dim(-1), "key"), heads, true);
  const Value value = SplitHeads(net, net.Linear(x, x.Dim(-1), "value"), heads, false);
  const Value scores = net.Binary("Div", net.MatMul(query, key), net.Weight("scale", {1}));
  const Value weights = net.Unary("Softmax", net.Binary("Add", scores, mask));
  return net.Linear(JoinHeads(net, net.MatMul(weights, value)), x.Dim(-1), "out");
}

void CheckHeads(const Params& params) {
  if (params.Int("hidden") % params.Int("heads") != 0) {
    throw Error("model {}: hidden={} is not a multiple of heads={}", params.canonical(), params.Int("hidden"),
                params.Int("heads"));
  }
}

Graph MakeBert(const Params& params) {
  CheckHeads(params);
  const int64_t batch = params.Int("batch"), length = params.Int("length"), hidden = params.Int("hidden");
  NetBuilder net(params.canonical());
  const Value ids = net.Input("input_ids", {batch, length}), types = net.Input("token_type_ids", {batch, length});
  const Value given_mask = net.Input("attention_mask", {batch, length});

  const Value row = net.Op("Unsqueeze", {given_mask}, {batch, 1, length});
  const Value real = net.Unary("Cast", net.Op("Unsqueeze", {row}, {batch, 1, 1, length}));
  const Value mask =
      net.Binary("Mul", net.Binary("Sub", net.Weight("mask/one", {1}), real), net.Weight("mask/large", {1}));

  const Value words = net.Embed(net.Weight("embeddings/word", {params.Int("vocabulary"), hidden}), ids);
  const Value positions = net.Weight("embeddings/position", {1, length, hidden});
  const Value kinds = net.Embed(net.Weight("embeddings/type", {2, hidden}), types);
  Value x = LayerNorm(net, net.Binary("Add", net.Binary("Add", words, positions), kinds), "embeddings/norm");
  for (int64_t layer = 0; layer < params.Int("layers"); ++layer) {
    const NetBuilder::Scope scope(net, fmt::format("layer{}", layer));
    x = LayerNorm(net, net.Binary("Add", x, SelfAttention(net, x, mask, params.Int("heads"))), "norm1");
    x = LayerNorm(net, net.Binary("Add", x, FeedForward(net, x, params.Int("inner"))), "norm2");
  }
  net.Output(x);
  const Value first = net.Op("Gather", {x}, {batch, hidden});
  net.Output(net.Unary("Tanh", net.Linear(first, hidden, "pool")));
  return net.Build();
}

// Dai et al. 2019, section 3.3: attention over the segment and a memory of earlier states, scores from contents (a, c
// of equation 5) and from relative positions (b, d) that a shift aligns (appendix B).
Value RelativeAttention(NetBuilder& net, const Value& x, const Value& memory, const Value& positions, const Value& mask,
                        int64_t heads) {
  const NetBuilder::Scope scope(net, "attention");
  const int64_t hidden = x.Dim(-1), batch = x.Dim(0), length = x.Dim(1), reach = positions.Dim(0);
  const Value context = net.Concat({memory, x}, 1);
  const Value query = net.Reshape(net.Linear(x, hidden, "query", false), {batch, length, heads, hidden / heads});
  const Value key = SplitHeads(net, net.Linear(context, hidden, "key", false), heads, true);
  const Value value = SplitHeads(net, net.Linear(context, hidden, "value", false), heads, false);
  const Value relative = net.Transpose(
      net.Reshape(net.Linear(positions, hidden, "relative", false), {reach, heads, hidden / heads}), {1, 2, 0});
  const auto biased = [&](std::string_view name) {
    return net.Transpose(net.Binary("Add", query, net.Weight(name, {heads, hidden / heads})), {0, 2, 1, 3});
  };
  const Value by_content = net.MatMul(biased("content_bias"), key);
  const Value by_position = net.MatMul(biased("position_bias"), relative);
  const Value padded = net.Op("Pad", {by_position}, {batch, heads, length, reach + 1});
  const Value turned = net.Reshape(padded, {batch, heads, reach + 1, length});
  const Value shifted =
      net.Reshape(net.Op("Slice", {turned}, {batch, heads, reach, length}), {batch, heads, length, reach});
  const Value scores = net.Binary("Mul", net.Binary("Add", by_content, shifted), net.Weight("scale", {1}));
  const Value weights = net.Unary("Softmax", net.Binary("Add", scores, mask));
  return net.Linear(JoinHeads(net, net.MatMul(weights, value)), hidden, "out", false);
}

Graph MakeTransformerXl(const Params& params) {
  CheckHeads(params);
  const int64_t batch = params.Int("batch"), length = params.Int("length"), hidden = params.Int("hidden"),
                past = params.Int("memory");
  NetBuilder net(params.canonical());
  const Value ids = net.Input("ids", {batch, length});
  const Value mask = net.Weight("mask", {length, past + length});
  const Value positions = net.Weight("positions", {past + length, hidden});
  const Value table = net.Weight("embedding", {params.Int("vocabulary"), hidden});
  Value x = net.Embed(table, ids);
  for (int64_t layer = 0; layer < params.Int("layers"); ++layer) {
    const NetBuilder::Scope scope(net, fmt::format("layer{}", layer));
    const Value memory = net.Input(fmt::format("memory{}", layer), {batch, past, hidden});
    const Value attended = RelativeAttention(net, x, memory, positions, mask, params.Int("heads"));
    x = LayerNorm(net, net.Binary("Add", x, attended), "norm1");
    const Value inner = net.Unary("Relu", net.Linear(x, params.Int("inner"), "inner"));
    x = LayerNorm(net, net.Binary("Add", x, net.Linear(inner, hidden, "outer")), "norm2");
    net.Output(x);
  }
  net.Output(net.Unary("Softmax", net.Linear(x, params.Int("vocabulary"), "output")));
  return net.Build();
}

// Lepikhin et al. 2020, section 2.2: a gate sends each token to `chosen` of the experts, each of which gets as many as
// the others do (what the loss there trains for), and the results are summed with the gate's weights.
Value Experts(NetBuilder& net, const Value& x, int64_t experts, int64_t chosen, int64_t inner) {
  const NetBuilder::Scope scope(net, "experts");
  const int64_t tokens = x.Dim(0) * x.Dim(1), hidden = x.Dim(2);
  const Value rows = net.Reshape(x, {tokens, hidden});
  const Value odds = net.Unary("Softmax", net.Linear(rows, experts, "gate"));
  const std::vector<Value> best = net.Ops("TopK", {odds}, {{tokens, chosen}, {tokens, chosen}});
  const int64_t each = (tokens * chosen + experts - 1) / experts;
  std::vector<Value> results;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const NetBuilder::Scope one(net, fmt::format("expert{}", expert));
    // Which tokens these are.
    const Value mine = net.Op("Compress", {best[1]}, {each});
    const Value own = net.Op("Gather", {rows, mine}, {each, hidden});
    const Value made = net.Linear(net.Unary("Relu", net.Linear(own, inner, "inner")), hidden, "outer");
    const Value weight = net.Op("Gather", {best[0], mine}, {each, 1});
    results.push_back(net.Binary("Mul", made, weight));
  }
  const Value together = net.Op("Gather", {net.Concat(results, 0), best[1]}, {tokens, chosen, hidden});
  return net.Reshape(net.Op("ReduceSum", {together}, {tokens, hidden}), x.dims);
}

Graph MakeMixture(const Params& params) {
  CheckHeads(params);
  const int64_t batch = params.Int("batch"), length = params.Int("length"), hidden = params.Int("hidden");
  const int64_t experts = params.Int("experts"), chosen = params.Int("chosen");
  if (chosen > experts) {
    throw Error("model {}: chosen={} is more than experts={}", params.canonical(), chosen, experts);
  }
  NetBuilder net(params.canonical());
  const Value ids = net.Input("ids", {batch, length});
  const Value mask = net.Weight("mask", {length, length});
  Value x = net.Embed(net.Weight("embedding", {params.Int("vocabulary"), hidden}), ids);
  for (int64_t layer = 0; layer < params.Int("layers"); ++layer) {
    const NetBuilder::Scope scope(net, fmt::format("layer{}", layer));
    x = LayerNorm(net, net.Binary("Add", x, SelfAttention(net, x, mask, params.Int("heads"))), "norm1");
    // Every other feed-forward has experts.
    const Value fed = layer % 2 == 1 ? Experts(net, x, experts, chosen, params.Int("inner"))
                                     : FeedForward(net, x, params.Int("inner"));
    x = LayerNorm(net, net.Binary("Add", x, fed), "norm2");
  }
  net.Output(net.Unary("Softmax", net.Linear(x, params.Int("vocabulary"), "output")));
  return net.Build();
}

}  // namespace

void RegisterTransformerModels(ModelCatalog& catalog) {
  catalog.Add({.name = "bert",
               .sentence = "An encoder of Transformer layers, op by op as exporters write it.",
               .source = "Devlin et al. 2019, arXiv 1810.04805; the defaults are those of the shipped bert_base_s128",
               .parameters = {Count("layers", 12, "encoder layers"), Count("hidden", 768, "features per token"),
                              Count("heads", 12, "attention heads; divide hidden"),
                              Count("inner", 3072, "features inside the feed-forward"),
                              Count("length", 128, "tokens per sentence"), Count("batch", 1, "sentences at once"),
                              Count("vocabulary", 30522, "words in the table")}},
              MakeBert);
  catalog.Add({.name = "transformer_xl",
               .sentence = "A language model with a memory of earlier segments and relative positions.",
               .source = "Dai et al. 2019, arXiv 1901.02860, section 3.3",
               .parameters = {Count("layers", 4, "layers"), Count("hidden", 512, "features per token"),
                              Count("heads", 8, "attention heads; divide hidden"),
                              Count("inner", 2048, "features inside the feed-forward"),
                              Count("length", 128, "tokens per segment"), Count("memory", 128, "remembered tokens"),
                              Count("batch", 32, "segments at once"),
                              Count("vocabulary", 32000, "words in the table and in the result")}},
              MakeTransformerXl);
  catalog.Add(
      {.name = "mixture",
       .sentence = "A language model in which a gate chooses experts for every token, in every other layer.",
       .source = "Lepikhin et al. 2020, arXiv 2006.16668, section 2",
       .parameters = {Count("layers", 4, "layers"), Count("experts", 8, "experts of a layer"),
                      Count("chosen", 2, "experts that a token goes to"), Count("hidden", 512, "features per token"),
                      Count("heads", 8, "attention heads; divide hidden"),
                      Count("inner", 2048, "features inside an expert"), Count("length", 128, "tokens per segment"),
                      Count("batch", 8, "segments at once"),
                      Count("vocabulary", 32000, "words in the table and in the result")}},
      MakeMixture);
}

}  // namespace berth
