// Piper's and PipeDream's files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "import/read_piper.h"
#include "import/readers.h"
#include "import/testing.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kSamples = std::string(BERTH_SOURCE_DIR) + "/samples/";
const std::string kData = std::string(BERTH_SHARED_DIR) + "/data";

std::string PiperSample() { return ReadFile(kSamples + "piper.json"); }
std::string PipeDreamSample() { return ReadFile(kSamples + "pipedream.graph.txt"); }

std::string With(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

template <typename Reader>
std::string ErrorOf(const Reader& reader, const std::string& content) {
  try {
    reader(content);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string PiperError(const std::string& content) {
  return ErrorOf([](const std::string& text) { ReadPiper(text, "piper.json").ToProblem(); }, content);
}

std::string PipeDreamError(const std::string& content) {
  return ErrorOf([](const std::string& text) { ReadPipeDream(text, "graph.txt"); }, content);
}

// Each mutated file is read, or refused in one line that names it.
template <typename Reader>
void ExpectSurvivesMutations(const std::string& sample, std::string_view path, const Reader& error_of) {
  Random random(20210101);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = testing::Damaged(sample, random, "0123456789-.e{}[],:;=\"tfn \n\t");
    const std::string error = error_of(text);
    if (error == "no error") continue;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_TRUE(error.starts_with(path)) << error;
  }
}

TEST(ReadPiper, HasTwoColumnsOfCosts) {
  const Instance vanilla = ReadPiper(PiperSample(), "piper.json");
  const Problem problem = vanilla.ToProblem();
  EXPECT_EQ(problem.num_devices(), 2u);
  EXPECT_EQ(problem.memory_limit(DeviceId{1}), 1000000);
  EXPECT_EQ(problem.op_time(OpId{1}, DeviceId{0}), 1.0);
  EXPECT_EQ(problem.graph().parameter_bytes(ParameterId{1}), 2048 + 32768);
  const Instance recomputation = ReadPiper(PiperSample(), "piper.json", PiperConfiguration::kRecomputation);
  EXPECT_EQ(recomputation.ToProblem().op_time(OpId{1}, DeviceId{0}), 1.5);
  EXPECT_EQ(recomputation.file_ids, (std::vector<int64_t>{10, 20, 30}));
}

TEST(ReadPiper, PaysPerEdgeForTheActivationAndItsGradient) {
  const Problem problem = ReadPiper(PiperSample(), "piper.json").ToProblem();
  ASSERT_EQ(problem.graph().num_tensors(), 3u);
  EXPECT_EQ(problem.graph().tensor_bytes(TensorId{0}), 125000);
  EXPECT_EQ(problem.transfer_time(TensorId{0}, DeviceId{0}, DeviceId{1}), 0.125);
}

TEST(ReadPiper, KeepsAllConfigurationsForOtherPlanners) {
  const PiperModel model = ParsePiper(PiperSample(), "piper.json");
  EXPECT_EQ(model.microbatches, 8);
  ASSERT_EQ(model.layers[0].by_degree.size(), 2u);
  const PiperVariant& split = model.layers[0].by_degree.at(2).front();
  EXPECT_EQ(split.time, 0.125);
  EXPECT_EQ(split.sync_backward.at(20), 62500);
}

TEST(ReadPiper, SaysWhatIsWrong) {
  EXPECT_THAT(PiperError(With(PiperSample(), R"("timePerSample": 1.0)", R"("timePerSample": -1.0)")),
              HasSubstr("nodes[1].TMPCs.1[0].timePerSample: is -1"));
  EXPECT_THAT(PiperError(With(PiperSample(), R"("id": 20)", R"("id": 10)")),
              HasSubstr("nodes[1].id: 10 is the id of nodes[0]"));
  EXPECT_THAT(PiperError(With(PiperSample(), R"("destId": 20)", R"("destId": 21)")),
              HasSubstr("edges[0].destId: no layer has the id 21"));
  EXPECT_THAT(PiperError(With(PiperSample(), R"("parameterSize")", R"("parameters")")),
              HasSubstr("nodes[0].TMPCs.1[0].parameterSize: is missing"));
  EXPECT_THAT(PiperError(With(PiperSample(), R"("maxDevices": 2)", R"("maxDevices": 2, "minDevices": 1)")),
              HasSubstr("minDevices: unknown key"));
  EXPECT_THAT(PiperError(With(PiperSample(), R"("vanilla")", R"("plain")")),
              AllOf(HasSubstr("layer 10 (embed)"), HasSubstr("'vanilla'")));
  EXPECT_THAT(PiperError(With(PiperSample(), R"("2": [)", R"("two": [)")), HasSubstr("nodes[0].TMPCs.two"));
  // Half of 64 TiB, since a parameter is two of these together.
  EXPECT_EQ(PiperError(With(PiperSample(), R"("memoryUsageB": 32768.0)", R"("memoryUsageB": 3.6e13)")),
            "piper.json: nodes[1].TMPCs.1[0].memoryUsageB: is 36000000000000; expected a number from 0 to "
            "35184372088832");
  ExpectSurvivesMutations(PiperSample(), "piper.json", PiperError);
}

TEST(ReadPiper, ReadsEveryFileOfTheDataSet) {
  if (!std::filesystem::exists(kData + "/piper")) GTEST_SKIP() << kData << "/piper is not here";
  const std::pair<std::string, double> files[] = {
      {"bert32a100", 0.9728639999999998}, {"gnmt", 520.4530000000001}, {"resnet", 462.38100000000003}};
  for (const auto& [name, total] : files) {
    const std::string path = kData + "/piper/" + name + ".json", content = ReadFile(path);
    EXPECT_TRUE(LooksLikePiper(content));
    const Problem problem = ReadPiper(content, path).ToProblem();
    double sum = 0;
    for (const OpId op : problem.graph().ops()) sum += problem.op_time(op, DeviceId{0});
    EXPECT_NEAR(sum, total, 1e-9 * total) << name;
    const Problem other = ReadPiper(content, path, PiperConfiguration::kRecomputation).ToProblem();
    for (const OpId op : problem.graph().ops())
      EXPECT_GE(other.op_time(op, DeviceId{0}), problem.op_time(op, DeviceId{0}));
  }
}

TEST(ReadPipeDream, MakesAForwardAndABackwardOpOfEachLayer) {
  const Instance instance = ReadPipeDream(PipeDreamSample(), "graph.txt");
  const Graph& graph = *instance.graph;
  EXPECT_FALSE(instance.is_whole());
  EXPECT_EQ(instance.options.seconds_per_unit, 1e-3);
  EXPECT_EQ(graph.num_ops(), 10u);
  EXPECT_EQ(instance.options.constraints.colocate.size(), 5u);
  // The file's first layer is not the first to run.
  const OpId lstm = graph.op_at_file_position(0);
  EXPECT_EQ(graph.op_name(lstm), "node3");
  EXPECT_EQ(graph.op_type(lstm), "LSTM");
  EXPECT_EQ(instance.times_by_kind.at("gpu")[Index(lstm)], 2.0);
  EXPECT_EQ(graph.tensor_bytes(MakeId<TensorId>(graph.first_output(lstm))), 5120);
  EXPECT_EQ(graph.op_type(graph.op_at_file_position(3)), "Encoder");

  size_t backward = 0;
  for (const OpId op : graph.ops()) {
    if (!graph.is_backward(op)) continue;
    ++backward;
    // Each runs after its own forward op.
    const std::string forward(graph.op_name(op).substr(5));
    for (const OpId other : graph.ops()) {
      EXPECT_TRUE(graph.op_name(other) != forward || other < op) << forward;
    }
  }
  EXPECT_EQ(backward, 5u);
}

TEST(ReadPipeDream, ReadsTheForwardPassAlone) {
  const Instance instance = ReadPipeDream(PipeDreamSample(), "graph.txt", {.training = false});
  EXPECT_EQ(instance.graph->num_ops(), 5u);
  EXPECT_EQ(instance.graph->num_edges(), 5u);
  EXPECT_TRUE(instance.options.constraints.empty());
}

TEST(ReadPipeDream, SaysWhatIsWrong) {
  const std::string sample = PipeDreamSample();
  EXPECT_THAT(PipeDreamError(""), StartsWith("graph.txt: has no layers"));
  EXPECT_THAT(PipeDreamError(With(sample, "forward_compute_time=2.000", "forward_compute_time=-2.000")),
              HasSubstr("graph.txt:1: forward_compute_time is '-2.000'"));
  EXPECT_THAT(PipeDreamError(With(sample, "backward_compute_time=3.000", "backward_compute_time=nan")),
              HasSubstr("graph.txt:1: backward_compute_time is 'nan'"));
  EXPECT_THAT(PipeDreamError(With(sample, "node2 -- Emb", "node1 -- Emb")),
              HasSubstr("graph.txt:3: there is a layer node1 already"));
  EXPECT_THAT(PipeDreamError(With(sample, "\tnode4 -- node5", "\tnode4 -- node6")),
              HasSubstr("graph.txt:10: there is no layer node6"));
  EXPECT_THAT(PipeDreamError(With(sample, "parameter_size=131072.000", "parameter_size=131072.000, colour=1")),
              HasSubstr("unknown field 'colour=1'"));
  EXPECT_THAT(PipeDreamError(With(sample, "512.0; 512.0]", "512.0; 512.0")), HasSubstr("graph.txt:1: "));
  EXPECT_THAT(PipeDreamError(With(sample, "\tnode1 -- node2", "\tnode5 -- node2")), HasSubstr("cycle"));
  ExpectSurvivesMutations(sample, "graph.txt", PipeDreamError);
}

// The MSR layer graphs were made from these profiles: the same layers, the same times.
TEST(ReadPipeDream, AListAddsUpToNoMoreThanOneNumberMayBe) {
  std::string list = "activation_size=[7e13";
  for (int i = 0; i < 10'000; ++i) list += "; 7e13";
  const std::string file = "node1 -- Linear(in=1) -- forward_compute_time=1.0, backward_compute_time=1.0, " + list +
                           "], parameter_size=0.0\n";
  EXPECT_EQ(PipeDreamError(file), "graph.txt:1: activation_size adds up to more than 70368744177664; correct the list");
}

TEST(ReadPipeDream, AgreesWithTheMsrLayerGraphs) {
  if (!std::filesystem::exists(kData + "/pipedream")) GTEST_SKIP() << kData << "/pipedream is not here";
  const std::pair<std::string, std::string> same[] = {
      {"resnet50", "resnet50"}, {"inception_v3", "inceptionv3"}, {"gnmt_large", "gnmt"}};
  for (const auto& [profile, graph] : same) {
    const std::string path = kData + "/pipedream/" + profile + ".graph.txt";
    for (const bool training : {false, true}) {
      const std::string msr_path = kData + "/msr-dnn-partitioning/throughput-inputs/LayerGraphs/" + graph +
                                   (training ? "_training" : "_inference") + ".json";
      const Instance ours = ReadPipeDream(ReadFile(path), path, {.training = training});
      const Problem theirs = ReadMsr(ReadFile(msr_path), msr_path).ToProblem();
      EXPECT_EQ(ours.graph->num_ops(), theirs.num_ops()) << profile;
      const std::vector<double>& times = ours.times_by_kind.at("gpu");
      double sum = 0;
      for (const OpId op : theirs.graph().ops()) sum += theirs.op_time(op, DeviceId{0});
      EXPECT_NEAR(std::accumulate(times.begin(), times.end(), 0.0), sum, 1e-3) << profile;
    }
  }
}

TEST(ReadPipeDream, ReadsEveryFileOfTheDataSet) {
  if (!std::filesystem::exists(kData + "/pipedream")) GTEST_SKIP() << kData << "/pipedream is not here";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kData + "/pipedream")) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".graph.txt")) continue;
    const std::string content = ReadFile(path);
    EXPECT_TRUE(LooksLikePipeDream(content)) << path;
    EXPECT_GT(ReadPipeDream(content, path).graph->num_ops(), 20u) << path;
    ++files;
  }
  EXPECT_EQ(files, 14u);
}

}  // namespace
}  // namespace berth
