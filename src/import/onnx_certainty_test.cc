// What is known of a model's sizes, what its data decide, and what is guessed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "import/onnx_test_model.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<int64_t> ShapeOf(const Graph& graph, std::string_view tensor) {
  for (const TensorId id : graph.tensors()) {
    if (graph.tensor_name(id) != tensor) continue;
    const auto shape = graph.tensor_shape(id);
    return {shape.begin(), shape.end()};
  }
  throw std::out_of_range(std::string(tensor));
}

Certainty SizesOf(const Graph& graph, std::string_view op) { return graph.work(FindOp(graph, op)).sizes; }

std::string MessageFor(const TestOnnxModel& model, const ImportOptions& options) {
  try {
    model.Read(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// --- Sizes that the file leaves open -----------------------------------------------------------------------

TEST(OnnxCertainty, AnOpenBatchIsOneSampleAndAnyOtherOpenSizeAGuess) {
  TestOnnxModel model;
  model.Input("images", {"batch", 3, 8, 8});
  model.Node("Relu", {"images"}, {"a"}, "of_images");
  model.Input("ids", {"s0", "s1"});
  model.Node("Relu", {"ids"}, {"b"}, "of_ids");
  model.Input("mask", {4, "s0"});  // the symbol of a batch, elsewhere
  model.Node("Relu", {"mask"}, {"c"}, "of_mask");
  for (const char* output : {"a", "b", "c"}) model.Output(output);
  const Graph open = model.Read({});
  EXPECT_EQ(SizesOf(open, "of_images"), Certainty::kKnown);
  EXPECT_EQ(SizesOf(open, "of_ids"), Certainty::kUnknown);
  EXPECT_EQ(SizesOf(open, "of_mask"), Certainty::kKnown);
  const Graph told = model.Read({.shapes = {{"ids", {1, 16}}}});
  EXPECT_EQ(SizesOf(told, "of_ids"), Certainty::kKnown);
  EXPECT_THAT(ShapeOf(told, "b"), ElementsAre(1, 16));
}

// --- Computed paddings -------------------------------------------------------------------------------------

// As the older exporter writes F.pad: numbers per axis from the last to the first, as rows of two, turned around.
void AddComputedPad(TestOnnxModel& model, const std::string& input, const std::string& output) {
  model.Ints("given", {0, 1, 0, 2});
  model.Ints("zeros", {0, 0, 0, 0});
  SetInt(model.Node("Concat", {"given", "zeros"}, {"all"}), "axis", 0);
  model.Ints("rows", {-1, 2});
  model.Node("Reshape", {"all", "rows"}, {"pairs"});
  model.Ints("last", {-1});
  model.Ints("before_first", {-9223372036854775807});
  model.Ints("axis0", {0});
  model.Ints("back", {-1});
  model.Node("Slice", {"pairs", "last", "before_first", "axis0", "back"}, {"turned"});
  SetInts(model.Node("Transpose", {"turned"}, {"columns"}), "perm", {1, 0});
  model.Ints("flat", {-1});
  model.Node("Reshape", {"columns", "flat"}, {"pads"});
  model.Node("Pad", {input, "pads"}, {output}, "pad");
}

TEST(OnnxCertainty, APaddingThatIsComputedIsKnown) {
  TestOnnxModel model;
  model.Input("x", {1, 3, 8, 8});
  AddComputedPad(model, "x", "y");
  model.Output("y");
  const Graph graph = model.Read();
  EXPECT_THAT(ShapeOf(graph, "y"), ElementsAre(1, 3, 10, 9));
  EXPECT_EQ(SizesOf(graph, "pad"), Certainty::kKnown);
  EXPECT_THAT(graph.notes(), IsEmpty());
}

// --- Guesses -----------------------------------------------------------------------------------------------

// A padding that only a run can tell, and everything behind it.
TestOnnxModel WithGuess() {
  TestOnnxModel model;
  model.Input("x", {1, 3, 8, 8});
  model.Input("pads", {8}, onnx::TensorProto::INT64);
  model.Node("Relu", {"x"}, {"a"}, "before");
  model.Node("Pad", {"a", "pads"}, {"b"}, "pad");
  model.Node("Shape", {"b"}, {"shape"});
  model.Weight("f", {4, 3, 3, 3});
  model.Node("Conv", {"b", "f"}, {"c"}, "conv");
  model.Ints("flat", {-1});
  model.Node("Reshape", {"c", "flat"}, {"d"}, "flatten");
  model.Node("Expand", {"e", "shape"}, {"g"}, "expand");
  model.Input("e", {1});
  model.Output("d");
  model.Output("g");
  return model;
}

TEST(OnnxCertainty, WhatFollowsFromAGuessIsAGuessToTheEnd) {
  const Graph graph = WithGuess().Read();
  EXPECT_THAT(ShapeOf(graph, "b"), ElementsAre(1, 3, 8, 8)) << "a padding hardly changes a size";
  EXPECT_EQ(SizesOf(graph, "before"), Certainty::kKnown);
  for (const char* op : {"pad", "conv", "flatten", "expand"}) EXPECT_EQ(SizesOf(graph, op), Certainty::kUnknown) << op;
  EXPECT_THAT(graph.notes(), ElementsAre(AllOf(HasSubstr("guessed: b (Pad)"), Not(HasSubstr("Conv")))));
}

TEST(OnnxCertainty, WhatContradictsAGuessIsNoMistakeOfTheFiles) {
  TestOnnxModel model = WithGuess();
  // A window that does not fit into what was guessed, and an index outside of it.
  model.Weight("wide", {4, 4, 30, 30});
  model.Node("Conv", {"c", "wide"}, {"h"}, "wide_conv");
  model.Int("far", 30);
  model.Node("Shape", {"h"}, {"h_shape"});
  model.Node("Gather", {"h_shape", "far"}, {"size"});
  model.Ints("axes", {0});
  model.Node("Unsqueeze", {"size", "axes"}, {"sizes"});
  model.Node("Expand", {"e", "sizes"}, {"k"}, "other");
  model.Output("h");
  model.Output("k");
  const Graph graph = model.Read();
  EXPECT_EQ(SizesOf(graph, "wide_conv"), Certainty::kUnknown);
  EXPECT_EQ(SizesOf(graph, "other"), Certainty::kUnknown);
  EXPECT_THAT(graph.notes(), Contains(HasSubstr("does not fit into 6")));
}

// Neither is more credible than the other: the sizes, or what the file records of the op that they do not allow.
TEST(OnnxCertainty, WhereSizesContradictEachOtherTheFilesRecordIsAGuess) {
  TestOnnxModel product;
  product.Input("x", {2, 4});
  product.Weight("w", {5, 3});
  product.Node("Relu", {"x"}, {"a"}, "before");
  product.Node("MatMul", {"a", "w"}, {"y"}, "product");
  product.Node("Relu", {"y"}, {"z"}, "after");
  product.Info("y", {2, 3});
  product.Output("z");
  const Graph graph = product.Read();
  EXPECT_THAT(ShapeOf(graph, "y"), ElementsAre(2, 3));
  EXPECT_EQ(SizesOf(graph, "before"), Certainty::kKnown);
  EXPECT_EQ(SizesOf(graph, "product"), Certainty::kUnknown);
  EXPECT_EQ(SizesOf(graph, "after"), Certainty::kUnknown);
  EXPECT_THAT(graph.notes(),
              ElementsAre(AllOf(HasSubstr("contradict each other"), HasSubstr("4 columns meet 5 rows"))));

  TestOnnxModel filter;
  filter.Input("x", {1, 3, 8, 8});
  filter.Weight("f", {4, 2, 3, 3});
  filter.Node("Conv", {"x", "f"}, {"y"}, "conv");
  filter.Info("y", {1, 4, 6, 6});
  filter.Output("y");
  const Graph filtered = filter.Read();
  EXPECT_EQ(SizesOf(filtered, "conv"), Certainty::kUnknown);
  EXPECT_THAT(filtered.notes(), ElementsAre(HasSubstr("its filter is for 2 channels")));

  // Without a record too.
  TestOnnxModel sum;
  sum.Input("x", {2, 4});
  sum.Input("y", {2, 3});
  sum.Node("Add", {"x", "y"}, {"z"}, "sum");
  sum.Output("z");
  const Graph summed = sum.Read();
  EXPECT_EQ(SizesOf(summed, "sum"), Certainty::kUnknown);
  EXPECT_THAT(summed.notes(), ElementsAre(HasSubstr("sizes 4 and 3 do not go together")));
}

TEST(OnnxCertainty, TheFilesOwnRecordIsASecondOpinion) {
  TestOnnxModel model = WithGuess();
  model.Info("b", {1, 3, 12, 12});
  const Graph graph = model.Read();
  EXPECT_THAT(ShapeOf(graph, "c"), ElementsAre(1, 4, 10, 10));
  for (const OpId op : graph.ops()) EXPECT_EQ(graph.work(op).sizes, Certainty::kKnown) << graph.op_name(op);
  EXPECT_THAT(graph.notes(), ElementsAre(HasSubstr("taken from the file's own record: b")));

  TestOnnxModel wrong;
  wrong.Input("x", {2, 4});
  wrong.Node("Relu", {"x"}, {"y"});
  wrong.Node("Relu", {"y"}, {"z"});
  wrong.Info("y", {3, 4});
  wrong.Output("z");
  const Graph computed = wrong.Read();
  EXPECT_THAT(ShapeOf(computed, "y"), ElementsAre(2, 4));
  EXPECT_THAT(computed.notes(), ElementsAre(HasSubstr("y ([2,4] instead of [3,4])")));
}

TEST(OnnxCertainty, ALoopOfUnknownLengthIsAGuess) {
  TestOnnxModel model;
  model.Input("x", {4});
  model.Input("rounds", {}, onnx::TensorProto::INT64);
  onnx::NodeProto& loop = model.Node("Loop", {"rounds", "", "x"}, {"y"}, "loop");
  TestOnnxGraph body(SetBody(loop, "body"));
  body.Input("i", {}, onnx::TensorProto::INT64);
  body.Input("go", {}, onnx::TensorProto::BOOL);
  body.Input("state", {4});
  body.Node("Exp", {"state"}, {"next"});
  body.Node("Identity", {"go"}, {"still"});
  body.Output("still");
  body.Output("next");
  model.Output("y");
  EXPECT_EQ(SizesOf(model.Read(), "loop"), Certainty::kUnknown);
}

TEST(OnnxCertainty, ALoopThatARunMayLeaveEarlyIsEstimated) {
  for (const bool leaves : {true, false}) {
    TestOnnxModel model;
    model.Input("x", {4});
    model.Int("rounds", 10);
    onnx::NodeProto& loop = model.Node("Loop", {"rounds", "", "x"}, {"y", "all"}, "loop");
    TestOnnxGraph body(SetBody(loop, "body"));
    body.Input("i", {}, onnx::TensorProto::INT64);
    body.Input("go", {}, onnx::TensorProto::BOOL);
    body.Input("state", {4});
    body.Node("Exp", {"state"}, {"next"});
    body.Node("Identity", {"go"}, {"on"});
    SetInt(body.Node("ReduceMax", {"next"}, {"largest"}), "keepdims", 0);
    body.Node("IsNaN", {"largest"}, {"lost"});
    body.Node("Not", {"lost"}, {"fine"});
    body.Output(leaves ? "fine" : "on");
    body.Output("next");
    body.Output("next");
    model.Output("y");
    model.Output("all");
    const Graph graph = model.Read();
    EXPECT_THAT(ShapeOf(graph, "all"), ElementsAre(10, 4));
    EXPECT_EQ(SizesOf(graph, "loop"), leaves ? Certainty::kEstimated : Certainty::kKnown);
    EXPECT_EQ(graph.notes().size(), leaves ? 1 : 0);
  }
}

// --- Sizes that a run's data decide ------------------------------------------------------------------------

TEST(OnnxCertainty, WhatFollowsFromSizesThatTheDataDecideIsEstimated) {
  TestOnnxModel model;
  model.Input("x", {6, 5});
  model.Node("NonZero", {"x"}, {"where"}, "where");
  SetInts(model.Node("Transpose", {"where"}, {"rows"}, "rows"), "perm", {1, 0});
  model.Node("GatherND", {"x", "rows"}, {"picked"}, "picked");
  model.Node("Relu", {"x"}, {"y"}, "relu");
  model.Output("picked");
  model.Output("y");
  const Graph graph = model.Read();
  EXPECT_THAT(ShapeOf(graph, "picked"), ElementsAre(30));
  for (const char* op : {"where", "rows", "picked"}) EXPECT_EQ(SizesOf(graph, op), Certainty::kEstimated) << op;
  EXPECT_EQ(SizesOf(graph, "relu"), Certainty::kKnown);
}

TEST(OnnxCertainty, ASliceThatOnlyARunCanTellIsAtMostTheWhole) {
  TestOnnxModel model;
  model.Input("x", {16, 4});
  model.Input("length", {1}, onnx::TensorProto::INT64);
  model.Ints("zero", {0});
  model.Node("Slice", {"x", "zero", "length"}, {"y"}, "slice");
  model.Output("y");
  const Graph graph = model.Read();
  EXPECT_THAT(ShapeOf(graph, "y"), ElementsAre(16, 4));
  EXPECT_EQ(SizesOf(graph, "slice"), Certainty::kEstimated);
}

// Tokens x 16 features, the two best of eight experts for each; one expert's part. `of_mask` makes what NonZero reads.
template <typename Mask>
Graph OneExpert(const Mask& of_mask) {
  TestOnnxModel model(18, 8);
  model.Input("x", {64, 16});
  model.Weight("router", {16, 8});
  model.Node("MatMul", {"x", "router"}, {"scores"});
  model.Ints("two", {2});
  model.Node("TopK", {"scores", "two"}, {"best", "chosen"}, "top");
  of_mask(model);
  model.Node("NonZero", {"mask"}, {"where"}, "where");
  model.Int("row", 0);
  SetInt(model.Node("Gather", {"where", "row"}, {"tokens"}, "tokens"), "axis", 0);
  model.Node("Gather", {"x", "tokens"}, {"own"}, "own");
  model.Weight("w", {16, 32});
  model.Node("MatMul", {"own", "w"}, {"h"}, "expert");
  model.Output("h");
  return model.Read();
}

TEST(OnnxCertainty, AnExpertGetsTheTokensThatItGetsOnAverage) {
  const Graph equal = OneExpert([](TestOnnxModel& model) {
    model.Int("third", 3);
    model.Node("Equal", {"chosen", "third"}, {"mask"});
  });
  EXPECT_THAT(ShapeOf(equal, "h"), ElementsAre(16, 32)) << "64 tokens, 2 of 8 experts each";
  EXPECT_EQ(SizesOf(equal, "expert"), Certainty::kEstimated);
  EXPECT_THAT(equal.notes(), ElementsAre(HasSubstr("on average")));

  const Graph one_hot = OneExpert([](TestOnnxModel& model) {
    model.Int("depth", 8);
    model.Ints("values", {0, 1});
    SetInt(model.Node("OneHot", {"chosen", "depth", "values"}, {"hot"}), "axis", -1);
    SetInts(model.Node("Transpose", {"hot"}, {"by_expert"}), "perm", {2, 0, 1});
    model.Int("third", 3);
    SetInt(model.Node("Gather", {"by_expert", "third"}, {"mask"}), "axis", 0);
  });
  EXPECT_THAT(ShapeOf(one_hot, "h"), ElementsAre(16, 32));

  const Graph any = OneExpert([](TestOnnxModel& model) {
    model.Int("third", 3);
    model.Node("Equal", {"chosen", "third"}, {"same"});
    SetInt(model.Node("Cast", {"same"}, {"numbers"}), "to", onnx::TensorProto::INT64);
    model.Ints("axes", {1});
    SetInt(model.Node("ReduceMax", {"numbers", "axes"}, {"mask"}), "keepdims", 0);
  });
  EXPECT_THAT(ShapeOf(any, "h"), ElementsAre(16, 32));

  const Graph scattered = OneExpert([](TestOnnxModel& model) {
    model.Ints("shape", {64, 8});
    model.Node("ConstantOfShape", {"shape"}, {"zeros"});
    model.Ints("of_chosen", {64, 2});
    model.Node("ConstantOfShape", {"of_chosen"}, {"ones"});
    SetInt(model.Node("ScatterElements", {"zeros", "chosen", "ones"}, {"all"}), "axis", 1);
    model.Int("third", 3);
    SetInt(model.Node("Gather", {"all", "third"}, {"mask"}), "axis", 1);
  });
  EXPECT_THAT(ShapeOf(scattered, "h"), ElementsAre(16, 32));
}

// --- Branches and sequences --------------------------------------------------------------------------------

TEST(OnnxCertainty, AnIfThatIsDecidedIsItsBranch) {
  TestOnnxModel model;
  model.Input("x", {1, 8});
  model.Node("Shape", {"x"}, {"shape"});
  model.Int("first", 0);
  model.Node("Gather", {"shape", "first"}, {"size"});
  model.Int("one", 1);
  model.Node("Equal", {"size", "one"}, {"single"});
  onnx::NodeProto& node = model.Node("If", {"single"}, {"y"}, "choose");
  TestOnnxGraph yes(SetBody(node, "then_branch")), no(SetBody(node, "else_branch"));
  yes.Ints("axes", {0});
  yes.Node("Squeeze", {"x", "axes"}, {"inner"}, "squeeze");
  yes.Node("Exp", {"inner"}, {"squeezed"}, "exp");
  yes.Output("squeezed");
  no.Node("Identity", {"x"}, {"same"});
  no.Output("same");
  model.Node("Relu", {"y"}, {"z"}, "relu");
  model.Output("z");
  const Graph graph = model.Read();
  EXPECT_THAT(ShapeOf(graph, "z"), ElementsAre(8));
  EXPECT_EQ(graph.num_ops(), 3u);
  EXPECT_EQ(SizesOf(graph, "exp"), Certainty::kKnown);
  EXPECT_EQ(graph.tensor_name(graph.inputs_of(FindOp(graph, "relu"))[0]), "y") << "by the name that the file gives it";
  EXPECT_THAT(graph.notes(), IsEmpty());
}

TEST(OnnxCertainty, ABranchThatHandsOnWhatItIsGivenMakesNoOp) {
  TestOnnxModel model;
  model.Input("x", {4});
  model.Node("Exp", {"x"}, {"a"}, "exp");
  model.Weight("yes", {}, onnx::TensorProto::BOOL).add_int32_data(1);
  onnx::NodeProto& node = model.Node("If", {"yes"}, {"y"}, "choose");
  TestOnnxGraph yes(SetBody(node, "then_branch")), no(SetBody(node, "else_branch"));
  yes.Output("a");
  no.Output("a");
  model.Node("Relu", {"y"}, {"z"}, "relu");
  model.Output("z");
  const Graph graph = model.Read();
  EXPECT_EQ(graph.num_ops(), 2u);
  EXPECT_EQ(graph.producer(graph.inputs_of(FindOp(graph, "relu"))[0]), FindOp(graph, "exp"));
}

TEST(OnnxCertainty, SequencesKeepTheShapesOfTheirElements) {
  TestOnnxModel model;
  model.Input("x", {6, 4});
  model.Ints("parts", {1, 2, 3});
  SetInt(model.Node("SplitToSequence", {"x", "parts"}, {"s"}, "split"), "axis", 0);
  model.Int("last", -1);
  model.Node("SequenceAt", {"s", "last"}, {"third"}, "at");
  model.Node("SequenceInsert", {"s", "third"}, {"longer"}, "insert");
  SetInt(model.Node("ConcatFromSequence", {"longer"}, {"all"}, "concat"), "axis", 0);
  model.Node("SequenceLength", {"longer"}, {"count"});
  model.Ints("axes", {0});
  model.Node("Unsqueeze", {"count", "axes"}, {"counts"});
  model.Weight("w", {1});
  model.Node("Expand", {"w", "counts"}, {"ones"});
  model.Node("Add", {"ones", "all4"}, {"y"}, "add");
  model.Ints("zero", {0});
  model.Ints("four", {4});
  model.Node("Slice", {"all", "zero", "four", "axis1"}, {"all4"});
  model.Ints("axis1", {1});
  model.Output("y");
  const Graph graph = model.Read();
  EXPECT_THAT(ShapeOf(graph, "third"), ElementsAre(3, 4));
  EXPECT_THAT(ShapeOf(graph, "all"), ElementsAre(9, 4));
  EXPECT_THAT(ShapeOf(graph, "y"), ElementsAre(9, 4)) << "there are four";
  for (const OpId op : graph.ops()) EXPECT_EQ(graph.work(op).sizes, Certainty::kKnown) << graph.op_name(op);
  EXPECT_EQ(graph.tensor_bytes(MakeId<TensorId>(graph.first_output(FindOp(graph, "split")))), 6 * 4 * 4);
}

// --- Sizes that are asked for ------------------------------------------------------------------------------

TEST(OnnxCertainty, AShapeThatContradictsTheGraphIsTheUsersMistake) {
  TestOnnxModel model;
  model.Input("image", {1, 3, 8, 8});
  model.Weight("f", {4, 3, 3, 3});
  model.Node("Conv", {"image", "f"}, {"c"}, "stem");
  model.Output("c");
  EXPECT_THAT(MessageFor(model, {.shapes = {{"image", {1, 64, 8, 8}}}}),
              AllOf(HasSubstr("'stem'"), HasSubstr("for 3 channels"), HasSubstr("--shape")));
  EXPECT_EQ(MessageFor(model, {.shapes = {{"image", {5, 3, 16, 16}}}}), "no error");
}

TEST(OnnxCertainty, ABatchGoesToEveryInputThatPlainlyHasOne) {
  TestOnnxModel model;
  model.Input("image", {1, 3, 8, 8});
  model.Input("ids", {1, 16}, onnx::TensorProto::INT64);
  model.Input("table", {30, 8});
  model.Node("Gather", {"table", "ids"}, {"e"}, "look");
  model.Node("Relu", {"image"}, {"r"}, "relu");
  model.Output("e");
  model.Output("r");
  const Graph graph = model.Read({.batch = 8});
  EXPECT_THAT(ShapeOf(graph, "e"), ElementsAre(8, 16, 8));
  EXPECT_THAT(ShapeOf(graph, "r"), ElementsAre(8, 3, 8, 8));
  EXPECT_THAT(graph.notes(), ElementsAre(AllOf(HasSubstr("--batch leaves"), HasSubstr(": table"))));
  EXPECT_THAT(graph.input_shape(InputId{0}), ElementsAre(8, 3, 8, 8));
  EXPECT_EQ(graph.input_type(InputId{1}), "int64");
}

TEST(OnnxCertainty, ASymbolThatNamesTheBatchSaysWhereItIs) {
  TestOnnxModel model;
  model.Input("frames", {"time", "batch_size", 20});
  model.Input("mask", {1, 20});
  model.Node("Add", {"frames", "mask"}, {"y"}, "add");
  model.Output("y");
  const Graph graph = model.Read({.batch = 8});
  EXPECT_THAT(ShapeOf(graph, "y"), ElementsAre(1, 8, 20));
  EXPECT_THAT(graph.notes(), Contains(HasSubstr("--batch leaves as they are (set them with --shape): mask")));
  EXPECT_THAT(graph.notes(),
              Contains(HasSubstr("taken as 1 (set them with --shape, the batch with --batch): time of frames")));

  EXPECT_THAT(MessageFor(model, {.shapes = {{"frames", {50, 4, 20}}, {"mask", {1, 20}}}, .batch = 8}),
              HasSubstr("every input of test.onnx has a --shape of its own"));
  const Graph both = model.Read({.shapes = {{"frames", {50, 4, 20}}}, .batch = 8});
  EXPECT_THAT(ShapeOf(both, "y"), ElementsAre(50, 4, 20)) << "a shape that is given is the last word";
}

TEST(OnnxCertainty, ABatchThatNoInputPlainlyHasIsAMistake) {
  TestOnnxModel model;
  model.Input("x", {35, 64});
  model.Node("Relu", {"x"}, {"y"});
  model.Output("y");
  EXPECT_THAT(MessageFor(model, {.batch = 8}), AllOf(HasSubstr("--batch 8"), HasSubstr("--shape: x")));
}

}  // namespace
}  // namespace berth
