#include "learn/segment_placer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "base/random.h"
#include "learn/nets.h"
#include "learn/testing.h"

namespace berth {
namespace {

at::Tensor Drawn(Random& random, at::IntArrayRef sizes, double scale = 1) {
  return scale * testing::NormalTensor(random, sizes);
}

// With weights that are nowhere 0 or 1, in double precision.
SegmentPlacer MakePlacer(const SegmentShape& shape) {
  Random random(7);
  SegmentPlacer placer(shape, MakeGenerator(random));
  placer.to(torch::kFloat64);
  const torch::NoGradGuard no_gradient;
  for (const at::Tensor& parameter : placer.parameters()) parameter.add_(Drawn(random, parameter.sizes(), 0.1));
  return placer;
}

std::map<std::string, at::Tensor> Weights(const SegmentPlacer& placer) {
  std::map<std::string, at::Tensor> weight;
  for (const auto& parameter : placer.named_parameters()) weight[parameter.key()] = parameter.value();
  return weight;
}

// The formulas of the header, over all rows at once: each row sees those of its own segment and of the one before, and
// what it sees of the one before is a constant.
at::Tensor Slow(const SegmentPlacer& placer, const at::Tensor& x, const at::Tensor& gate) {
  auto weight = Weights(placer);
  const SegmentShape& shape = placer.shape();
  const int64_t rows = x.size(0), dim = shape.width / shape.heads;
  const auto norm = [&](const at::Tensor& of, const std::string& name) {
    const at::Tensor centred = of - of.mean(1, true);
    return centred / torch::sqrt(centred.square().mean(1, true) + 1e-5) * weight[name] + weight[name + "_bias"];
  };
  at::Tensor h = x;
  for (int64_t l = 0; l < shape.layers; ++l) {
    const std::string prefix = "layer" + std::to_string(l) + "_";
    const at::Tensor u = shape.gated ? norm(h * gate[l], prefix + "gate_norm") : h;
    std::vector<at::Tensor> attended;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t own = i / shape.segment, first = std::max<int64_t>(own - 1, 0) * shape.segment;
      std::vector<at::Tensor> heads, seen;
      for (int64_t j = first; j < std::min((own + 1) * shape.segment, rows); ++j) {
        seen.push_back(j / shape.segment == own ? u[j] : u[j].detach());
      }
      const at::Tensor context = torch::stack(seen);
      for (int64_t head = 0; head < shape.heads; ++head) {
        const auto part = [&](const char* name) {
          return weight[prefix + name].slice(0, head * dim, (head + 1) * dim);
        };
        const at::Tensor query = torch::mv(part("query"), u[i]);
        const at::Tensor score = torch::mv(torch::mm(context, part("key").t()), query) / std::sqrt(dim);
        heads.push_back(torch::mv(torch::mm(context, part("value").t()).t(), torch::softmax(score, 0)));
      }
      attended.push_back(torch::mv(weight[prefix + "out"], torch::cat(heads)));
    }
    const at::Tensor y = norm(u + torch::stack(attended), prefix + "norm");
    const at::Tensor inner = torch::relu(torch::mm(y, weight[prefix + "in"].t()) + weight[prefix + "in_bias"]);
    h = norm(y + torch::mm(inner, weight[prefix + "back"].t()) + weight[prefix + "back_bias"], prefix + "last_norm");
  }
  return torch::mm(h, weight["head"].t()) + weight["head_bias"];
}

TEST(SegmentPlacer, IsTheOneThatIsWrittenDownWithItsGradients) {
  Random random(3);
  for (const bool gated : {false, true}) {
    for (const int64_t rows : {1, 3, 4, 11}) {
      for (const int64_t layers : {0, 1, 3}) {
        if (gated && layers == 0) continue;
        const SegmentPlacer placer = MakePlacer(
            {.width = 6, .heads = 2, .inner = 5, .layers = layers, .segment = 4, .outputs = 3, .gated = gated});
        const at::Tensor x = Drawn(random, {rows, 6}).requires_grad_(true);
        const at::Tensor gate = torch::sigmoid(Drawn(random, {layers, 6})).requires_grad_(true);
        const at::Tensor fast = placer.Forward(x, gate, 2), slow = Slow(placer, x, gate);
        EXPECT_TRUE(torch::allclose(fast, slow, 1e-10, 1e-10)) << rows << layers << gated;

        std::vector<at::Tensor> wanted = placer.parameters();
        wanted.push_back(x);
        if (gated) wanted.push_back(gate);
        const at::Tensor weight = Drawn(random, {rows, 3});
        const auto by_fast = torch::autograd::grad({(fast * weight).sum()}, wanted, {}, false, false, true);
        const auto by_slow = torch::autograd::grad({(slow * weight).sum()}, wanted, {}, false, false, true);
        for (size_t i = 0; i < wanted.size(); ++i) {
          ASSERT_EQ(by_fast[i].defined(), by_slow[i].defined()) << i;
          if (!by_fast[i].defined()) continue;
          EXPECT_TRUE(torch::allclose(by_fast[i], by_slow[i], 1e-8, 1e-9)) << i << " " << rows << layers << gated;
        }
      }
    }
  }
}

TEST(SegmentPlacer, GivesTheSameBytesOnAnyNumberOfThreads) {
  Random random(4);
  const SegmentPlacer placer =
      MakePlacer({.width = 8, .heads = 2, .inner = 8, .layers = 2, .segment = 3, .outputs = 2});
  const at::Tensor x = Drawn(random, {100, 8}).requires_grad_(true);
  std::vector<at::Tensor> first;
  for (const int64_t threads : {1, 2, 5}) {
    const at::Tensor out = placer.Forward(x, {}, threads);
    std::vector<at::Tensor> wanted = placer.parameters();
    wanted.push_back(x);
    std::vector<at::Tensor> all = torch::autograd::grad({out.square().sum()}, wanted);
    all.push_back(out.detach());
    if (first.empty()) first = all;
    for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(torch::equal(all[i], first[i])) << i << " " << threads;
  }
}

}  // namespace
}  // namespace berth
