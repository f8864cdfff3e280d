#include "learn/message_passing.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "learn/testing.h"

namespace berth {
namespace {

// The formula, operation by operation.
at::Tensor Slowly(const at::Tensor& x, const std::vector<at::Tensor>& layers, const SparseRows& rows, int64_t rounds) {
  const auto layer = [&](const at::Tensor& in, size_t i) {
    return torch::relu(torch::linear(in, layers[2 * i], layers[2 * i + 1]));
  };
  // 1 for a row that is a sum of at least one.
  const at::Tensor any = GatherSum(torch::ones({rows.rows(), 1}, x.scalar_type()), rows).gt(0).to(x.scalar_type());
  at::Tensor now = x;
  for (int64_t round = 0; round < rounds; ++round) {
    now = x + any * layer(layer(GatherSum(layer(layer(now, 0), 1), rows), 2), 3);
  }
  return now;
}

TEST(PassMessages, EqualsItsFormulaWithItsGradients) {
  Random random(1);
  for (int round = 0; round < 40; ++round) {
    const int64_t rows = 1 + static_cast<int64_t>(random.Below(20)), width = 1 + static_cast<int64_t>(random.Below(11));
    std::set<std::pair<int32_t, int32_t>> some;
    for (size_t k = random.Below(60); k > 0; --k) {
      some.emplace(random.Below(static_cast<size_t>(rows)), random.Below(static_cast<size_t>(rows)));
    }
    const SparseRows sparse(rows, std::vector<std::pair<int32_t, int32_t>>(some.begin(), some.end()));
    const at::ScalarType type = round % 2 == 0 ? torch::kFloat64 : torch::kFloat32;
    const double near = type == torch::kFloat64 ? 1e-10 : 1e-3;
    std::vector<at::Tensor> inputs = {testing::NormalTensor(random, {3, rows, width})};
    for (int i = 0; i < 4; ++i) {
      inputs.push_back(0.3 * testing::NormalTensor(random, {width, width}));
      inputs.push_back(0.3 * testing::NormalTensor(random, {width}));
    }
    for (at::Tensor& input : inputs) input = input.to(type).requires_grad_();
    const std::vector<at::Tensor> layers(inputs.begin() + 1, inputs.end());
    const auto rounds = static_cast<int64_t>(random.Below(4));
    const at::Tensor out = PassMessages(inputs[0], layers, sparse, rounds);
    const at::Tensor expected = Slowly(inputs[0], layers, sparse, rounds);
    ASSERT_TRUE(torch::allclose(out, expected, near, near));
    const at::Tensor direction = testing::NormalTensor(random, {3, rows, width}).to(type);
    const auto gradients = torch::autograd::grad({(out * direction).sum()}, inputs);
    const auto wanted = torch::autograd::grad({(expected * direction).sum()}, inputs, {}, {}, false, true);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const at::Tensor to = wanted[i].defined() ? wanted[i] : torch::zeros_like(inputs[i]);
      EXPECT_TRUE(torch::allclose(gradients[i], to, near, near)) << "input " << i;
    }
  }
}

TEST(PassMessages, PassesOnWhatIsNotANumber) {
  const SparseRows chain(2, std::vector<std::pair<int32_t, int32_t>>{{1, 0}});
  std::vector<at::Tensor> layers;
  for (int i = 0; i < 4; ++i) layers.insert(layers.end(), {torch::ones({1, 1}), torch::zeros({1})});
  const at::Tensor out = PassMessages(torch::full({1, 2, 1}, std::nan("")), layers, chain, 1);
  EXPECT_TRUE(out.isnan().all().item<bool>());
}

}  // namespace
}  // namespace berth
