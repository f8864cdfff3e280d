// The network of HSDAG (Duan et al. 2024, section 2), layer by layer as released.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "learn/hsdag_parse.h"
#include "learn/libtorch.h"
#include "learn/nets.h"

namespace berth {

enum class Encoder : uint8_t { kGcn, kGat, kGin };

struct HsdagShape {
  int64_t features = 0;  // d: columns of the node features
  int64_t devices = 2;
  int64_t hidden = 128;
  int64_t gnn_layers = 2;  // of the encoder that scores edges; the one that feeds the pooling has one
  double dropout = 0.2;
  Encoder encoder = Encoder::kGcn;
  bool directed = false;  // messages go along the edges only; published: both ways
  bool symmetric = true;  // an edge has one score; published: one per direction, different under dropout
  int64_t levels = 1;     // of parsing; 0: none, each node decides for itself; -1: until nothing joins any more
};

// One graph of nodes, at any level.
struct LevelGraph {
  LevelGraph(int64_t nodes, std::vector<std::pair<int32_t, int32_t>> edges, const HsdagShape& shape);

  struct Direction {  // one of the two of an edge
    int32_t from, to;
    int64_t score;  // which of the scores is its own
    auto operator<=>(const Direction&) const = default;
  };

  int64_t nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;  // first < second where messages go both ways
  std::vector<Direction> directions;               // both of each edge, by (from, to)
  at::Tensor scored_from, scored_to;               // int64, by score
  std::shared_ptr<const SparseRows> normalised;    // D^-1/2 (A + I) D^-1/2
  std::shared_ptr<const SparseRows> plain;         // A
  at::Tensor from, to;                             // of A + I, int64: a message goes from `from` to `to`
};

struct HsdagOutput {
  at::Tensor embedding;                  // groups x features: what the state is updated with
  at::Tensor logits;                     // groups x devices
  std::vector<int32_t> group_of_node{};  // through all levels
  std::vector<ParsedClusters> parsed{};  // by level
  std::vector<std::shared_ptr<const void>> kept{};
};

class HsdagNetwork : public torch::nn::Module {
 public:
  HsdagNetwork(const HsdagShape& shape, Random random);

  // `dropout` null: none. `parsed`: the clusters to use, instead of those that the scores give.
  HsdagOutput Forward(const LevelGraph& graph, const at::Tensor& features, Random* dropout,
                      const std::vector<ParsedClusters>* parsed) const;

  const HsdagShape& shape() const { return shape_; }

 private:
  struct Convolution {
    at::Tensor weight, bias, attend_from, attend_to;  // attention for kGat only
    at::Tensor weight2, bias2;                        // kGin only
  };
  struct Affine {  // a layer, or the scale and shift of a normalisation
    at::Tensor weight, bias;
  };

  Affine MakeAffine(const std::string& name, int64_t in, int64_t out, at::Generator& generator);
  Affine MakeNorm(const std::string& name);
  Convolution MakeConvolution(const std::string& name, at::Generator& generator);
  at::Tensor Normalise(const Affine& norm, const at::Tensor& x) const;
  at::Tensor Convolve(const Convolution& layer, const LevelGraph& graph, const at::Tensor& x) const;
  at::Tensor Encode(const std::vector<Convolution>& layers, const Affine& norm, const LevelGraph& graph,
                    const at::Tensor& x, Random* dropout) const;
  at::Tensor Score(const at::Tensor& product, Random* dropout) const;

  HsdagShape shape_;
  Affine input1_, input2_, edge1_, edge2_, pre_, post_, output1_, output2_, classify1_, classify2_;
  Affine input_norm1_, input_norm2_, gnn1_norm_, gnn2_norm_, edge_norm_, pre_norm_, post_norm_;
  std::vector<Convolution> gnn1_, gnn2_;
};

}  // namespace berth
