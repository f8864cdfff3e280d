#include "exec/efficiency_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "placement/costs.h"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Shares = std::map<std::string, double>;

Cluster Devices(size_t count, const Shares& efficiency = {}, const Device& like = {}) {
  std::vector<Device> devices(count, like);
  for (size_t d = 0; d < count; ++d) {
    devices[d].name = "d" + std::to_string(d);
    if (devices[d].kind.empty()) devices[d].kind = "cpu";
    devices[d].peak["f32"].value = 1e11;
    devices[d].memory_bandwidth.value = 1e10;
    devices[d].op_overhead.value = 1e-6;
    for (const auto& [op_class, share] : efficiency) devices[d].efficiency[op_class].value = share;
  }
  std::vector<Link> links(count * count);
  for (Link& link : links) link.bandwidth.value = 1e9;
  return Cluster("test", std::move(devices), std::move(links));
}

Problem On(std::shared_ptr<const Graph> graph, const Cluster& cluster) {
  OpTimes times = RooflineTimes(*graph, cluster);
  return Problem(std::move(graph), std::make_shared<const Cluster>(cluster), std::move(times));
}

struct OpOf {
  OpClass op_class;
  double flops = 0;
  int64_t bytes = 1000;
};

// One after another.
std::shared_ptr<const Graph> ChainOf(const std::vector<OpOf>& ops) {
  GraphBuilder builder("chain");
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpWork work{.flops = ops[i].flops,
                      .bytes_read = i == 0 ? 0 : ops[i - 1].bytes,
                      .bytes_written = ops[i].bytes,
                      .steps = ops[i].op_class == OpClass::kRecurrent ? 10 : 1,
                      .op_class = ops[i].op_class};
    builder.AddOp("op" + std::to_string(i), "Op", work);
    builder.AddTensor(i, ops[i].bytes, {}, i + 1 == ops.size());
    if (i > 0) builder.Consume(i - 1, i);
  }
  return std::make_shared<const Graph>(builder.Build());
}

// Ten convolutions, each with an activation and most with a product behind it; lengths differ.
std::shared_ptr<const Graph> Mixed() {
  std::vector<OpOf> ops;
  for (int i = 1; i <= 10; ++i) {
    ops.push_back({OpClass::kConv, 1e8 * i});
    ops.push_back({OpClass::kElementwise, 1e6 * i});
    if (i % 4 != 0) ops.push_back({OpClass::kMatMul, 3e7 * i});
  }
  return ChainOf(ops);
}

// Each convolution and the op behind it are a kernel.
std::vector<std::vector<OpId>> ConvKernels(const Graph& graph) {
  std::vector<std::vector<OpId>> kernels;
  for (const OpId op : graph.ops()) {
    if (graph.work(op).op_class == OpClass::kConv) kernels.push_back({op, MakeId<OpId>(Index(op) + 1)});
  }
  return kernels;
}

// What a device with these efficiencies takes, by the roofline itself.
OpMeasurement ProfileOf(const Graph& graph, const Cluster& truth, DeviceId device,
                        const std::vector<std::vector<OpId>>& kernels = {}) {
  std::vector<int32_t> label(graph.num_ops());
  std::iota(label.begin(), label.end(), 0);
  for (const std::vector<OpId>& kernel : kernels) {
    for (const OpId op : kernel) label[Index(op)] = static_cast<int32_t>(kernel.front());
  }
  const OpTimes times = RooflineTimes(graph, truth, Grouping(graph, label));
  OpMeasurement measurement{.kernels = kernels};
  measurement.kind.assign(graph.num_ops(), "own");
  double all = 0;
  for (const OpId op : graph.ops()) {
    const double seconds = times.time[Index(op) * truth.num_devices() + Index(device)];
    measurement.op_seconds.push_back(seconds);
    all += seconds;
  }
  measurement.seconds = {all, all, all};
  return measurement;
}

// By class name, of the first device.
Shares Found(const std::vector<FittedEfficiency>& fitted, DeviceId device = DeviceId{0}) {
  Shares found;
  for (const FittedEfficiency& one : fitted) {
    if (one.device == device) found[std::string(kOpClassNames[static_cast<size_t>(one.op_class)])] = one.efficiency;
  }
  return found;
}

TEST(EfficiencyFit, FindsTheEfficienciesThatMadeTheTimes) {
  const auto graph = Mixed();
  const Cluster file = Devices(1), truth = Devices(1, {{"conv", 0.82}, {"matmul", 0.31}});
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{ProfileOf(*graph, truth, DeviceId{0}, ConvKernels(*graph))}});
  const std::vector<FittedEfficiency> fitted = fit.Fit(file);
  const Shares found = Found(fitted);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_NEAR(found.at("conv"), 0.82, 0.0082);
  EXPECT_NEAR(found.at("matmul"), 0.31, 0.0031);
  for (const FittedEfficiency& one : fitted) {
    EXPECT_EQ(one.before, 0.5);
    EXPECT_EQ(one.kernels, one.op_class == OpClass::kConv ? 10U : 8U);
    EXPECT_GT(one.off_before, 0.1);
    EXPECT_LT(one.off_after, 0.001);
    EXPECT_FALSE(one.capped);
  }
}

// Classes within one kernel are found in turns.
TEST(EfficiencyFit, FindsAClassThatHasKernelsOfItsOwnAndPartsOfOthers) {
  std::vector<OpOf> ops;
  for (int i = 1; i <= 8; ++i) {
    ops.push_back({OpClass::kConv, 1e8 * i});
    ops.push_back({OpClass::kElementwise, 4e6 * i});
    ops.push_back({OpClass::kElementwise, 2e6 * i});
  }
  const auto graph = ChainOf(ops);
  const Cluster file = Devices(1), truth = Devices(1, {{"conv", 0.9}, {"elementwise", 0.008}});
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{ProfileOf(*graph, truth, DeviceId{0}, ConvKernels(*graph))}});
  const Shares found = Found(fit.Fit(file));
  EXPECT_NEAR(found.at("conv"), 0.9, 0.009);
  EXPECT_NEAR(found.at("elementwise"), 0.008, 0.00008);
}

// Whatever the roofline knows of a device: small ops at a part of the rate, steps of a recurrent layer, bf16.
TEST(EfficiencyFit, KnowsAllTermsOfTheRoofline) {
  std::vector<OpOf> ops;
  for (int i = 1; i <= 8; ++i) {
    ops.push_back({OpClass::kConv, 1e8 * i, 4000 * i});
    ops.push_back({OpClass::kRecurrent, 2e7 * i});
  }
  const auto graph = ChainOf(ops);
  Device gpu{.kind = "gpu"};
  gpu.half_rate_outputs.value = 3000;
  gpu.precision = "bf16";
  gpu.peak["bf16"].value = 4e11;
  const Cluster file = Devices(1, {}, gpu), truth = Devices(1, {{"conv", 0.22}, {"recurrent", 0.07}}, gpu);
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{ProfileOf(*graph, truth, DeviceId{0})}});
  const std::vector<FittedEfficiency> fitted = fit.Fit(file);
  EXPECT_NEAR(Found(fitted).at("conv"), 0.22, 0.0022);
  EXPECT_NEAR(Found(fitted).at("recurrent"), 0.07, 0.0007);
  for (const FittedEfficiency& one : fitted) EXPECT_LT(one.off_after, 0.001);
}

TEST(EfficiencyFit, TellsKernelsAtTheSpeedOfTheModelWithoutCounters) {
  const auto graph = Mixed();
  const Cluster file = Devices(1), truth = Devices(1, {{"conv", 0.82}, {"matmul", 0.31}});
  OpMeasurement profile = ProfileOf(*graph, truth, DeviceId{0});
  for (double& seconds : profile.op_seconds) seconds *= 1.3;
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{profile}});
  EXPECT_NEAR(Found(fit.Fit(file)).at("conv"), 0.82, 0.0082);
}

// The slow way: each kernel's efficiency by bisection of the roofline itself, and of all values the one from which the
// logarithms of these are the least far away, each by its weight.
TEST(EfficiencyFit, AgreesWithASlowSearchWhereKernelsDiffer) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    std::vector<OpOf> ops;
    for (int i = 0; i < 9; ++i) ops.push_back({OpClass::kMatMul, 1e7 * (1 + 50 * random.Uniform())});
    const auto graph = ChainOf(ops);
    const Cluster file = Devices(1);
    OpMeasurement profile = ProfileOf(*graph, Devices(1, {{"matmul", 0.4}}), DeviceId{0});
    double all = 0;
    for (double& seconds : profile.op_seconds) all += seconds *= 0.7 + random.Uniform();
    profile.seconds = {all};
    EfficiencyFit fit;
    fit.Add(On(graph, file), {{profile}});

    std::vector<double> exact;
    for (const OpId op : graph->ops()) {
      double low = 1e-3, high = 10;
      for (int step = 0; step < 60; ++step) {
        const double middle = std::sqrt(low * high);
        const double seconds = RooflineTimes(*graph, Devices(1, {{"matmul", middle}})).time[Index(op)];
        (seconds > profile.op_seconds[Index(op)] ? low : high) = middle;
      }
      exact.push_back(low);
    }
    const auto distance = [&](double value) {
      double sum = 0;
      for (size_t i = 0; i < exact.size(); ++i) sum += profile.op_seconds[i] * std::abs(std::log(value / exact[i]));
      return sum;
    };
    const double best = *std::ranges::min_element(exact, {}, distance);
    EXPECT_NEAR(Found(fit.Fit(file)).at("matmul"), std::min(best, 1.0), 0.001) << seed;
  }
}

TEST(EfficiencyFit, OneSlowKernelDoesNotMoveIt) {
  std::vector<OpOf> ops(12, {OpClass::kConv, 1e8});
  const auto graph = ChainOf(ops);
  const Cluster file = Devices(1);
  OpMeasurement profile = ProfileOf(*graph, Devices(1, {{"conv", 0.8}}), DeviceId{0});
  profile.seconds = {profile.seconds.front() + 4 * profile.op_seconds[3]};
  profile.op_seconds[3] *= 5;
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{profile}});
  EXPECT_NEAR(Found(fit.Fit(file)).at("conv"), 0.8, 0.008);
}

TEST(EfficiencyFit, KeepsTheNumberOfAClassOfWhichLittleIsKnown) {
  const Cluster file = Devices(1), truth = Devices(1, {{"conv", 0.8}, {"matmul", 0.8}, {"reduction", 0.8}});
  std::vector<OpOf> ops(10, {OpClass::kConv, 1e8});
  ops.resize(14, {OpClass::kMatMul, 1e8});       // four kernels
  ops.resize(24, {OpClass::kReduction, 1.5e5});  // ten, a two-hundredth of the time
  const auto graph = ChainOf(ops);
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{ProfileOf(*graph, truth, DeviceId{0})}});
  EXPECT_THAT(Found(fit.Fit(file)), SizeIs(1));
  EXPECT_TRUE(Found(fit.Fit(file)).contains("conv"));
}

// How fast a device computes is not seen in what its memory decides, nor in what does not run.
TEST(EfficiencyFit, LearnsNothingFromKernelsThatMemoryBoundsOrThatDidNotRun) {
  std::vector<OpOf> ops(10, {OpClass::kConv, 1e8});
  ops.resize(20, {OpClass::kElementwise, 1e5, 10'000'000});
  ops.resize(30, {OpClass::kMatMul, 1e8});
  const auto graph = ChainOf(ops);
  const Cluster file = Devices(1);
  OpMeasurement profile = ProfileOf(*graph, Devices(1, {{"conv", 0.8}}), DeviceId{0});
  for (size_t i = 20; i < 30; ++i) profile.kind[i] = i % 2 == 0 ? "none" : "absent";
  profile.seconds = {std::accumulate(profile.op_seconds.begin(), profile.op_seconds.begin() + 20, 0.0)};
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{profile}});
  const Shares found = Found(fit.Fit(file));
  EXPECT_THAT(found, SizeIs(1));
  EXPECT_NEAR(found.at("conv"), 0.8, 0.008);
}

TEST(EfficiencyFit, NoClassReachesMoreThanThePeak) {
  const auto graph = ChainOf(std::vector<OpOf>(6, {OpClass::kConv, 1e8}));
  const Cluster file = Devices(1);
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{ProfileOf(*graph, Devices(1, {{"conv", 1.7}}), DeviceId{0})}});
  const std::vector<FittedEfficiency> fitted = fit.Fit(file);
  ASSERT_THAT(fitted, SizeIs(1));
  EXPECT_EQ(fitted.front().efficiency, 1);
  EXPECT_TRUE(fitted.front().capped);
  EXPECT_NEAR(fitted.front().off_after, 0.7, 0.02);
}

TEST(EfficiencyFit, EqualDevicesShareANumberAndOthersDoNot) {
  const auto graph = ChainOf(std::vector<OpOf>(6, {OpClass::kConv, 1e8}));
  const Cluster file = Devices(3);
  const auto profile = [&](double efficiency) {
    return ProfileOf(*graph, Devices(1, {{"conv", efficiency}}), DeviceId{0});
  };
  EfficiencyFit fit;
  fit.Add(On(graph, file), {{profile(0.8), profile(0.4), profile(0.79)}});
  const std::vector<FittedEfficiency> fitted = fit.Fit(file);
  ASSERT_THAT(fitted, SizeIs(3));
  EXPECT_EQ(fitted[0].efficiency, fitted[2].efficiency);
  EXPECT_NEAR(fitted[0].efficiency, 0.795, 0.008);
  EXPECT_NEAR(fitted[1].efficiency, 0.4, 0.004);
  EXPECT_EQ(fitted[0].kernels, 6U) << "those of an equal device are no further evidence";

  // In another model they differ.
  fit.Add(On(graph, file), {{profile(0.9), profile(0.4), profile(0.6)}});
  const std::vector<FittedEfficiency> apart = fit.Fit(file);
  EXPECT_NE(apart[0].efficiency, apart[2].efficiency);
  EXPECT_EQ(fit.Fit(file, 1)[0].efficiency, fitted[0].efficiency);
}

TEST(EfficiencyFit, LeavesAModelOutAsIfItHadNeverBeenAdded) {
  const auto graph = Mixed();
  const Cluster file = Devices(2);
  const auto profiles = [&](double conv, double matmul) {
    const Cluster truth = Devices(2, {{"conv", conv}, {"matmul", matmul}});
    return std::vector<OpMeasurement>{ProfileOf(*graph, truth, DeviceId{0}), ProfileOf(*graph, truth, DeviceId{1})};
  };
  EfficiencyFit all, others;
  all.Add(On(graph, file), profiles(0.6, 0.3));
  all.Add(On(graph, file), profiles(0.9, 0.2));
  all.Add(On(graph, file), profiles(0.5, 0.4));
  others.Add(On(graph, file), profiles(0.6, 0.3));
  others.Add(On(graph, file), profiles(0.5, 0.4));
  EXPECT_EQ(all.num_models(), 3U);
  EXPECT_EQ(Found(all.Fit(file, 1)), Found(others.Fit(file)));
  EXPECT_NE(Found(all.Fit(file, 2)), Found(others.Fit(file)));
  for (const FittedEfficiency& one : all.Fit(file)) EXPECT_EQ(one.models, 3U);
}

TEST(EfficiencyFit, AProfileThatFailedAddsNothing) {
  const auto graph = Mixed();
  const Cluster file = Devices(2);
  EfficiencyFit fit;
  EXPECT_THAT(fit.Fit(file), IsEmpty());
  fit.Add(On(graph, file), {{OpMeasurement{.error = "it does not compile"}, ProfileOf(*graph, file, DeviceId{1})}});
  EXPECT_THAT(Found(fit.Fit(file), DeviceId{0}), IsEmpty());
  EXPECT_THAT(Found(fit.Fit(file), DeviceId{1}), Not(IsEmpty()));
}

TEST(EfficiencyFit, ItsNumbersReachTheDeviceFileAndComeBack) {
  const auto graph = Mixed();
  const Cluster file = Devices(2, {{"conv", 0.7}, {"other", 0.2}});
  EfficiencyFit fit;
  const Cluster truth = Devices(2, {{"conv", 0.6}, {"matmul", 0.3}, {"other", 0.2}});
  fit.Add(On(graph, file), {{ProfileOf(*graph, truth, DeviceId{0}), ProfileOf(*graph, truth, DeviceId{1})}});
  const Cluster again = ParseCluster(WriteCluster(WithEfficiencies(file, fit.Fit(file))), "again");
  for (const DeviceId id : again.ids()) {
    const auto& efficiency = again.device(id).efficiency;
    EXPECT_NEAR(efficiency.at("conv").value, 0.6, 0.006);
    EXPECT_EQ(efficiency.at("conv").provenance, Provenance::kMeasured);
    EXPECT_THAT(efficiency.at("conv").source,
                HasSubstr("10 kernels in profiles of 1 model; half of their times within"));
    EXPECT_NEAR(efficiency.at("matmul").value, 0.3, 0.003);
    EXPECT_EQ(efficiency.at("other").value, 0.2);
    EXPECT_EQ(efficiency.at("other").provenance, Provenance::kGuess);
  }
  // What the file then predicts is what was measured.
  const double predicted = RooflineTimes(*graph, again).time.front(),
               measured = RooflineTimes(*graph, truth).time.front();
  EXPECT_NEAR(predicted, measured, 0.01 * measured);
  EXPECT_EQ(again.class_of(DeviceId{1}), DeviceId{0});
}

TEST(EfficiencyFit, NamesTheNumberThatADeviceFileLacks) {
  const auto graph = Mixed();
  Cluster file = Devices(1);
  Device device = file.device(DeviceId{0});
  device.memory_bandwidth.value = 0;
  const Cluster lacking("lacking", {device}, {Link{}});
  EfficiencyFit fit;
  const Problem problem(graph, std::make_shared<const Cluster>(lacking), RooflineTimes(*graph, file));
  try {
    fit.Add(problem, {{ProfileOf(*graph, file, DeviceId{0})}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cluster lacking, device d0: no memory_bandwidth"));
  }
}

}  // namespace
}  // namespace berth
