// The graph network of Placeto (Addanki et al. 2019, section 3.1 and appendix): two-way message passing, pooling over
// the ancestors, descendants and parallel nodes of the node that is placed, and a classifier over devices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/random.h"
#include "learn/libtorch.h"
#include "learn/nets.h"

namespace berth {

struct PlacetoShape {
  int64_t columns = 0;     // of the features, d below
  int64_t outputs = 0;     // m below: one per device, or 1
  int64_t rounds = 8;      // of messages; 0: as many as the longest path has edges, which is the sequential sweep
  bool three_sets = true;  // false: one sum over all nodes ("simple aggregator")
  bool mean = false;       // pools means instead of sums, so that activations do not grow with the graph
  at::ScalarType type = torch::kFloat32;

  std::string ToString() const;
};

// What the network asks of a graph. Nodes may form cycles (groups of ops do): those are each other's ancestors and
// descendants.
struct PlacetoGraph {
  enum Relation : uint8_t { kAncestor = 1, kDescendant = 2, kParallel = 4 };

  // Edges (from, to), each once. O(nodes * edges / 64), once more for each level of nested cycles.
  PlacetoGraph(int64_t nodes, std::span<const std::pair<int32_t, int32_t>> edges);

  SparseRows parents, children;  // row v: the sum over its parents, its children
  at::Tensor relation;           // uint8, nodes x nodes: what the column is to the row; 0 to itself
  int64_t depth = 0;             // edges of the longest path; edges against the order of nodes do not count
};

class PlacetoNetwork : public torch::nn::Module {
 public:
  PlacetoNetwork(const PlacetoShape& shape, Random random);

  const PlacetoShape& shape() const { return shape_; }

  // Logits, batch x outputs, of placing node `current` (int64, batch) where the features (batch x nodes x columns) are
  // those of the state. O(rounds * (edges * d + nodes * d^2)) per batch entry.
  at::Tensor forward(const at::Tensor& features, const at::Tensor& current, const PlacetoGraph& graph) const;

 private:
  // Two perceptrons with one hidden layer: a sum over f(x), and g of the sum. ReLU after both.
  struct Aggregator {
    std::shared_ptr<Mlp> f, g;
  };
  Aggregator MakeAggregator(const std::string& name, int64_t width, const at::Generator& generator);
  at::Tensor Pool(const at::Tensor& x, const Aggregator& by, const at::Tensor& members) const;

  PlacetoShape shape_;
  Aggregator down_, up_;
  std::shared_ptr<Mlp> node_;
  Aggregator ancestors_, descendants_, parallel_, all_;
  std::shared_ptr<Mlp> classifier_;
};

}  // namespace berth
