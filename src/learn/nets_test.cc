#include "learn/nets.h"

#include <gtest/gtest.h>

#include <set>

#include "learn/testing.h"

namespace berth {
namespace {

at::Tensor Normal(Random& random, at::IntArrayRef sizes, at::ScalarType type) {
  return testing::NormalTensor(random, sizes).to(type);
}

TEST(GatherMax, TakesTheLargestPerChannelAndSendsTheGradientThere) {
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    const int64_t rows = 1 + static_cast<int64_t>(random.Below(12)), width = 1 + static_cast<int64_t>(random.Below(5));
    std::set<std::pair<int32_t, int32_t>> some;
    for (size_t k = random.Below(30); k > 0; --k) {
      some.emplace(random.Below(static_cast<size_t>(rows)), random.Below(static_cast<size_t>(rows)));
    }
    const std::vector<std::pair<int32_t, int32_t>> entries(some.begin(), some.end());
    const SparseRows sparse(rows, entries);
    const at::ScalarType type = round % 2 == 0 ? torch::kFloat64 : torch::kFloat32;
    const at::Tensor x = Normal(random, {rows, width}, type).requires_grad_(true);
    const at::Tensor out = GatherMax(x, sparse, 2), weight = Normal(random, {rows, width}, type);
    const at::Tensor gradient = torch::autograd::grad({(out * weight).sum()}, {x})[0];

    at::Tensor expected = torch::zeros({rows, width}, type), to_x = expected.clone();
    for (int64_t v = 0; v < rows; ++v) {
      for (int64_t k = 0; k < width; ++k) {
        int64_t from = -1;
        for (const auto& [row, column] : entries) {
          if (row == v && (from < 0 || x[column][k].item<double>() > x[from][k].item<double>())) from = column;
        }
        if (from < 0) continue;
        expected[v][k] = x[from][k].item<double>();
        to_x[from][k] += weight[v][k];
      }
    }
    EXPECT_TRUE(torch::equal(out, expected)) << round;
    EXPECT_TRUE(torch::allclose(gradient, to_x, 1e-6, 1e-6)) << round;
  }
}

TEST(GatherMax, GivesTheSameBytesOnAnyNumberOfThreads) {
  Random random(3);
  constexpr int64_t kRows = 20000, kWidth = 40;
  std::set<std::pair<int32_t, int32_t>> some;
  while (some.size() < 50000) some.emplace(random.Below(kRows), random.Below(kRows));
  const std::vector<std::pair<int32_t, int32_t>> entries(some.begin(), some.end());
  const SparseRows sparse(kRows, entries);
  const at::Tensor x = Normal(random, {kRows, kWidth}, torch::kFloat32).requires_grad_(true);
  const at::Tensor weight = Normal(random, {kRows, kWidth}, torch::kFloat32);
  const auto both = [&](int64_t threads) {
    const at::Tensor out = GatherMax(x, sparse, threads);
    return std::pair(out.detach(), torch::autograd::grad({(out * weight).sum()}, {x})[0]);
  };
  const auto first = both(1);
  for (const int64_t threads : {2, 5}) {
    const auto other = both(threads);
    EXPECT_TRUE(torch::equal(other.first, first.first)) << threads;
    EXPECT_TRUE(torch::equal(other.second, first.second)) << threads;
  }
}

TEST(GatherSum, EqualsIndexAddWithItsGradients) {
  Random random(1);
  for (int round = 0; round < 40; ++round) {
    const int64_t rows = 1 + static_cast<int64_t>(random.Below(20)), width = 1 + static_cast<int64_t>(random.Below(9));
    std::set<std::pair<int32_t, int32_t>> some;
    for (size_t k = random.Below(60); k > 0; --k) {
      some.emplace(random.Below(static_cast<size_t>(rows)), random.Below(static_cast<size_t>(rows)));
    }
    const std::vector<std::pair<int32_t, int32_t>> entries(some.begin(), some.end());
    std::vector<double> weight;
    for (size_t i = 0; i < entries.size() && round % 2 == 0; ++i) weight.push_back(random.Normal());
    const SparseRows sparse(rows, entries, weight);
    const at::ScalarType type = round % 4 < 2 ? torch::kFloat64 : torch::kFloat32;
    const double near = type == torch::kFloat64 ? 1e-12 : 1e-4;

    at::Tensor to = torch::empty({static_cast<int64_t>(entries.size())}, torch::kInt64), from = to.clone();
    at::Tensor factor = torch::ones({to.size(0), 1}, torch::kFloat64);
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      to[at] = entries[i].first;
      from[at] = entries[i].second;
      if (!weight.empty()) factor[at][0] = weight[i];
    }
    const std::vector<int64_t> sizes = round % 3 == 0   ? std::vector<int64_t>{rows, width}
                                       : round % 3 == 1 ? std::vector<int64_t>{3, rows, width}
                                                        : std::vector<int64_t>{2, 2, rows, width};
    const at::Tensor x = Normal(random, sizes, type).requires_grad_();
    const at::Tensor out = GatherSum(x, sparse);
    const at::Tensor expected = torch::zeros_like(x).index_add(-2, to, x.index_select(-2, from) * factor.to(type));
    EXPECT_TRUE(torch::allclose(out, expected, near, near));
    const at::Tensor direction = Normal(random, sizes, type);
    const at::Tensor gradient = torch::autograd::grad({(out * direction).sum()}, {x})[0];
    const at::Tensor wanted = torch::autograd::grad({(expected * direction).sum()}, {x}, {}, {}, false, true)[0];
    EXPECT_TRUE(torch::allclose(gradient, wanted.defined() ? wanted : torch::zeros_like(x), near, near));
  }
}

TEST(Mlp, BeginsWithGlorotWeightsAndNoBias) {
  Random random(5);
  const Mlp mlp(std::vector<int64_t>{30, 60, 10}, MakeGenerator(random));
  const auto parameters = mlp.parameters();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_LE(parameters[0].abs().max().item<double>(), std::sqrt(6.0 / 90));
  EXPECT_GT(parameters[0].abs().max().item<double>(), 0.9 * std::sqrt(6.0 / 90));
  EXPECT_EQ(parameters[1].abs().max().item<double>(), 0);
  Random again(5);
  EXPECT_TRUE(torch::equal(Mlp(std::vector<int64_t>{30, 60, 10}, MakeGenerator(again)).parameters()[2], parameters[2]))
      << "the same seed gave other weights";
}

TEST(Dropout, KeepsTheMeanAndDropsTheShare) {
  Random random(6);
  const at::Tensor x = torch::ones({100, 100});
  const at::Tensor dropped = Dropout(x, 0.25, &random);
  EXPECT_NEAR(dropped.mean().item<double>(), 1, 0.03);
  EXPECT_NEAR(dropped.eq(0).to(torch::kFloat64).mean().item<double>(), 0.25, 0.02);
  EXPECT_TRUE(torch::equal(Dropout(x, 0.25, nullptr), x)) << "without a generator nothing is dropped";
}

}  // namespace
}  // namespace berth
