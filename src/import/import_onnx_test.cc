#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "import/onnx_shapes.h"
#include "import/onnx_test_model.h"

namespace berth {
namespace {

using onnx::TensorProto;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int64_t Bytes(const Graph& graph, std::string_view tensor) {
  for (const TensorId id : graph.tensors()) {
    if (graph.tensor_name(id) == tensor) return graph.tensor_bytes(id);
  }
  throw std::out_of_range(std::string(tensor));
}

std::vector<std::string> OpNames(const Graph& graph) {
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.num_ops(); ++i) names.emplace_back(graph.op_name(graph.op_at_file_position(i)));
  return names;
}

ImportOptions At(std::string_view shape) {
  ImportOptions options;
  ParseShape(shape, options);
  return options;
}

// --- Weights -----------------------------------------------------------------------------------------------

TEST(ImportOnnx, InitialisersAmongTheInputsAreParametersAsInIrVersion3) {
  TestOnnxModel model(9, 3);
  model.Input("x", {1, 4});
  model.Input("w", {4, 8});
  model.Weight("w", {4, 8});
  model.Node("MatMul", {"x", "w"}, {"y"}, "product");
  model.Output("y");
  const Graph graph = model.Read();
  ASSERT_EQ(graph.num_inputs(), 1u);
  EXPECT_EQ(graph.input_bytes(InputId{0}), 16);
  ASSERT_EQ(graph.num_parameters(), 1u);
  EXPECT_EQ(graph.parameter_name(ParameterId{0}), "w");
  EXPECT_EQ(graph.parameter_bytes(ParameterId{0}), 128);
  const OpWork& work = graph.work(OpId{0});
  EXPECT_EQ(work.flops, 2 * 4 * 8);
  EXPECT_EQ(work.bytes_read, 16 + 128);
  EXPECT_EQ(work.bytes_written, 32);
  EXPECT_EQ(work.op_class, OpClass::kMatMul);
  EXPECT_THAT(graph.notes(), IsEmpty());
}

TEST(ImportOnnx, AWeightIsOneParameterHoweverManyOpsUseItUnderHoweverManyNames) {
  TestOnnxModel model;
  model.Input("x", {2, 4});
  model.Weight("w", {4, 4});
  model.Node("Identity", {"w"}, {"alias"});
  SetInts(model.Node("Transpose", {"alias"}, {"turned"}), "perm", {1, 0});
  model.Node("MatMul", {"x", "w"}, {"a"});
  model.Node("MatMul", {"a", "alias"}, {"b"});
  model.Node("MatMul", {"b", "turned"}, {"c"});
  model.Output("c");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.num_ops(), 3u);
  ASSERT_EQ(graph.num_parameters(), 1u);
  EXPECT_EQ(graph.parameter_name(ParameterId{0}), "w");
  EXPECT_EQ(graph.total_parameter_bytes(), 64);
  EXPECT_EQ(graph.parameter_consumers(ParameterId{0}).size(), 3u);
}

TEST(ImportOnnx, ConstantsOfAnyKindBecomeParametersAtTheSizeThatIsStored) {
  TestOnnxModel model;
  model.Input("x", {1, 64});
  model.Ints("shape", {64, 64});
  model.Node("ConstantOfShape", {"shape"}, {"filled"});
  model.Weight("small", {64, 64}, TensorProto::INT8);
  model.Weight("scale", {});
  model.Node("DequantizeLinear", {"small", "scale"}, {"wide"});
  model.Weight("half", {64, 64}, TensorProto::FLOAT16);
  SetInt(model.Node("Cast", {"half"}, {"single"}), "to", TensorProto::FLOAT);
  model.Node("MatMul", {"x", "filled"}, {"a"});
  model.Node("MatMul", {"a", "wide"}, {"b"});
  model.Node("MatMul", {"b", "single"}, {"c"});
  model.Output("c");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.num_ops(), 3u);
  ASSERT_EQ(graph.num_parameters(), 3u);
  EXPECT_EQ(graph.parameter_bytes(ParameterId{0}), 4 * 64 * 64);
  EXPECT_EQ(graph.parameter_bytes(ParameterId{1}), 64 * 64) << "the eight-bit weight is what lies in memory";
  EXPECT_EQ(graph.parameter_bytes(ParameterId{2}), 4 * 64 * 64);
}

TEST(ImportOnnx, ExternalDataNeedNotBeThere) {
  TestOnnxModel model;
  model.Input("x", {1, 1024});
  TensorProto& weight = model.Weight("w", {1024, 4096}, TensorProto::FLOAT16);
  weight.set_data_location(TensorProto::EXTERNAL);
  auto* entry = weight.add_external_data();
  entry->set_key("location");
  entry->set_value("nowhere.bin");
  SetInt(model.Node("Cast", {"x"}, {"h"}), "to", TensorProto::FLOAT16);
  model.Node("MatMul", {"h", "w"}, {"y"}, "product");
  model.Output("y");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.total_parameter_bytes(), 2 * 1024 * 4096);
  EXPECT_EQ(graph.work(FindOp(graph, "product")).data_type, DataType::kF16);
  EXPECT_EQ(Bytes(graph, "y"), 2 * 4096);
  EXPECT_THAT(graph.notes(), ::testing::Contains(::testing::HasSubstr("weights file nowhere.bin is missing")));
}

TEST(ImportOnnx, ATableIsReadOnlyWhereItIsLookedUp) {
  TestOnnxModel model;
  model.Input("ids", {1, 16}, TensorProto::INT64);
  model.Weight("table", {50000, 256});
  model.Node("Gather", {"table", "ids"}, {"rows"}, "lookup");
  model.Output("rows");
  const Graph graph = model.Read();
  const OpWork& work = graph.work(OpId{0});
  EXPECT_EQ(work.bytes_written, 16 * 256 * 4);
  EXPECT_EQ(work.bytes_read, 16 * 256 * 4 + 16 * 8);
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(graph.total_parameter_bytes(), 50000 * 256 * 4);
}

TEST(ImportOnnx, EightBitOperandsComputeInEightBits) {
  TestOnnxModel model;
  model.Input("x", {1, 64}, TensorProto::INT8);
  model.Weight("scale", {});
  model.Weight("w", {64, 64}, TensorProto::INT8);
  model.Node("DequantizeLinear", {"x", "scale"}, {"xf"});
  model.Node("DequantizeLinear", {"w", "scale"}, {"wf"});
  model.Node("MatMul", {"xf", "wf"}, {"y"}, "product");
  model.Node("MatMul", {"y", "wf"}, {"z"}, "mixed");
  model.Output("z");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.work(FindOp(graph, "product")).data_type, DataType::kI8);
  EXPECT_EQ(graph.work(FindOp(graph, "mixed")).data_type, DataType::kF32);
}

// --- Folding -----------------------------------------------------------------------------------------------

TEST(ImportOnnx, ShapeArithmeticIsFoldedAway) {
  TestOnnxModel model;
  model.Input("x", {"batch", 12, 64});
  model.Node("Shape", {"x"}, {"shape"});
  model.Int("zero", 0);
  model.Node("Gather", {"shape", "zero"}, {"batch"});
  model.Ints("axes", {0});
  model.Node("Unsqueeze", {"batch", "axes"}, {"first"});
  model.Ints("two", {2});
  model.Ints("rest", {384});
  model.Node("Mul", {"first", "two"}, {"doubled"});
  SetInt(model.Node("Concat", {"doubled", "rest"}, {"target"}), "axis", 0);
  model.Node("Reshape", {"x", "target"}, {"y"}, "reshape");
  model.Output("y");
  const Graph graph = model.Read(At("x=5,12,64"));
  EXPECT_THAT(OpNames(graph), ElementsAre("reshape"));
  EXPECT_EQ(Bytes(graph, "y"), 10 * 384 * 4);
  EXPECT_EQ(graph.num_parameters(), 0u) << "a shape is no weight";
  EXPECT_EQ(graph.work(OpId{0}).bytes_read, 0) << "a view moves nothing";
  EXPECT_THAT(graph.notes(), IsEmpty());
}

TEST(ImportOnnx, WhatIsOnlyAskedForItsShapeNeverRuns) {
  TestOnnxModel model;
  model.Input("x", {4, 8});
  model.Node("Relu", {"x"}, {"unused"}, "dead");
  model.Node("Shape", {"unused"}, {"shape"});
  model.Node("Reshape", {"x", "shape"}, {"y"}, "reshape");
  model.Output("y");
  EXPECT_THAT(OpNames(model.Read()), ElementsAre("reshape"));
}

TEST(ImportOnnx, RandomOpsAreNoConstants) {
  TestOnnxModel model;
  model.Input("x", {4});
  SetInts(model.Node("RandomNormal", {}, {"noise"}, "noise"), "shape", {4});
  model.Node("Add", {"x", "noise"}, {"y"}, "add");
  model.Output("y");
  EXPECT_THAT(OpNames(model.Read()), ElementsAre("noise", "add"));
}

TEST(ImportOnnx, NodesOutOfOrderKeepTheirPositionsInTheFile) {
  TestOnnxModel model;
  model.Input("x", {4});
  model.Node("Relu", {"b"}, {"c"}, "third");
  model.Node("Relu", {"x"}, {"a"}, "first");
  model.Node("Relu", {"a"}, {"b"}, "second");
  model.Output("c");
  const Graph graph = model.Read();
  EXPECT_THAT(OpNames(graph), ElementsAre("third", "first", "second"));
  EXPECT_EQ(graph.op_name(OpId{0}), "first");
}

TEST(ImportOnnx, NamesAreKeptAndGivenToTheAnonymous) {
  TestOnnxModel model;
  model.Input("x", {4});
  model.Node("Relu", {"x"}, {"a"});
  model.Node("Relu", {"a"}, {"b"}, "same");
  model.Node("Relu", {"b"}, {"c"}, "same");
  model.Output("c");
  model.Output("a");
  const Graph graph = model.Read();
  EXPECT_THAT(OpNames(graph), ElementsAre("Relu_0", "same", "same#2"));
  EXPECT_EQ(graph.name(), "test");
  EXPECT_TRUE(graph.is_output(TensorId{0}));
  EXPECT_FALSE(graph.is_output(TensorId{1}));
  EXPECT_TRUE(graph.is_output(TensorId{2}));
}

TEST(ImportOnnx, ARecurrentLayerKnowsItsSteps) {
  TestOnnxModel model;
  model.Input("x", {5, 2, 8});
  model.Weight("w", {2, 64, 8});
  model.Weight("r", {2, 64, 16});
  model.Node("LSTM", {"x", "w", "r"}, {"y"});
  model.Output("y");
  EXPECT_EQ(model.Read().work(OpId{0}).steps, 10) << "5 in each direction";
}

// --- Control flow ------------------------------------------------------------------------------------------

TEST(ImportOnnx, ALoopIsOneOpThatCountsItsBodyOncePerRound) {
  TestOnnxModel model;
  model.Input("x", {1, 8});
  model.Weight("w", {8, 8});
  model.Int("rounds", 10);
  onnx::NodeProto& loop = model.Node("Loop", {"rounds", "", "x"}, {"last", "all"}, "loop");
  TestOnnxGraph body(SetBody(loop, "body"));
  body.Input("i", {}, TensorProto::INT64);
  body.Input("go", {}, TensorProto::BOOL);
  body.Input("state", {1, 8});
  body.Node("MatMul", {"state", "w"}, {"next"});
  body.Node("Identity", {"go"}, {"still"});
  body.Output("still");
  body.Output("next");
  body.Output("next");
  model.Output("all");
  const Graph graph = model.Read();
  ASSERT_EQ(graph.num_ops(), 1u);
  EXPECT_EQ(graph.op_type(OpId{0}), "Loop");
  EXPECT_EQ(graph.work(OpId{0}).flops, 10 * 2 * 8 * 8);
  EXPECT_EQ(graph.work(OpId{0}).steps, 10);
  EXPECT_EQ(graph.work(OpId{0}).op_class, OpClass::kMatMul);
  EXPECT_EQ(Bytes(graph, "last"), 32);
  EXPECT_EQ(Bytes(graph, "all"), 320);
  ASSERT_EQ(graph.num_parameters(), 1u) << "the weight that the body captures";
  EXPECT_EQ(graph.parameters_of(OpId{0}).size(), 1u);
  EXPECT_THAT(graph.notes(), IsEmpty());
}

TEST(ImportOnnx, ALoopOfUnknownLengthCountsOneRoundAndSaysSo) {
  TestOnnxModel model;
  model.Input("x", {1, 8});
  model.Input("rounds", {}, TensorProto::INT64);
  onnx::NodeProto& loop = model.Node("Loop", {"rounds", "", "x"}, {"y"}, "loop");
  TestOnnxGraph body(SetBody(loop, "body"));
  body.Input("i", {}, TensorProto::INT64);
  body.Input("go", {}, TensorProto::BOOL);
  body.Input("state", {1, 8});
  body.Node("Relu", {"state"}, {"next"});
  body.Node("Identity", {"go"}, {"still"});
  body.Output("still");
  body.Output("next");
  model.Output("y");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.work(OpId{0}).flops, 8);
  EXPECT_THAT(graph.notes(), ElementsAre(HasSubstr("counted as 1")));
}

TEST(ImportOnnx, AnIfCountsTheBranchThatComputesMoreAndUsesWhatBothCapture) {
  TestOnnxModel model;
  model.Input("choose", {}, TensorProto::BOOL);
  model.Input("x", {1, 8});
  model.Node("Relu", {"x"}, {"r"}, "before");
  onnx::NodeProto& node = model.Node("If", {"choose"}, {"y"}, "if");
  TestOnnxGraph then_branch(SetBody(node, "then_branch")), else_branch(SetBody(node, "else_branch"));
  then_branch.Weight("big", {8, 100});
  then_branch.Node("MatMul", {"r", "big"}, {"t"});
  then_branch.Output("t");
  else_branch.Weight("small", {8, 10});
  else_branch.Node("MatMul", {"r", "small"}, {"e"});
  else_branch.Output("e");
  model.Output("y");
  const Graph graph = model.Read();
  ASSERT_EQ(graph.num_ops(), 2u);
  const OpId op = FindOp(graph, "if");
  EXPECT_EQ(graph.work(op).flops, 2 * 8 * 100);
  EXPECT_EQ(graph.inputs_of(op).size(), 1u);
  EXPECT_EQ(graph.parameters_of(op).size(), 2u);
  EXPECT_EQ(Bytes(graph, "y"), 400);
  EXPECT_THAT(graph.notes(), ElementsAre(HasSubstr("branch")));
}

TEST(ImportOnnx, AScanCountsItsBodyOncePerElement) {
  TestOnnxModel model;
  model.Input("start", {8});
  model.Input("sequence", {7, 8});
  onnx::NodeProto& scan = model.Node("Scan", {"start", "sequence"}, {"last", "sums"}, "scan");
  SetInt(scan, "num_scan_inputs", 1);
  TestOnnxGraph body(SetBody(scan, "body"));
  body.Input("sum", {8});
  body.Input("element", {8});
  body.Node("Add", {"sum", "element"}, {"next"});
  body.Output("next");
  body.Output("next");
  model.Output("sums");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.work(OpId{0}).flops, 7 * 8);
  EXPECT_EQ(Bytes(graph, "last"), 32);
  EXPECT_EQ(Bytes(graph, "sums"), 7 * 32);
}

TEST(ImportOnnx, FunctionsOfTheFileAreInlined) {
  TestOnnxModel model(16, 8);
  model.Input("x", {4});
  model.Node("Twice", {"x"}, {"y"}, "call").set_domain("mine");
  model.Node("Twice", {"y"}, {"z"}).set_domain("mine");
  model.Output("z");
  onnx::FunctionProto& function = *model.model().add_functions();
  function.set_name("Twice");
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("c");
  for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c")}) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type("Relu");
    node.set_name(to);
    node.add_input(from);
    node.add_output(to);
  }
  const Graph graph = model.Read();
  EXPECT_THAT(OpNames(graph), ElementsAre("call/b", "call/c", "Twice_1/b", "Twice_1/c"));
  EXPECT_EQ(graph.total_flops(), 16);

  function.mutable_node(0)->set_op_type("Twice");
  function.mutable_node(0)->set_domain("mine");
  EXPECT_THROW(model.Read(), Error) << "a function that calls itself";
}

// It reads the caller's tensors, whose names the function may use for others, and its own attributes are the caller's.
TEST(ImportOnnx, AGraphThatACallGivesToAFunctionKeepsItsNames) {
  TestOnnxModel model(16, 8);
  model.Input("choose", {}, TensorProto::BOOL);
  model.Input("a", {1, 8});
  onnx::NodeProto& call = model.Node("Either", {"choose"}, {"y"}, "call");
  call.set_domain("mine");
  TestOnnxGraph body(SetBody(call, "body"));
  body.Weight("weight", {8, 10});
  onnx::NodeProto& product = body.Node("MatMul", {"a", "weight"}, {"t"});
  body.Output("t");
  model.Output("y");
  onnx::FunctionProto& function = *model.model().add_functions();
  function.set_name("Either");
  function.set_domain("mine");
  function.add_input("a");
  function.add_output("c");
  function.add_attribute("body");
  onnx::NodeProto& either = *function.add_node();
  either.set_op_type("If");
  either.set_name("if");
  either.add_input("a");
  either.add_output("c");
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& attribute = *either.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    attribute.set_ref_attr_name("body");
  }
  const Graph graph = model.Read();
  EXPECT_EQ(graph.work(FindOp(graph, "call/if")).flops, 2 * 8 * 10);

  onnx::AttributeProto& endless = *product.add_attribute();
  endless.set_name("body");
  endless.set_type(onnx::AttributeProto::GRAPH);
  endless.set_ref_attr_name("body");
  EXPECT_EQ(model.Read().num_ops(), 1U) << "what refers to the caller's attribute is not the function's";
}

TEST(ImportOnnx, ASparseWeightInABranchOfAFunctionKeepsItsReaders) {
  TestOnnxModel model(16, 8);
  model.Input("choose", {}, TensorProto::BOOL);
  model.Input("x", {1, 8});
  model.Node("Either", {"choose", "x"}, {"y"}, "call").set_domain("mine");
  model.Output("y");
  onnx::FunctionProto& function = *model.model().add_functions();
  function.set_name("Either");
  function.set_domain("mine");
  for (const char* input : {"a", "b"}) function.add_input(input);
  function.add_output("c");
  onnx::NodeProto& either = *function.add_node();
  either.set_op_type("If");
  either.set_name("if");
  either.add_input("a");
  either.add_output("c");
  for (const char* name : {"then_branch", "else_branch"}) {
    TestOnnxGraph branch(SetBody(either, name));
    onnx::SparseTensorProto& sparse = *branch.proto().add_sparse_initializer();
    sparse.mutable_values()->set_name("weight");
    sparse.mutable_values()->set_data_type(TensorProto::FLOAT);
    sparse.mutable_values()->add_dims(0);
    sparse.mutable_indices()->set_data_type(TensorProto::INT64);
    sparse.mutable_indices()->add_dims(0);
    for (const int64_t dim : {8, 10}) sparse.add_dims(dim);
    branch.Node("MatMul", {"b", "weight"}, {"t"});
    branch.Output("t");
  }
  const Graph graph = model.Read();
  EXPECT_EQ(graph.work(FindOp(graph, "call/if")).flops, 2 * 8 * 10);
}

// --- Sizes -------------------------------------------------------------------------------------------------

TEST(ImportOnnx, OpenSizesAreOneAndNotedUnlessAskedFor) {
  TestOnnxModel model;
  model.Input("a", {"batch", "length", 8});
  model.Input("b", {"batch", "length", 8});
  model.Node("Add", {"a", "b"}, {"y"});
  model.Output("y");
  const Graph one = model.Read();
  EXPECT_EQ(one.total_flops(), 8);
  EXPECT_THAT(one.notes(), ElementsAre(HasSubstr("--shape")));
  const Graph more = model.Read(At("a=4,16,8"));
  EXPECT_EQ(more.total_flops(), 4 * 16 * 8) << "a symbol is the same number everywhere";
  EXPECT_THAT(more.notes(), IsEmpty());
  ImportOptions contradiction = At("a=4,16,8");
  ParseShape("b=5,16,8", contradiction);
  EXPECT_THROW(model.Read(contradiction), Error);
}

TEST(ImportOnnx, ShapeReplacesFixedSizesAndFixedReshapesFollow) {
  TestOnnxModel model;
  model.Input("x", {1, 128, 96});
  model.Ints("apart", {1, 128, 4, 24});
  model.Ints("merged", {128, 96});
  model.Ints("flat", {1, -1});
  model.Node("Reshape", {"x", "apart"}, {"heads"});
  SetInts(model.Node("Transpose", {"heads"}, {"turned"}), "perm", {0, 2, 1, 3});
  model.Node("MatMul", {"turned", "other"}, {"scores"});
  SetInts(model.Node("Transpose", {"heads"}, {"other"}), "perm", {0, 2, 3, 1});
  model.Node("Reshape", {"x", "merged"}, {"rows"});
  model.Weight("w", {96, 10});
  model.Node("MatMul", {"rows", "w"}, {"logits"});
  model.Node("Reshape", {"x", "flat"}, {"long"});
  for (const char* output : {"scores", "logits", "long"}) model.Output(output);

  const Graph batch = model.Read(At("x=32,128,96"));
  EXPECT_EQ(Bytes(batch, "scores"), 32 * 4 * 128 * 128 * 4);
  EXPECT_EQ(Bytes(batch, "logits"), 32 * 128 * 10 * 4);
  EXPECT_EQ(Bytes(batch, "long"), 32 * 128 * 96 * 4);
  EXPECT_THAT(batch.notes(), ElementsAre(HasSubstr("follow the sizes asked for")));
  const Graph longer = model.Read(At("x=2,512,96"));
  EXPECT_EQ(Bytes(longer, "scores"), 2 * 4 * 512 * 512 * 4);
}

TEST(ImportOnnx, ConstantsWrittenAtTheFilesBatchGiveWay) {
  TestOnnxModel model;
  model.Input("x", {64, 16});
  model.Weight("state", {64, 16});
  SetInt(model.Node("Concat", {"x", "state"}, {"both"}), "axis", 1);
  model.Node("Mul", {"x", "state"}, {"scaled"});
  model.Output("both");
  model.Output("scaled");
  const Graph graph = model.Read(At("x=256,16"));
  EXPECT_EQ(Bytes(graph, "both"), 256 * 32 * 4);
  EXPECT_EQ(Bytes(graph, "scaled"), 256 * 16 * 4);
  EXPECT_THAT(graph.notes(), ElementsAre(HasSubstr("constants")));
}

TEST(ImportOnnx, SizesThatDoNotGoTogetherAreAMistake) {
  TestOnnxModel model;
  model.Input("x", {4, 8});
  model.Weight("w", {8, 3});
  model.Node("MatMul", {"x", "w"}, {"y"}, "product");
  model.Output("y");
  try {
    model.Read(At("x=4,9"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("test.onnx: node 'product' (MatMul)"));
  }
  EXPECT_THROW(model.Read(At("z=4,8")), Error);
  EXPECT_THROW(model.Read(At("x=4,8,1")), Error);
}

// --- Newer files and unknown ops ---------------------------------------------------------------------------

TEST(ImportOnnx, ReadsWhatItCanOfNewerFilesAndSaysSo) {
  TestOnnxModel model(kNewestOpset + 1, kNewestIrVersion + 1);
  model.Input("x", {2, 16, 64});
  model.Weight("scale", {64});
  model.Ints("axes", {-1});
  model.Node("RMSNormalization", {"x", "scale"}, {"n"}, "norm");
  model.Node("Gelu", {"n"}, {"g"}, "gelu");
  SetInt(model.Node("ReduceMean", {"g", "axes"}, {"m"}, "mean"), "keepdims", 0);
  SetInt(model.Node("Split", {"g"}, {"s", "t", "u"}, "split"), "num_outputs", 3);
  model.Output("m");
  model.Output("s");
  model.Output("u");
  const Graph graph = model.Read();
  EXPECT_EQ(Bytes(graph, "g"), 2 * 16 * 64 * 4);
  EXPECT_EQ(Bytes(graph, "m"), 2 * 16 * 4) << "axes are an input since opset 18";
  EXPECT_EQ(graph.work(FindOp(graph, "norm")).flops, 4 * 2 * 16 * 64);
  EXPECT_THAT(graph.notes(), ElementsAre(AllOf(HasSubstr("opset 29"), HasSubstr("IR version 15"))));
}

TEST(ImportOnnx, AnUnknownOpIsCostedByItsBytes) {
  TestOnnxModel model;
  model.Input("x", {16});
  model.Weight("w", {4});
  model.Node("Mystery", {"x", "w"}, {"y"}, "odd").set_domain("some.where");
  model.Node("Relu", {"y"}, {"z"});
  model.Output("z");
  const Graph graph = model.Read();
  const OpWork& work = graph.work(FindOp(graph, "odd"));
  EXPECT_TRUE(work.bytes_only);
  EXPECT_EQ(work.bytes_read, 64 + 16);
  EXPECT_EQ(work.bytes_written, 64) << "as large as its input, for want of better";
  EXPECT_EQ(graph.op_type(FindOp(graph, "odd")), "some.where.Mystery");
  EXPECT_THAT(graph.notes(), Contains(HasSubstr("shapes that are not known")));

  model.Info("y", {3, 5});
  EXPECT_EQ(Bytes(model.Read(), "y"), 60) << "the file's own word is better";
}

TEST(ImportOnnx, SizesThatOnlyTheDataDecideAreTheLargestPossible) {
  TestOnnxModel model;
  model.Input("x", {10, 20});
  model.Node("NonZero", {"x"}, {"where"});
  model.Output("where");
  const Graph graph = model.Read();
  EXPECT_EQ(Bytes(graph, "where"), 2 * 200 * 8);
  EXPECT_THAT(graph.notes(), ElementsAre(HasSubstr("the most there can be")));
  EXPECT_EQ(graph.work(OpId{0}).sizes, Certainty::kEstimated);
}

// As ONNX Runtime's optimiser writes GPT-2: one new token, and the keys and values of 127 before it.
TEST(ImportOnnx, PackedAttentionReadsWhatCameBefore) {
  TestOnnxModel model;
  model.Input("x", {1, 1, 768});
  model.Input("past", {2, 1, 12, 127, 64});
  model.Weight("w", {768, 2304});
  model.Weight("b", {2304});
  onnx::NodeProto& node = model.Node("Attention", {"x", "w", "b", "", "past"}, {"y", "present"}, "attention");
  node.set_domain("com.microsoft");
  SetInt(node, "num_heads", 12);
  model.Output("y");
  model.Output("present");
  const Graph graph = model.Read();
  EXPECT_EQ(Bytes(graph, "present"), 2 * 12 * 128 * 64 * 4);
  EXPECT_EQ(graph.total_flops(), 2.0 * 768 * 2304 + 12 * 128 * (2 * 64 + 5 + 2 * 64));
}

TEST(ImportOnnx, AttentionCountsScoresAndValues) {
  TestOnnxModel model(23, 11);
  for (const char* name : {"q", "k", "v"}) model.Input(name, {2, 8, 128, 64});
  model.Node("Attention", {"q", "k", "v"}, {"y"}, "attention");
  model.Output("y");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.total_flops(), 2.0 * 8 * 128 * 128 * (2 * 64 + 5 + 2 * 64));
  EXPECT_EQ(Bytes(graph, "y"), 2 * 8 * 128 * 64 * 4);
}

}  // namespace
}  // namespace berth
