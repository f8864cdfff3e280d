// Networks drawn by a seed, so that a policy can be trained on some and tried on others: in the spirit of the three
// sets of Placeto (Addanki et al. 2019, section 4), whose graphs were never published.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/random.h"
#include "import/model_families.h"
#include "import/net_builder.h"
#include "import/network_formulas.h"

namespace berth {
namespace {

using Value = NetBuilder::Value;

// A whole number from `least` to `most`.
int64_t Draw(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random.Below(static_cast<size_t>(most - least + 1)));
}

Random RandomOf(const Params& params) { return Random(static_cast<uint64_t>(params.Int("seed"))); }

// Pham et al. 2018 (ENAS), section 2.4: each of five nodes adds two earlier ones, each after one of five ops; what no
// node uses is concatenated.
Cell DrawCell(Random& random) {
  constexpr int kPairs = 5;
  constexpr std::array kOps = {CellOp::kIdentity, CellOp::kSeparable3, CellOp::kSeparable5, CellOp::kAverage3,
                               CellOp::kMax3};
  Cell cell;
  std::vector<bool> used(2 + kPairs);
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto draw = [&] {
      return CellInput{.state = static_cast<int>(Draw(random, 0, 1 + pair)), .op = kOps[random.Below(kOps.size())]};
    };
    const CellInput first = draw();
    CellInput second = draw();
    while (second == first) second = draw();  // twice the same would be no choice
    used[static_cast<size_t>(first.state)] = used[static_cast<size_t>(second.state)] = true;
    cell.pairs.push_back({first, second});
  }
  for (int state = 2; state < 2 + kPairs; ++state) {
    if (!used[static_cast<size_t>(state)]) cell.joined.push_back(state);
  }
  return cell;
}

Graph MakeEnasConv(const Params& params) {
  Random random = RandomOf(params);
  CellNetwork network{.small_images = true, .batch = params.Int("batch"), .size = 32, .classes = 10};
  network.normal = DrawCell(random);
  network.reduction = DrawCell(random);
  network.cells = Draw(random, 1, 2);
  network.channels = 4 * Draw(random, 5, 12);
  return MakeCellNetwork(params.canonical(), network);
}

// Pham et al. 2018, section 2.1, with the highway connections of its appendix A: each node takes one earlier one.
struct RecurrentCell {
  struct Node {
    size_t input;            // 0: the step's word and the last state; else 1 + the number of a node
    const char* activation;  // empty: none
    bool loose = true;       // no node uses it
  };
  std::vector<Node> nodes;
};

RecurrentCell DrawRecurrentCell(Random& random, int64_t nodes) {
  constexpr std::array kActivations = {"Tanh", "Relu", "Sigmoid", ""};
  RecurrentCell cell;
  for (int64_t i = 0; i < nodes; ++i) {
    const size_t input = i == 0 ? 0 : static_cast<size_t>(Draw(random, 1, i));
    if (input > 0) cell.nodes[input - 1].loose = false;
    cell.nodes.push_back({.input = input, .activation = kActivations[random.Below(kActivations.size())]});
  }
  return cell;
}

// The gate mixes what comes in with what is made of it.
Value Highway(NetBuilder& net, const RecurrentCell::Node& node, const Value& read, const Value& kept,
              const NetBuilder::LinearWeights& weights) {
  const Value both = net.Gemm(read, weights);
  const Value gate = net.Unary("Sigmoid", net.Op("Slice", {both}, kept.dims, {}, "gate"));
  Value made = net.Op("Slice", {both}, kept.dims, {}, "made");
  if (*node.activation != '\0') made = net.Unary(node.activation, made);
  return net.Binary("Add", kept, net.Binary("Mul", gate, net.Binary("Sub", made, kept)));
}

Value RecurrentStep(NetBuilder& net, const RecurrentCell& cell, const std::vector<NetBuilder::LinearWeights>& weights,
                    const Value& word, const Value& state) {
  std::vector<Value> made;
  std::vector<Value> loose;
  for (size_t i = 0; i < cell.nodes.size(); ++i) {
    const NetBuilder::Scope scope(net, fmt::format("node{}", i));
    const RecurrentCell::Node& node = cell.nodes[i];
    const Value& kept = i == 0 ? state : made[node.input - 1];
    made.push_back(Highway(net, node, i == 0 ? net.Concat({word, state}, 1) : kept, kept, weights[i]));
    if (node.loose) loose.push_back(made.back());
  }
  return loose.size() == 1 ? loose[0] : net.Op("Mean", loose, state.dims);
}

Graph MakeEnasRnn(const Params& params) {
  Random random = RandomOf(params);
  const RecurrentCell cell = DrawRecurrentCell(random, Draw(random, 5, 8));
  const int64_t steps = Draw(random, 5, 8), hidden = 64 * Draw(random, 4, 16), batch = params.Int("batch");
  constexpr int64_t kVocabulary = 10'000;  // of the Penn Treebank
  NetBuilder net(params.canonical());
  const Value words = net.Input("ids", {batch, steps}), table = net.Weight("embedding", {kVocabulary, hidden});
  std::vector<NetBuilder::LinearWeights> weights;
  for (size_t i = 0; i < cell.nodes.size(); ++i) {
    weights.push_back(net.MakeLinear(i == 0 ? 2 * hidden : hidden, 2 * hidden, fmt::format("node{}", i)));
  }
  const NetBuilder::LinearWeights project = net.MakeLinear(hidden, kVocabulary, "output");
  Value state = net.Weight("initial", {batch, hidden});
  std::vector<Value> results;
  for (int64_t step = 0; step < steps; ++step) {
    const NetBuilder::Scope scope(net, fmt::format("step{}", step));
    state = RecurrentStep(net, cell, weights, net.Embed(table, net.Op("Gather", {words}, {batch})), state);
    results.push_back(net.Gemm(state, project));
  }
  net.Output(net.Unary("Softmax", net.Concat(results, 0)));
  return net.Build();
}

Graph MakeNmtLike(const Params& params) {
  Random random = RandomOf(params);
  Translator size{.layers = 2, .vocabulary = 17'191};
  size.source_words = Draw(random, 3, 8);
  size.target_words = Draw(random, 3, 8);
  size.batch = Draw(random, 16, 128);
  size.hidden = 64 * Draw(random, 4, 16);
  return MakeTranslator(params.canonical(), size);
}

Parameter Seed() {
  return {.name = "seed",
          .type = ParameterType::kInt,
          .default_value = "1",
          .sentence = "which of the family",
          .least = 0,
          .most = 9e15};
}

}  // namespace

void RegisterFamilyModels(ModelCatalog& catalog) {
  catalog.Add({.name = "enas_conv",
               .sentence = "A convolutional network for small images of cells as ENAS finds them, drawn by a seed.",
               .source = "Pham et al. 2018, arXiv 1802.03268, section 2.4",
               .parameters = {Seed(), Count("batch", 128, "images at once")}},
              MakeEnasConv);
  catalog.Add(
      {.name = "enas_rnn",
       .sentence = "A language model of a recurrent cell as ENAS finds it, drawn by a seed, unrolled over 5 to 8 "
                   "words.",
       .source = "Pham et al. 2018, arXiv 1802.03268, section 2.1",
       .parameters = {Seed(), Count("batch", 64, "sentences at once")}},
      MakeEnasRnn);
  catalog.Add({.name = "nmt_like",
               .sentence = "The network of nmt with lengths, batch and width drawn by a seed.",
               .source = "in the spirit of Addanki et al. 2019, section 4",
               .parameters = {Seed()}},
              MakeNmtLike);
}

}  // namespace berth
