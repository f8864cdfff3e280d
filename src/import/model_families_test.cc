#include "import/model_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/error.h"
#include "base/file.h"

namespace berth {
namespace {

ModelCatalog Families() {
  ModelCatalog catalog("model");
  RegisterRecurrentModels(catalog);
  RegisterTransformerModels(catalog);
  RegisterRecommendationModels(catalog);
  RegisterConvolutionModels(catalog);
  RegisterTaskGraphs(catalog);
  return catalog;
}

std::map<std::string, int> CountTypes(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const OpId op : graph.ops()) ++counts[std::string(graph.op_type(op))];
  return counts;
}

// An export that ships with Berth, and the formula that should give the same.
struct Pair {
  const char* file;
  const char* formula;
};

class ModelFamily : public ::testing::TestWithParam<Pair> {};

TEST_P(ModelFamily, AgreesWithTheShippedExport) {
  const std::string path = std::string(BERTH_SOURCE_DIR "/models/") + GetParam().file;
  const Graph exported = ReadOnnx(ReadFile(path), path, {});
  const Graph made = Families().Make(GetParam().formula);
  EXPECT_EQ(CountTypes(made), CountTypes(exported));
  EXPECT_EQ(made.num_edges(), exported.num_edges());
  EXPECT_NEAR(made.total_flops() / exported.total_flops(), 1, 1e-3);
  // The exports keep a few indices as weights.
  EXPECT_NEAR(static_cast<double>(made.total_parameter_bytes()) / static_cast<double>(exported.total_parameter_bytes()),
              1, 1e-3);
  EXPECT_NEAR(static_cast<double>(made.total_tensor_bytes()) / static_cast<double>(exported.total_tensor_bytes()), 1,
              1e-2);
}

INSTANTIATE_TEST_SUITE_P(
    Shipped, ModelFamily,
    ::testing::Values(Pair{"rnnlm_2l_t35_b64.onnx", "rnnlm"}, Pair{"gnmt_4l_t20_b64.onnx", "gnmt"},
                      Pair{"bert_base_s128.onnx", "bert"},
                      Pair{"bert_large_s384.onnx", "bert(layers=24,hidden=1024,heads=16,inner=4096,length=384)"},
                      Pair{"wavenet_4x9.onnx", "wavenet"}, Pair{"inception_v3.onnx", "inception_v3"}));

TEST(ModelFamilies, GrowWithTheirParameters) {
  const ModelCatalog catalog = Families();
  for (const std::string& name : catalog.Names()) {
    const Graph graph = catalog.Make(name);
    EXPECT_GT(graph.num_ops(), 50u) << name;
    EXPECT_GT(graph.total_flops(), 0) << name;
  }
  // Two layers begin with a hidden and a cell state per sentence.
  EXPECT_EQ(catalog.Make("rnnlm(batch=128)").total_parameter_bytes() - catalog.Make("rnnlm").total_parameter_bytes(),
            4 * 64 * 2048 * 4);
  EXPECT_NEAR(catalog.Make("bert(batch=4)").total_flops() / catalog.Make("bert").total_flops(), 4, 0.01);
  EXPECT_GT(catalog.Make("nasnet(cells=6)").num_ops(), catalog.Make("nasnet").num_ops());
}

TEST(ModelFamilies, OfSizesThatNothingHoldsAreRefused) {
  EXPECT_THROW(Families().Make("bert(layers=1,batch=1000,length=1000000,heads=3000,hidden=3000)"), Error);
}

TEST(ModelFamilies, ReachEightyThousandOpsWithEightLayersOfGnmt) {
  EXPECT_NEAR(static_cast<double>(Families().Make("gnmt(layers=8,steps=284)").num_ops()), 80000, 400);
}

// Zoph et al. 2018, table 2: NASNet-A (4 @ 1056) has 5.3 million weights and 564 million multiply-adds.
TEST(ModelFamilies, GiveNasnetItsPublishedSize) {
  const Graph mobile = Families().Make("nasnet");
  EXPECT_NEAR(static_cast<double>(mobile.total_parameter_bytes()) / 4e6, 5.3, 0.1);
  EXPECT_NEAR(mobile.total_flops() / 2e6, 564, 30);
}

// Szegedy et al. 2016, section 6: 5 billion multiply-adds; torchvision counts 5.71 at 299 pixels, and 23.8 million
// weights with the classes, without the auxiliary ones.
TEST(ModelFamilies, GiveInceptionItsPublishedSize) {
  const Graph graph = Families().Make("inception_v3");
  EXPECT_NEAR(graph.total_flops() / 2e9, 5.71, 0.05);
  EXPECT_NEAR(static_cast<double>(graph.total_parameter_bytes()) / 4e6, 23.8, 0.1);
}

// All tokens together do `chosen` times the work of one feed-forward, however many experts share it.
TEST(ModelFamilies, GiveEachExpertItsShareOfTheTokens) {
  const ModelCatalog catalog = Families();
  const auto flops_of_experts = [&](const std::string& model) {
    const Graph graph = catalog.Make(model);
    double flops = 0;
    for (const OpId op : graph.ops()) {
      const std::string_view name = graph.op_name(op);
      const bool product = graph.op_type(op) == "Gemm" && name.find("expert") != std::string_view::npos;
      if (product && name.find("gate") == std::string_view::npos) flops += graph.work(op).flops;
    }
    return flops;
  };
  const double one_feed_forward = 2.0 * 2 * 1024 * 512 * 2048;
  EXPECT_NEAR(flops_of_experts("mixture(layers=2)") / (2 * one_feed_forward), 1, 0.01);
  EXPECT_NEAR(flops_of_experts("mixture(layers=2,experts=32,chosen=1)") / one_feed_forward, 1, 0.01);
  EXPECT_THROW(catalog.Make("mixture(experts=2,chosen=3)"), Error);
}

TEST(ModelFamilies, KeepTheBytesOfARecommenderInItsTables) {
  const Graph graph = Families().Make("dlrm");
  EXPECT_EQ(CountTypes(graph).at("Gather"), 27);
  const double tables = 26.0 * 100000 * 64 * 4;
  EXPECT_GT(static_cast<double>(graph.total_parameter_bytes()), tables);
  EXPECT_LT(static_cast<double>(graph.total_parameter_bytes()), 1.02 * tables);
}

TEST(TaskGraphs, HaveTheOpsThatTheirFormulasSay) {
  const ModelCatalog catalog = Families();
  const auto cholesky = CountTypes(catalog.Make("cholesky(tiles=6)"));
  EXPECT_EQ(cholesky, (std::map<std::string, int>{{"Potrf", 6}, {"Trsm", 15}, {"Syrk", 15}, {"Gemm", 20}}));
  // The sum over the blocks is the n^3 / 3 of the whole matrix, up to its lower order terms.
  EXPECT_NEAR(catalog.Make("cholesky(tiles=40,size=10)").total_flops() / (400.0 * 400 * 400 / 3), 1, 0.01);
  EXPECT_EQ(catalog.Make("fft(points=32)").num_ops(), 63u + 160u);
  EXPECT_EQ(catalog.Make("fft(points=1)").num_ops(), 1u);
  EXPECT_THROW(catalog.Make("fft(points=12)"), Error);
}

}  // namespace
}  // namespace berth
