// Models of TensorFlow, TensorFlow Lite and Paddle, and shapes that only OpenVINO knows, as a user meets them. The
// files are those of tests/data/make_foreign_models.py.
#include <gmock/gmock.h>

#include "import/onnx_test_model.h"
#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

const std::string kFiles = std::string(BERTH_SOURCE_DIR) + "/tests/data/foreign/";

class ForeignModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasOpenVino()) GTEST_SKIP() << "berth-openvino, which needs OpenVINO, is not built";
    Write(cluster_, kTwoCores);
  }

  static json Inspect(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    arguments.push_back("--json");
    const Outcome outcome = RunBerth(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? outcome.json() : json();
  }
  static void ExpectMistake(const std::vector<std::string>& arguments, const std::string& said) {
    const Outcome outcome = RunBerth(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr(said));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }

  const Folder folder_;
  const std::string cluster_ = folder_ / "two.yaml", plan_ = folder_ / "plan.json";
};

// 2 x 32 x 32 x 8 x 3 x (9 + 25) of the two convolutions, which is by far the most.
TEST_F(ForeignModels, HaveTheWorkThatTheirLayersHave) {
  for (const std::string file : {"branches.pb", "branches.tflite"}) {
    SCOPED_TRACE(file);
    const json model = Inspect({kFiles + file});
    EXPECT_GT(model.at("flops"), 2 * 32 * 32 * 8 * 3 * (9 + 25));
    EXPECT_LT(model.at("flops"), 1.05 * 2 * 32 * 32 * 8 * 3 * (9 + 25));
    EXPECT_THAT(model.at("notes").dump(), AllOf(HasSubstr("read by OpenVINO 20"),
                                                HasSubstr(file == "branches.pb" ? "the first axis of image:0" : "")));
  }
  EXPECT_GT(Inspect({kFiles + "branches.pdmodel"}).at("flops"), 2 * 32 * 32 * (8 * 3 * (9 + 25) + 2 * 8 * 10));
  EXPECT_EQ(Inspect({kFiles + "saved"}).at("ops"), 2);
  EXPECT_EQ(Inspect({kFiles + "saved"}), Inspect({kFiles + "saved/saved_model.pb"}));
}

// tanh(y W) for y of 4 x 8, and two counters of which one is compared, ten times.
TEST_F(ForeignModels, HaveTheRoundsThatTheirLoopsCount) {
  const json model = Inspect({kFiles + "counted.pb"});
  EXPECT_EQ(model.at("flops"), 10 * (2 * 4 * 8 * 8 + 4 * 8 + 3));
  EXPECT_TRUE(model.at("unknown_shapes").is_null());
  EXPECT_TRUE(model.at("estimated_shapes").is_null());
}

TEST_F(ForeignModels, TakeTheSizesThatAreAskedFor) {
  const double one = Inspect({kFiles + "branches.pb"}).at("flops");
  EXPECT_NEAR(Inspect({kFiles + "branches.pb", "--batch", "4"}).at("flops"), 4 * one, one * 1e-3);
  EXPECT_NEAR(Inspect({kFiles + "branches.pb", "--shape", "image=2,64,64,3"}).at("flops"), 8 * one, one * 0.01);
  ExpectMistake({"inspect", kFiles + "branches.pb", "--shape", "imag=1,32,32,3"},
                "--shape imag=...: there is no input of that name; its inputs are: image:0");
  ExpectMistake({"inspect", kFiles + "branches.pb", "--shape", "image=1,32,32,3", "--batch", "4"},
                "every input has a --shape of its own; leave one of the two out");
  ExpectMistake({"inspect", kFiles + "branches.pb", "--shape", "image=1,32,3"}, "this input has 4 dimensions, not 3");
}

TEST_F(ForeignModels, ArePlannedRunAndHandedOver) {
  for (const std::string file : {"branches.pb", "branches.tflite", "branches.pdmodel"}) {
    SCOPED_TRACE(file);
    Outcome outcome = RunBerth({"plan", kFiles + file, "--cluster", cluster_, "--planner", "round_robin", "-o", plan_});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    outcome = RunBerth({"run", plan_, "--runs", "2", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.json().at("outputs_equal"));
    outcome = RunBerth({"export", plan_, "--to", "openvino", "-o", folder_ / (file + "_out")});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, Not(HasSubstr("are not in OpenVINO's reading")));
  }
  ExpectMistake({"export", plan_, "--to", "onnxruntime", "-o", folder_ / "ort"},
                "is Paddle, the .pdmodel, which ONNX Runtime does not read; export it --to openvino");
}

TEST_F(ForeignModels, ThatAreDamagedOrNoneAreSaidInOneLine) {
  for (const std::string file : {"branches.pb", "branches.tflite", "branches.pdmodel"}) {
    SCOPED_TRACE(file);
    const std::string content = Content(kFiles + file), cut = folder_ / file;
    Write(cut, content.substr(0, content.size() / 2));
    ExpectMistake({"inspect", cut}, "OpenVINO does not take it");
  }
  fs::create_directory(folder_ / "nothing");
  ExpectMistake({"inspect", folder_ / "nothing"},
                "is a directory; of directories only TensorFlow's SavedModel is a model, which has a saved_model.pb");
}

// Embeddings of ONNX Runtime's own operator set, for which Berth has no rule.
void WriteEmbeddings(const std::string& path, const TestOnnxGraph::Shape& shape, bool whole) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  auto& standard = *model.add_opset_import();
  standard.set_version(17);
  auto& own = *model.add_opset_import();
  own.set_domain("com.microsoft");
  own.set_version(1);
  TestOnnxGraph graph(*model.mutable_graph());
  model.mutable_graph()->set_name("embeddings");
  graph.Input("ids", shape, onnx::TensorProto::INT32);
  graph.Input("segments", shape, onnx::TensorProto::INT32);
  const auto weight = [&](const std::string& name, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    auto& tensor = graph.Weight(name, dims);
    for (int64_t i = 0; i < count; ++i) tensor.add_float_data(static_cast<float>(i % 7));
  };
  weight("words", {100, 32});
  weight("positions", {16, 32});
  weight("kinds", {2, 32});
  weight("gamma", {32});
  weight("beta", {32});
  auto& mask = graph.Weight("mask", {1, 8}, onnx::TensorProto::INT32);
  for (int i = 0; i < 8; ++i) mask.add_int32_data(1);
  auto& node = graph.Node("EmbedLayerNormalization",
                          {"ids", "segments", "words", "positions", "kinds", "gamma", "beta", "mask"}, {"e", "m"});
  node.set_domain("com.microsoft");
  if (whole) {  // without it OpenVINO refuses the op
    auto& epsilon = *node.add_attribute();
    epsilon.set_name("epsilon");
    epsilon.set_type(onnx::AttributeProto::FLOAT);
    epsilon.set_f(1e-12f);
  }
  graph.Node("Relu", {"e"}, {"z"});
  graph.Output("z");
  Write(path, model.SerializeAsString());
}

TEST_F(ForeignModels, AShapeThatNoRuleTellsIsAskedOfOpenVino) {
  const std::string path = folder_ / "embeddings.onnx";
  WriteEmbeddings(path, {1, 8}, true);
  const json model = Inspect({path});
  EXPECT_THAT(model.at("notes").dump(), HasSubstr("shapes that no rule tells, taken from the reading of OpenVINO 20"));
  EXPECT_EQ(model.at("flops"), 8 * 32);  // of the Relu
}

TEST_F(ForeignModels, AShapeThatHangsOnAnOpenSizeStaysAGuess) {
  const std::string path = folder_ / "embeddings.onnx";
  WriteEmbeddings(path, {"batch", "sequence"}, true);
  EXPECT_THAT(Inspect({path}).at("notes").dump(), Not(HasSubstr("taken from the reading of")));
  EXPECT_EQ(Inspect({path, "--shape", "ids=2,8"}).at("flops"), 2 * 8 * 32);
}

TEST_F(ForeignModels, AShapeThatNobodyTellsIsAGuessAndSaidToBe) {
  const std::string path = folder_ / "embeddings.onnx";
  WriteEmbeddings(path, {1, 8}, false);
  EXPECT_THAT(Inspect({path}).at("notes").dump(),
              AllOf(HasSubstr("shapes that are not known and were guessed"),
                    HasSubstr("another reader was asked for the shapes that are not known, in vain")));
}

// A berth beside whose worker ends before it has answered.
TEST(ReadingAForeignModel, NamesTheFileWhereTheProcessThatReadsItDies) {
  const Folder folder;
  const Outcome outcome =
      RunBerth({"inspect", kFiles + "branches.tflite"}, BesideWorker(folder, "read -r line\nexit 3"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "berth: " + kFiles + "branches.tflite: berth-openvino ended with code 3\n");
}

}  // namespace
}  // namespace berth::testing
