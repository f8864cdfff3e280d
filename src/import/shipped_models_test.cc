// Every model that ships, and the light models of onnx/onnx where they are there, against what is known of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "import/import.h"

namespace berth {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Known {
  std::string_view name;
  size_t ops;
  int64_t parameter_bytes;
  double giga_multiply_adds;  // as published, for one sample; 0: not published at this size
};

// Multiply-adds of the torchvision models: "GFLOPS" of torchvision's table of weights. Parameters: its "num_params",
// less the two of four numbers per channel that go when batch normalisation is folded; alexnet, squeezenet and vgg16
// have none of it, and are exact. BERT: 12 layers of 12 h^2 weights, Devlin et al. 2018. GNMT and RNNLM: counted by
// hand in the tests below.
constexpr Known kKnown[] = {
    {"alexnet", 20, 61100840 * 4ll, 0.71},
    {"bert_base_s128", 621, 436749720, 11.2},
    {"bert_large_s384", 1221, 1340044056, 0},
    {"convnext_tiny", 476, 28589128 * 4ll + 400, 4.46},
    {"deeplabv3_resnet50", 138, 158442068, 0},
    {"densenet121", 375, 32160160, 2.83},
    {"densenet201", 615, 80820640, 4.29},
    {"efficientnet_b0", 239, 21070160, 0.39},
    {"gnmt_4l_t20_b64", 3083, 792478880, 0},
    {"googlenet", 139, 26470496, 1.5},
    {"gpt2_decode_p128", 649, 652149128, 0},
    {"inception_v3", 224, 95269408, 5.71},
    {"lraspp_mobilenet_v3_large", 166, 12836840, 0},
    {"lstm_lm_4l_fused", 12, 218405952, 0},
    {"mnasnet1_0", 99, 17457408, 0.31},
    {"mobilenet_v2", 100, 13951264, 0.3},
    {"mobilenet_v3_large", 161, 21883328, 0.22},
    {"r3d_18", 48, 133466688, 40.7 * 4},  // published at 112 x 112
    {"resnet152", 360, 240468384, 11.51},
    {"resnet18", 49, 46738848, 1.81},
    {"resnet50", 122, (25557032 - 26560) * 4ll, 4.09},
    {"resnext50_32x4d", 122, 99979168, 4.23},
    {"rnnlm_2l_t35_b64", 1192, 434478424, 0},
    {"squeezenet1_1", 65, 1235496 * 4ll, 0.35},
    {"two_towers", 41, 20 * 64 * 64 * 9 * 4ll, 2.31},
    {"vgg16", 38, 138357544 * 4ll, 15.47},
    {"vit_b_16", 616, 86567656 * 4ll + 400, 17.56},
    {"wavenet_4x9", 399, 5948416, 0},
    {"wide_resnet50_2", 122, 275396512, 11.4},
};

Graph Read(std::string_view name, const ImportOptions& options = {}) {
  return ReadModel(name, ModelCatalog("model"), options);
}

class ShippedModel : public ::testing::TestWithParam<Known> {};

TEST_P(ShippedModel, IsReadWholeAndCountsWhatIsKnown) {
  const Known& known = GetParam();
  const Graph graph = Read(known.name);
  EXPECT_THAT(graph.notes(), IsEmpty());
  EXPECT_EQ(graph.num_ops(), known.ops);
  EXPECT_EQ(graph.total_parameter_bytes(), known.parameter_bytes);
  if (known.giga_multiply_adds > 0) {
    EXPECT_NEAR(graph.total_flops() / 2e9, known.giga_multiply_adds, 0.05 * known.giga_multiply_adds);
  }
  std::set<std::string> types(graph.op_types().begin(), graph.op_types().end());
  for (const char* folded : {"Constant", "ConstantOfShape", "Shape", "Identity", "Expand"})
    EXPECT_FALSE(types.contains(folded)) << folded;
  bool has_output = false;
  for (const TensorId tensor : graph.tensors()) {
    has_output |= graph.is_output(tensor);
    EXPECT_TRUE(graph.is_output(tensor) || !graph.consumers(tensor).empty() ||
                graph.end_output(graph.producer(tensor)) - graph.first_output(graph.producer(tensor)) > 1)
        << graph.tensor_name(tensor);
  }
  EXPECT_TRUE(has_output);
  for (const OpId op : graph.ops()) EXPECT_FALSE(graph.work(op).bytes_only) << graph.op_type(op);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedModel, ::testing::ValuesIn(kKnown),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ShippedModels, AreAllInTheTable) {
  std::set<std::string> known, there;
  for (const Known& model : kKnown) known.emplace(model.name);
  for (const auto& [name, path] : ShippedModels()) there.insert(name);
  EXPECT_EQ(known, there);
}

TEST(ShippedModels, GnmtSharesItsWeightsOverAllSteps) {
  const Graph graph = Read("gnmt_4l_t20_b64");
  size_t uses = 0;
  for (const ParameterId parameter : graph.parameters())
    uses = std::max(uses, graph.parameter_consumers(parameter).size());
  EXPECT_GE(uses, 20u);
  // Two embeddings and a projection of 32,000 x 1,024; nine LSTM cells: fw, bw 2h, three encoders (one 3h), four
  // decoders 3h.
  const double h = 1024, v = 32000;
  const double cells = 4 * h * h * (2 + 2 + 3 + 2 + 2 + 4 * 3), weights = 3 * v * h + 2 * h * h + cells;
  const double biases = 9 * 4 * h + v + h, initial_states = 18 * 64 * h;
  EXPECT_NEAR(static_cast<double>(graph.total_parameter_bytes()) / 4, weights + biases + initial_states, 100)
      << "and some scalars";
  // Every weight but the embeddings is a multiply-add per sample and step; the keys of the attention are made once for
  // all.
  EXPECT_NEAR(graph.total_flops(), 2 * 64 * 20 * (v * h + 2 * h * h + cells), 0.01 * graph.total_flops());
}

TEST(ShippedModels, CountInProportionToTheBatch) {
  const auto flops = [](std::string_view name, const std::vector<std::string_view>& shapes) {
    ImportOptions options;
    for (const std::string_view shape : shapes) ParseShape(shape, options);
    return Read(name, options).total_flops();
  };
  for (const char* name : {"resnet50", "vit_b_16", "convnext_tiny", "mobilenet_v3_large"}) {
    EXPECT_NEAR(flops(name, {"input=32,3,224,224"}), 32 * flops(name, {}), 1e-4 * 32 * flops(name, {})) << name;
  }
  EXPECT_NEAR(flops("bert_base_s128", {"input_ids=8,128", "attention_mask=8,128", "token_type_ids=8,128"}),
              8 * flops("bert_base_s128", {}), 1e8);
  EXPECT_NEAR(flops("gnmt_4l_t20_b64", {"src=128,20", "tgt=128,20"}), 2 * flops("gnmt_4l_t20_b64", {}), 1e8);
  EXPECT_NEAR(flops("lstm_lm_4l_fused", {"ids=35,128"}), 2 * flops("lstm_lm_4l_fused", {}), 1e8);
}

TEST(LightModels, AreReadWhole) {
  const std::filesystem::path folder = std::filesystem::path(BERTH_SHARED_DIR) / "models" / "onnx-light";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << folder << " is not there";
  // Multiply-adds where the literature agrees on them; ops: nodes without weights.
  constexpr Known kLight[] = {
      {"light_bvlc_alexnet", 24, 243860896, 0.66}, {"light_inception_v1", 143, 27994208, 1.43},
      {"light_resnet50", 176, 102440608, 4.09},    {"light_shufflenet", 203, 5680608, 0},
      {"light_squeezenet", 66, 4941984, 0.35},     {"light_vgg19", 46, 574668960, 19.63},
      {"light_zfnet512", 22, 349002144, 0},
  };
  for (const Known& known : kLight) {
    SCOPED_TRACE(known.name);
    const std::string path = (folder / known.name).string() + ".onnx";
    const Graph graph = ReadOnnx(ReadFile(path), path, {});
    EXPECT_THAT(graph.notes(), IsEmpty());
    EXPECT_EQ(graph.num_ops(), known.ops);
    EXPECT_EQ(graph.num_inputs(), 1u);
    EXPECT_EQ(graph.total_parameter_bytes(), known.parameter_bytes);
    if (known.giga_multiply_adds > 0) {
      EXPECT_NEAR(graph.total_flops() / 2e9, known.giga_multiply_adds, 0.05 * known.giga_multiply_adds);
    }
    ImportOptions batch;
    batch.shapes[std::string(graph.input_name(InputId{0}))] = {16, 3, 224, 224};
    const Graph more = ReadOnnx(ReadFile(path), path, batch);
    EXPECT_NEAR(more.total_flops(), 16 * graph.total_flops(), 1e-6 * more.total_flops());
    EXPECT_THAT(more.notes(), Each(HasSubstr("follow the sizes asked for")));
  }
}

}  // namespace
}  // namespace berth
