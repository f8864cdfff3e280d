#include "learn/row_layer.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/random.h"
#include "learn/testing.h"

namespace berth {
namespace {

struct Layer {
  std::vector<at::Tensor> x;  // three inputs, the second of which wants no gradient
  at::Tensor weight, bias;

  Layer(Random& random, int64_t rows, at::ScalarType type) {
    const auto drawn = [&](at::IntArrayRef sizes) { return testing::NormalTensor(random, sizes).to(type); };
    x = {drawn({rows, 3}).requires_grad_(true), drawn({rows, 2}), drawn({rows, 4}).requires_grad_(true)};
    weight = drawn({5, 9}).requires_grad_(true);
    bias = drawn({5}).requires_grad_(true);
  }

  at::Tensor Slow(Activation activation) const {
    const at::Tensor sum = torch::addmm(bias, torch::cat(x, 1), weight.t());
    return activation == Activation::kSigmoid ? torch::sigmoid(sum)
           : activation == Activation::kRelu  ? torch::relu(sum)
                                              : sum;
  }

  // The gradients of what is learned, some of which may be undefined where `some`, and what comes out.
  std::vector<at::Tensor> All(const at::Tensor& out, bool some = false) const {
    std::vector<at::Tensor> all =
        torch::autograd::grad({(out * torch::arange(out.numel(), out.options()).view(out.sizes()).cos()).sum()},
                              {x[0], x[2], weight, bias}, {}, std::nullopt, false, some);
    all.push_back(out.detach());
    return all;
  }
};

constexpr Activation kAll[] = {Activation::kNone, Activation::kSigmoid, Activation::kRelu};

TEST(RowLayer, HasTheBytesOfTorchsFunctionsOnAFewRows) {
  Random random(5);
  for (const int64_t rows : {int64_t{1}, int64_t{7}, kWholeRows}) {
    const Layer layer(random, rows, torch::kFloat32);
    for (const Activation activation : kAll) {
      const auto fast = layer.All(RowLayer(layer.x, layer.weight, layer.bias, activation, 2));
      const auto slow = layer.All(layer.Slow(activation));
      for (size_t i = 0; i < slow.size(); ++i) EXPECT_TRUE(torch::equal(fast[i], slow[i])) << i << " of " << rows;
    }
  }
}

TEST(RowLayer, IsTheSameLayerOnManyRowsWithItsGradients) {
  Random random(6);
  for (const int64_t rows : {kWholeRows + 1, 10 * kWholeRows + 123}) {
    const Layer layer(random, rows, torch::kFloat64);
    for (const Activation activation : kAll) {
      const auto fast = layer.All(RowLayer(layer.x, layer.weight, layer.bias, activation, 2));
      const auto slow = layer.All(layer.Slow(activation));
      for (size_t i = 0; i < slow.size(); ++i) {
        EXPECT_TRUE(torch::allclose(fast[i], slow[i], 1e-10, 1e-9)) << i << " of " << rows;
      }
    }
  }
}

TEST(RowLayer, GivesTheSameBytesOnAnyNumberOfThreads) {
  Random random(7);
  const Layer layer(random, 5 * kWholeRows, torch::kFloat32);
  std::vector<at::Tensor> first;
  for (const int64_t threads : {1, 2, 5}) {
    const auto all = layer.All(RowLayer(layer.x, layer.weight, layer.bias, Activation::kSigmoid, threads));
    if (first.empty()) first = all;
    for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(torch::equal(all[i], first[i])) << i << " on " << threads;
  }
}

TEST(RowLayer, TakesNoRows) {
  Random random(9);
  const Layer layer(random, 0, torch::kFloat32);
  const auto none = layer.All(RowLayer(layer.x, layer.weight, layer.bias, Activation::kRelu, 2), true);
  EXPECT_EQ(none.back().size(0), 0);
  EXPECT_FALSE(none[2].defined());  // weight
}

TEST(RowLayer, WithoutGradientsGivesTheSame) {
  Random random(8);
  const Layer layer(random, 2 * kWholeRows, torch::kFloat32);
  const at::Tensor with = RowLayer(layer.x, layer.weight, layer.bias, Activation::kRelu, 2).detach();
  const torch::NoGradGuard no_gradient;
  EXPECT_TRUE(torch::equal(RowLayer(layer.x, layer.weight, layer.bias, Activation::kRelu, 2), with));
}

}  // namespace
}  // namespace berth
