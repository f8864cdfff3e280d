// What is no model, or a broken one: one line that names the file and the place, never a crash.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "import/onnx_test_model.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::string MessageFor(const std::string& content) {
  try {
    ReadOnnx(content, "bad.onnx", {});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string MessageFor(const TestOnnxModel& model) { return MessageFor(model.Bytes()); }

// A convolution, a reshape, shape arithmetic and a loop: a bit of everything, small.
TestOnnxModel EverythingModel() {
  TestOnnxModel model;
  model.Input("x", {"batch", 3, 16, 16});
  model.Weight("filter", {8, 3, 3, 3});
  onnx::NodeProto& conv = model.Node("Conv", {"x", "filter"}, {"c"}, "conv");
  SetInts(conv, "strides", {2, 2});
  SetInts(conv, "pads", {1, 1, 1, 1});
  onnx::NodeProto& pool = model.Node("MaxPool", {"c"}, {"p"}, "pool");
  SetInts(pool, "kernel_shape", {2, 2});
  SetInts(pool, "strides", {2, 2});
  model.Node("Shape", {"p"}, {"shape"});
  model.Ints("begin", {0});
  model.Ints("end", {1});
  model.Node("Slice", {"shape", "begin", "end"}, {"batch"});
  model.Ints("rest", {-1});
  SetInt(model.Node("Concat", {"batch", "rest"}, {"target"}), "axis", 0);
  model.Node("Reshape", {"p", "target"}, {"flat"}, "reshape");
  model.Weight("w", {128, 128});
  SetInt(model.Node("Gemm", {"flat", "w"}, {"g"}, "gemm"), "transB", 1);
  SetInt(model.Node("Split", {"g"}, {"s", "t"}, "split"), "axis", 1);
  model.Int("rounds", 3);
  onnx::NodeProto& loop = model.Node("Loop", {"rounds", "", "s"}, {"y"}, "loop");
  TestOnnxGraph body(SetBody(loop, "body"));
  body.Input("i", {}, onnx::TensorProto::INT64);
  body.Input("go", {}, onnx::TensorProto::BOOL);
  body.Input("state", {1, 64});
  body.Node("Add", {"state", "t"}, {"next"});
  body.Node("Identity", {"go"}, {"still"});
  body.Output("still");
  body.Output("next");
  onnx::NodeProto& lstm = model.Node("LSTM", {"z", "lw", "lr"}, {"l"}, "lstm");
  SetInt(lstm, "hidden_size", 8);
  model.Weight("lw", {1, 32, 64});
  model.Weight("lr", {1, 32, 8});
  model.Ints("axes", {0});
  model.Node("Unsqueeze", {"y", "axes"}, {"z"}, "unsqueeze");
  model.Output("l");
  return model;
}

TEST(ImportOnnxHostile, WhatIsNoModelIsSaidSo) {
  EXPECT_THAT(MessageFor(""), AllOf(HasSubstr("bad.onnx"), HasSubstr("empty")));
  EXPECT_THAT(MessageFor("hello, this is text\n"), HasSubstr("bad.onnx: is no ONNX model"));
  EXPECT_THAT(MessageFor(std::string(1000, '\0')), HasSubstr("bad.onnx: is no ONNX model"));
  EXPECT_THAT(MessageFor(onnx::ModelProto().SerializeAsString() + "\x08\x07"), HasSubstr("no graph"));
  const std::string whole = EverythingModel().Bytes();
  EXPECT_EQ(MessageFor(whole), "no error");
  for (size_t size = 1; size < whole.size(); size += 7) {
    EXPECT_THAT(MessageFor(whole.substr(0, size)), HasSubstr("bad.onnx")) << "cut after " << size;
  }
}

TEST(ImportOnnxHostile, CyclesNameTheirNodes) {
  TestOnnxModel model;
  model.Input("x", {4});
  model.Node("Add", {"x", "c"}, {"a"}, "first");
  model.Node("Relu", {"a"}, {"b"}, "second");
  model.Node("Relu", {"b"}, {"c"}, "third");
  model.Output("c");
  EXPECT_THAT(MessageFor(model), AllOf(HasSubstr("cycle of 3"), HasSubstr("first -> second -> third -> first")));
}

TEST(ImportOnnxHostile, NamesMustHaveOneMaker) {
  TestOnnxModel twice;
  twice.Input("x", {4});
  twice.Node("Relu", {"x"}, {"y"}, "one");
  twice.Node("Relu", {"x"}, {"y"}, "two");
  twice.Output("y");
  EXPECT_THAT(MessageFor(twice), AllOf(HasSubstr("'two'"), HasSubstr("'y'")));

  TestOnnxModel input;
  input.Input("x", {4});
  input.Node("Relu", {"x"}, {"x"}, "self");
  EXPECT_THAT(MessageFor(input), HasSubstr("'x'"));

  TestOnnxModel weight;
  weight.Input("x", {4});
  weight.Weight("w", {4});
  weight.Weight("w", {4});
  weight.Node("Add", {"x", "w"}, {"y"});
  EXPECT_THAT(MessageFor(weight), HasSubstr("'w' is made twice"));

  TestOnnxModel nobody;
  nobody.Input("x", {4});
  nobody.Node("Add", {"x", "ghost"}, {"y"}, "add");
  nobody.Output("y");
  EXPECT_THAT(MessageFor(nobody), AllOf(HasSubstr("node 'add' (Add)"), HasSubstr("'ghost'")));

  TestOnnxModel output;
  output.Input("x", {4});
  output.Node("Relu", {"x"}, {"y"});
  output.Output("ghost");
  EXPECT_THAT(MessageFor(output), HasSubstr("'ghost'"));
}

TEST(ImportOnnxHostile, SizesThatCannotBe) {
  const auto with_input = [](const TestOnnxGraph::Shape& shape) {
    TestOnnxModel model;
    model.Input("x", shape);
    model.Node("Relu", {"x"}, {"y"});
    model.Output("y");
    return MessageFor(model);
  };
  EXPECT_THAT(with_input({-3, 4}), AllOf(HasSubstr("input 'x'"), HasSubstr("negative")));
  EXPECT_THAT(with_input({INT64_MAX, INT64_MAX}), HasSubstr("input 'x'"));
  EXPECT_THAT(with_input({INT64_MAX}), HasSubstr("input 'x'"));
  EXPECT_THAT(with_input({int64_t{1} << 45}), HasSubstr("64 TiB"));
  EXPECT_EQ(with_input({int64_t{1} << 44}), "no error");  // exactly that
  EXPECT_THAT(with_input({(int64_t{1} << 44) + 1}), HasSubstr("64 TiB"));

  TestOnnxModel grows;
  grows.Input("x", {1 << 20});
  grows.Ints("times", {INT64_MAX});
  grows.Node("Tile", {"x", "times"}, {"y"}, "tile");
  grows.Output("y");
  EXPECT_THAT(MessageFor(grows), HasSubstr("'tile'"));

  TestOnnxModel many;
  many.Input("x", {int64_t{1} << 43});
  std::vector<std::string> outputs(1 << 18);
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = std::to_string(i);
  many.Node("Mystery", {"x"}, outputs);
  many.Output("0");
  EXPECT_THAT(MessageFor(many), HasSubstr("2^63"));

  TestOnnxModel sequence;
  sequence.Input("x", {int64_t{1} << 43});
  sequence.Node("SequenceConstruct", {"x", "x", "x"}, {"xs"}, "together");
  sequence.Node("ConcatFromSequence", {"xs"}, {"y"});
  sequence.Output("y");
  EXPECT_THAT(MessageFor(sequence), AllOf(HasSubstr("'together'"),
                                          HasSubstr("a sequence of 3 tensors that are larger than 64 TiB together")));

  TestOnnxModel data;
  data.Input("x", {4});
  data.Weight("w", {4}).set_raw_data("abc");
  data.Node("Add", {"x", "w"}, {"y"});
  EXPECT_THAT(MessageFor(data), AllOf(HasSubstr("initializer 'w'"), HasSubstr("damaged")));
}

TEST(ImportOnnxHostile, AttributesThatCannotBe) {
  for (const char* name : {"strides", "dilations", "kernel_shape"}) {
    for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
      TestOnnxModel model;
      model.Input("x", {1, 3, 8, 8});
      onnx::NodeProto& pool = model.Node("MaxPool", {"x"}, {"y"}, "pool");
      SetInts(pool, name, {value, value});
      if (name != std::string("kernel_shape")) SetInts(pool, "kernel_shape", {2, 2});
      model.Output("y");
      EXPECT_THAT(MessageFor(model), AllOf(HasSubstr("'pool'"), Not(HasSubstr("no error")))) << name << " " << value;
    }
  }
  TestOnnxModel depth;
  depth.Input("x", {1, 4, 2, 2});
  SetInt(depth.Node("DepthToSpace", {"x"}, {"y"}, "node"), "blocksize", 0);
  depth.Output("y");
  EXPECT_THAT(MessageFor(depth), HasSubstr("blocksize"));
}

TEST(ImportOnnxHostile, BlocksOfSpaceAreOfFourDimensions) {
  for (const char* type : {"DepthToSpace", "SpaceToDepth"}) {
    TestOnnxModel model;
    onnx::TensorProto& data = model.Weight("w", {1, 4, 2, 2, 1}, onnx::TensorProto::INT64);
    for (int64_t value = 0; value < 16; ++value) data.add_int64_data(value);
    SetInt(model.Node(type, {"w"}, {"y"}, "blocks"), "blocksize", 2);
    model.Input("x", {1});
    model.Node("Add", {"x", "y"}, {"z"});
    model.Output("z");
    const std::vector<std::string> notes = model.Read().notes();
    EXPECT_THAT(notes, Contains(AllOf(HasSubstr("contradict each other"), HasSubstr("has no four dimensions"))));
  }
}

TEST(ImportOnnxHostile, AResizeOfNoAxesLeavesAllSizes) {
  TestOnnxModel model(18);
  model.Input("x", {2, 3});
  model.Ints("none", {});
  onnx::NodeProto& resize = model.Node("Resize", {"x", "", "", "none"}, {"y"});
  SetInts(resize, "axes", {});
  onnx::AttributeProto& policy = *resize.add_attribute();
  policy.set_name("keep_aspect_ratio_policy");
  policy.set_type(onnx::AttributeProto::STRING);
  policy.set_s("not_larger");
  model.Node("Relu", {"y"}, {"z"}, "relu");
  model.Output("z");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.work(FindOp(graph, "relu")).flops, 6);
}

TEST(ImportOnnxHostile, ATransposedConvolutionLargerThanSizesCanBe) {
  constexpr int64_t kHuge = int64_t{1} << 31;
  TestOnnxModel model;
  model.Input("x", {1, 1, 2 * kHuge});
  model.Weight("w", {1, 1, 1});
  onnx::NodeProto& node = model.Node("ConvTranspose", {"x", "w"}, {"y"}, "turned");
  SetInts(node, "strides", {kHuge});
  SetInts(node, "output_padding", {kHuge});
  model.Output("y");
  EXPECT_THAT(MessageFor(model), AllOf(HasSubstr("'turned'"), Not(HasSubstr("no error"))));
}

TEST(ImportOnnxHostile, ASequenceOfSequencesIsRefused) {
  TestOnnxModel model(17);
  model.Input("x", {8, 2});
  model.Node("SplitToSequence", {"x"}, {"xs"});
  onnx::NodeProto& map = model.Node("SequenceMap", {"xs"}, {"ys"}, "map");
  TestOnnxGraph body(SetBody(map, "body"));
  body.Input("one", {1, 2});
  body.Node("Identity", {"xs"}, {"all"});
  body.Output("all");
  model.Node("SequenceLength", {"ys"}, {"n"});
  model.Output("n");
  EXPECT_THAT(MessageFor(model), AllOf(HasSubstr("'map'"), HasSubstr("output 0 of its body is a sequence")));
}

// Of the domain "mine", with one input `a` and one output.
onnx::FunctionProto& AddFunction(TestOnnxModel& model, const std::string& name, const std::string& output) {
  onnx::FunctionProto& function = *model.model().add_functions();
  function.set_name(name);
  function.set_domain("mine");
  function.add_input("a");
  function.add_output(output);
  return function;
}

TEST(ImportOnnxHostile, ALongAttributeThatAFunctionUsesOftenIsRefused) {
  TestOnnxModel model(16, 8);
  model.Input("x", {4});
  onnx::NodeProto& call = model.Node("often", {"x"}, {"y"});
  call.set_domain("mine");
  onnx::AttributeProto& given = *call.add_attribute();
  given.set_name("text");
  given.set_type(onnx::AttributeProto::STRING);
  given.set_s(std::string(1'000'000, 'x'));
  model.Output("y");
  onnx::FunctionProto& function = AddFunction(model, "often", "b");
  function.add_attribute("text");
  for (int i = 0; i < 5'000; ++i) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type("Constant");
    node.add_output(i == 0 ? "b" : "c" + std::to_string(i));
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("value_string");
    attribute.set_ref_attr_name("text");
    attribute.set_type(onnx::AttributeProto::STRING);
  }
  EXPECT_THAT(MessageFor(model), HasSubstr("its functions expand to more than 4"));
}

// The name of a call is a part of each name within.
TEST(ImportOnnxHostile, ALongNameOfACallIsRefused) {
  TestOnnxModel model(16, 8);
  model.Input("x", {4});
  model.Node("long", {"x"}, {"y"}, std::string(100'000'000, 'n')).set_domain("mine");
  model.Output("y");
  onnx::FunctionProto& function = AddFunction(model, "long", "b");
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type("Split");
  node.add_input("a");
  for (int i = 0; i < 60; ++i) node.add_output(i == 0 ? "b" : "c" + std::to_string(i));
  EXPECT_THAT(MessageFor(model), HasSubstr("its functions expand to more than 4"));
}

// Each doubles the one before.
TEST(ImportOnnxHostile, FunctionsThatMultiplyWhatTheyHoldAreRefused) {
  TestOnnxModel model(16, 8);
  model.Input("x", {4});
  model.Node("f20", {"x"}, {"y"}).set_domain("mine");
  model.Output("y");
  for (int level = 0; level <= 20; ++level) {
    onnx::FunctionProto& function = AddFunction(model, "f" + std::to_string(level), "c");
    for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c")}) {
      onnx::NodeProto& node = *function.add_node();
      node.set_op_type(level == 0 ? "Relu" : "f" + std::to_string(level - 1));
      if (level > 0) node.set_domain("mine");
      node.add_input(from);
      node.add_output(to);
    }
    if (level == 0) function.set_doc_string(std::string(10'000, 'x'));
  }
  EXPECT_THAT(MessageFor(model), HasSubstr("its functions expand to more than 4"));
}

TEST(ImportOnnxHostile, AConstantWhoseDeclaredShapeHasAnotherRankIsNotFolded) {
  TestOnnxModel model;
  model.Input("x", {3, 3});
  model.Ints("numbers", {4, 3, 2, 1});
  model.Ints("two_ks", {1, 2});  // a rule can only estimate how many are picked
  model.Node("TopK", {"numbers", "two_ks"}, {"values", "places"});
  model.Info("values", {3, 3});
  model.Info("places", {3, 3});
  model.Node("Add", {"x", "values"}, {"y"});
  model.Output("y");
  EXPECT_EQ(model.Read().num_ops(), 1u);
}

TEST(ImportOnnxHostile, NothingToPlaceIsSaidSo) {
  TestOnnxModel model;
  model.Weight("w", {4});
  model.Node("Identity", {"w"}, {"y"});
  model.Output("y");
  EXPECT_THAT(MessageFor(model), HasSubstr("nothing to place"));
}

TEST(ImportOnnxHostile, BodiesWithinBodiesEnd) {
  TestOnnxModel model;
  model.Input("x", {4});
  model.Input("choose", {}, onnx::TensorProto::BOOL);
  onnx::GraphProto* graph = &model.proto();
  for (int depth = 0; depth < 200; ++depth) {
    TestOnnxGraph scope(*graph);
    const std::string name = "y" + std::to_string(depth);
    onnx::NodeProto& node = scope.Node("If", {"choose"}, {name});
    scope.Output(name);
    SetBody(node, "else_branch");
    graph = &SetBody(node, "then_branch");
  }
  EXPECT_THAT(MessageFor(model), HasSubstr("bad.onnx"));
}

// One mutation: a byte changed, a piece dropped, doubled or moved.
void Mutate(std::string& bytes, Random& random) {
  const size_t at = random.Below(bytes.size()), length = std::min(1 + random.Below(12), bytes.size() - at);
  switch (random.Below(5)) {
    case 0:
      bytes[at] = static_cast<char>(random.Below(256));
      break;
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
      break;
    case 2:
      bytes.erase(at, std::min(length, bytes.size() - 1));
      break;
    case 3:
      bytes.insert(random.Below(bytes.size()), bytes.substr(at, length));
      break;
    default:
      bytes.replace(at, length, std::string(length, '\xff'));
      break;
  }
}

// One mutation that keeps the file well-formed: a number or a name somewhere in a node is another one.
void MutateNode(onnx::GraphProto& graph, Random& random) {
  constexpr int64_t kNumbers[] = {0, 1, -1, 2, 3, 7, -2, 64, 1 << 20, int64_t{1} << 40, INT64_MAX, INT64_MIN};
  const auto number = [&] { return kNumbers[random.Below(std::size(kNumbers))]; };
  onnx::NodeProto& node = *graph.mutable_node(static_cast<int>(random.Below(static_cast<size_t>(graph.node_size()))));
  switch (random.Below(6)) {
    case 0:
      if (node.attribute_size() > 0) {
        onnx::AttributeProto& attribute =
            *node.mutable_attribute(static_cast<int>(random.Below(static_cast<size_t>(node.attribute_size()))));
        if (attribute.ints_size() > 0)
          attribute.set_ints(static_cast<int>(random.Below(static_cast<size_t>(attribute.ints_size()))), number());
        if (attribute.has_i()) attribute.set_i(number());
        if (random.Chance(0.3)) attribute.add_ints(number());
      }
      break;
    case 1:
      if (graph.initializer_size() > 0) {
        onnx::TensorProto& tensor =
            *graph.mutable_initializer(static_cast<int>(random.Below(static_cast<size_t>(graph.initializer_size()))));
        if (tensor.dims_size() > 0)
          tensor.set_dims(static_cast<int>(random.Below(static_cast<size_t>(tensor.dims_size()))), number());
        if (tensor.int64_data_size() > 0) tensor.set_int64_data(0, number());
        if (random.Chance(0.2)) tensor.add_dims(number());
        if (random.Chance(0.2)) tensor.set_data_type(static_cast<int32_t>(random.Below(30)));
      }
      break;
    case 2:
      if (node.input_size() > 0) {
        const onnx::NodeProto& other =
            graph.node(static_cast<int>(random.Below(static_cast<size_t>(graph.node_size()))));
        if (other.output_size() > 0)
          node.set_input(static_cast<int>(random.Below(static_cast<size_t>(node.input_size()))), other.output(0));
      }
      break;
    case 3: {
      constexpr const char* kTypes[] = {"Conv",
                                        "MatMul",
                                        "Gemm",
                                        "Reshape",
                                        "Split",
                                        "Slice",
                                        "Concat",
                                        "Gather",
                                        "LSTM",
                                        "GRU",
                                        "Resize",
                                        "Pad",
                                        "Expand",
                                        "Tile",
                                        "TopK",
                                        "OneHot",
                                        "Range",
                                        "ConvTranspose",
                                        "Einsum",
                                        "ScatterND",
                                        "GatherND",
                                        "GatherElements",
                                        "DepthToSpace",
                                        "SpaceToDepth",
                                        "Upsample",
                                        "MaxPool",
                                        "MaxUnpool",
                                        "AveragePool",
                                        "BatchNormalization",
                                        "Flatten",
                                        "Squeeze",
                                        "Transpose",
                                        "ReduceSum",
                                        "ArgMax",
                                        "NonMaxSuppression",
                                        "RoiAlign",
                                        "MaxRoiPool",
                                        "QLinearConv",
                                        "QLinearMatMul",
                                        "ConvInteger",
                                        "MatMulInteger",
                                        "CumSum",
                                        "EyeLike",
                                        "Multinomial",
                                        "Compress",
                                        "Unique",
                                        "Where",
                                        "Attention",
                                        "SkipLayerNormalization",
                                        "If",
                                        "Loop",
                                        "Scan",
                                        "GridSample",
                                        "STFT",
                                        "DFT",
                                        "MelWeightMatrix",
                                        "SequenceConstruct",
                                        "SequenceAt",
                                        "SplitToSequence",
                                        "ConcatFromSequence",
                                        "Optional",
                                        "StringNormalizer",
                                        "TfIdfVectorizer",
                                        "Det",
                                        "InstanceNormalization",
                                        "Dropout",
                                        "Shape",
                                        "Size",
                                        "ConstantOfShape",
                                        "Constant",
                                        "RandomNormalLike",
                                        "NegativeLogLikelihoodLoss",
                                        "SoftmaxCrossEntropyLoss",
                                        "Momentum"};
      node.set_op_type(kTypes[random.Below(std::size(kTypes))]);
      break;
    }
    case 4:
      if (random.Chance(0.5)) {
        node.add_output("extra" + std::to_string(random.Below(1000)));
      } else if (node.input_size() > 0) {
        node.mutable_input()->RemoveLast();
      }
      break;
    default:
      if (graph.input_size() > 0) {
        auto* shape = graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
        if (shape->dim_size() > 0 && random.Chance(0.7)) {
          shape->mutable_dim(static_cast<int>(random.Below(static_cast<size_t>(shape->dim_size()))))
              ->set_dim_value(number());
        } else {
          shape->add_dim()->set_dim_value(number());
        }
      }
      break;
  }
}

// Anything but an Error fails: what a mutated model is read as does not matter.
void ReadOrRefuse(const std::string& bytes) {
  try {
    ReadOnnx(bytes, "mutated.onnx", {});
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("mutated.onnx"));
  }
}

constexpr int kRounds = 400;

TEST(ImportOnnxHostile, DamagedBytesGiveAnErrorOrAGraph) {
  const std::string whole = EverythingModel().Bytes();
  Random random(1);
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = whole;
    for (size_t k = 1 + random.Below(3); k > 0; --k) Mutate(bytes, random);
    ReadOrRefuse(bytes);
  }
}

TEST(ImportOnnxHostile, WrongNumbersAndNamesGiveAnErrorOrAGraph) {
  const std::string whole = EverythingModel().Bytes();
  Random random(2);
  for (int round = 0; round < kRounds; ++round) {
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(whole));
    for (size_t k = 1 + random.Below(4); k > 0; --k) MutateNode(*model.mutable_graph(), random);
    ReadOrRefuse(model.SerializeAsString());
  }
}

}  // namespace
}  // namespace berth
