#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "import/readers.h"
#include "import/split_file.h"
#include "import/testing.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kSamples = std::string(BERTH_SOURCE_DIR) + "/samples/";
const std::string kMsr = std::string(BERTH_SHARED_DIR) + "/data/msr-dnn-partitioning";

std::string Sample() { return ReadFile(kSamples + "msr_training.json"); }

Instance ReadSample() { return ReadMsr(Sample(), "msr.json"); }

// The sample with one text replaced, which must be there.
std::string With(const std::string& from, const std::string& to, std::string text = Sample()) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& content) {
  try {
    ReadMsr(content, "msr.json").ToProblem();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

OpId OpOf(const Instance& instance, int64_t id) {
  const auto found = std::ranges::find(instance.file_ids, id);
  return MakeId<OpId>(static_cast<size_t>(found - instance.file_ids.begin()));
}

TEST(ReadMsr, ReadsDevicesTimesSizesAndClasses) {
  const Instance instance = ReadSample();
  ASSERT_TRUE(instance.is_whole());
  const Problem problem = instance.ToProblem();
  EXPECT_EQ(problem.num_devices(), 3u);
  EXPECT_EQ(problem.cluster().device(DeviceId{1}).name, "fpga1");
  EXPECT_EQ(problem.cluster().device(DeviceId{2}).name, "cpu0");
  EXPECT_EQ(problem.cluster().class_of(DeviceId{1}), DeviceId{0});
  EXPECT_EQ(problem.memory_limit(DeviceId{0}), 4096);
  EXPECT_EQ(problem.memory_limit(DeviceId{2}), INT64_MAX);
  EXPECT_EQ(problem.seconds_per_unit(), 1e-3);
  EXPECT_EQ(instance.evaluator, "pipeline");

  const OpId right = OpOf(instance, 3);
  EXPECT_EQ(problem.graph().op_name(right), "right");
  EXPECT_EQ(problem.op_time(right, DeviceId{0}), 4.0);
  EXPECT_EQ(problem.op_time(right, DeviceId{2}), 40.0);
  EXPECT_FALSE(problem.can_run(OpOf(instance, 4), DeviceId{0}));
  EXPECT_TRUE(problem.graph().is_backward(OpOf(instance, 13)));
  EXPECT_FALSE(problem.graph().is_backward(right));
  EXPECT_EQ(problem.constraints().colocate.size(), 4u);
  EXPECT_EQ(problem.graph().total_parameter_bytes(), 7 * 1024 + 2 * 512 - 1024);
  // An output is one tensor, however many edges it has, and costs what each of them says.
  const auto output = MakeId<TensorId>(problem.graph().first_output(OpOf(instance, 1)));
  EXPECT_EQ(problem.graph().consumers(output).size(), 2u);
  EXPECT_EQ(problem.staging(output), 0.5);
  EXPECT_EQ(problem.graph().tensor_bytes(output), 1073742);
  EXPECT_THAT(problem.graph().notes().front(), HasSubstr("milliseconds"));
}

TEST(ReadMsr, KeepsTheFilesOrderWhereIdsAreNotTopological) {
  const std::string text = With(R"("id": 1,)", R"("id": 99,)",
                                With(R"({"sourceId": 1, "destId": 2, "cost": 0.5},
    {"sourceId": 1, "destId": 3, "cost": 0.5},)",
                                     R"({"sourceId": 99, "destId": 2, "cost": 0.5},)"));
  const Instance instance = ReadMsr(text, "msr.json");
  EXPECT_EQ(instance.file_ids[Index(instance.graph->op_at_file_position(0))], 99);
}

TEST(ReadMsr, AddsAcceleratorsForAWhatIf) {
  const Instance instance = ReadMsr(Sample(), "msr.json", {.least_accelerators = 5});
  EXPECT_EQ(instance.cluster->num_devices(), 6u);
  EXPECT_EQ(instance.cluster->device(DeviceId{5}).name, "cpu0");
}

TEST(ReadMsr, SaysWhatIsWrongWhereAndHowToMendIt) {
  EXPECT_THAT(ErrorOf(""), StartsWith("msr.json: is empty"));
  EXPECT_THAT(ErrorOf(With(R"("name": "left",)", R"("colour": 3,)")),
              AllOf(StartsWith("msr.json: nodes[1].colour"), HasSubstr("remove it")));
  EXPECT_THAT(ErrorOf(With(R"("id": 2,)", R"("id": 1,)")), AllOf(HasSubstr("nodes[1].id: 1"), HasSubstr("nodes[0]")));
  EXPECT_THAT(ErrorOf(With(R"("fpgaLatency": 3.0)", R"("fpgaLatency": -3.0)")),
              HasSubstr("nodes[1].fpgaLatency: is -3; expected a number from 0"));
  EXPECT_THAT(ErrorOf(With(R"("fpgaLatency": 3.0)", R"("fpgaLatency": NaN)")), HasSubstr("msr.json:7:"));
  EXPECT_THAT(ErrorOf(With(R"("fpgaLatency": 3.0)", R"("fpgaLatency": 1e999)")), StartsWith("msr.json: "));
  EXPECT_THAT(ErrorOf(With(R"("destId": 11, "cost": 0.5)", R"("destId": 77, "cost": 0.5)")),
              HasSubstr("edges[8].destId: no node has the id 77"));
  EXPECT_THAT(ErrorOf(With(R"("destId": 3, "cost": 0.5)", R"("destId": 3, "cost": 0.75)")),
              AllOf(HasSubstr("edges[1].cost"), HasSubstr("edges[0]")));
  EXPECT_THAT(ErrorOf(With(R"("sourceId": 5, "destId": 15)", R"("sourceId": 15, "destId": 5)")), HasSubstr("cost"));
  EXPECT_THAT(ErrorOf(With(R"("sourceId": 4, "destId": 5)", R"("sourceId": 15, "destId": 5)")), HasSubstr("cost"));
  EXPECT_THAT(
      ErrorOf(With(R"("sourceId": 4, "destId": 5, "cost": 0.0625)", R"("sourceId": 11, "destId": 1, "cost": 1)")),
      HasSubstr("cycle"));
  EXPECT_THAT(ErrorOf(With(R"("supportedOnFpga": 1,)", R"("supportedOnFpga": 2,)")),
              HasSubstr("nodes[0].supportedOnFpga: expected an integer from 0 to 1"));
  EXPECT_THAT(ErrorOf(Sample().substr(0, 700)), AllOf(StartsWith("msr.json:"), HasSubstr("not valid JSON")));
  EXPECT_THAT(ErrorOf(With(R"("maxFPGAs": 2)", R"("maxFPGAs": 0)", With(R"("maxCPUs": 1)", R"("maxCPUs": 0)"))),
              HasSubstr("there must be a device"));
  EXPECT_EQ(ErrorOf(With(R"("colorClass": 3, "size": 1024.0)", R"("colorClass": 3, "size": 7.1e13)")),
            "msr.json: nodes[2].size: is 71000000000000; expected a number from 0 to 70368744177664");
  // What 64 TiB take.
  EXPECT_EQ(ErrorOf(With(R"("cost": 0.125)", R"("cost": 32768001)")),
            "msr.json: edges[3].cost: is 32768001; expected a number from 0 to 32768000");
  EXPECT_EQ(ErrorOf(With(R"("cost": 0.125)", R"("cost": 32768000)")), "no error");
}

TEST(ReadMsr, NamesAColourClassThatCannotShareADevice) {
  const std::string no_cpu = With(R"("maxCPUs": 1)", R"("maxCPUs": 0)");
  EXPECT_THAT(ErrorOf(With(R"("id": 3, "supportedOnFpga": true)", R"("id": 3, "supportedOnFpga": false)", no_cpu)),
              HasSubstr("colorClass 3"));
  EXPECT_THAT(ErrorOf(With("4096.0", "2047.0", no_cpu)),
              AllOf(HasSubstr("colorClass 1"), HasSubstr("2048 bytes"), HasSubstr("maxSizePerFPGA")));
}

TEST(ReadMsr, SurvivesMutatedFiles) {
  const std::string sample = Sample();
  Random random(20200612);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = testing::Damaged(sample, random, "0123456789-.e{}[],:\"tfn \n");
    const std::string error = ErrorOf(text);
    if (error == "no error") continue;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    // What only the problem can find out does not know the file.
    EXPECT_TRUE(error.starts_with("msr.json") || error.starts_with("op ")) << error;
  }
}

TEST(ReadMsr, ReadsEveryInstanceOfTheDataSet) {
  if (!std::filesystem::exists(kMsr)) GTEST_SKIP() << kMsr << " is not here";
  size_t files = 0;
  for (const std::string folder : {"/throughput-inputs", "/latency-inputs"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kMsr + folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string();
      const std::string content = ReadFile(path);
      EXPECT_TRUE(LooksLikeMsr(content)) << path;
      const Problem problem = ReadMsr(content, path).ToProblem();
      EXPECT_EQ(problem.graph().total_parameter_bytes() > 0, true) << path;
      EXPECT_FALSE(problem.constraints().empty() && path.find("training") != std::string::npos) << path;
      ++files;
    }
  }
  EXPECT_EQ(files, 24u);
}

std::string SplitErrorOf(const std::string& content) {
  try {
    ReadSplit(content, "split.json", ReadSample());
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SplitFile, IsAPlan) {
  const Instance instance = ReadSample();
  const std::string content = ReadFile(kSamples + "msr_training.split.json");
  EXPECT_TRUE(LooksLikeSplit(content));
  const Plan plan = ReadSplit("1 warning\n" + content, "split.json", instance);
  EXPECT_EQ(plan.device[Index(OpOf(instance, 2))], DeviceId{1});
  EXPECT_EQ(plan.device[Index(OpOf(instance, 4))], DeviceId{2});
  // Backward nodes follow their colour class.
  EXPECT_EQ(plan.device[Index(OpOf(instance, 12))], DeviceId{1});
  EXPECT_EQ(plan.device[Index(OpOf(instance, 13))], DeviceId{0});
}

TEST(SplitFile, SaysWhatIsWrong) {
  const std::string content = ReadFile(kSamples + "msr_training.split.json");
  EXPECT_THAT(SplitErrorOf(With("[1, 3]", "[1, 33]", content)),
              AllOf(StartsWith("split.json: fpgas[0].nodes[1]: 33"), HasSubstr("no node")));
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THAT(SplitErrorOf(With("[1, 3]", "[1, " + deep + "]", content)),
              StartsWith("split.json: fpgas[0].nodes[1]: array is no node of the instance"));
  EXPECT_THAT(SplitErrorOf(With("[2, 5]", "[2, 3]", content)),
              AllOf(HasSubstr("fpgas[1].nodes[1]"), HasSubstr("on fpga0 already")));
  EXPECT_THAT(SplitErrorOf(With("[4]", "[]", content)), HasSubstr("node 4 is on no device"));
  EXPECT_THAT(SplitErrorOf(With("[2, 5]", "[2, 5, 4]", With("[4]", "[]", content))), HasSubstr("cannot run on fpga1"));
  EXPECT_THAT(SplitErrorOf(With("[1, 3]", "[1, 3, 12]", content)), HasSubstr("must share a device"));
  EXPECT_THAT(SplitErrorOf(With(R"("cpus")", R"("gpus")", content)), HasSubstr("cpus: is missing"));
  EXPECT_THAT(SplitErrorOf("{}"), HasSubstr("fpgas: is missing"));
  EXPECT_THAT(SplitErrorOf("nothing"), HasSubstr("split.json"));
}

}  // namespace
}  // namespace berth
