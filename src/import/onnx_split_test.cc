#include "import/onnx_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "import/onnx_test_model.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// The parts as models.
struct Divided {
  std::vector<OnnxPart> parts;
  std::vector<onnx::ModelProto> models;

  std::vector<std::string> Types(size_t part) const {
    std::vector<std::string> types;
    for (const auto& node : models[part].graph().node()) types.push_back(node.op_type());
    return types;
  }
  std::vector<std::string> Weights(size_t part) const {
    std::vector<std::string> names;
    for (const auto& tensor : models[part].graph().initializer()) names.push_back(tensor.name());
    return names;
  }
};

// With the first `first` nodes in one part and the rest in another.
Divided Divide(const TestOnnxModel& model, size_t first, const ImportOptions& options = {},
               const std::string& path = "test.onnx") {
  OnnxSplit split(model.Bytes(), path, options, ReadOnnx(model.Bytes(), path, options));
  std::vector<std::vector<int32_t>> nodes(2);
  for (size_t node = 0; node < split.op().size(); ++node) {
    nodes[node < first ? 0 : 1].push_back(static_cast<int32_t>(node));
  }
  Divided divided{.parts = split.Divide(nodes, "weights.bin"), .models = {}};
  for (const OnnxPart& part : divided.parts) EXPECT_TRUE(divided.models.emplace_back().ParseFromString(part.model));
  return divided;
}

void Floats(onnx::TensorProto& tensor, size_t count) {
  for (size_t i = 0; i < count; ++i) tensor.add_float_data(0.5f);
}

TestOnnxModel TwoLayers() {
  TestOnnxModel model;
  model.Input("x", {2, 4});
  Floats(model.Weight("w", {4, 4}), 16);
  Floats(model.Weight("unused_later", {4, 4}), 16);
  model.Node("MatMul", {"x", "unused_later"}, {"a"}, "first");
  model.Node("Relu", {"a"}, {"b"}, "second");
  model.Node("MatMul", {"b", "w"}, {"c"}, "third");
  model.Node("MatMul", {"c", "w"}, {"y"}, "fourth");
  model.Output("y");
  return model;
}

TEST(OnnxSplit, GivesEachPartItsNodesWeightsAndTensors) {
  const Divided divided = Divide(TwoLayers(), 2);
  EXPECT_THAT(divided.Types(0), ElementsAre("MatMul", "Relu"));
  EXPECT_THAT(divided.Types(1), ElementsAre("MatMul", "MatMul"));
  EXPECT_THAT(divided.Weights(0), ElementsAre("unused_later"));
  EXPECT_THAT(divided.Weights(1), ElementsAre("w"));
  EXPECT_THAT(divided.parts[0].inputs, ElementsAre("x"));
  EXPECT_THAT(divided.parts[0].outputs, ElementsAre("b"));
  EXPECT_THAT(divided.parts[1].inputs, ElementsAre("b"));
  EXPECT_THAT(divided.parts[1].outputs, ElementsAre("y"));
  const auto& handed = divided.models[1].graph().input(0).type().tensor_type();
  EXPECT_EQ(handed.elem_type(), onnx::TensorProto::FLOAT);
  ASSERT_EQ(handed.shape().dim_size(), 2);
  EXPECT_EQ(handed.shape().dim(0).dim_value(), 2);
  EXPECT_EQ(divided.models[0].opset_import(0).version(), 13);
}

TEST(OnnxSplit, HasTheSizesThatWereAskedFor) {
  ImportOptions options;
  options.shapes["x"] = {5, 4};
  const Divided divided = Divide(TwoLayers(), 2, options);
  EXPECT_EQ(divided.models[0].graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 5);
  EXPECT_EQ(divided.models[0].graph().output(0).type().tensor_type().shape().dim(0).dim_value(), 5);
}

TEST(OnnxSplit, CopiesWhatDependsOnConstantsAloneToWhereItIsUsed) {
  TestOnnxModel model;
  model.Input("x", {4, 4});
  model.Ints("shape", {4, 4});
  model.Node("ConstantOfShape", {"shape"}, {"w"});
  model.Node("MatMul", {"x", "w"}, {"a"});
  model.Node("MatMul", {"a", "w"}, {"y"});
  model.Output("y");
  const Divided divided = Divide(model, 1);
  for (const size_t part : {size_t{0}, size_t{1}}) {
    EXPECT_THAT(divided.Types(part), ElementsAre("ConstantOfShape", "MatMul"));
    EXPECT_THAT(divided.Weights(part), ElementsAre("shape"));
  }
  EXPECT_THAT(divided.parts[1].inputs, ElementsAre("a"));
}

TEST(OnnxSplit, SendsTheShapeAndNotTheTensor) {
  TestOnnxModel model;
  model.Input("x", {2, 3, 4});
  model.Node("Relu", {"x"}, {"a"}, "left");
  model.Node("Shape", {"a"}, {"s"}, "asks");
  model.Node("Relu", {"x"}, {"b"}, "right");
  model.Node("Reshape", {"b", "s"}, {"y"}, "reshapes");
  model.Output("y");
  model.Output("a");
  const Graph graph = model.Read();
  const OnnxSplit split(model.Bytes(), "test.onnx", {}, graph);
  std::vector<std::string> op_of;
  for (const OpId op : split.op()) op_of.emplace_back(graph.op_name(op));
  EXPECT_THAT(op_of, ElementsAre("left", "left", "right", "reshapes"));
}

TEST(OnnxSplit, KeepsABodyWholeAndFeedsItWhatItCaptures) {
  TestOnnxModel model;
  model.Input("x", {4});
  model.Input("flag", {}, onnx::TensorProto::BOOL);
  Floats(model.Weight("w", {4}), 4);
  model.Node("Relu", {"x"}, {"a"}, "before");
  auto& branch = model.Node("If", {"flag"}, {"y"}, "decides");
  for (const char* name : {"then_branch", "else_branch"}) {
    TestOnnxGraph body(SetBody(branch, name));
    body.Node("Add", {"a", "w"}, {std::string("sum_") + name}, std::string("adds_") + name);
    body.Output(std::string("sum_") + name);
  }
  model.Output("y");
  const Divided divided = Divide(model, 1);
  EXPECT_THAT(divided.parts[1].inputs, UnorderedElementsAre("a", "flag"));
  EXPECT_THAT(divided.Weights(1), ElementsAre("w")) << "a body reads it";
  EXPECT_THAT(divided.Weights(0), IsEmpty());
}

TEST(OnnxSplit, LeavesOutWhatNobodyUses) {
  TestOnnxModel model = TwoLayers();
  model.Node("Relu", {"a"}, {"nobody"}, "dead");
  const OnnxSplit split(model.Bytes(), "test.onnx", {}, model.Read());
  EXPECT_EQ(split.op().size(), 4u);
}

TEST(OnnxSplit, ListsWeightsAmongTheInputsWhereTheFileDoes) {
  TestOnnxModel model = TwoLayers();
  model.model().set_ir_version(3);
  model.Input("w", {4, 4});
  const Divided divided = Divide(model, 2);
  EXPECT_THAT(divided.parts[1].inputs, ElementsAre("b")) << "nobody feeds a weight";
  ASSERT_EQ(divided.models[1].graph().input_size(), 2);
  EXPECT_EQ(divided.models[1].graph().input(1).name(), "w");
}

TEST(OnnxSplit, RefusesWhatCannotBeHandedOverOrIsNotThere) {
  TestOnnxModel sequence;
  sequence.Input("x", {4});
  sequence.Node("SequenceConstruct", {"x", "x"}, {"s"});
  sequence.Node("ConcatFromSequence", {"s"}, {"y"});
  SetInt(*sequence.proto().mutable_node(1), "axis", 0);
  sequence.Output("y");
  const auto error_of = [](const TestOnnxModel& model) {
    try {
      Divide(model, 1);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(error_of(sequence), HasSubstr("tensor 's' would go from one part to another"));
  TestOnnxModel stripped = TwoLayers();
  stripped.proto().mutable_initializer(0)->clear_float_data();
  EXPECT_THAT(error_of(stripped), HasSubstr("weight 'w' has no data"));
  for (const char* location : {"/etc/passwd", "../secret", "a/../../secret", ""}) {
    TestOnnxModel outside = TwoLayers();
    auto& tensor = *outside.proto().mutable_initializer(0);
    tensor.clear_float_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& entry = *tensor.add_external_data();
    entry.set_key("location");
    entry.set_value(location);
    EXPECT_THAT(error_of(outside), HasSubstr("a file in the model's folder was expected")) << location;
  }
}

TEST(OnnxSplit, CopiesWeightsOfOtherFilesOnceAndToPages) {
  const std::string folder = ::testing::TempDir() + "/berth_onnx_split";
  std::filesystem::create_directories(folder);
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += static_cast<char>(i);
  std::ofstream(folder + "/data", std::ios::binary) << bytes;
  TestOnnxModel model = TwoLayers();
  model.Node("MatMul", {"x", "w"}, {"beside"}, "in_the_first_part");
  model.Node("Add", {"y", "beside"}, {"z"}, "last");
  model.Output("z");
  int64_t offset = 10;
  for (auto& tensor : *model.proto().mutable_initializer()) {
    tensor.clear_float_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>("location", "data"),
                                     {"offset", std::to_string(offset)},
                                     {"length", "64"}}) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    offset += 70;
  }
  const std::string path = folder + "/model.onnx";
  OnnxSplit split(model.Bytes(), path, {}, ReadOnnx(model.Bytes(), path, {}));
  ASSERT_EQ(split.op().size(), 6u);
  const auto parts = split.Divide(std::vector<std::vector<int32_t>>{{0, 1}, {2, 3, 4, 5}}, "moved");
  EXPECT_TRUE(split.has_stored_weights());
  split.CopyWeights(folder + "/moved");
  std::ifstream in(folder + "/moved", std::ios::binary);
  const std::string moved((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(moved.size(), 4096u + 64u);
  for (const OnnxPart& part : parts) {
    onnx::ModelProto read;
    ASSERT_TRUE(read.ParseFromString(part.model));
    for (const auto& tensor : read.graph().initializer()) {
      EXPECT_EQ(tensor.external_data(0).value(), "moved");
      const size_t at = std::stoul(tensor.external_data(1).value());
      EXPECT_EQ(at % 4096, 0u);
      EXPECT_EQ(moved.substr(at, 64), bytes.substr(tensor.name() == "w" ? 10 : 80, 64));
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace berth
