#include "placement/op_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// conv 600 FLOP, 100 bytes; relu: 100 bytes; shape: nothing; other: 600 FLOP. No tensors: the rules fuse nothing.
Graph ProfiledOps() {
  GraphBuilder builder("four");
  builder.AddOp("conv", "Conv", {.flops = 600, .bytes_read = 60, .bytes_written = 40, .op_class = OpClass::kConv});
  builder.AddOp("relu", "Relu", {.bytes_read = 50, .bytes_written = 50, .op_class = OpClass::kElementwise});
  builder.AddOp("shape", "Reshape", {.op_class = OpClass::kDataMovement});
  builder.AddOp("other", "ConvTranspose", {.flops = 600, .op_class = OpClass::kConv});
  return builder.Build();
}

// conv -> relu -> conv2: 1 s per op, 10 bytes and 50 FLOP of a convolution per second.
Graph ConvReluConv() {
  GraphBuilder builder("chain");
  const OpWork conv{.flops = 600, .bytes_read = 40, .bytes_written = 40, .op_class = OpClass::kConv};
  const OpWork relu{.flops = 0, .bytes_read = 40, .bytes_written = 40, .op_class = OpClass::kElementwise};
  builder.AddOp("conv", "Conv", conv);
  builder.AddOp("relu", "Relu", relu);
  builder.AddOp("conv2", "Conv", conv);
  for (size_t op = 0; op < 3; ++op) {
    builder.AddTensor(op, 40, {}, op == 2);
    if (op > 0) builder.Consume(op - 1, op);
  }
  return builder.Build();
}

Device ProfiledDevice() {
  Device device{.name = "d", .kind = "cpu", .peak = {{"f32", {.value = 100}}}, .memory_bandwidth = {.value = 10}};
  device.op_overhead = {.value = 1};
  device.efficiency["conv"] = {.value = 0.5};
  return device;
}

Cluster Machines(std::vector<Device> devices) {
  for (size_t i = 0; i < devices.size(); ++i) devices[i].name = fmt::format("d{}", i);
  const size_t count = devices.size();
  return Cluster("few", std::move(devices), std::vector<Link>(count * count, {.bandwidth = {.value = 1e9}}));
}

std::vector<std::vector<std::string>> OneKernel(const std::string& first, const std::string& second) {
  return {std::vector<std::string>{first, second}};
}

TEST(Profile, ReplacesWhatItHasAndScalesTheRest) {
  const Graph graph = ProfiledOps();
  const Cluster cluster = Machines({ProfiledDevice(), ProfiledDevice()});
  OpTimes times = RooflineTimes(graph, cluster);
  // Twice the predictions of conv and relu; a node that was folded away does not matter.
  const OpProfile profile{
      .path = "p.json", .device = "cpu", .time_by_op = {{"conv", {26}}, {"relu", {22}}, {"folded", {1}}}};
  EXPECT_EQ(ApplyProfile(profile, graph, cluster, {DeviceId{1}}, times), 2u);
  EXPECT_THAT(times.time, ElementsAre(13, 26, 11, 22, 0, 0, 13, 26));
  EXPECT_THAT(times.measured, ElementsAre(0, 1, 0, 1, 0, 0, 0, 0));
}

TEST(Profile, IsToldAtThePaceOfTheDevice) {
  const Graph graph = ProfiledOps();
  Device slow = ProfiledDevice(), unknown = ProfiledDevice();
  slow.pace = 32e-4;
  const Cluster cluster = Machines({slow, unknown});
  OpTimes times = RooflineTimes(graph, cluster);
  const OpProfile profile{.path = "p", .device = "cpu", .time_by_op = {{"conv", Seconds{1}}}, .pace = 1e-4};
  ApplyProfile(profile, graph, cluster, {DeviceId{0}, DeviceId{1}}, times);
  // 32^0.8
  EXPECT_DOUBLE_EQ(times.time[0], 16);
  EXPECT_DOUBLE_EQ(times.time[1], 1) << "its pace is not known";
}

TEST(Profile, DoesNotLiftWhatADeviceCannotRun) {
  const Graph graph = ProfiledOps();
  Device device = ProfiledDevice();
  device.lacks = {"Conv"};
  const Cluster cluster = Machines({device});
  OpTimes times = RooflineTimes(graph, cluster);
  const OpProfile profile{.path = "p.json", .device = "", .time_by_op = {{"conv", {26}}, {"shape", {3}}}};
  ApplyProfile(profile, graph, cluster, {DeviceId{0}}, times);
  EXPECT_THAT(times.time, ElementsAre(kCannotRun, 11, 3, 13));
  EXPECT_THAT(times.measured, ElementsAre(0, 0, 1, 0));
}

TEST(Profile, MeasuredZerosLeaveNoNaN) {
  const Graph graph = ProfiledOps();
  Device device = ProfiledDevice();
  device.lacks = {"Relu"};
  const Cluster cluster = Machines({device});
  OpTimes times = RooflineTimes(graph, cluster);
  ApplyProfile({.path = "p.json", .device = "", .time_by_op = {{"conv", {0}}}}, graph, cluster, {DeviceId{0}}, times);
  for (const double time : times.time) EXPECT_FALSE(std::isnan(time));
}

TEST(Profile, OfAnotherModelIsRefused) {
  const Graph graph = ProfiledOps();
  const Cluster cluster = Machines({ProfiledDevice()});
  OpTimes times = RooflineTimes(graph, cluster);
  try {
    ApplyProfile({.path = "p.json", .device = "", .time_by_op = {{"x", {1}}}}, graph, cluster, {DeviceId{0}}, times);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("p.json"));
    EXPECT_THAT(error.what(), HasSubstr("four"));
  }
}

TEST(Profile, OfOtherSizesIsRefused) {
  const Graph graph = ProfiledOps();
  const Cluster cluster = Machines({ProfiledDevice()});
  OpProfile profile{.path = "p.json", .device = "", .time_by_op = {}};
  for (const OpId op : graph.ops()) {
    profile.time_by_op.emplace(graph.op_name(op), Seconds{1});
    profile.flops += graph.work(op).flops;
  }
  const auto apply = [&] {
    OpTimes times = RooflineTimes(graph, cluster);
    return ApplyProfile(profile, graph, cluster, {DeviceId{0}}, times);
  };
  EXPECT_EQ(apply(), graph.num_ops());
  profile.flops *= 8;
  EXPECT_THAT([&] { apply(); }, ::testing::ThrowsMessage<Error>(HasSubstr("p.json: its times are of other sizes")));
}

// The kernel of conv and relu: 600 / 50 = 12 s beside 8 s for the 40 bytes that enter and the 40 that leave, and 1 s.
// Alone conv takes as long, relu 1 + 80 / 10 = 9 s.
constexpr double kWhole = 13, kConvAlone = 13, kReluAlone = 9;

TEST(Profile, WhatRanAsOneIsOneKernelWhosePartsTakeWhatTheyTakeAlone) {
  const auto graph = std::make_shared<const Graph>(ConvReluConv());
  const auto cluster = std::make_shared<const Cluster>(Machines({ProfiledDevice(), ProfiledDevice()}));
  OpTimes times = RooflineTimes(*graph, *cluster);
  const OpProfile profile{.path = "p.json",
                          .device = "d1",
                          .time_by_op = {{"conv", {6}}, {"relu", {2}}, {"conv2", {7}}},
                          .fused = OneKernel("conv", "relu")};
  ApplyProfile(profile, *graph, *cluster, {DeviceId{1}}, times);
  EXPECT_THAT(times.measured, ElementsAre(0, 1, 0, 1, 0, 1));
  // On the device that was not measured the ops are predicted as they were, and are one kernel too.
  EXPECT_THAT(times.time, ElementsAre(kConvAlone + kReluAlone, 8, 0, 0, kConvAlone, 7));
  ASSERT_EQ(times.kernels.size(), 1u);
  EXPECT_THAT(times.kernels[0].ops, ElementsAre(OpId{0}, OpId{1}));
  const double ratio = 8 / kWhole;
  EXPECT_THAT(times.kernels[0].apart,
              ElementsAre(kConvAlone, DoubleEq(kConvAlone * ratio), kReluAlone, DoubleEq(kReluAlone * ratio)));

  const Problem whole(graph, cluster, times);
  double sum = 0;
  for (const OpId op : graph->ops()) sum += whole.op_time(op, DeviceId{1});
  EXPECT_DOUBLE_EQ(sum, 6 + 2 + 7) << "the model on one device takes what was measured";
  const Problem parted(graph, cluster, times, {.constraints = {.separate = {{OpId{0}, OpId{1}}}}});
  EXPECT_EQ(parted.split_kernels(), 1u);
  EXPECT_GT(parted.op_time(OpId{0}, DeviceId{1}) + parted.op_time(OpId{1}, DeviceId{1}), 8) << "no kernel parts free";
}

TEST(Profile, ThatDoesNotSayWhatRanAsOneHasTheKernelsOfTheRules) {
  const Graph graph = ConvReluConv();
  const Cluster cluster = Machines({ProfiledDevice()});
  const OpProfile profile{
      .path = "p.json", .device = "d0", .time_by_op = {{"conv", {6}}, {"relu", {2}}, {"conv2", {7}}}};
  OpTimes times = RooflineTimes(graph, cluster);
  ApplyProfile(profile, graph, cluster, {DeviceId{0}}, times);
  EXPECT_THAT(times.time, ElementsAre(8, 0, 7));
  OpProfile nothing_fused = profile;
  nothing_fused.fused.emplace();
  times = RooflineTimes(graph, cluster);
  ApplyProfile(nothing_fused, graph, cluster, {DeviceId{0}}, times);
  EXPECT_THAT(times.time, ElementsAre(6, 2, 7));
  EXPECT_TRUE(times.kernels.empty());
}

TEST(Profile, WhatRanAsOneOnAnyDeviceStaysTogetherOnAll) {
  const Graph graph = ConvReluConv();
  const Cluster cluster = Machines({ProfiledDevice(), ProfiledDevice()});
  OpTimes times = RooflineTimes(graph, cluster);
  const std::map<std::string, Seconds, std::less<>> measured = {{"conv", {6}}, {"relu", {2}}, {"conv2", {7}}};
  ApplyProfile({.path = "p.json", .device = "d0", .time_by_op = measured, .fused = OneKernel("conv", "relu")}, graph,
               cluster, {DeviceId{0}}, times);
  ApplyProfile({.path = "p.json", .device = "d1", .time_by_op = measured, .fused = OneKernel("relu", "conv2")}, graph,
               cluster, {DeviceId{1}}, times);
  EXPECT_THAT(times.time, ElementsAre(15, 15, 0, 0, 0, 0));
  ASSERT_EQ(times.kernels.size(), 1u);
  // On each device what ran alone there takes, apart, what was measured.
  EXPECT_EQ(times.kernels[0].apart[2 * 2 + 0], 7);
  EXPECT_EQ(times.kernels[0].apart[0 * 2 + 1], 6);
  EXPECT_DOUBLE_EQ(times.kernels[0].apart[0 * 2 + 0], kConvAlone * 8 / kWhole);
  for (const double time : times.kernels[0].apart) EXPECT_GT(time, 2);
}

TEST(Profile, ScalesWhatItLacksByWholeKernels) {
  const Graph graph = ConvReluConv();
  const Cluster cluster = Machines({ProfiledDevice()});
  OpTimes times =
      RooflineTimes(graph, cluster, KernelsOf(OpProfile{.path = "", .device = "", .time_by_op = {}}, graph));
  // The kernel took half of what it is predicted to take; conv2 was not measured.
  const OpProfile profile{.path = "p.json",
                          .device = "d0",
                          .time_by_op = {{"conv", {kWhole / 4}}, {"relu", {kWhole / 4}}},
                          .fused = OneKernel("conv", "relu")};
  ApplyProfile(profile, graph, cluster, {DeviceId{0}}, times);
  EXPECT_THAT(times.time, ElementsAre(kWhole / 2, 0, DoubleEq(kConvAlone / 2)));
  EXPECT_THAT(times.measured, ElementsAre(1, 1, 0));
}

}  // namespace
}  // namespace berth
