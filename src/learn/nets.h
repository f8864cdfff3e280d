// The layers that the published networks are made of, on batches of graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "learn/libtorch.h"

namespace berth {

// torch's generator of random numbers, seeded from ours; never the global one, which threads would share.
at::Generator MakeGenerator(Random& random);

// Sparse rows: row v holds the entries start[v] .. start[v + 1] of `column` (and `weight`, when not empty), and the
// same transposed, for the way back.
class SparseRows {
 public:
  // Entries (row, column), each once, with a weight each or none (all 1). O(rows + entries).
  SparseRows(int64_t rows, std::span<const std::pair<int32_t, int32_t>> entries, std::span<const double> weight = {});

  int64_t rows() const { return static_cast<int64_t>(forward_.start.size()) - 1; }

  struct Half {
    std::vector<int32_t> start{0};
    std::vector<int32_t> column;
    std::vector<double> weight;  // empty: all 1
  };
  const Half& forward() const { return forward_; }
  const Half& backward() const { return backward_; }

 private:
  Half forward_, backward_;
};

// out[..., v, :] = sum of weight * x[..., column, :] over the entries of row v; x is (..., rows, width), float or
// double. One pass over the entries each way, without the copies of index_select and index_add. `rows` must outlive the
// backward pass.
at::Tensor GatherSum(const at::Tensor& x, const SparseRows& rows);

// out[v, :] = for each channel the largest of x[column, :] over the entries of row v, 0 where there is none; x is rows
// x width. The gradient goes to the first of the largest. `rows` has no weights and must outlive the backward pass. The
// same bytes on any number of threads.
at::Tensor GatherMax(const at::Tensor& x, const SparseRows& rows, int64_t threads);

// Affine layers with ReLU between them, Glorot-uniform weights (Glorot and Bengio 2010) and zero biases. sizes: input,
// hidden ..., output.
class Mlp : public torch::nn::Module {
 public:
  Mlp(std::span<const int64_t> sizes, at::Generator generator, at::ScalarType type = torch::kFloat32);
  at::Tensor forward(at::Tensor x) const;

 private:
  std::vector<torch::nn::Linear> layers_;
};

// Dropout of a float32 tensor whose mask comes from `random`, none where that is null. The probability is rounded to a
// multiple of 2^-16.
at::Tensor Dropout(const at::Tensor& x, double probability, Random* random);

// Log-probabilities along the last dimension. `mask` is added to the logits, -infinity where a column is out of the
// question: that gives a large negative number, so that products with its probability 0 stay finite.
inline constexpr float kMaskedLogProbability = -1e4F;
at::Tensor MaskedLogSoftmax(const at::Tensor& logits, const at::Tensor& mask);

// Glorot-uniform, in place: range sqrt(6 / (inputs + outputs)).
void GlorotUniform(at::Tensor weight, at::Generator generator);

// Such a weight, out x in, as a parameter of a module.
at::Tensor NewWeight(torch::nn::Module& of, const std::string& name, int64_t out, int64_t in, at::Generator& generator);

}  // namespace berth
