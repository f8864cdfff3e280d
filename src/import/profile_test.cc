#include "import/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cluster/presets.h"
#include "import/cost_models.h"
#include "import/import.h"

namespace berth {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kProfiles = BERTH_SHARED_DIR "/models/ort_profiles/";

bool HaveProfiles() { return std::filesystem::exists(kProfiles); }

std::string Mistake(std::string_view content) {
  try {
    ReadProfile(content, "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Of the files that speak of one device.
OpProfile ReadOne(std::string_view content, const std::string& path) {
  std::vector<OpProfile> profiles = ReadProfile(content, path);
  EXPECT_EQ(profiles.size(), 1u);
  return std::move(profiles.front());
}

TEST(ReadProfile, ReadsWhatWriteProfileWroteDeviceByDevice) {
  OpTimeTable table{.model = "m", .cluster = "here", .runtime = "r", .machine = "x", .runs = 3};
  table.columns.push_back({.device = "cpu0",
                           .rows = {{"a", Seconds{12.5e-6}, "shared"}, {"b", Seconds{0}, "shared"}},
                           .fused = {{"a", "b"}},
                           .pace = Seconds{4e-4},
                           .flops = 1e9});
  table.columns.push_back({.device = "cpu1", .rows = {{"a", Seconds{1e-3}, "own"}}});
  const std::vector<OpProfile> profiles = ReadProfile(WriteProfile(table), "p.json");
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[0].device, "cpu0");
  EXPECT_DOUBLE_EQ(profiles[0].time_by_op.at("a").value, 12.5e-6);
  EXPECT_EQ(profiles[0].time_by_op.at("b").value, 0);
  EXPECT_DOUBLE_EQ(profiles[0].pace, 4e-4);
  EXPECT_EQ(profiles[0].flops, 1e9);
  EXPECT_EQ(profiles[1].pace, 0) << "not known";
  EXPECT_EQ(profiles[1].flops, 0) << "not known";
  EXPECT_EQ(profiles[0].fused, (std::vector<std::vector<std::string>>{{"a", "b"}}));
  EXPECT_EQ(profiles[1].device, "cpu1");
  EXPECT_EQ(profiles[1].fused, std::vector<std::vector<std::string>>()) << "nothing, and it says so";
  EXPECT_DOUBLE_EQ(profiles[1].time_by_op.at("a").value, 1e-3);
}

TEST(ReadProfile, NamesThePlaceOfAMistakeInATable) {
  EXPECT_EQ(Mistake(R"({"berth-profile": 2, "devices": []})"),
            "p.json: berth-profile: a version that is not known; expected 1");
  EXPECT_EQ(Mistake(R"({"berth-profile": 1, "devices": []})"),
            "p.json: devices: is empty; expected a device with its times");
  EXPECT_EQ(Mistake(R"({"berth-profile": 1, "devices": [{"device": "cpu", "nodes": []}]})"),
            "p.json: devices[0].nodes: is empty; expected the times of some ops");
  EXPECT_THAT(Mistake(R"({"berth-profile": 1, "devices": [{"device": "cpu", "nodes": [{"name": "a", "us": -1}]}]})"),
              StartsWith("p.json: devices[0].nodes[0].us"));
  const auto fused = [](const std::string& kernels) {
    return Mistake(R"({"berth-profile": 1, "devices": [{"device": "cpu", "fused": )" + kernels +
                   R"(, "nodes": [{"name": "a", "us": 1}, {"name": "b", "us": 1}]}]})");
  };
  EXPECT_EQ(fused(R"([["a", "b"]])"), "no error");
  EXPECT_THAT(fused("7"), StartsWith("p.json: devices[0].fused"));
  EXPECT_EQ(fused(R"([["a"]])"), "p.json: devices[0].fused[0]: is no list of two or more names");
  EXPECT_EQ(fused(R"([["a", 7]])"), "p.json: devices[0].fused[0]: is no list of two or more names");
  EXPECT_EQ(fused(R"([["a", "b"], ["c", "d"]])"),
            "p.json: devices[0].fused[1]: 'c'; expected names of nodes, each once");
  EXPECT_EQ(fused(R"([["a", "a"]])"), "p.json: devices[0].fused[0]: 'a'; expected names of nodes, each once");
}

TEST(ReadProfile, TakesMediansOfASummary) {
  const OpProfile profile = ReadOne(
      R"({"model": "m", "nodes": [
        {"name": "a", "op": "Conv", "us_median": 12.5, "provider": "CPUExecutionProvider"},
        {"name": "", "us_median": 1},
        {"name": "b", "us_median": 0, "provider": "CPUExecutionProvider"}]})",
      "p.json");
  EXPECT_EQ(profile.path, "p.json");
  EXPECT_EQ(profile.device, "cpu");
  ASSERT_EQ(profile.time_by_op.size(), 2u);
  EXPECT_EQ(profile.time_by_op.at("a").value, 12.5e-6);
  EXPECT_EQ(profile.time_by_op.at("b").value, 0);
}

TEST(ReadProfile, SumsATraceByRunAndTakesTheMedianWithoutTheFirst) {
  // Three runs; "a" runs twice in each.
  std::string trace = R"([{"cat": "Session", "name": "session_initialization", "ts": 0, "dur": 5})";
  const std::vector<std::pair<int, int>> runs = {{90, 70}, {10, 20}, {11, 31}};
  for (size_t run = 0; run < runs.size(); ++run) {
    const size_t ts = 1000 * (run + 1);
    trace += fmt::format(
        R"(,{{"cat": "Node", "name": "a_kernel_time", "ts": {}, "dur": {}, "args": {{"provider": "CUDAExecutionProvider"}}}})",
        ts + 1, runs[run].first);
    trace += fmt::format(R"(,{{"cat": "Node", "name": "a_kernel_time", "ts": {}, "dur": {}, "args": {{}}}})", ts + 200,
                         runs[run].second);
    trace += fmt::format(R"(,{{"cat": "Node", "name": "a_fence_before", "ts": {}, "dur": 7}})", ts + 300);
    trace += fmt::format(R"(,{{"cat": "Session", "name": "model_run", "ts": {}, "dur": 500}})", ts);
  }
  const OpProfile profile = ReadOne(trace + "]", "p.json");
  EXPECT_EQ(profile.device, "gpu");
  ASSERT_EQ(profile.time_by_op.size(), 1u);
  EXPECT_DOUBLE_EQ(profile.time_by_op.at("a").value, 36e-6);
}

TEST(ReadProfile, NamesThePlaceOfEachMistake) {
  EXPECT_THAT(Mistake(""), StartsWith("p.json"));
  EXPECT_THAT(Mistake("{\"nodes\": [{\"na"), StartsWith("p.json"));
  EXPECT_THAT(Mistake("\x7f"
                      "ELF"),
              StartsWith("p.json"));
  EXPECT_THAT(Mistake("7"), StartsWith("p.json"));
  EXPECT_THAT(Mistake("{}"), HasSubstr("nodes"));
  EXPECT_THAT(Mistake("[]"), HasSubstr("no op's time"));
  EXPECT_THAT(Mistake("[1, null, {}, {\"cat\": 3}]"), HasSubstr("no op's time"));
  EXPECT_THAT(Mistake(R"({"nodes": [{"us_median": 1}]})"), HasSubstr("nodes[0]"));
  EXPECT_THAT(Mistake(R"({"nodes": [{"name": "a", "us_median": 1}, {"name": "b"}]})"), HasSubstr("nodes[1]"));
  EXPECT_THAT(Mistake(R"({"nodes": [{"name": "a", "us_median": -1}]})"), HasSubstr("us_median"));
  EXPECT_THAT(Mistake(R"({"nodes": [{"name": "a", "us_median": "1"}]})"), HasSubstr("us_median"));
  EXPECT_THAT(Mistake(R"({"nodes": [{"name": "a", "us_median": 1}, {"name": "a", "us_median": 1}]})"),
              HasSubstr("a second 'a'"));
  EXPECT_THAT(Mistake(R"([{"cat": "Node", "name": "a_kernel_time", "ts": 1}])"), HasSubstr("dur"));
}

TEST(ReadProfile, ATraceAndItsSummaryAgree) {
  if (!HaveProfiles()) GTEST_SKIP() << kProfiles << " is not here";
  const auto read = [](const std::string& name) { return ReadOne(ReadFile(kProfiles + name), name); };
  const OpProfile summary = read("light_squeezenet.ortcpu.json");
  const OpProfile trace = read("light_squeezenet.raw_chrome_trace.json");
  EXPECT_EQ(trace.device, "cpu");
  EXPECT_EQ(trace.time_by_op, summary.time_by_op);
}

TEST(ReadProfile, CoversEveryOpOfTheModelsThatWereProfiled) {
  if (!HaveProfiles()) GTEST_SKIP() << kProfiles << " is not here";
  const std::map<std::string, std::string> folders = {
      {"bert_base_s128", "custom"},         {"gpt2_decode_p128", "custom"},   {"inception_v3", "torchvision"},
      {"light_inception_v1", "onnx-light"}, {"light_resnet50", "onnx-light"}, {"light_squeezenet", "onnx-light"},
      {"mobilenet_v2", "torchvision"},      {"resnet50", "torchvision"}};
  for (const auto& [model, folder] : folders) {
    const std::string path = fmt::format("{}/models/{}/{}.onnx", BERTH_SHARED_DIR, folder, model);
    const Graph graph = ReadOnnx(ReadFile(path), path, {});
    const OpProfile profile = ReadOne(ReadFile(kProfiles + model + ".ortcpu.json"), model);
    size_t found = 0;
    for (const OpId op : graph.ops()) found += profile.time_by_op.contains(graph.op_name(op)) ? 1 : 0;
    EXPECT_EQ(found, graph.num_ops()) << model;
  }
}

class CostModels : public testing::Test {
 protected:
  CostModels() {
    RegisterCostModels(costs_);
    RegisterClusterPresets(clusters_);
    GraphBuilder builder("two");
    builder.AddOp("a", "MatMul", {.flops = 1e9, .bytes_read = 1000, .op_class = OpClass::kMatMul});
    builder.AddOp("b", "Relu", {.bytes_read = 1000, .op_class = OpClass::kElementwise});
    graph_ = builder.Build();
    file_ = testing::TempDir() + "/berth_profile_test.json";
    WriteFile(file_, R"({"nodes": [{"name": "a", "us_median": 5, "provider": "CPUExecutionProvider"}]})");
  }
  ~CostModels() override { std::filesystem::remove(file_); }

  OpTimes Times(const std::string& text, std::string_view cluster = "cpu_gpu") {
    return costs_.MakeTimes(fmt::format(fmt::runtime(text), file_, file_), graph_, clusters_.Make(cluster));
  }
  std::string MistakeIn(const std::string& text) {
    try {
      Times(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  CostCatalog costs_;
  ClusterCatalog clusters_{"cluster"};
  Graph graph_ = GraphBuilder("none").Build();
  std::string file_;
};

TEST_F(CostModels, TimesOfAGpuByOnnxRuntimesProfilerAreSaidToBeNone) {
  EXPECT_THAT(Times("profile(file={})").notes, testing::IsEmpty()) << "a processor is not";
  WriteFile(file_, R"({"nodes": [{"name": "a", "us_median": 5, "provider": "CUDAExecutionProvider"}]})");
  EXPECT_THAT(Times("profile(file={})").notes, testing::ElementsAre(HasSubstr("does not tell what a GPU's ops take")));
  EXPECT_THAT(Times("profile(file={},devices=cpu)").notes, testing::SizeIs(1)) << "whatever it is taken for";
  EXPECT_THAT(Times("profile(file={},rest=profile(file={},devices=cpu))").notes, testing::SizeIs(1)) << "said once";
  EXPECT_THAT(Times("calibrated(totals=1ms/2ms,rest=profile(file={}))").notes, testing::IsEmpty());
}

TEST_F(CostModels, OfAGpuWithDefaultEfficienciesItIsSaidHowFarPredictionsWereOff) {
  EXPECT_THAT(Times("roofline", "cpu_gpu").notes, testing::IsEmpty()) << "its GPU has efficiencies of its own";
  EXPECT_THAT(Times("roofline", "laptop").notes, testing::IsEmpty());
  EXPECT_THAT(Times("roofline", "desktop").notes, testing::ElementsAre(HasSubstr("Times on gpu are predicted")));
  EXPECT_THAT(Times("roofline(fusion=none)", "p100x4").notes, testing::ElementsAre(HasSubstr("Times on 4 GPUs")));
  std::string sized = WriteCluster(clusters_.Make("desktop"));
  const size_t gpu = sized.find("    kind: gpu\n");
  ASSERT_NE(gpu, std::string::npos);
  sized.insert(gpu, "    half_rate_outputs: 350000\n");
  EXPECT_THAT(costs_.MakeTimes("roofline", graph_, ParseCluster(sized, "sized.yaml")).notes, testing::IsEmpty());
  for (const char* rest : {"", ",rest=roofline(fusion=none)"}) {
    EXPECT_THAT(Times(std::string("profile(file={},devices=gpu") + rest + ")", "desktop").notes, testing::IsEmpty());
    EXPECT_THAT(Times(std::string("profile(file={},devices=cpu") + rest + ")", "desktop").notes, testing::SizeIs(1));
  }
  EXPECT_THAT(Times("profile(file={},devices=gpu,rest=profile(file={},devices=cpu))", "desktop").notes,
              testing::IsEmpty());
  EXPECT_THAT(Times("calibrated(totals=1ms/2ms,rest=roofline)", "desktop").notes, testing::IsEmpty());
}

TEST_F(CostModels, AProfileIsForTheKindThatItNames) {
  const OpTimes times = Times("profile(file={})");
  const OpTimes roofline = Times("roofline");
  EXPECT_EQ(times.measured, (std::vector<uint8_t>{1, 0, 0, 0}));
  EXPECT_EQ(times.time[0], 5e-6);
  EXPECT_EQ(times.time[1], roofline.time[1]);
  EXPECT_EQ(times.time[3], roofline.time[3]);
  EXPECT_EQ(times.source, fmt::format("profile(file={})", file_));
}

TEST_F(CostModels, AProfileMayBePutOnAnyDevices) {
  EXPECT_EQ(Times("profile(file={},devices=gpu)").measured, (std::vector<uint8_t>{0, 1, 0, 0}));
  EXPECT_EQ(Times("profile(file={},devices=\"cpu,gp*\")").measured, (std::vector<uint8_t>{1, 1, 0, 0}));
  EXPECT_EQ(Times("profile(file={},devices=gpu1)", "k80x2").measured, (std::vector<uint8_t>{0, 1, 0, 0}));
  EXPECT_EQ(Times("profile(file={},devices=cpu,rest=profile(file={},devices=gpu))").measured,
            (std::vector<uint8_t>{1, 1, 0, 0}));
}

TEST_F(CostModels, MistakesNameTheirRemedy) {
  EXPECT_THAT(MistakeIn("profile"), HasSubstr("profile(file="));
  EXPECT_THAT(MistakeIn("profile(file=no_such_file.json)"), HasSubstr("no_such_file.json"));
  EXPECT_THAT(MistakeIn("profile(file={},devices=tpu)"), HasSubstr("some of cpu, gpu"));
  EXPECT_THAT(MistakeIn("profile(file={},rest=roofine)"), HasSubstr("roofline"));
  EXPECT_THAT(MistakeIn("profile(fle={})"), HasSubstr("file"));
  EXPECT_EQ(MistakeIn("{}"),
            fmt::format("{}: is a file; for the op times in it write 'profile(file=\"{}\")'", file_, file_));
}

}  // namespace
}  // namespace berth
