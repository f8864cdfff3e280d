// The networks that HSDAG measured (Duan et al. 2024, table 1), as OpenVINO 2023 writes them: weights are stored in 16
// bits, a constant and its decompression each, and batch normalisations are folded into the convolutions' weights.
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "import/ir_net.h"
#include "import/model_families.h"

namespace berth {
namespace {

struct IrWindow {
  int64_t height, width, stride = 1, pad_height = 0, pad_width = 0;
};
// A square one; `pad` on all sides.
IrWindow Square(int64_t side, int64_t stride = 1, int64_t pad = 0) { return {side, side, stride, pad, pad}; }

class IrBuilder {
 public:
  struct IrValue {
    size_t layer;
    Dims dims;
  };

  explicit IrBuilder(std::string name) { net_.name = std::move(name); }

  IrNet Take() { return std::move(net_); }
  void Note(std::string note) { net_.notes.push_back(std::move(note)); }

  IrValue Layer(std::string_view type, const std::vector<IrValue>& inputs, Dims dims,
                std::string_view element_type = "f32") {
    IrLayer layer{.name = fmt::format("{}_{}", type, net_.layers.size()), .type = std::string(type)};
    for (const IrValue& input : inputs) layer.inputs.push_back({input.layer, 0});
    if (type != "Result") layer.outputs.push_back({.dims = dims, .type = std::string(element_type)});
    net_.layers.push_back(std::move(layer));
    return {net_.layers.size() - 1, std::move(dims)};
  }
  void Attribute(const IrValue& value, std::string_view key, std::string text) {
    net_.layers[value.layer].attributes.emplace(key, std::move(text));
  }

  IrValue Input(Dims dims, std::string_view element_type = "f32") {
    return Layer("Parameter", {}, std::move(dims), element_type);
  }
  void Result(const IrValue& value) { Layer("Result", {value}, value.dims); }
  // A shape, axes, indices.
  IrValue Indices(int64_t count) { return Layer("Const", {}, {count}, "i64"); }
  IrValue Weight(const Dims& dims) { return Layer("Convert", {Layer("Const", {}, dims, "f16")}, dims); }

  // Two operands that broadcast to the first one's shape.
  IrValue Binary(std::string_view type, const IrValue& x, const IrValue& y) { return Layer(type, {x, y}, x.dims); }
  IrValue Unary(std::string_view type, const IrValue& x) { return Layer(type, {x}, x.dims); }
  // A layer that a constant tells how.
  IrValue Shaped(std::string_view type, const IrValue& x, Dims dims) {
    const auto count = static_cast<int64_t>(dims.size());
    return Layer(type, {x, Indices(count)}, std::move(dims));
  }
  IrValue Linear(const IrValue& x, int64_t features) {
    Dims dims = x.dims;
    dims.back() = features;
    const IrValue product = Layer("MatMul", {x, Weight({x.dims.back(), features})}, dims);
    return Binary("Add", product, Weight({1, features}));
  }

  IrValue ConvBias(const IrValue& x, int64_t channels, const IrWindow& w) {
    const IrValue conv =
        Layer("Convolution", {x, Weight({channels, x.dims[1], w.height, w.width})}, Slide(x.dims, channels, w));
    return Binary("Add", conv, Weight({1, channels, 1, 1}));
  }
  IrValue ConvUnit(const IrValue& x, int64_t channels, const IrWindow& w) {
    return Unary("ReLU", ConvBias(x, channels, w));
  }
  IrValue Pool(std::string_view type, const IrValue& x, const IrWindow& w) {
    const IrValue pool = Layer(type, {x}, Slide(x.dims, x.dims[1], w));
    Attribute(pool, "kernel", fmt::format("{},{}", w.height, w.width));
    return pool;
  }
  IrValue Concat(const std::vector<IrValue>& parts) {
    Dims dims = parts.front().dims;
    dims[1] = 0;
    for (const IrValue& part : parts) dims[1] += part.dims[1];
    return Layer("Concat", parts, std::move(dims));
  }

 private:
  static Dims Slide(const Dims& x, int64_t channels, const IrWindow& w) {
    return {x[0], channels, (x[2] + 2 * w.pad_height - w.height) / w.stride + 1,
            (x[3] + 2 * w.pad_width - w.width) / w.stride + 1};
  }

  IrNet net_;
};

using IrValue = IrBuilder::IrValue;

// Global average, classifier and result.
void Classify(IrBuilder& net, const IrValue& x) {
  const IrValue mean = net.Shaped("ReduceMean", x, {x.dims[0], x.dims[1], 1, 1});
  net.Result(net.Linear(net.Shaped("Reshape", mean, {x.dims[0], x.dims[1]}), 1000));
}

// He et al. 2015, with the stride in the 3x3 convolution.
IrNet ResNet50(int64_t batch, int64_t side) {
  IrBuilder net("ir_resnet50");
  IrValue x =
      net.Pool("MaxPool", net.ConvUnit(net.Input({batch, 3, side, side}), 64, Square(7, 2, 3)), Square(3, 2, 1));
  int64_t width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int block = 0; block < blocks; ++block) {
      const int64_t stride = block == 0 && width > 64 ? 2 : 1;
      const IrValue narrow = net.ConvUnit(net.ConvUnit(x, width, Square(1)), width, Square(3, stride, 1));
      const IrValue wide = net.ConvBias(narrow, 4 * width, Square(1));
      const IrValue shortcut = block == 0 ? net.ConvBias(x, 4 * width, Square(1, stride)) : x;
      x = net.Unary("ReLU", net.Binary("Add", wide, shortcut));
    }
    width *= 2;
  }
  Classify(net, x);
  return net.Take();
}

// Szegedy et al. 2015, as torchvision has it: inputs are rescaled channel by channel, there is no auxiliary head.
class InceptionV3 {
 public:
  IrNet Make(int64_t batch, int64_t side) {
    IrValue x = Rescale(net_.Input({batch, 3, side, side}));
    x = net_.ConvUnit(x, 32, Square(3, 2));
    x = net_.ConvUnit(net_.ConvUnit(x, 32, Square(3)), 64, Square(3, 1, 1));
    x = net_.Pool("MaxPool", x, Square(3, 2));
    x = net_.ConvUnit(net_.ConvUnit(x, 80, Square(1)), 192, Square(3));
    x = net_.Pool("MaxPool", x, Square(3, 2));
    for (const int64_t pooled : {32, 64, 64}) x = BlockA(x, pooled);
    x = BlockB(x);
    for (const int64_t middle : {128, 160, 160, 192}) x = BlockC(x, middle);
    x = BlockD(x);
    x = BlockE(BlockE(x));
    Classify(net_, x);
    return net_.Take();
  }

 private:
  static constexpr IrWindow kRow{.height = 1, .width = 7, .stride = 1, .pad_height = 0, .pad_width = 3};
  static constexpr IrWindow kColumn{.height = 7, .width = 1, .stride = 1, .pad_height = 3, .pad_width = 0};
  static constexpr IrWindow kShortRow{.height = 1, .width = 3, .stride = 1, .pad_height = 0, .pad_width = 1};
  static constexpr IrWindow kShortColumn{.height = 3, .width = 1, .stride = 1, .pad_height = 1, .pad_width = 0};

  IrValue Rescale(const IrValue& x) {
    std::vector<IrValue> channels;
    const Dims plane = {x.dims[0], x.dims[2], x.dims[3]}, channel = {x.dims[0], 1, x.dims[2], x.dims[3]};
    for (int c = 0; c < 3; ++c) {
      const IrValue gathered = net_.Layer("Gather", {x, net_.Indices(1), net_.Indices(1)}, plane);
      const IrValue unsqueezed = net_.Layer("Unsqueeze", {gathered, net_.Indices(1)}, channel);
      channels.push_back(net_.Binary("Add", net_.Binary("Multiply", unsqueezed, net_.Weight({1})), net_.Weight({1})));
    }
    return net_.Concat(channels);
  }
  IrValue Chain(IrValue x, const std::vector<std::pair<int64_t, IrWindow>>& convs) {
    for (const auto& [channels, window] : convs) x = net_.ConvUnit(x, channels, window);
    return x;
  }
  IrValue Pooled(const IrValue& x, int64_t channels) {
    return net_.ConvUnit(net_.Pool("AvgPool", x, Square(3, 1, 1)), channels, Square(1));
  }
  IrValue BlockA(const IrValue& x, int64_t pooled) {
    return net_.Concat({Chain(x, {{64, Square(1)}}), Chain(x, {{48, Square(1)}, {64, Square(5, 1, 2)}}),
                        Chain(x, {{64, Square(1)}, {96, Square(3, 1, 1)}, {96, Square(3, 1, 1)}}), Pooled(x, pooled)});
  }
  IrValue BlockB(const IrValue& x) {
    return net_.Concat({Chain(x, {{384, Square(3, 2)}}),
                        Chain(x, {{64, Square(1)}, {96, Square(3, 1, 1)}, {96, Square(3, 2)}}),
                        net_.Pool("MaxPool", x, Square(3, 2))});
  }
  IrValue BlockC(const IrValue& x, int64_t middle) {
    return net_.Concat(
        {Chain(x, {{192, Square(1)}}), Chain(x, {{middle, Square(1)}, {middle, kRow}, {192, kColumn}}),
         Chain(x, {{middle, Square(1)}, {middle, kColumn}, {middle, kRow}, {middle, kColumn}, {192, kRow}}),
         Pooled(x, 192)});
  }
  IrValue BlockD(const IrValue& x) {
    return net_.Concat({Chain(x, {{192, Square(1)}, {320, Square(3, 2)}}),
                        Chain(x, {{192, Square(1)}, {192, kRow}, {192, kColumn}, {192, Square(3, 2)}}),
                        net_.Pool("MaxPool", x, Square(3, 2))});
  }
  // The concatenations of the two forks are fused into the block's.
  IrValue BlockE(const IrValue& x) {
    const IrValue fork = Chain(x, {{384, Square(1)}});
    const IrValue deep_fork = Chain(x, {{448, Square(1)}, {384, Square(3, 1, 1)}});
    return net_.Concat({Chain(x, {{320, Square(1)}}), Chain(fork, {{384, kShortRow}}),
                        Chain(fork, {{384, kShortColumn}}), Chain(deep_fork, {{384, kShortRow}}),
                        Chain(deep_fork, {{384, kShortColumn}}), Pooled(x, 192)});
  }

  IrBuilder net_{"ir_inception_v3"};
};

// Devlin et al. 2018, base. An encoder layer has 78 layers and 83 edges; how the other 73 and 75 that HSDAG counts are
// made is our guess, which agrees with both sums.
class Bert {
 public:
  Bert(int64_t batch, int64_t length) : batch_(batch), length_(length) {}

  IrNet Make() {
    const IrValue ids = net_.Input({batch_, length_}, "i64"), mask = net_.Input({batch_, length_}, "i64");
    const IrValue types = net_.Input({batch_, length_}, "i64");
    const IrValue shape = net_.Layer("ShapeOf", {ids}, {2}, "i64");
    IrValue x = Embed(ids, types, shape);
    const IrValue bias = MaskBias(mask, shape);
    for (int layer = 0; layer < 12; ++layer) x = Encode(x, bias);
    net_.Result(x);
    const IrValue first = net_.Layer("Gather", {x, net_.Indices(1), net_.Indices(1)}, {batch_, kHidden});
    net_.Result(net_.Unary("Tanh", net_.Linear(first, kHidden)));
    net_.Note(
        "what stands before and after the encoder layers is our guess: its 73 layers and 75 edges agree with HSDAG's "
        "sums");
    return net_.Take();
  }

 private:
  static constexpr int64_t kHidden = 768, kHeads = 12, kInner = 3072;

  IrValue Normalize(const IrValue& x) {
    const IrValue centred = net_.Layer("MVN", {x, net_.Indices(1)}, x.dims);
    return net_.Binary("Add", net_.Binary("Multiply", centred, net_.Weight({1, 1, kHidden})),
                       net_.Weight({1, 1, kHidden}));
  }
  IrValue Lookup(int64_t rows, const IrValue& indices) {
    Dims dims = indices.dims;
    dims.push_back(kHidden);
    return net_.Layer("Gather", {net_.Weight({rows, kHidden}), indices, net_.Indices(1)}, std::move(dims));
  }
  // One entry of the input's shape, as a list.
  IrValue Extent(const IrValue& shape) {
    return net_.Shaped("Reshape", net_.Layer("Gather", {shape, net_.Indices(1), net_.Indices(1)}, {1}, "i64"), {1});
  }

  IrValue Embed(const IrValue& ids, const IrValue& types, const IrValue& shape) {
    const IrValue words = Lookup(30522, net_.Layer("Convert", {ids}, ids.dims, "i32"));
    const IrValue kinds = Lookup(2, types);
    const IrValue row =
        net_.Layer("Slice", {net_.Indices(512), net_.Indices(1), Extent(shape), net_.Indices(1), net_.Indices(1)},
                   {length_}, "i64");
    const IrValue places = Lookup(512, net_.Layer("Broadcast", {row, shape, net_.Indices(1)}, ids.dims, "i64"));
    return Normalize(net_.Binary("Add", net_.Binary("Add", words, kinds), places));
  }

  // 0 where attention is allowed, a large negative number elsewhere.
  IrValue MaskBias(const IrValue& mask, const IrValue& shape) {
    IrValue x = net_.Shaped("Unsqueeze", mask, {batch_, 1, length_});
    x = net_.Shaped("Unsqueeze", x, {batch_, 1, 1, length_});
    const IrValue extents =
        net_.Layer("Concat", {Extent(shape), net_.Indices(1), net_.Indices(1), net_.Indices(1)}, {4}, "i64");
    const IrValue allowed =
        net_.Layer("Broadcast", {x, extents, net_.Indices(4)}, {batch_, 1, length_, length_}, "i64");
    const IrValue inverted =
        net_.Binary("Subtract", net_.Layer("Convert", {allowed}, allowed.dims), net_.Layer("Const", {}, {1}));
    const IrValue bias = net_.Layer("Select", {allowed, inverted, net_.Layer("Const", {}, {1})}, allowed.dims);
    return net_.Shaped("Reshape", bias, allowed.dims);
  }

  IrValue Heads(const IrValue& x) {
    const IrValue split = net_.Shaped("Reshape", x, {batch_, length_, kHeads, kHidden / kHeads});
    return net_.Shaped("Transpose", split, {batch_, kHeads, length_, kHidden / kHeads});
  }
  IrValue Encode(const IrValue& x, const IrValue& bias) {
    const IrValue query = Heads(net_.Linear(x, kHidden)), key = Heads(net_.Linear(x, kHidden)),
                  value = Heads(net_.Linear(x, kHidden));
    const IrValue scores = net_.Layer("MatMul", {query, key}, {batch_, kHeads, length_, length_});
    net_.Attribute(scores, "transpose_b", "true");
    const IrValue scaled = net_.Binary("Divide", scores, net_.Weight({1}));
    const IrValue weights = net_.Unary("Softmax", net_.Binary("Add", scaled, bias));
    const IrValue mixed = net_.Layer("MatMul", {weights, value}, {batch_, kHeads, length_, kHidden / kHeads});
    const IrValue joined = net_.Shaped("Transpose", mixed, {batch_, length_, kHeads, kHidden / kHeads});
    const IrValue attention = net_.Linear(net_.Shaped("Reshape", joined, {batch_, length_, kHidden}), kHidden);
    const IrValue middle = Normalize(net_.Binary("Add", attention, x));
    const IrValue inner = net_.Unary("Gelu", net_.Linear(middle, kInner));
    return Normalize(net_.Binary("Add", net_.Linear(inner, kHidden), middle));
  }

  int64_t batch_, length_;
  IrBuilder net_{"ir_bert_base"};
};

Parameter ViewParameter() {
  return {.name = "view",
          .type = ParameterType::kChoice,
          .default_value = "raw",
          .sentence = "raw: every layer of the IR is an op, as HSDAG counts; folded: what a runtime executes",
          .choices = {"raw", "folded"}};
}

Parameter Side(int64_t default_value, double least) {
  Parameter side = Count("size", default_value, "pixels of a side");
  side.least = least;
  side.most = 65536;
  return side;
}

Graph Build(const Params& params, const IrNet& net) {
  return BuildIrGraph(net, params.Text("view") == "raw" ? IrView::kRaw : IrView::kFolded, params.canonical());
}

}  // namespace

void RegisterIrModels(ModelCatalog& catalog) {
  const std::string source = "Duan et al. 2024 (HSDAG), table 1";
  const Parameter batch = Count("batch", 1, "images at once");
  catalog.Add({.name = "ir_resnet50",
               .sentence = "ResNet-50 as OpenVINO's IR has it: 396 layers, 411 edges",
               .source = source,
               .parameters = {ViewParameter(), batch, Side(224, 32)}},
              [](const Params& params) { return Build(params, ResNet50(params.Int("batch"), params.Int("size"))); });
  catalog.Add(
      {.name = "ir_inception_v3",
       .sentence = "Inception-V3 as OpenVINO's IR has it: 728 layers, 764 edges",
       .source = source,
       .parameters = {ViewParameter(), batch, Side(299, 75)}},
      [](const Params& params) { return Build(params, InceptionV3().Make(params.Int("batch"), params.Int("size"))); });
  catalog.Add(
      {.name = "ir_bert_base",
       .sentence = "BERT-base as OpenVINO's IR has it: 1009 layers, 1071 edges, 73 and 75 of them arranged by guess",
       .source = source,
       .parameters = {ViewParameter(), Count("batch", 1, "texts at once"), Count("length", 128, "tokens of a text")}},
      [](const Params& params) { return Build(params, Bert(params.Int("batch"), params.Int("length")).Make()); });
}

}  // namespace berth
