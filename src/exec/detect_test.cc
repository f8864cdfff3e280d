#include "exec/detect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "exec/worker_script.h"

namespace berth {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OnePerPhysicalCore, LeavesOutTheFurtherThreadsOfEach) {
  const std::filesystem::path folder = ::testing::TempDir() + fmt::format("/berth_cores_{}", ::getpid());
  std::filesystem::remove_all(folder);
  // Two cores of two threads each; of cpu4 nothing is said.
  for (int core = 0; core < 4; ++core) {
    const auto topology = folder / fmt::format("cpu{}", core) / "topology";
    std::filesystem::create_directories(topology);
    std::ofstream(topology / "thread_siblings_list") << (core % 2 == 0 ? "0,2\n" : "1,3\n");
  }
  EXPECT_THAT(OnePerPhysicalCore({0, 1, 2, 3, 4}, folder), ElementsAre(0, 1, 4));
  EXPECT_THAT(OnePerPhysicalCore({2, 3}, folder), ElementsAre(2, 3)) << "the others may not be used";
  EXPECT_THAT(OnePerPhysicalCore({5, 6}, folder / "nowhere"), ElementsAre(5, 6));
  std::filesystem::remove_all(folder);
}

// Of three devices one takes no f32.
TEST(DetectMachine, LeavesOutADeviceThatCannotBeMeasuredGuessesALinkAndSaysSo) {
  const std::string rates =
      R"({"rates": {"f32": {"matmul_flops": [1e9], "conv_flops": [2e9]}}, "bandwidth": [3e9], "op_overhead": [1e-6], "pace": [3e-4, 5e-4, 4e-4]})";
  const std::string link = R"({"latency": [5e-6], "bandwidth": [4e9]})";
  const Script program(fmt::format(
      "read -r line; echo '{}'\nread -r line; echo '{}'\n", R"({"devices": [{"runs_on": "NPU"}, {"runs_on": "CPU"}]})",
      fmt::format(
          R"({{"devices": [{{"error": "no f32"}}, {0}, {0}], "links": [null, null, null, null, null, {1}, null, {{"error": "no thread"}}, null]}})",
          rates, link)));
  std::vector<std::string> warnings;
  const Cluster cluster = DetectMachine({.cores = {0, 1},
                                         .split = 2,
                                         .warn = [&](const std::string& text) { warnings.push_back(text); },
                                         .program = program.path()});
  EXPECT_THAT(warnings,
              ElementsAre("npu is left out, since it could not be measured: no f32",
                          "the link from cpu1 to cpu0 is a guess, since it could not be measured: no thread"));
  ASSERT_EQ(cluster.num_devices(), 2U);
  EXPECT_EQ(cluster.device(DeviceId{0}).name, "cpu0");
  EXPECT_EQ(cluster.device(DeviceId{1}).peak.at("f32").value, 2e9);
  EXPECT_EQ(cluster.device(DeviceId{1}).pace, 4e-4) << "the median, at which the worker tells the rest";
  EXPECT_EQ(cluster.link(DeviceId{0}, DeviceId{1}).latency.value, 5e-6);
  EXPECT_EQ(cluster.link(DeviceId{1}, DeviceId{0}).latency.provenance, Provenance::kGuess);
}

TEST(DetectMachine, WritesThePeakOfEachTypeAndTheEfficienciesOfTheDevicesOwn) {
  const Script program(fmt::format(
      "read -r line; echo '{}'\nread -r line; echo '{}'\n", R"({"devices": [{"runs_on": "CPU"}]})",
      R"({"devices": [{"rates": {"f32": {"matmul_flops": [1e9], "conv_flops": [2e9]}, "i8": {"matmul_flops": [8e9], "conv_flops": [5e9]}}, "bandwidth": [3e9], "op_overhead": [1e-6]}], "links": [null]})"));
  const Cluster cluster = DetectMachine({.cores = {0}, .program = program.path()});
  const Device& device = cluster.device(DeviceId{0});
  EXPECT_EQ(device.peak.at("f32").value, 2e9);
  EXPECT_EQ(device.peak.at("i8").value, 8e9);
  EXPECT_EQ(device.peak.size(), 2U);
  EXPECT_EQ(device.efficiency.at("matmul").value, 0.5);
  EXPECT_EQ(device.efficiency.at("conv").value, 1);
}

TEST(DetectMachine, WritesTheMemoryThatAGpuTells) {
  const Script program(fmt::format(
      "read -r line; echo '{}'\nread -r line; echo '{}'\n",
      R"({"devices": [{"runs_on": "GPU", "memory_bytes": 8e9}, {"runs_on": "NPU", "memory_bytes": 0}]})",
      R"({"devices": [{"rates": {"f32": {"matmul_flops": [1e9], "conv_flops": [2e9]}}, "bandwidth": [3e9], "op_overhead": [1e-6]}, {"rates": {"f32": {"matmul_flops": [1e9], "conv_flops": [2e9]}}, "bandwidth": [3e9], "op_overhead": [1e-6]}], "links": [null, null, null, null]})"));
  const Cluster cluster = DetectMachine({.cores = {0}, .program = program.path()});
  ASSERT_TRUE(cluster.device(DeviceId{0}).memory);
  EXPECT_EQ(cluster.device(DeviceId{0}).memory->value, 8e9);
  EXPECT_FALSE(cluster.device(DeviceId{1}).memory) << "it does not tell";
}

// The second core was measured in a slow moment.
TEST(DetectMachine, TellsEqualCoresAtOnePace) {
  const auto core = [](double rate, double overhead, const char* paces) {
    return fmt::format(
        R"({{"rates": {{"f32": {{"matmul_flops": [{0}], "conv_flops": [{0}]}}}}, "bandwidth": [{0}], "op_overhead": [{1}], "pace": {2}}})",
        rate, overhead, paces);
  };
  const Script program(
      fmt::format("read -r line; echo '{}'\nread -r line; echo '{}'\n", R"({"devices": [{"runs_on": "CPU"}]})",
                  fmt::format(R"({{"devices": [{}, {}], "links": [null, null, null, null]}})",
                              core(32e9, 1e-6, "[1e-4, 1e-4, 1e-4, 1e-4]"), core(2e9, 16e-6, "[32e-4, 1e-4, 32e-4]"))));
  const Cluster cluster = DetectMachine({.cores = {0, 1}, .split = 2, .program = program.path()});
  for (const DeviceId id : cluster.ids()) {
    const Device& device = cluster.device(id);
    EXPECT_EQ(device.pace, 1e-4) << "the median of all seven";
    EXPECT_NEAR(device.peak.at("f32").value, 32e9, 1e7);
    EXPECT_NEAR(device.memory_bandwidth.value, 32e9, 1e7);
    EXPECT_NEAR(device.op_overhead.value, 1e-6, 1e-9);
  }
  EXPECT_EQ(cluster.class_of(DeviceId{1}), DeviceId{0}) << "they may be swapped";
}

TEST(DetectMachine, KeepsThePacesOfFastAndSlowCoresApart) {
  const auto core = [](double rate, const char* paces) {
    return fmt::format(
        R"({{"rates": {{"f32": {{"matmul_flops": [{0}], "conv_flops": [{0}]}}}}, "bandwidth": [{0}], "op_overhead": [1e-6], "pace": {1}}})",
        rate, paces);
  };
  const Script program(fmt::format("read -r line; echo '{}'\nread -r line; echo '{}'\n",
                                   R"({"devices": [{"runs_on": "CPU"}]})",
                                   fmt::format(R"({{"devices": [{}, {}], "links": [null, null, null, null]}})",
                                               core(8e9, "[3e-4, 4e-4, 4e-4]"), core(4e9, "[6e-4, 7e-4, 7e-4]"))));
  const Cluster cluster = DetectMachine({.cores = {0, 1}, .split = 2, .program = program.path()});
  EXPECT_EQ(cluster.device(DeviceId{0}).pace, 4e-4);
  EXPECT_EQ(cluster.device(DeviceId{1}).pace, 7e-4);
  EXPECT_EQ(cluster.device(DeviceId{0}).peak.at("f32").value, 8e9);
  EXPECT_EQ(cluster.device(DeviceId{1}).peak.at("f32").value, 4e9);
}

TEST(DetectMachine, SaysThatRunsOfANumberDiffer) {
  const std::string rates =
      R"({"rates": {"f32": {"matmul_flops": [1e9], "conv_flops": [2e9]}}, "bandwidth": [3e9, 9e9, 4e9], "op_overhead": [1e-6]})";
  const Script program(fmt::format("read -r line; echo '{}'\nread -r line; echo '{}'\n",
                                   R"({"devices": [{"runs_on": "CPU"}]})",
                                   fmt::format(R"({{"devices": [{}], "links": [null]}})", rates)));
  std::vector<std::string> warnings;
  DetectMachine(
      {.cores = {0}, .warn = [&](const std::string& text) { warnings.push_back(text); }, .program = program.path()});
  EXPECT_THAT(warnings,
              ElementsAre("runs of one number (an elementwise op on more than the caches hold) differ by up to "
                          "150 %: other programs have the cores, or their "
                          "clock changes; detect again on a machine at rest"));
}

TEST(DetectMachine, SaysThatALinkToAGpuIsAGuess) {
  const std::string rates =
      R"({"rates": {"f32": {"matmul_flops": [1e9], "conv_flops": [2e9]}}, "bandwidth": [3e9], "op_overhead": [1e-6]})";
  const Script program(fmt::format(
      "read -r line; echo '{}'\nread -r line; echo '{}'\n", R"({"devices": [{"runs_on": "CPU"}, {"runs_on": "GPU"}]})",
      fmt::format(R"({{"devices": [{0}, {0}], "links": [null, null, null, null]}})", rates)));
  std::vector<std::string> warnings;
  const Cluster cluster = DetectMachine(
      {.cores = {0}, .warn = [&](const std::string& text) { warnings.push_back(text); }, .program = program.path()});
  ASSERT_EQ(cluster.num_devices(), 2u);
  EXPECT_EQ(cluster.link(DeviceId{0}, DeviceId{1}).latency.provenance, Provenance::kGuess);
  EXPECT_THAT(warnings, Contains(HasSubstr("2 of 2 links are guesses (cpu -> gpu, gpu -> cpu): only links between")));
}

TEST(DetectMachine, SaysWhyWhereNoDeviceCanBeMeasured) {
  const Script program(fmt::format("read -r line; echo '{}'\nread -r line; echo '{}'\n",
                                   R"({"devices": [{"runs_on": "NPU"}]})",
                                   R"({"devices": [{"error": "no f32"}], "links": [null]})"));
  try {
    DetectMachine({.cores = {0}, .program = program.path()});
    FAIL() << "nothing was measured";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "measuring this machine: no device could be measured; the first: no f32");
  }
}

}  // namespace
}  // namespace berth
