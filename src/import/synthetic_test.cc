#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "import/import.h"

namespace berth {
namespace {

class Synthetic : public ::testing::Test {
 protected:
  void SetUp() override { RegisterSyntheticModels(catalog_); }
  Graph Make(std::string_view text) const { return catalog_.Make(text); }

  ModelCatalog catalog_{"model"};
};

// Ops on the longest path.
size_t Depth(const Graph& graph) {
  std::vector<size_t> depth(graph.num_ops(), 1);
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op))
      depth[Index(op)] = std::max(depth[Index(op)], depth[Index(graph.producer(tensor))] + 1);
  }
  return *std::ranges::max_element(depth);
}

// The most ops with the same distance from the start: how many could run side by side in lockstep.
size_t Width(const Graph& graph) {
  std::vector<size_t> depth(graph.num_ops(), 0), count(graph.num_ops() + 1, 0);
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op))
      depth[Index(op)] = std::max(depth[Index(op)], depth[Index(graph.producer(tensor))] + 1);
    ++count[depth[Index(op)]];
  }
  return *std::ranges::max_element(count);
}

TEST_F(Synthetic, AChainIsAChain) {
  const Graph graph = Make("chain(ops=50,flops=2e6,bytes=10,parameter_bytes=7)");
  EXPECT_EQ(graph.num_ops(), 50u);
  EXPECT_EQ(graph.num_edges(), 49u);
  EXPECT_EQ(Depth(graph), 50u);
  EXPECT_EQ(graph.total_flops(), 50 * 2e6);
  EXPECT_EQ(graph.total_parameter_bytes(), 350);
  EXPECT_EQ(graph.name(), "chain(ops=50,flops=2e6,bytes=10,parameter_bytes=7)");
}

TEST_F(Synthetic, AForkJoinHasItsBranchesAndRounds) {
  const Graph graph = Make("fork_join(width=6,depth=3,rounds=4)");
  EXPECT_EQ(graph.num_ops(), 1u + 4 * (6 * 3 + 1));
  EXPECT_EQ(Depth(graph), 1u + 4 * (3 + 1));
  EXPECT_EQ(Width(graph), 6u);
  EXPECT_EQ(graph.num_tensors(), graph.num_ops()) << "one tensor from the fork, whatever the number of branches";
}

TEST_F(Synthetic, ALayeredGraphHasItsDegreeAndRepeatsForItsSeed) {
  const Graph graph = Make("layered(ops=3200,width=32,degree=3,seed=5)");
  EXPECT_EQ(graph.num_edges(), (3200u - 32) * 3);
  EXPECT_EQ(Depth(graph), 100u);
  EXPECT_EQ(Width(graph), 32u);
  EXPECT_EQ(graph.structural_fingerprint(),
            Make("layered(ops=3200,width=32,degree=3,seed=5)").structural_fingerprint());
  EXPECT_NE(graph.structural_fingerprint(),
            Make("layered(ops=3200,width=32,degree=3,seed=6)").structural_fingerprint());
  EXPECT_EQ(Make("layered(ops=40,spread=0)").total_flops(), 40e9);
}

TEST_F(Synthetic, AnLstmGridIsAWavefrontThatSharesItsWeights) {
  const Graph graph = Make("lstm_grid(layers=8,steps=40)");
  EXPECT_EQ(graph.num_ops(), 320u);
  EXPECT_EQ(Depth(graph), 47u);
  EXPECT_EQ(Width(graph), 8u);
  EXPECT_EQ(graph.num_parameters(), 8u);
  EXPECT_EQ(graph.parameter_consumers(ParameterId{0}).size(), 40u);
  EXPECT_EQ(graph.num_inputs(), 40u);
}

TEST_F(Synthetic, ATransformerCountsAsThePublishedOne) {
  const Graph graph = Make("transformer(layers=12,hidden=768,heads=12,sequence=128,vocabulary=30522)");
  // 12 layers of 4 h^2 + 8 h^2 weights, the embedding and the head; 2 operations per weight and token, and the
  // attention.
  const double weights = 12 * 12 * 768.0 * 768, table = 30522 * 768.0;
  EXPECT_NEAR(static_cast<double>(graph.total_parameter_bytes()) / 4, weights + 2 * table, 0.01 * weights);
  EXPECT_NEAR(graph.total_flops(), 2 * 128 * (weights + table) + 12 * 4 * 128.0 * 128 * 768,
              0.01 * graph.total_flops());
  EXPECT_EQ(graph.num_ops(), 12u * 14 + 3);
  EXPECT_EQ(Width(graph), 3u);
}

TEST_F(Synthetic, ScalesToAMillionOps) {
  const Graph graph = Make("layered(ops=1000000,width=1000)");
  EXPECT_EQ(graph.num_ops(), 1000000u);
  EXPECT_EQ(graph.num_edges(), 2u * 999000);
}

TEST_F(Synthetic, SizesBeyondReasonAreRefused) {
  EXPECT_THROW(Make("lstm_grid(layers=4000000,steps=4000000)"), Error);
  EXPECT_THROW(Make("fork_join(width=4000000,depth=2)"), Error);
  EXPECT_THROW(Make("transformer(sequence=1000000,batch=65536)"), Error);
  EXPECT_THROW(Make("chain(ops=0)"), Error);
}

}  // namespace
}  // namespace berth
