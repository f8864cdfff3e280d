// Graphs by formula, whose best answers are known or bounded: for tests, benchmarks and first questions.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/parameters.h"
#include "base/random.h"
#include "import/import.h"
#include "import/net_builder.h"

namespace berth {
namespace {

constexpr auto kMostOps = static_cast<double>(kMostFormulaOps);
constexpr int64_t kFloat = 4;  // bytes

// The parameters that all abstract graphs share.
std::vector<Parameter> WithWork(std::vector<Parameter> parameters) {
  parameters.push_back(Real("flops", "1e9", "floating-point operations of an op", 0, 1e18));
  parameters.push_back(Whole("bytes", "1000000", "bytes of each tensor", 0, 1e12));
  parameters.push_back(Whole("parameter_bytes", "0", "bytes of weights of each op, shared with none", 0, 1e12));
  return parameters;
}

void CheckOps(double ops, std::string_view name) {
  if (ops > kMostOps) throw Error("{}: would have {:.0f} ops; at most {:.0f} are made", name, ops, kMostOps);
}

// Adds ops of equal work with one tensor each.
class AbstractGraph {
 public:
  AbstractGraph(const Params& params, std::string_view type)
      : builder_(params.canonical()),
        type_(type),
        flops_(params.Real("flops")),
        bytes_(params.Int("bytes")),
        parameter_bytes_(params.Int("parameter_bytes")) {}

  // Op and tensor have the same number. `scale` multiplies the work.
  size_t Add(std::span<const size_t> inputs, double scale = 1) {
    OpWork work{.flops = flops_ * scale, .bytes_written = bytes_, .op_class = OpClass::kMatMul};
    work.bytes_read = bytes_ * static_cast<int64_t>(std::max<size_t>(inputs.size(), 1)) + parameter_bytes_;
    const size_t op = builder_.AddOp({}, type_, work);
    builder_.AddTensor(op, bytes_);
    for (const size_t input : inputs) builder_.Consume(input, op);
    if (inputs.empty()) builder_.UseInput(builder_.AddInput(bytes_), op);
    if (parameter_bytes_ > 0) builder_.UseParameter(builder_.AddParameter(parameter_bytes_), op);
    used_.resize(op + 1);
    for (const size_t input : inputs) used_[input] = true;
    return op;
  }

  // Tensors that nobody consumes are the results.
  Graph Build() {
    for (size_t tensor = 0; tensor < used_.size(); ++tensor) {
      if (!used_[tensor]) builder_.MarkOutput(tensor);
    }
    return builder_.Build();
  }

 private:
  GraphBuilder builder_;
  std::string type_;
  double flops_;
  int64_t bytes_, parameter_bytes_;
  std::vector<bool> used_;
};

Graph MakeChain(const Params& params) {
  AbstractGraph graph(params, "Link");
  size_t last = graph.Add({});
  for (int64_t i = 1; i < params.Int("ops"); ++i) last = graph.Add({&last, 1});
  return graph.Build();
}

Graph MakeForkJoin(const Params& params) {
  const int64_t width = params.Int("width"), depth = params.Int("depth"), rounds = params.Int("rounds");
  CheckOps(static_cast<double>(rounds) * (static_cast<double>(width) * static_cast<double>(depth) + 1) + 1,
           params.canonical());
  AbstractGraph graph(params, "Branch");
  size_t fork = graph.Add({});
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<size_t> ends;
    for (int64_t branch = 0; branch < width; ++branch) {
      size_t last = fork;
      for (int64_t i = 0; i < depth; ++i) last = graph.Add({&last, 1});
      ends.push_back(last);
    }
    fork = graph.Add(ends);
  }
  return graph.Build();
}

// Layers of `width` ops; an op reads `degree` different ones of the layer before, and its work varies by up to
// `spread`.
Graph MakeLayered(const Params& params) {
  const size_t ops = static_cast<size_t>(params.Int("ops")), width = static_cast<size_t>(params.Int("width"));
  const size_t degree = static_cast<size_t>(params.Int("degree"));
  const double spread = params.Real("spread");
  Random random(static_cast<uint64_t>(params.Int("seed")));
  AbstractGraph graph(params, "Op");
  std::vector<size_t> inputs;
  for (size_t op = 0; op < ops; ++op) {
    inputs.clear();
    const size_t layer = op / width;
    const size_t from = layer == 0 ? 0 : (layer - 1) * width, count = layer == 0 ? 0 : width;
    while (inputs.size() < std::min(degree, count)) {
      const size_t input = from + random.Below(count);
      if (std::ranges::find(inputs, input) == inputs.end()) inputs.push_back(input);
    }
    graph.Add(inputs, spread > 0 ? std::exp(random.Uniform(-std::log1p(spread), std::log1p(spread))) : 1);
  }
  return graph.Build();
}

// One op per cell: 2 x 4 hidden (hidden + hidden) multiply-adds per sample; the steps of a layer share its weights.
Graph MakeLstmGrid(const Params& params) {
  const int64_t layers = params.Int("layers"), steps = params.Int("steps"), hidden = params.Int("hidden"),
                batch = params.Int("batch");
  CheckOps(static_cast<double>(layers) * static_cast<double>(steps), params.canonical());
  GraphBuilder builder(params.canonical());
  const int64_t state = batch * hidden * kFloat, weights = (8 * hidden * hidden + 4 * hidden) * kFloat;
  const OpWork work{
      .flops = static_cast<double>(batch) * static_cast<double>(hidden) * (16.0 * static_cast<double>(hidden) + 30),
      .bytes_read = 3 * state + weights,
      .bytes_written = 2 * state,
      .op_class = OpClass::kRecurrent};
  std::vector<size_t> parameters, below;
  for (int64_t layer = 0; layer < layers; ++layer)
    parameters.push_back(builder.AddParameter(weights, fmt::format("layer{}/weights", layer)));
  for (int64_t layer = 0; layer < layers; ++layer) {
    size_t cell_state = 0;
    std::vector<size_t> outputs;
    for (int64_t step = 0; step < steps; ++step) {
      const size_t op = builder.AddOp(fmt::format("layer{}/step{}", layer, step), "LSTMCell", work);
      outputs.push_back(builder.AddTensor(op, state, {}, layer + 1 == layers));
      builder.UseParameter(parameters[static_cast<size_t>(layer)], op);
      if (layer == 0) {
        builder.UseInput(builder.AddInput(state, fmt::format("input{}", step)), op);
      } else {
        builder.Consume(below[static_cast<size_t>(step)], op);
      }
      if (step > 0) {
        builder.Consume(outputs[outputs.size() - 2], op);
        builder.Consume(cell_state, op);
      }
      cell_state = builder.AddTensor(op, state, {}, step + 1 == steps);
    }
    below = std::move(outputs);
  }
  return builder.Build();
}

// The ops of an encoder layer by their matrix sizes.
class Transformer {
 public:
  explicit Transformer(const Params& params)
      : builder_(params.canonical()),
        rows_(static_cast<double>(params.Int("batch")) * static_cast<double>(params.Int("sequence"))),
        sequence_(static_cast<double>(params.Int("sequence"))),
        hidden_(static_cast<double>(params.Int("hidden"))),
        heads_(static_cast<double>(params.Int("heads"))) {}

  Graph Build(int64_t layers, double vocabulary) {
    if (rows_ * std::max({sequence_ * heads_, 4 * hidden_, vocabulary}) * kFloat > 1e12) {
      throw Error("a transformer of this size has tensors above 1 TB; make batch, sequence or hidden smaller");
    }
    scope_ = "embedding";
    const size_t table = builder_.AddParameter(Size(vocabulary * hidden_), "embedding/table");
    const size_t ids = builder_.AddInput(static_cast<int64_t>(rows_) * 8, "ids");
    const size_t lookup = Op("Gather", OpClass::kDataMovement, 0, rows_ * hidden_, {}, rows_ * hidden_);
    builder_.UseParameter(table, lookup);
    builder_.UseInput(ids, lookup);
    size_t x = lookup;
    for (int64_t layer = 0; layer < layers; ++layer) x = Layer(x, fmt::format("layer{}", layer));
    scope_ = "head";
    const size_t logits = Linear("logits", Normalize("norm", x), vocabulary);
    builder_.MarkOutput(logits);
    return builder_.Build();
  }

 private:
  static int64_t Size(double elements) { return static_cast<int64_t>(elements) * kFloat; }

  // Op and tensor have the same number, since each op has one output. `weights`: elements; `read`: elements besides
  // tensors.
  size_t Op(std::string_view type, OpClass op_class, double flops, double elements, std::vector<size_t> inputs,
            double read = 0) {
    OpWork work{.flops = flops, .bytes_read = Size(read), .bytes_written = Size(elements), .op_class = op_class};
    std::ranges::sort(inputs);
    inputs.erase(std::ranges::unique(inputs).begin(), inputs.end());
    for (const size_t input : inputs) work.bytes_read += bytes_[input];
    const size_t op = builder_.AddOp(fmt::format("{}/{}", scope_, name_.empty() ? type : name_), type, work);
    name_ = {};
    builder_.AddTensor(op, Size(elements));
    for (const size_t input : inputs) builder_.Consume(input, op);
    bytes_.push_back(Size(elements));
    columns_.push_back(elements / rows_);
    return op;
  }

  size_t Linear(std::string_view name, size_t x, double columns) {
    const double weights = (columns_[x] + 1) * columns;
    const double inner = columns_[x];
    name_ = name;
    const size_t op = Op("Gemm", OpClass::kMatMul, rows_ * columns * (2 * inner + 1), rows_ * columns, {x}, weights);
    builder_.UseParameter(builder_.AddParameter(Size(weights), fmt::format("{}/{}/weights", scope_, name)), op);
    return op;
  }

  size_t Normalize(std::string_view name, size_t x) {
    const double elements = rows_ * columns_[x], weights = 2 * columns_[x];
    name_ = name;
    const size_t op = Op("LayerNormalization", OpClass::kNormalization, 7 * elements, elements, {x}, weights);
    builder_.UseParameter(builder_.AddParameter(Size(weights), fmt::format("{}/{}/weights", scope_, name)), op);
    return op;
  }

  size_t Add(std::string_view name, size_t a, size_t b) {
    name_ = name;
    return Op("Add", OpClass::kElementwise, rows_ * hidden_, rows_ * hidden_, {a, b});
  }

  size_t Layer(size_t x, std::string scope) {
    scope_ = std::move(scope);
    const double scores = rows_ * sequence_ * heads_;
    const size_t normal = Normalize("norm1", x);
    const size_t query = Linear("query", normal, hidden_), key = Linear("key", normal, hidden_),
                 value = Linear("value", normal, hidden_);
    name_ = "scores";
    const size_t product = Op("MatMul", OpClass::kMatMul, 2 * rows_ * sequence_ * hidden_, scores, {query, key});
    const size_t weights = Op("Softmax", OpClass::kNormalization, 5 * scores, scores, {product});
    name_ = "context";
    const size_t context =
        Op("MatMul", OpClass::kMatMul, 2 * rows_ * sequence_ * hidden_, rows_ * hidden_, {weights, value});
    const size_t attended = Add("residual1", x, Linear("output", context, hidden_));
    const size_t wide = Linear("expand", Normalize("norm2", attended), 4 * hidden_);
    const size_t active = Op("Gelu", OpClass::kElementwise, 5 * rows_ * 4 * hidden_, rows_ * 4 * hidden_, {wide});
    return Add("residual2", attended, Linear("contract", active, hidden_));
  }

  GraphBuilder builder_;
  double rows_, sequence_, hidden_, heads_;
  std::string scope_;
  std::string_view name_;
  std::vector<int64_t> bytes_;   // by tensor
  std::vector<double> columns_;  // elements per row, by tensor
};

Graph MakeTransformer(const Params& params) {
  constexpr double kOpsPerLayer = 14;
  CheckOps(kOpsPerLayer * static_cast<double>(params.Int("layers")), params.canonical());
  return Transformer(params).Build(params.Int("layers"), static_cast<double>(params.Int("vocabulary")));
}

}  // namespace

void RegisterSyntheticModels(ModelCatalog& catalog) {
  catalog.Add({.name = "chain",
               .sentence = "Ops one after another. On equal devices the best is all on one: a transfer never helps.",
               .source = "-",
               .parameters = WithWork({Whole("ops", "100", "number of ops", 1, kMostOps)})},
              MakeChain);
  catalog.Add(
      {.name = "fork_join",
       .sentence =
           "Branches from a fork to a join, rounds times. On m equal devices with free transfers the best takes "
           "1 + rounds (ceil(width / m) depth + 1) op times: whole branches, evenly spread.",
       .source = "-",
       .parameters =
           WithWork({Whole("width", "8", "branches", 1, kMostOps), Whole("depth", "4", "ops in a branch", 1, kMostOps),
                     Whole("rounds", "1", "forks one after another", 1, kMostOps)})},
      MakeForkJoin);
  catalog.Add(
      {.name = "layered",
       .sentence = "Random layered graph. The best is not known; no placement beats the total work over the "
                   "devices, nor the longest path.",
       .source = "as in Topcuoglu et al. 2002, section 6.1, with whole layers",
       .parameters = WithWork(
           {Whole("ops", "1000", "number of ops", 1, kMostOps), Whole("width", "32", "ops in a layer", 1, kMostOps),
            Whole("degree", "2", "tensors that an op consumes, all of the layer before", 1, 1000),
            Real("spread", "1", "the work of an op is flops times something between 1 / (1 + spread) and 1 + spread", 0,
                 1e6),
            Whole("seed", "0", "of the random numbers", 0, 9e15)})},
      MakeLayered);
  catalog.Add(
      {.name = "lstm_grid",
       .sentence = "Unrolled LSTM, an op per layer and step. On at least min(layers, steps) equal devices with "
                   "free transfers the best takes layers + steps - 1 op times: a device per layer.",
       .source = "the grid of Wu et al. 2016 (GNMT), section 3.2",
       .parameters = {Whole("layers", "8", "layers", 1, kMostOps), Whole("steps", "40", "time steps", 1, kMostOps),
                      Whole("hidden", "1024", "units of a layer", 1, 65536),
                      Whole("batch", "64", "samples", 1, 65536)}},
      MakeLstmGrid);
  catalog.Add(
      {.name = "transformer",
       .sentence = "Encoder layers op by op, normalised first. At most three ops run side by side (query, key, value), "
                   "so the best on equal devices is close to all on one.",
       .source = "Vaswani et al. 2017, section 3, with the normalisation of Radford et al. 2019",
       .parameters = {Whole("layers", "12", "layers", 1, 250000), Whole("hidden", "768", "width", 1, 65536),
                      Whole("heads", "12", "attention heads", 1, 1024),
                      Whole("sequence", "128", "tokens in a sample", 1, 1e6), Whole("batch", "1", "samples", 1, 65536),
                      Whole("vocabulary", "30522", "tokens there are", 1, 1e7)}},
      MakeTransformer);
}

}  // namespace berth
