// Every op of ONNX's operator set against the node tests that ONNX itself has (tests/data/make_onnx_cases.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "import/onnx_fold.h"
#include "import/onnx_graph.h"
#include "import/onnx_test_model.h"

namespace berth {
namespace {

using nlohmann::json;

const json& Document() {
  static const json document = json::parse(ReadFile(BERTH_SOURCE_DIR "/tests/data/onnx_cases.json"));
  return document;
}

long double ToNumber(const json& number) {
  return number.is_string() ? std::strtold(number.get<std::string>().c_str(), nullptr) : number.get<long double>();
}

Content ToContent(const json& numbers) {
  Content content;
  for (const json& number : numbers) content.push_back(ToNumber(number));
  return content;
}

// What is fed to a node, or expected of it.
OnnxValue ToValue(const json& entry) {
  OnnxValue value{.known_dims = true};
  if (entry.is_null()) return value;
  if (entry.contains("optional")) {
    value.is_sequence = value.is_optional = true;
    if (!entry["optional"].is_null()) value.elements.push_back(ToValue(entry["optional"]));
    return value;
  }
  if (entry.contains("sequence")) {
    value.is_sequence = true;
    for (const json& element : entry["sequence"]) value.elements.push_back(ToValue(element));
    return value;
  }
  value.type = entry["type"];
  value.dims = entry["dims"].get<Dims>();
  if (entry.contains("content")) value.content = ToContent(entry["content"]);
  return value;
}

void FillTensor(onnx::TensorProto& tensor, const json& entry) {
  tensor.set_data_type(entry["type"]);
  for (const json& dim : entry["dims"]) tensor.add_dims(dim);
  if (!entry.contains("content")) return;
  for (const json& number : entry["content"]) {
    switch (tensor.data_type()) {
      case onnx::TensorProto::FLOAT:
        tensor.add_float_data(static_cast<float>(ToNumber(number)));
        break;
      case onnx::TensorProto::INT64:
        tensor.add_int64_data(number);
        break;
      default:
        tensor.add_int32_data(number);
    }
  }
}

onnx::NodeProto ToNode(const json& test) {
  onnx::NodeProto node;
  node.set_op_type(test["op"]);
  for (size_t k = 0; k < test["inputs"].size(); ++k) {
    node.add_input(test["inputs"][k].is_null() ? "" : "in" + std::to_string(k));
  }
  for (size_t k = 0; k < test["outputs"].size(); ++k) {
    node.add_output(test["outputs"][k].is_null() ? "" : "out" + std::to_string(k));
  }
  for (const auto& [name, given] : test["attributes"].items()) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    const std::string kind = given.begin().key();
    const json& content = given.begin().value();
    if (kind == "int") attribute.set_i(content);
    if (kind == "float") attribute.set_f(static_cast<float>(ToNumber(content)));
    if (kind == "text") attribute.set_s(content);
    if (kind == "tensor") FillTensor(*attribute.mutable_t(), content);
    for (const json& item : kind == "ints" ? content : json::array()) attribute.add_ints(item);
    for (const json& item : kind == "floats" ? content : json::array())
      attribute.add_floats(static_cast<float>(ToNumber(item)));
    for (const json& item : kind == "texts" ? content : json::array()) attribute.add_strings(item);
  }
  return node;
}

// Which inputs are constants.
enum class Given { kAll, kSmallIntegers, kNone };

struct Answer {
  OnnxWalk walk{};
  std::vector<const OnnxValue*> outputs{};
};

Answer Read(const json& test, Given given) {
  Answer answer{.walk = {.path = test["name"], .opsets = {{"", test["opset"]}}}};
  onnx::GraphProto graph;
  *graph.add_node() = ToNode(test);
  OnnxScope scope(answer.walk, graph, nullptr);
  for (size_t k = 0; k < test["inputs"].size(); ++k) {
    if (test["inputs"][k].is_null()) continue;
    OnnxValue value = ToValue(test["inputs"][k]);
    value.name = graph.node(0).input(static_cast<int>(k));
    const bool integers = value.content && !IsFloating(value.type) && value.dims.size() <= 1;
    value.constant = given == Given::kAll || (given == Given::kSmallIntegers && integers);
    value.root = answer.walk.pool.size();
    if (!value.constant) value.content.reset();
    scope.Declare(std::move(value));
  }
  scope.Run();
  for (const std::string& output : graph.node(0).output()) {
    answer.outputs.push_back(output.empty() ? nullptr : &answer.walk.pool[scope.Find(output)]);
  }
  return answer;
}

std::string ShapeText(const OnnxValue& value) {
  if (!value.is_sequence) return ToString(value.dims);
  std::string text = value.is_optional ? "optional" : "sequence";
  for (const OnnxValue& element : value.elements) text += " " + ShapeText(element);
  return text + ".";
}

// Not where numbers are of a type that is not read.
bool HasContents(const json& test) {
  return std::ranges::all_of(test["inputs"], [](const json& input) {
    return input.is_null() || input.value("type", 1) != onnx::TensorProto::BFLOAT16;
  });
}

const std::set<std::string> kOnlyARunTells = {"ImageDecoder", "NonMaxSuppression", "StringNormalizer", "StringSplit"};

const std::map<std::string, std::vector<json>>& CasesByOp() {
  static const auto all = [] {
    std::map<std::string, std::vector<json>> cases;
    for (const json& test : Document()["cases"]) cases[test["op"]].push_back(test);
    return cases;
  }();
  return all;
}

class OnnxCase : public ::testing::TestWithParam<std::string> {};

// Known shapes are right, and estimated ones are bounds, whatever is a constant; contents are right where there are
// any.
TEST_P(OnnxCase, KnowsShapesFromConstantsContentsFromContentsAndWhatItDoesNotKnow) {
  const std::string& op = GetParam();
  for (const json& test : CasesByOp().at(op)) {
    SCOPED_TRACE(test["name"].get<std::string>());
    for (const Given given : {Given::kAll, Given::kSmallIntegers, Given::kNone}) {
      SCOPED_TRACE(static_cast<int>(given));
      const Answer answer = Read(test, given);
      for (size_t k = 0; k < answer.outputs.size(); ++k) {
        if (answer.outputs[k] == nullptr) continue;
        const OnnxValue &output = *answer.outputs[k], expected = ToValue(test["outputs"][k]);
        if (output.certainty == Certainty::kKnown) {
          EXPECT_EQ(ShapeText(output), ShapeText(expected)) << op << " output " << k;
          EXPECT_TRUE(expected.is_sequence || output.type == expected.type) << op << " output " << k;
        } else if (output.certainty == Certainty::kEstimated) {
          ASSERT_EQ(output.dims.size(), expected.dims.size()) << op;
          for (size_t axis = 0; axis < output.dims.size(); ++axis) EXPECT_GE(output.dims[axis], expected.dims[axis]);
        }
        if (given == Given::kAll && !kOnlyARunTells.contains(op) && HasContents(test)) {
          EXPECT_EQ(output.certainty, Certainty::kKnown) << op << " output " << k << ": " << ShapeText(output);
        }
        if (!output.content || !expected.content) continue;
        ASSERT_EQ(output.content->size(), expected.content->size()) << op;
        for (size_t at = 0; at < expected.content->size(); ++at) {
          const long double wanted = (*expected.content)[at], found = (*output.content)[at];
          if (std::isnan(wanted) && std::isnan(found)) continue;
          EXPECT_TRUE(wanted == found || std::fabs(wanted - found) <= 1e-5L * std::fabs(wanted) + 1e-7L)
              << op << " output " << k << " element " << at << ": " << static_cast<double>(found) << " instead of "
              << static_cast<double>(wanted);
        }
      }
    }
  }
}

std::vector<std::string> OpsWithCases() {
  std::vector<std::string> ops;
  for (const auto& [op, tests] : CasesByOp()) ops.push_back(op);
  return ops;
}

INSTANTIATE_TEST_SUITE_P(All, OnnxCase, ::testing::ValuesIn(OpsWithCases()), [](const auto& op) { return op.param; });

// The walk reads these itself.
const std::set<std::string> kOfTheWalk = {"Constant", "If", "Loop", "Scan", "SequenceMap"};

TEST(OnnxOperatorSet, EveryOpHasAShapeRule) {
  EXPECT_EQ(Document()["opset"], kNewestOpset);
  ASSERT_GT(Document()["ops"].size(), 200u);
  for (const std::string op : Document()["ops"]) {
    EXPECT_TRUE(HasShapeRule("", op) || kOfTheWalk.contains(op)) << op;
  }
}

TEST(OnnxOperatorSet, EveryOpHasAFormula) {
  for (const std::string op : Document()["ops"]) {
    EXPECT_TRUE(FindOpRule("", op) != nullptr || kOfTheWalk.contains(op)) << op;
  }
}

// Activations, normalisations and products of features are no shape arithmetic; texts, images and random numbers have
// no content here; sequences carry that of their elements.
TEST(OnnxOperatorSet, EveryOpThatCanStandInShapeArithmeticIsFolded) {
  const std::set<std::string> others = {"AffineGrid",
                                        "Attention",
                                        "AveragePool",
                                        "BatchNormalization",
                                        "Bernoulli",
                                        "BitCast",
                                        "BlackmanWindow",
                                        "CausalConvWithState",
                                        "Celu",
                                        "CenterCropPad",
                                        "Col2Im",
                                        "ConcatFromSequence",
                                        "Conv",
                                        "ConvInteger",
                                        "ConvTranspose",
                                        "DFT",
                                        "DeformConv",
                                        "DequantizeLinear",
                                        "Det",
                                        "Dropout",
                                        "DynamicQuantizeLinear",
                                        "Elu",
                                        "GRU",
                                        "Gelu",
                                        "Gemm",
                                        "GlobalAveragePool",
                                        "GlobalLpPool",
                                        "GlobalMaxPool",
                                        "GridSample",
                                        "GroupNormalization",
                                        "HammingWindow",
                                        "HannWindow",
                                        "HardSigmoid",
                                        "HardSwish",
                                        "Hardmax",
                                        "ImageDecoder",
                                        "InstanceNormalization",
                                        "LRN",
                                        "LSTM",
                                        "LayerNormalization",
                                        "LeakyRelu",
                                        "LinearAttention",
                                        "LogSoftmax",
                                        "LpNormalization",
                                        "LpPool",
                                        "MatMulInteger",
                                        "MaxPool",
                                        "MaxRoiPool",
                                        "MaxUnpool",
                                        "MeanVarianceNormalization",
                                        "MelWeightMatrix",
                                        "Mish",
                                        "Multinomial",
                                        "NegativeLogLikelihoodLoss",
                                        "NonMaxSuppression",
                                        "Optional",
                                        "OptionalGetElement",
                                        "PRelu",
                                        "QLinearConv",
                                        "QLinearMatMul",
                                        "QuantizeLinear",
                                        "RMSNormalization",
                                        "RNN",
                                        "RandomNormal",
                                        "RandomNormalLike",
                                        "RandomUniform",
                                        "RandomUniformLike",
                                        "RegexFullMatch",
                                        "Resize",
                                        "RoiAlign",
                                        "RotaryEmbedding",
                                        "STFT",
                                        "Selu",
                                        "SequenceAt",
                                        "SequenceConstruct",
                                        "SequenceEmpty",
                                        "SequenceErase",
                                        "SequenceInsert",
                                        "Shrink",
                                        "Softmax",
                                        "SoftmaxCrossEntropyLoss",
                                        "Softplus",
                                        "Softsign",
                                        "SplitToSequence",
                                        "StringConcat",
                                        "StringNormalizer",
                                        "StringSplit",
                                        "SwiGLU",
                                        "Swish",
                                        "TensorScatter",
                                        "TfIdfVectorizer",
                                        "ThresholdedRelu",
                                        "Upsample"};
  for (const std::string op : Document()["ops"]) {
    EXPECT_NE(CanFold(op), others.contains(op) || kOfTheWalk.contains(op)) << op;
  }
}

}  // namespace
}  // namespace berth
