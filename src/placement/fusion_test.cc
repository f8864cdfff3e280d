#include "placement/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "placement/costs.h"
#include "placement/testing.h"
#include "placement/units.h"

namespace berth {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// A network written down op by op; every tensor is (1, 8, 4, 4) in f32 unless told otherwise.
class Network {
 public:
  // `parameter`: bytes of a constant operand; 0: none.
  size_t Op(std::string_view type, std::vector<size_t> inputs, int64_t parameter = 0,
            std::vector<int64_t> shape = {1, 8, 4, 4}) {
    int64_t bytes = 4;
    for (const int64_t size : shape) bytes *= size;
    const size_t op = builder_.AddOp(fmt::format("{}_{}", type, builder_.num_ops()), type,
                                     {.flops = type == "Conv" ? 1e6 : 1e2,
                                      .bytes_read = bytes * static_cast<int64_t>(inputs.size()) + parameter,
                                      .bytes_written = bytes,
                                      .op_class = ClassOf(type)});
    builder_.AddTensor(op, bytes);
    builder_.SetShape(op, shape);
    for (const size_t input : inputs) builder_.Consume(input, op);
    if (inputs.empty()) builder_.UseInput(builder_.AddInput(bytes), op);
    if (parameter > 0) builder_.UseParameter(builder_.AddParameter(parameter), op);
    return op;
  }
  Graph Build() { return builder_.Build(); }

 private:
  static OpClass ClassOf(std::string_view type) {
    if (type == "Conv") return OpClass::kConv;
    const bool moves = type == "MaxPool" || type == "Reshape" || type == "ReduceMean" || type == "Concat";
    return moves || type == "Transpose" ? OpClass::kOther : OpClass::kElementwise;
  }

  GraphBuilder builder_{"network"};
};

std::vector<int> Groups(const Graph& graph) {
  const Grouping grouping = FusedOps(graph);
  std::vector<int> groups;
  for (const OpId op : graph.ops()) groups.push_back(static_cast<int>(grouping.group_of(op)));
  return groups;
}

TEST(Fusion, AConvolutionTakesItsBiasItsSumAndItsActivation) {
  Network net;
  const size_t a = net.Op("Conv", {}, 576);
  const size_t bias = net.Op("Add", {a}, 32);
  const size_t before = net.Op("MaxPool", {});
  const size_t sum = net.Op("Add", {bias, before});
  const size_t relu = net.Op("Relu", {sum});
  net.Op("Relu", {relu});
  EXPECT_THAT(Groups(net.Build()), ElementsAre(0, 0, 1, 0, 0, 0));
}

TEST(Fusion, OneOfTwoConvolutionsTakesTheSum) {
  Network net;
  const size_t a = net.Op("Conv", {}, 576);
  const size_t b = net.Op("Conv", {}, 576);
  net.Op("Add", {a, b});
  EXPECT_THAT(Groups(net.Build()), ElementsAre(0, 1, 0));
}

TEST(Fusion, WhatSomebodyElseReadsIsNotTaken) {
  Network net;
  const size_t conv = net.Op("Conv", {}, 576);
  net.Op("Relu", {conv});
  net.Op("MaxPool", {conv});
  EXPECT_THAT(Groups(net.Build()), ElementsAre(0, 1, 2));
}

TEST(Fusion, AConstantOfEveryElementIsNoScale) {
  Network net;
  const size_t conv = net.Op("Conv", {}, 576);
  const size_t positions = net.Op("Add", {conv}, 512);  // as many as the tensor has
  net.Op("Relu", {positions});
  EXPECT_THAT(Groups(net.Build()), ElementsAre(0, 1, 1));
}

TEST(Fusion, AWrittenOutActivationBelongsToTheConvolutionThatItIsOf) {
  Network net;
  const size_t conv = net.Op("Conv", {}, 576);
  const size_t sigmoid = net.Op("Sigmoid", {conv});
  const size_t swish = net.Op("Mul", {conv, sigmoid});
  const size_t product = net.Op("MatMul", {swish}, 256);
  const size_t scaled = net.Op("Div", {product}, 4);
  const size_t erf = net.Op("Erf", {scaled});
  const size_t one = net.Op("Add", {erf}, 4);
  const size_t times = net.Op("Mul", {product, one});
  const size_t gelu = net.Op("Mul", {times}, 4);
  net.Op("Conv", {gelu}, 576);
  EXPECT_THAT(Groups(net.Build()), ElementsAre(0, 0, 0, 1, 1, 1, 1, 1, 1, 2));
}

TEST(Fusion, ANormalisationOfSevenOpsIsOneKernelAndItsScaleAnother) {
  Network net;
  const size_t x = net.Op("MaxPool", {});
  const size_t mean = net.Op("ReduceMean", {x});
  const size_t deviation = net.Op("Sub", {x, mean});
  const size_t square = net.Op("Pow", {deviation}, 4);
  const size_t variance = net.Op("ReduceMean", {square});
  const size_t safe = net.Op("Add", {variance}, 4);
  const size_t root = net.Op("Sqrt", {safe});
  const size_t normal = net.Op("Div", {deviation, root});
  const size_t scale = net.Op("Mul", {normal}, 16);
  net.Op("Add", {scale}, 16);
  EXPECT_THAT(Groups(net.Build()), ElementsAre(0, 1, 1, 1, 1, 1, 1, 1, 2, 2));
}

TEST(Fusion, AttentionIsOneKernelWithItsMaskAndItsTranspositions) {
  Network net;
  const size_t q = net.Op("Transpose", {net.Op("Reshape", {})});
  const size_t k = net.Op("Transpose", {net.Op("Reshape", {})});
  const size_t v = net.Op("Transpose", {net.Op("Reshape", {})});
  const size_t scores = net.Op("MatMul", {q, k});
  const size_t scaled = net.Op("Div", {scores}, 4);
  const size_t masked = net.Op("Add", {scaled}, 64);
  const size_t softmax = net.Op("Softmax", {masked});
  const size_t out = net.Op("MatMul", {softmax, v});
  const size_t turned = net.Op("Transpose", {out});
  net.Op("Reshape", {turned});
  EXPECT_THAT(Groups(net.Build()), ElementsAre(0, 1, 2, 1, 3, 1, 1, 1, 1, 1, 1, 1, 4));
}

TEST(Fusion, ElementwiseOpsAreOneKernelUnlessThatMakesACircle) {
  Network net;
  const size_t a = net.Op("Exp", {});
  const size_t slow = net.Op("MaxPool", {a});
  net.Op("Mul", {a, slow});
  EXPECT_THAT(Groups(net.Build()), ElementsAre(0, 1, 2));
}

TEST(Fusion, ABackwardPassHasNoKernels) {
  GraphBuilder builder("step");
  for (const char* type : {"Conv", "Relu", "Relu"}) {
    const size_t op = builder.AddOp("", type, {});
    builder.AddTensor(op, 8);
    if (op > 0) builder.Consume(op - 1, op);
  }
  builder.MarkBackward(2);
  EXPECT_THAT(Groups(builder.Build()), ElementsAre(0, 1, 2));
}

Graph RandomNetwork(Random& random) {
  constexpr auto kTypes = std::to_array<const char*>(
      {"Conv", "MatMul", "Add", "Mul", "Relu", "Sigmoid", "Exp", "Sub", "MaxPool", "BatchNormalization", "Softmax",
       "LayerNormalization", "Transpose", "Div", "Tanh", "InstanceNormalization", "ConvTranspose", "Concat"});
  Network net;
  const size_t ops = 5 + random.Below(80);
  for (size_t op = 0; op < ops; ++op) {
    std::set<size_t> inputs;
    // Mostly near ones, so that chains come up.
    for (size_t i = 0; op > 0 && i < 1 + random.Below(2); ++i)
      inputs.insert(op - 1 - random.Below(std::min<size_t>(op, 5)));
    net.Op(kTypes[random.Below(kTypes.size())], {inputs.begin(), inputs.end()}, random.Below(3) == 0 ? 32 : 0);
  }
  return net.Build();
}

TEST(Fusion, KernelsFeedOneAnotherInNoCircle) {
  Random random(5);
  size_t fused = 0;
  for (int round = 0; round < 300; ++round) {
    const Problem problem = testing::UnitProblem(RandomNetwork(random), 2);
    const Grouping grouping = FusedOps(problem.graph());
    ASSERT_TRUE(MakeQuotient(problem, grouping).acyclic) << "round " << round;
    fused += problem.num_ops() - grouping.num_groups();
  }
  EXPECT_GT(fused, 2000u);
}

Problem FusedProblem(Graph graph, Problem::Options options = {}) {
  const auto shared = std::make_shared<const Graph>(std::move(graph));
  const auto cluster = std::make_shared<const Cluster>(testing::UniformCluster(3));
  return Problem(shared, cluster, RooflineTimes(*shared, *cluster, FusedOps(*shared)), std::move(options));
}

TEST(Fusion, NoPlacementOfAProblemWithKernelsPartsOne) {
  Random random(6);
  size_t kernels = 0;
  for (int round = 0; round < 60; ++round) {
    const Problem problem = FusedProblem(RandomNetwork(random));
    const Units units(problem);
    const std::vector<DeviceId> device = units.Draw(random, std::vector<double>(3, 1.0));
    for (const Kernel& kernel : problem.kernels()) {
      ++kernels;
      for (const OpId op : kernel.ops) ASSERT_EQ(device[Index(op)], device[Index(kernel.ops.front())]);
    }
    EXPECT_EQ(problem.split_kernels(), 0u);
  }
  EXPECT_GT(kernels, 300u);
}

// conv, relu, relu: one kernel on devices that do a FLOP and move a byte per second.
Graph ConvAndTwo() {
  Network net;
  const size_t conv = net.Op("Conv", {}, 576);
  const size_t relu = net.Op("Relu", {conv});
  net.Op("Relu", {relu});
  return net.Build();
}

TEST(Kernels, AKernelTakesItsFlopsAndTheBytesThatEnterAndLeaveIt) {
  Device device{.name = "d", .kind = "cpu", .peak = {{"f32", {.value = 1e9}}}, .memory_bandwidth = {.value = 1}};
  device.op_overhead = {.value = 7};
  const Cluster cluster("one", {device}, std::vector<Link>(1));
  const Graph graph = ConvAndTwo();
  // Written and read within: two tensors of 512 bytes, twice each. The convolution's input counts 0 bytes here.
  EXPECT_THAT(RooflineTimes(graph, cluster, FusedOps(graph)).time, ElementsAre(7 + 576 + 512, 0, 0));
  EXPECT_THAT(RooflineTimes(graph, cluster).time, ElementsAre(7 + 576 + 512, 7 + 1024, 7 + 1024));
  device.memory_bandwidth = {.value = 1e30};
  device.efficiency = {{"conv", {.value = 1}}, {"elementwise", {.value = 0.5}}};
  const Cluster fast("one", {device}, std::vector<Link>(1));
  EXPECT_THAT(RooflineTimes(graph, fast, FusedOps(graph)).time,
              ElementsAre(DoubleEq(7 + 1e6 / 1e9 + 2 * 1e2 / 5e8), 0, 0));
}

TEST(Kernels, OpsThatConstraintsPartTakeTheTimeThatTheyTakeApart) {
  const Graph graph = ConvAndTwo();
  const OpTimes apart = RooflineTimes(graph, testing::UniformCluster(3));
  const Problem whole = FusedProblem(graph);
  EXPECT_EQ(whole.kernels().size(), 1u);
  EXPECT_THAT(whole.constraints().colocate, ElementsAre(ElementsAre(OpId{0}, OpId{1}, OpId{2})));
  EXPECT_EQ(whole.op_time(OpId{1}, DeviceId{0}), 0);

  const Problem parted = FusedProblem(graph, {.constraints = {.separate = {{OpId{0}, OpId{2}}}}});
  EXPECT_EQ(parted.kernels().size(), 0u);
  EXPECT_EQ(parted.split_kernels(), 1u);
  EXPECT_TRUE(parted.constraints().colocate.empty());
  for (const OpId op : graph.ops()) EXPECT_EQ(parted.op_time(op, DeviceId{1}), apart.time[Index(op) * 3 + 1]);
}

TEST(Kernels, AnOpThatMayOnlyBeWhereTheOthersCannotIsApart) {
  const auto graph = std::make_shared<const Graph>(ConvAndTwo());
  const auto cluster = std::make_shared<const Cluster>(testing::UniformCluster(2));
  const OpTimes apart = RooflineTimes(*graph, *cluster);
  OpTimes times = RooflineTimes(*graph, *cluster, FusedOps(*graph));
  times.time[0 * 2 + 1] = times.time[2 * 2 + 0] = kCannotRun;  // the convolution on 0, the last on 1
  const Problem problem(graph, cluster, times);
  EXPECT_EQ(problem.split_kernels(), 1u);
  EXPECT_EQ(problem.op_time(OpId{0}, DeviceId{1}), kCannotRun);
  EXPECT_EQ(problem.op_time(OpId{2}, DeviceId{1}), apart.time[2 * 2 + 1]);
  EXPECT_EQ(problem.op_time(OpId{1}, DeviceId{0}), apart.time[1 * 2 + 0]);
}

TEST(Kernels, APlacementThatPartsOnePaysForIt) {
  const Graph graph = ConvAndTwo();
  const Cluster cluster = testing::UniformCluster(2);
  OpTimes times = RooflineTimes(graph, cluster, FusedOps(graph));
  const std::vector<DeviceId> together(3, DeviceId{1}), parted = {DeviceId{0}, DeviceId{1}, DeviceId{1}};
  SplitKernels(together, 2, times);
  EXPECT_EQ(times.kernels.size(), 1u);
  SplitKernels(parted, 2, times);
  EXPECT_TRUE(times.kernels.empty());
  EXPECT_EQ(times.time, RooflineTimes(graph, cluster).time);
}

TEST(Kernels, JoinedOnesTakeTheSumOfWhatTheirsTake) {
  const Graph graph = ConvAndTwo();
  OpTimes times{.time = {1, 2, 10, 20, 100, kCannotRun}, .measured = {}, .kernels = {}, .source = "test"};
  JoinKernels(graph, Grouping(graph, std::vector<int32_t>{7, 7, 8}), times);
  EXPECT_THAT(times.time, ElementsAre(11, 22, 0, 0, 100, kCannotRun));
  ASSERT_EQ(times.kernels.size(), 1u);
  EXPECT_THAT(times.kernels[0].apart, ElementsAre(1, 2, 10, 20));
  // One that shares an op with it is the same kernel; a device that lacks one of its ops runs none of it whole.
  JoinKernels(graph, Grouping(graph, std::vector<int32_t>{0, 1, 1}), times);
  EXPECT_THAT(times.time, ElementsAre(111, 22, 0, 0, 0, kCannotRun));
  ASSERT_EQ(times.kernels.size(), 1u);
  EXPECT_THAT(times.kernels[0].ops, ElementsAre(OpId{0}, OpId{1}, OpId{2}));
  EXPECT_THAT(times.kernels[0].apart, ElementsAre(1, 2, 10, 20, 100, kCannotRun));
}

}  // namespace
}  // namespace berth
