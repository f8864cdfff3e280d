#include "placement/costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// a: 600 FLOP, 100 bytes; b: 100 bytes only; c: nothing; d: f16.
Graph FourOps() {
  GraphBuilder builder("four");
  builder.AddOp(
      "a", "Conv",
      {.flops = 600, .bytes_read = 60, .bytes_written = 40, .op_class = OpClass::kConv, .data_type = DataType::kF32});
  builder.AddOp("b", "Relu", {.bytes_read = 50, .bytes_written = 50, .op_class = OpClass::kElementwise});
  builder.AddOp("c", "Reshape", {.op_class = OpClass::kDataMovement});
  builder.AddOp("d", "ConvTranspose", {.flops = 600, .op_class = OpClass::kConv, .data_type = DataType::kF16});
  return builder.Build();
}

Device SimpleDevice() {
  Device device;
  device.name = "cpu";
  device.kind = "cpu";
  device.peak["f32"] = {.value = 100};
  device.memory_bandwidth = {.value = 10};
  device.op_overhead = {.value = 1};
  device.efficiency["conv"] = {.value = 0.5};
  return device;
}

Cluster Of(std::vector<Device> devices) {
  for (size_t i = 0; i < devices.size(); ++i) devices[i].name = fmt::format("{}{}", devices[i].kind, i);
  const size_t count = devices.size();
  return Cluster("few", std::move(devices),
                 std::vector<Link>(count * count, {.latency = {}, .bandwidth = {.value = 1}, .domain = ""}));
}

TEST(Roofline, TakesTheLongerOfComputingAndMovingBytes) {
  // a: 600 / (100 * 0.5) = 12 s against 100 / 10 = 10 s; b: bytes; c: nothing at all; d: no f16 rate, so the f32 one.
  const OpTimes times = RooflineTimes(FourOps(), Of({SimpleDevice()}));
  EXPECT_THAT(times.time, ElementsAre(13, 11, 0, 13));
  EXPECT_TRUE(times.measured.empty());
  EXPECT_EQ(times.source, "roofline");
}

TEST(Roofline, UsesTheRateOfTheType) {
  Device device = SimpleDevice();
  device.peak["f16"] = {.value = 400};
  device.memory_bandwidth = {.value = 1000};
  EXPECT_THAT(RooflineTimes(FourOps(), Of({device})).time, ElementsAre(13, 1.1, 0, 4));
}

TEST(Roofline, AConvolutionThatMakesFewValuesStaysBelowTheFullRate) {
  Device device = SimpleDevice();
  device.memory_bandwidth = {.value = 1e9};
  device.half_rate_outputs = {.value = 10};
  // a makes 40 bytes of f32, 10 values: half the rate, 2 * 12 s; b is no convolution; what d makes is not known.
  const OpTimes times = RooflineTimes(FourOps(), Of({device}));
  EXPECT_DOUBLE_EQ(times.time[0], 1 + 24);
  EXPECT_DOUBLE_EQ(times.time[1], 1 + 1e-7);
  EXPECT_DOUBLE_EQ(times.time[3], 1 + 12);

  // The same bytes are 20 values of f16; a kernel's ops each have their own rate.
  GraphBuilder builder("halves");
  const OpWork work{.flops = 600, .bytes_written = 40, .op_class = OpClass::kMatMul, .data_type = DataType::kF16};
  const size_t first = builder.AddOp("first", "MatMul", work);
  const size_t second = builder.AddOp("second", "MatMul", work);
  builder.Consume(builder.AddTensor(first, 40, "between"), second);
  builder.AddTensor(second, 40, "out", true);
  const Graph graph = builder.Build();
  device.efficiency["matmul"] = {.value = 0.5};
  EXPECT_DOUBLE_EQ(RooflineTimes(graph, Of({device})).time[0], 1 + 18);
  const OpTimes whole = RooflineTimes(graph, Of({device}), Grouping(graph, std::vector<int32_t>{0, 0}));
  EXPECT_DOUBLE_EQ(whole.time[0] + whole.time[1], 1 + 36);
}

TEST(Roofline, OfAProductWithLongSumsMoreValuesCountThanItMakes) {
  Device device = SimpleDevice();
  device.half_rate_outputs = {.value = 10};
  device.memory_bandwidth = {.value = 1e9};
  device.efficiency["matmul"] = {.value = 0.5};
  GraphBuilder builder("sums");
  // One value of 10 * 768 products each: 10 sums, half the rate. A convolution does not divide its sums.
  for (const OpClass op_class : {OpClass::kMatMul, OpClass::kConv}) {
    builder.AddOp("op", "Op", {.flops = 2 * 7680, .bytes_written = 4, .op_class = op_class});
  }
  const OpTimes times = RooflineTimes(builder.Build(), Of({device}));
  EXPECT_DOUBLE_EQ(times.time[0], 1 + 2 * 2 * 7680 / 50.0);
  EXPECT_DOUBLE_EQ(times.time[1], 1 + 11 * 2 * 7680 / 50.0);
}

TEST(Roofline, OnAGpuEachStepOfARecurrentLayerHasAnOverhead) {
  GraphBuilder builder("recurrent");
  builder.AddOp("lstm", "LSTM", {.flops = 600, .steps = 7, .op_class = OpClass::kRecurrent});
  builder.AddOp("rnn", "RNN", {.flops = 300, .op_class = OpClass::kRecurrent});
  const Graph graph = builder.Build();
  Device cpu = SimpleDevice(), gpu = SimpleDevice(), igpu = SimpleDevice();
  for (Device* device : {&cpu, &gpu, &igpu}) device->efficiency["recurrent"] = {.value = 1};
  gpu.kind = "gpu";
  igpu.kind = "igpu";
  EXPECT_THAT(RooflineTimes(graph, Of({cpu, gpu, igpu})).time, ElementsAre(1 + 6, 7 + 6, 7 + 6, 1 + 3, 1 + 3, 1 + 3));
  const OpTimes whole = RooflineTimes(graph, Of({gpu}), Grouping(graph, std::vector<int32_t>{0, 0}));
  EXPECT_THAT(whole.time, ElementsAre(7 + 9, 0)) << "one kernel has one overhead, and those of the steps";
}

TEST(Roofline, InAnotherPrecisionF32HasItsPeakAndHalfTheBytes) {
  Device device = SimpleDevice();
  device.peak["bf16"] = {.value = 400};
  EXPECT_THAT(RooflineTimes(FourOps(), Of({device})).time, ElementsAre(13, 11, 0, 13)) << "it computes in f32";
  device.precision = "bf16";
  // a: 600 / (400 * 0.5) = 3 s against 50 / 10 = 5 s; b: 50 / 10; d is f16, which keeps its own rate.
  EXPECT_THAT(RooflineTimes(FourOps(), Of({device})).time, ElementsAre(6, 6, 0, 13));
  // One whose peak is not known computes at the rate of f32.
  device.peak.erase("bf16");
  EXPECT_THAT(RooflineTimes(FourOps(), Of({device})).time, ElementsAre(13, 6, 0, 13));
}

// a -> view -> b, of which all is one kernel: what a writes and b reads stays inside, and the view moves nothing.
TEST(Roofline, AViewWithinAKernelTakesNothingOffItsBytes) {
  GraphBuilder builder("view");
  const size_t a = builder.AddOp("a", "Softmax", {.bytes_read = 100, .bytes_written = 100});
  const size_t view = builder.AddOp("view", "Dropout", {});
  const size_t b = builder.AddOp("b", "Relu", {.bytes_read = 100, .bytes_written = 40});
  builder.UseInput(builder.AddInput(100, "in"), a);
  builder.Consume(builder.AddTensor(a, 100, "scores"), view);
  builder.Consume(builder.AddTensor(view, 100, "same"), b);
  builder.AddTensor(b, 40, "out", true);
  const Graph graph = builder.Build();
  const OpTimes times = RooflineTimes(graph, Of({SimpleDevice()}), Grouping(graph, std::vector<int32_t>{0, 0, 0}));
  double sum = 0;
  for (const double time : times.time) sum += time;
  EXPECT_DOUBLE_EQ(sum, 1 + (100 + 40) / 10.0);
}

TEST(Roofline, FallsBackOnTheKindsEfficiency) {
  Device device = SimpleDevice();
  device.efficiency.clear();
  device.memory_bandwidth = {.value = 1e9};
  EXPECT_DOUBLE_EQ(RooflineTimes(FourOps(), Of({device})).time[0],
                   1 + 600 / (100 * DefaultEfficiency("cpu", OpClass::kConv)));
}

TEST(Roofline, ADeviceRunsWhatItSupportsAndDoesNotLack) {
  Device picky = SimpleDevice();
  picky.supports = {"Conv*", "Relu"};
  picky.lacks = {"*Transpose"};
  const OpTimes times = RooflineTimes(FourOps(), Of({SimpleDevice(), picky}));
  EXPECT_THAT(times.time, ElementsAre(13, 13, 11, 11, 0, kCannotRun, 13, kCannotRun));
}

TEST(Roofline, NamesTheDeviceThatLacksANumber) {
  for (const bool peak : {true, false}) {
    Device device = SimpleDevice();
    if (peak) device.peak.clear();
    if (!peak) device.memory_bandwidth = {};
    try {
      RooflineTimes(FourOps(), Of({SimpleDevice(), device}));
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(peak ? "device cpu1: no peak f32 rate" : "device cpu1: no memory_bandwidth"));
    }
  }
}

TEST(Roofline, EveryKindHasAShareOfThePeakForEveryClass) {
  for (const char* kind : {"cpu", "gpu", "igpu", "npu", "something else"}) {
    for (size_t c = 0; c < kOpClasses; ++c) {
      const double share = DefaultEfficiency(kind, static_cast<OpClass>(c));
      EXPECT_TRUE(share > 0 && share <= 1) << kind << " " << kOpClassNames[c];
    }
  }
}

}  // namespace
}  // namespace berth
