#include "import/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// image -> conv(w) -> relu -> { left matmul(u), right matmul(u) } -> add -> out; u is shared.
Graph Network(const char* relu_type = "Relu") {
  GraphBuilder builder("network");
  const auto op = [&](const char* name, const char* type, OpClass op_class) {
    return builder.AddOp(name, type, {.flops = 100, .bytes_read = 40, .bytes_written = 40, .op_class = op_class});
  };
  const size_t conv = op("conv", "Conv", OpClass::kConv), relu = op("relu", relu_type, OpClass::kElementwise);
  const size_t left = op("left", "MatMul", OpClass::kMatMul), right = op("right", "MatMul", OpClass::kMatMul);
  const size_t add = op("add", "Add", OpClass::kElementwise);
  const auto flow = [&](size_t from, std::initializer_list<size_t> to, int64_t bytes, const char* name) {
    const size_t tensor = builder.AddTensor(from, bytes, name, to.size() == 0);
    for (const size_t consumer : to) builder.Consume(tensor, consumer);
  };
  flow(conv, {relu}, 400, "c");
  flow(relu, {left, right}, 400, "r");
  flow(left, {add}, 40, "l");
  flow(right, {add}, 40, "m");
  flow(add, {}, 40, "out");
  builder.UseInput(builder.AddInput(1000, "image"), conv);
  builder.UseParameter(builder.AddParameter(800, "w"), conv);
  const size_t u = builder.AddParameter(80, "u");
  builder.UseParameter(u, left);
  builder.UseParameter(u, right);
  builder.AddNote("sizes that the file leaves open");
  return builder.Build();
}

OpId Find(const Graph& graph, std::string_view name) {
  for (const OpId op : graph.ops()) {
    if (graph.op_name(op) == name) return op;
  }
  ADD_FAILURE() << "no op " << name;
  return OpId{0};
}

std::set<std::string> InputsOf(const Graph& graph, std::string_view op) {
  std::set<std::string> names;
  for (const TensorId tensor : graph.inputs_of(Find(graph, op))) names.emplace(graph.tensor_name(tensor));
  return names;
}

TEST(TrainingGraph, HasAGradientPerOpASumPerSharedTensorAndAnUpdatePerParameter) {
  const Graph graph = MakeTrainingGraph(Network(), Optimizer::kAdam).graph;
  std::set<std::string> added;
  for (const OpId op : graph.ops()) {
    if (graph.is_backward(op)) added.emplace(graph.op_name(op));
  }
  EXPECT_THAT(added, UnorderedElementsAre("loss", "grad/add", "grad/left", "grad/right", "sum/r", "grad/relu",
                                          "grad/conv", "sum/u", "update/u", "update/w"));
  EXPECT_EQ(graph.num_ops(), 15u);
}

TEST(TrainingGraph, KeepsTheActivationsThatADerivativeNeeds) {
  const Graph graph = MakeTrainingGraph(Network(), Optimizer::kSgd).graph;
  EXPECT_THAT(InputsOf(graph, "grad/left"), UnorderedElementsAre("r", "grad/add/l"));  // a product needs its input
  EXPECT_THAT(InputsOf(graph, "grad/relu"), UnorderedElementsAre("r", "sum/r"));       // a ReLU its output
  EXPECT_THAT(InputsOf(graph, "grad/add"), UnorderedElementsAre("grad/out"));          // a sum nothing
  EXPECT_THAT(InputsOf(graph, "update/u"), UnorderedElementsAre("sum/u"));
}

TEST(TrainingGraph, CountsTwoProductsWhereInputAndWeightWantAGradientAndOneElsewhere) {
  const Graph graph = MakeTrainingGraph(Network(), Optimizer::kSgd).graph;
  EXPECT_EQ(graph.work(Find(graph, "grad/left")).flops, 200);
  EXPECT_EQ(graph.work(Find(graph, "grad/conv")).flops, 100);  // the image needs none
  EXPECT_EQ(graph.work(Find(graph, "grad/relu")).flops, 100);
  EXPECT_EQ(graph.work(Find(graph, "sum/r")).flops, 100);  // 400 bytes of f32, once
  // grad of l, kept r, u; grad of r and of u
  EXPECT_EQ(graph.work(Find(graph, "grad/left")).bytes_read, 40 + 400 + 80);
  EXPECT_EQ(graph.work(Find(graph, "grad/left")).bytes_written, 400 + 80);
}

TEST(TrainingGraph, HoldsTheOptimisersState) {
  const int64_t weights = 880;
  EXPECT_EQ(MakeTrainingGraph(Network(), Optimizer::kSgd).graph.total_parameter_bytes(), weights);
  EXPECT_EQ(MakeTrainingGraph(Network(), Optimizer::kMomentum).graph.total_parameter_bytes(), 2 * weights);
  EXPECT_EQ(MakeTrainingGraph(Network(), Optimizer::kAdam).graph.total_parameter_bytes(), 3 * weights);
}

TEST(TrainingGraph, KeepsAGradientWithItsForwardOp) {
  const TrainingGraph training = MakeTrainingGraph(Network(), Optimizer::kSgd);
  std::map<std::string, std::set<std::string>> groups;
  size_t ops = 0;
  for (const std::vector<OpId>& group : training.colocate) {
    std::set<std::string>& names = groups[std::string(training.graph.op_name(group.front()))];
    for (const OpId op : group) names.emplace(training.graph.op_name(op));
    ops += group.size();
  }
  EXPECT_EQ(ops, training.graph.num_ops());
  EXPECT_THAT(groups["left"], UnorderedElementsAre("left", "grad/left", "sum/u", "update/u"));
  EXPECT_THAT(groups["relu"], UnorderedElementsAre("relu", "grad/relu", "sum/r"));
}

TEST(TrainingGraph, KeepsWhatIsToBeKnownOfTheModel) {
  const Graph graph = MakeTrainingGraph(Network(), Optimizer::kSgd).graph;
  EXPECT_THAT(graph.notes(), ElementsAre("sizes that the file leaves open"));
}

// OpenVINO has other names for the same ops.
TEST(TrainingGraph, KeepsAsMuchOfAnOpByWhicheverNameItGoes) {
  const Graph of_onnx = MakeTrainingGraph(Network(), Optimizer::kAdam).graph;
  const Graph of_ir = MakeTrainingGraph(Network("ReLU"), Optimizer::kAdam).graph;
  ASSERT_EQ(of_ir.num_ops(), of_onnx.num_ops());
  for (const OpId op : of_onnx.ops()) {
    EXPECT_EQ(of_ir.work(op).bytes_read, of_onnx.work(op).bytes_read) << of_onnx.op_name(op);
    EXPECT_EQ(of_ir.inputs_of(op).size(), of_onnx.inputs_of(op).size()) << of_onnx.op_name(op);
  }
}

// words -> look up(table) -> matmul(w) -> add <- scale(one number) <- cast <- mask
Graph Masked(int64_t scale_bytes) {
  GraphBuilder builder("masked");
  const auto op = [&](const char* name, const char* type) { return builder.AddOp(name, type, {.flops = 10}); };
  const size_t cast = op("cast", "Cast"), scale = op("scale", "Mul");
  const size_t look_up = op("look up", "Gather"), product = op("product", "MatMul"), add = op("add", "Add");
  builder.UseInput(builder.AddInput(8, "mask"), cast);
  builder.UseInput(builder.AddInput(16, "words"), look_up);
  builder.UseParameter(builder.AddParameter(scale_bytes, "one number"), scale);
  builder.UseParameter(builder.AddParameter(100000, "table"), look_up);
  builder.UseParameter(builder.AddParameter(800, "w"), product);
  builder.Consume(builder.AddTensor(cast, 40, "casted"), scale);
  builder.Consume(builder.AddTensor(scale, 40, "scaled"), add);
  builder.Consume(builder.AddTensor(look_up, 400, "vectors"), product);
  builder.Consume(builder.AddTensor(product, 40, "products"), add);
  builder.AddTensor(add, 40, "out", true);
  return builder.Build();
}

TEST(TrainingGraph, AConstantStaysOne) {
  GraphBuilder builder("constant");
  const size_t table = builder.AddOp("table", "Range", {}), add = builder.AddOp("add", "Add", {.flops = 10});
  const size_t tensor = builder.AddTensor(table, 40, "numbers");
  builder.MarkConstant(tensor);
  builder.Consume(tensor, add);
  builder.UseParameter(builder.AddParameter(40, "w"), add);
  builder.AddTensor(add, 40, "out", true);
  const Graph graph = MakeTrainingGraph(builder.Build(), Optimizer::kSgd).graph;
  const OpId op = Find(graph, "table");
  EXPECT_TRUE(graph.is_constant(MakeId<TensorId>(graph.first_output(op))));
}

TEST(TrainingGraph, TrainsNoConstantAndNothingThatNoWeightIsBehind) {
  const auto backward = [](const Graph& graph) {
    std::set<std::string> names;
    for (const OpId op : graph.ops()) {
      if (graph.is_backward(op)) names.emplace(graph.op_name(op));
    }
    return names;
  };
  const Graph graph = MakeTrainingGraph(Masked(4), Optimizer::kSgd).graph;
  EXPECT_THAT(backward(graph),
              UnorderedElementsAre("loss", "grad/add", "grad/product", "grad/look up", "update/w", "update/table"));
  // Only the branch with weights wants a gradient.
  EXPECT_EQ(graph.work(Find(graph, "grad/add")).bytes_written, 40);
  EXPECT_THAT(backward(MakeTrainingGraph(Masked(40), Optimizer::kSgd).graph),
              ::testing::IsSupersetOf({"grad/scale", "update/one number"}));
}

TEST(TrainingGraph, AGradientReadsOnlyTheWeightsThatItNeeds) {
  const Graph graph = MakeTrainingGraph(Masked(4), Optimizer::kSgd).graph;
  const OpId look_up = Find(graph, "grad/look up");
  EXPECT_THAT(graph.parameters_of(look_up), ::testing::IsEmpty());
  EXPECT_EQ(graph.work(look_up).bytes_read, 400 + 16) << "the gradient and the words, not the table";
  EXPECT_EQ(graph.work(look_up).bytes_written, 100000);
  EXPECT_THAT(graph.parameters_of(Find(graph, "grad/product")), ::testing::SizeIs(1));
}

TEST(TrainingGraph, OfAGraphWithoutWeightsDifferentiatesEveryOp) {
  GraphBuilder builder("bare");
  const size_t first = builder.AddOp("first", "MatMul", {.flops = 10});
  const size_t second = builder.AddOp("second", "Relu", {.flops = 10});
  builder.Consume(builder.AddTensor(first, 40, "between"), second);
  builder.AddTensor(second, 40, "out", true);
  const Graph graph = MakeTrainingGraph(builder.Build(), Optimizer::kSgd).graph;
  EXPECT_THAT(InputsOf(graph, "grad/second"), UnorderedElementsAre("out", "grad/out"));
}

TEST(TrainingGraph, OfAGraphWithoutResultsIsTheGraph) {
  EXPECT_EQ(MakeTrainingGraph(GraphBuilder("nothing").Build(), Optimizer::kSgd).graph.num_ops(), 0u);
}

}  // namespace
}  // namespace berth
