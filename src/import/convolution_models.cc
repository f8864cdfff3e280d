#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "import/model_families.h"
#include "import/net_builder.h"
#include "import/network_formulas.h"

namespace berth {
namespace {

using Value = NetBuilder::Value;  // (batch, channels, height, width), or (batch, channels, length)

// A window over an image.
struct ConvWindow {
  int64_t height, width;
  int64_t stride = 1;
  bool same = true;  // padded so that only the stride shrinks the image; else not padded
};

int64_t Shrunk(int64_t size, int64_t window, const ConvWindow& by) {
  return by.same ? (size + by.stride - 1) / by.stride : (size - window) / by.stride + 1;
}

Dims Slid(const Value& x, const ConvWindow& window, int64_t channels) {
  return {x.Dim(0), channels, Shrunk(x.Dim(2), window.height, window), Shrunk(x.Dim(3), window.width, window)};
}

// With bias: batch normalisation is folded into the convolution, as in the shipped exports.
Value Conv(NetBuilder& net, const Value& x, int64_t channels, const ConvWindow& window, std::string_view name,
           int64_t groups = 1) {
  const NetBuilder::Scope scope(net, name);
  return net.Op("Conv",
                {x, net.Weight("weight", {channels, x.Dim(1) / groups, window.height, window.width}),
                 net.Weight("bias", {channels})},
                Slid(x, window, channels));
}

Value ConvRelu(NetBuilder& net, const Value& x, int64_t channels, const ConvWindow& window, std::string_view name) {
  return net.Unary("Relu", Conv(net, x, channels, window, name));
}

Value Pool(NetBuilder& net, std::string_view type, const Value& x, const ConvWindow& window) {
  Attributes attributes;
  attributes.Set("kernel_shape", std::vector<int64_t>{window.height, window.width});
  return net.Op(type, {x}, Slid(x, window, x.Dim(1)), attributes);
}

// Averages that count the border as zeros, which exporters write as two ops.
Value PaddedAverage(NetBuilder& net, const Value& x) {
  const Value padded = net.Op("Pad", {x}, {x.Dim(0), x.Dim(1), x.Dim(2) + 2, x.Dim(3) + 2});
  return Pool(net, "AveragePool", padded, {3, 3, 1, false});
}

// --- Inception-V3 (Szegedy et al. 2016)
// ----------------------------------------------------------------------------------

constexpr ConvWindow kPoint{1, 1};

// Convolutions one after another, named by number.
Value Branch(NetBuilder& net, std::string_view name, Value x,
             const std::vector<std::pair<int64_t, ConvWindow>>& layers) {
  const NetBuilder::Scope scope(net, name);
  for (size_t i = 0; i < layers.size(); ++i)
    x = ConvRelu(net, x, layers[i].first, layers[i].second, fmt::format("conv{}", i));
  return x;
}

Value InceptionA(NetBuilder& net, const Value& x, int64_t pool_channels) {
  return net.Concat({Branch(net, "1x1", x, {{64, kPoint}}), Branch(net, "5x5", x, {{48, kPoint}, {64, {5, 5}}}),
                     Branch(net, "3x3", x, {{64, kPoint}, {96, {3, 3}}, {96, {3, 3}}}),
                     Branch(net, "pool", PaddedAverage(net, x), {{pool_channels, kPoint}})},
                    1);
}

Value InceptionB(NetBuilder& net, const Value& x) {
  const ConvWindow shrink{3, 3, 2, false};
  return net.Concat(
      {Branch(net, "3x3", x, {{384, shrink}}), Branch(net, "double", x, {{64, kPoint}, {96, {3, 3}}, {96, shrink}}),
       Pool(net, "MaxPool", x, shrink)},
      1);
}

Value InceptionC(NetBuilder& net, const Value& x, int64_t middle) {
  const ConvWindow across{1, 7}, down{7, 1};
  return net.Concat(
      {Branch(net, "1x1", x, {{192, kPoint}}), Branch(net, "7x7", x, {{middle, kPoint}, {middle, across}, {192, down}}),
       Branch(net, "double", x, {{middle, kPoint}, {middle, down}, {middle, across}, {middle, down}, {192, across}}),
       Branch(net, "pool", PaddedAverage(net, x), {{192, kPoint}})},
      1);
}

Value InceptionD(NetBuilder& net, const Value& x) {
  const ConvWindow shrink{3, 3, 2, false};
  return net.Concat({Branch(net, "3x3", x, {{192, kPoint}, {320, shrink}}),
                     Branch(net, "7x7", x, {{192, kPoint}, {192, {1, 7}}, {192, {7, 1}}, {192, shrink}}),
                     Pool(net, "MaxPool", x, shrink)},
                    1);
}

Value InceptionE(NetBuilder& net, const Value& x) {
  const Value three = Branch(net, "3x3", x, {{384, kPoint}});
  const Value twice = Branch(net, "double", x, {{448, kPoint}, {384, {3, 3}}});
  return net.Concat(
      {Branch(net, "1x1", x, {{320, kPoint}}), Branch(net, "3x3a", three, {{384, {1, 3}}}),
       Branch(net, "3x3b", three, {{384, {3, 1}}}), Branch(net, "double_a", twice, {{384, {1, 3}}}),
       Branch(net, "double_b", twice, {{384, {3, 1}}}), Branch(net, "pool", PaddedAverage(net, x), {{192, kPoint}})},
      1);
}

// Global average, then the classes.
void Classify(NetBuilder& net, const Value& x, int64_t classes) {
  const Value pooled = net.Op("GlobalAveragePool", {x}, {x.Dim(0), x.Dim(1), 1, 1});
  net.Output(net.Linear(net.Op("Flatten", {pooled}, {x.Dim(0), x.Dim(1)}), classes, "classes"));
}

Graph MakeInceptionV3(const Params& params) {
  NetBuilder net(params.canonical());
  Value x = net.Input("image", {params.Int("batch"), 3, params.Int("size"), params.Int("size")});
  x = ConvRelu(net, x, 32, {3, 3, 2, false}, "stem0");
  x = ConvRelu(net, x, 32, {3, 3, 1, false}, "stem1");
  x = Pool(net, "MaxPool", ConvRelu(net, x, 64, {3, 3}, "stem2"), {3, 3, 2, false});
  x = ConvRelu(net, ConvRelu(net, x, 80, kPoint, "stem3"), 192, {3, 3, 1, false}, "stem4");
  x = Pool(net, "MaxPool", x, {3, 3, 2, false});
  int block = 0;
  const auto mixed = [&](auto make, auto... arguments) {
    const NetBuilder::Scope scope(net, fmt::format("mixed{}", block++));
    x = make(net, x, arguments...);
  };
  for (const int64_t pool_channels : {32, 64, 64}) mixed(InceptionA, pool_channels);
  mixed(InceptionB);
  for (const int64_t middle : {128, 160, 160, 192}) mixed(InceptionC, middle);
  mixed(InceptionD);
  mixed(InceptionE);
  mixed(InceptionE);
  Classify(net, x, 1000);
  return net.Build();
}

// --- WaveNet (van den Oord et al. 2016)
// ----------------------------------------------------------------------------------

Graph MakeWaveNet(const Params& params) {
  const int64_t batch = params.Int("batch"), length = params.Int("length"), residual = params.Int("residual"),
                skips = params.Int("skip");
  constexpr int64_t kLevels = 256;  // mu-law quantisation, section 2.2
  NetBuilder net(params.canonical());
  const auto conv = [&](const Value& x, int64_t channels, int64_t window, int64_t out_length, std::string_view name) {
    const NetBuilder::Scope scope(net, name);
    return net.Op("Conv", {x, net.Weight("weight", {channels, x.Dim(1), window}), net.Weight("bias", {channels})},
                  {batch, channels, out_length});
  };
  Value x = conv(net.Input("x", {batch, kLevels, length}), residual, 1, length, "in");
  std::optional<Value> skip;
  for (int64_t stack = 0; stack < params.Int("stacks"); ++stack) {
    for (int64_t layer = 0; layer < params.Int("layers"); ++layer) {
      const NetBuilder::Scope scope(net, fmt::format("stack{}/layer{}", stack, layer));
      const int64_t dilation = int64_t{1} << std::min<int64_t>(layer, 20);
      const Dims kept = {batch, residual, length};
      // Padded on both sides and cut: causal, section 2.1.
      const Value filter = net.Op("Slice", {conv(x, residual, 2, length + dilation, "filter")}, kept);
      const Value gate = net.Op("Slice", {conv(x, residual, 2, length + dilation, "gate")}, kept);
      const Value gated = net.Binary("Mul", net.Unary("Tanh", filter), net.Unary("Sigmoid", gate));
      const Value out = conv(gated, skips, 1, length, "skip");
      skip = skip ? net.Binary("Add", *skip, out) : out;
      const bool last = stack + 1 == params.Int("stacks") && layer + 1 == params.Int("layers");
      if (!last) x = net.Binary("Add", x, conv(gated, residual, 1, length, "residual"));
    }
  }
  const Value hidden = net.Unary("Relu", conv(net.Unary("Relu", *skip), skips, 1, length, "out1"));
  net.Output(net.Unary("Softmax", conv(hidden, kLevels, 1, length, "out2")));
  return net.Build();
}

// --- NASNet-A and AmoebaNet-D: cells of pairs
// ------------------------------------------------------------------------------

// Zoph et al. 2018, figure 4; state 0 is the last cell's result, 1 the one before.
const Cell kNasNormal = {{{{{0, CellOp::kSeparable5}, {1, CellOp::kSeparable3}}},
                          {{{1, CellOp::kSeparable5}, {1, CellOp::kSeparable3}}},
                          {{{0, CellOp::kAverage3}, {1, CellOp::kIdentity}}},
                          {{{1, CellOp::kAverage3}, {1, CellOp::kAverage3}}},
                          {{{0, CellOp::kSeparable3}, {0, CellOp::kIdentity}}}},
                         {1, 2, 3, 4, 5, 6}};
const Cell kNasReduction = {{{{{0, CellOp::kSeparable5}, {1, CellOp::kSeparable7}}},
                             {{{0, CellOp::kMax3}, {1, CellOp::kSeparable7}}},
                             {{{0, CellOp::kAverage3}, {1, CellOp::kSeparable5}}},
                             {{{3, CellOp::kIdentity}, {2, CellOp::kAverage3}}},
                             {{{2, CellOp::kSeparable3}, {0, CellOp::kMax3}}}},
                            {3, 4, 5, 6}};
// Real et al. 2019 (AmoebaNet-D), with the cells as GPipe's public ports write them; state 0 is the cell before the
// last.
const Cell kAmoebaNormal = {{{{{1, CellOp::kPointwise}, {1, CellOp::kMax3}}},
                             {{{1, CellOp::kIdentity}, {0, CellOp::kSevenBySeven}}},
                             {{{0, CellOp::kPointwise}, {0, CellOp::kSevenBySeven}}},
                             {{{2, CellOp::kMax3}, {2, CellOp::kIdentity}}},
                             {{{1, CellOp::kAverage3}, {5, CellOp::kPointwise}}}},
                            {0, 3, 4, 6}};
const Cell kAmoebaReduction = {{{{{0, CellOp::kMax2}, {0, CellOp::kMax3}}},
                                {{{2, CellOp::kIdentity}, {1, CellOp::kConv3}}},
                                {{{2, CellOp::kSevenBySeven}, {2, CellOp::kMax3}}},
                                {{{3, CellOp::kIdentity}, {1, CellOp::kMax2}}},
                                {{{2, CellOp::kAverage3}, {3, CellOp::kPointwise}}}},
                               {4, 5, 6}};

// Depthwise then pointwise, twice, each after a ReLU (Zoph et al. 2018, appendix A.4).
Value Separable(NetBuilder& net, Value x, int64_t window, int64_t stride) {
  for (int round = 0; round < 2; ++round) {
    const NetBuilder::Scope scope(net, fmt::format("round{}", round));
    const ConvWindow depthwise{window, window, round == 0 ? stride : 1};
    x = Conv(net, net.Unary("Relu", x), x.Dim(1), depthwise, "depthwise", x.Dim(1));
    x = Conv(net, x, x.Dim(1), kPoint, "pointwise");
  }
  return x;
}

Value ApplyCellOp(NetBuilder& net, CellOp op, const Value& x, int64_t stride) {
  const auto conv = [&](const ConvWindow& window) { return Conv(net, net.Unary("Relu", x), x.Dim(1), window, "conv"); };
  switch (op) {
    case CellOp::kIdentity:
      return stride == 1 ? x : conv({1, 1, stride});
    case CellOp::kSeparable3:
      return Separable(net, x, 3, stride);
    case CellOp::kSeparable5:
      return Separable(net, x, 5, stride);
    case CellOp::kSeparable7:
      return Separable(net, x, 7, stride);
    case CellOp::kAverage3:
      return Pool(net, "AveragePool", x, {3, 3, stride});
    case CellOp::kMax3:
      return Pool(net, "MaxPool", x, {3, 3, stride});
    case CellOp::kMax2:
      return Pool(net, "MaxPool", x, {2, 2, stride});
    case CellOp::kPointwise:
      return conv({1, 1, stride});
    case CellOp::kConv3:
      return conv({3, 3, stride});
    case CellOp::kSevenBySeven: {
      const Value across = conv({1, 7, stride});
      return Conv(net, net.Unary("Relu", across), x.Dim(1), {7, 1}, "down");
    }
  }
  return x;
}

// To the cell's channels, and to the image size of the newer state.
Value Fit(NetBuilder& net, const Value& x, int64_t channels, int64_t height, std::string_view name) {
  return Conv(net, net.Unary("Relu", x), channels, {1, 1, x.Dim(2) > height ? 2 : 1}, name);
}

Value MakeCell(NetBuilder& net, const Cell& cell, const Value& zero, const Value& one, int64_t channels, bool reduces) {
  const int64_t height = std::min(zero.Dim(2), one.Dim(2));
  const int64_t target = reduces ? (height + 1) / 2 : height;
  std::vector<Value> states = {Fit(net, zero, channels, height, "fit0"), Fit(net, one, channels, height, "fit1")};
  for (size_t pair = 0; pair < cell.pairs.size(); ++pair) {
    std::vector<Value> sides;
    for (size_t side = 0; side < 2; ++side) {
      const NetBuilder::Scope scope(net, fmt::format("pair{}/{}", pair, side == 0 ? "left" : "right"));
      const Value& state = states[static_cast<size_t>(cell.pairs[pair][side].state)];
      sides.push_back(ApplyCellOp(net, cell.pairs[pair][side].op, state, state.Dim(2) > target ? 2 : 1));
    }
    states.push_back(net.Binary("Add", sides[0], sides[1]));
  }
  std::vector<Value> joined;
  for (const int state : cell.joined) joined.push_back(states[static_cast<size_t>(state)]);
  return net.Concat(joined, 1);
}

}  // namespace

Graph MakeCellNetwork(std::string name, const CellNetwork& network) {
  NetBuilder net(std::move(name));
  const int64_t full = network.channels;
  const Value image = net.Input("image", {network.batch, 3, network.size, network.size});
  Value before = ConvRelu(net, image, full, {3, 3, network.small_images ? 1 : 2}, "stem");
  Value last = before;
  int number = 0;
  const auto add = [&](const Cell& cell, int64_t channels, bool reduces) {
    const NetBuilder::Scope scope(net, fmt::format("cell{}", number++));
    Value next = network.newest_is_zero ? MakeCell(net, cell, last, before, channels, reduces)
                                        : MakeCell(net, cell, before, last, channels, reduces);
    before = std::exchange(last, std::move(next));
  };
  if (!network.small_images) {
    add(network.reduction, std::max<int64_t>(1, full / 4), true);
    add(network.reduction, std::max<int64_t>(1, full / 2), true);
  }
  for (int run = 0; run < 3; ++run) {
    const int64_t channels = full << run;
    if (run > 0) add(network.reduction, channels, true);
    for (int64_t i = 0; i < network.cells; ++i) add(network.normal, channels, false);
  }
  Classify(net, net.Unary("Relu", last), network.classes);
  return net.Build();
}

namespace {

// As NASNet and AmoebaNet are for ImageNet.
Graph MakeImageNet(const Params& params, const Cell& normal, const Cell& reduction, bool newest_is_zero) {
  return MakeCellNetwork(params.canonical(), {.normal = normal,
                                              .reduction = reduction,
                                              .newest_is_zero = newest_is_zero,
                                              .cells = params.Int("cells"),
                                              .channels = params.Int("channels"),
                                              .batch = params.Int("batch"),
                                              .size = params.Int("size"),
                                              .classes = 1000});
}

std::vector<Parameter> CellParameters(int64_t cells, int64_t channels, int64_t batch, int64_t size) {
  return {Count("cells", cells, "normal cells in each of the three runs"),
          Count("channels", channels, "channels of the first run; doubled in each"),
          Count("batch", batch, "images at once"),
          {.name = "size",
           .type = ParameterType::kInt,
           .default_value = std::to_string(size),
           .sentence = "pixels of a side",
           .least = 64,
           .most = 4096}};
}

}  // namespace

void RegisterConvolutionModels(ModelCatalog& catalog) {
  catalog.Add({.name = "inception_v3",
               .sentence = "Inception-V3 at any batch and image size.",
               .source = "Szegedy et al. 2016, arXiv 1512.00567; the defaults are those of the shipped inception_v3",
               .parameters = {Count("batch", 1, "images at once"),
                              {.name = "size",
                               .type = ParameterType::kInt,
                               .default_value = "299",
                               .sentence = "pixels of a side",
                               .least = 75,
                               .most = 4096}}},
              MakeInceptionV3);
  catalog.Add(
      {.name = "wavenet",
       .sentence = "Stacks of dilated causal convolutions with gates and skips.",
       .source = "van den Oord et al. 2016, arXiv 1609.03499; the defaults are those of the shipped wavenet_4x9",
       .parameters = {Count("stacks", 4, "stacks"),
                      {.name = "layers",
                       .type = ParameterType::kInt,
                       .default_value = "9",
                       .sentence = "layers per stack, dilation 1, 2, 4, ...",
                       .least = 1,
                       .most = 20},
                      Count("residual", 64, "channels between layers"),
                      Count("skip", 256, "channels of the skips"),
                      Count("length", 4096, "samples"),
                      Count("batch", 1, "recordings at once")}},
      MakeWaveNet);
  catalog.Add({.name = "nasnet",
               .sentence = "NASNet-A: cells of five pairs found by search.",
               .source = "Zoph et al. 2018, arXiv 1707.07012, figure 4",
               .parameters = CellParameters(4, 44, 1, 224)},
              [](const Params& params) { return MakeImageNet(params, kNasNormal, kNasReduction, true); });
  catalog.Add({.name = "amoebanet",
               .sentence = "AmoebaNet-D: cells of five pairs found by evolution.",
               .source = "Real et al. 2019, arXiv 1802.01548; cells as in Huang et al. 2019 (GPipe)",
               .parameters = CellParameters(6, 48, 1, 224)},
              [](const Params& params) { return MakeImageNet(params, kAmoebaNormal, kAmoebaReduction, false); });
}

}  // namespace berth
