// Running plans, profiles and this machine, as a user asks for them. What needs OpenVINO is skipped where it is not
// built.
#include <gmock/gmock.h>
#include <onnx/onnx_pb.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <stop_token>
#include <thread>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

bool HasTwoCores() { return ::sysconf(_SC_NPROCESSORS_ONLN) >= 2; }

#define NEEDS_OPENVINO()                                                                    \
  if (!HasOpenVino()) GTEST_SKIP() << "berth-openvino, which needs OpenVINO, is not built"; \
  if (!HasTwoCores()) GTEST_SKIP() << "needs two cores"

// kTwoCores, with this in the description of either core.
std::string TwoCoresWith(const std::string& entry) {
  std::string two = kTwoCores;
  for (const std::string core : {"cores: [0]", "cores: [1]"}) {
    two.replace(two.find(core), core.size(), core + ", " + entry);
  }
  return two;
}

void ExpectMistake(const std::vector<std::string>& arguments, const std::string& said) {
  const Outcome outcome = RunBerth(arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr(said));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
}

TEST(Run, SetsThePredictionBesideTheMeasurementAndChecksTheOutputs) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  const Outcome plan = RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--planner", "round_robin",
                                 "-o", folder / "plan.json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  for (const std::string executor : {"openvino_parallel", "openvino"}) {
    SCOPED_TRACE(executor);
    const Outcome run = RunBerth(
        {"run", folder / "plan.json", "--runs", "3", "--with", executor, "--json", "--trace", folder / "trace.json"});
    ASSERT_EQ(run.code, 0) << run.err << run.out;
    const nlohmann::json answer = run.json();
    EXPECT_EQ(answer["executor"], executor);
    EXPECT_EQ(answer["outputs_equal"], true);
    EXPECT_GT(answer["predicted_seconds"], 0);
    EXPECT_GT(answer["measured_seconds"], 0);
    EXPECT_GE(answer["measured_spread"], 0);
    EXPECT_EQ(answer["run_seconds"].size(), 3u);
    EXPECT_GT(answer["subgraphs"], 10);
    // HETERO has beside it what it and AUTO do by themselves.
    ASSERT_EQ(answer["others"].size(), executor == "openvino" ? 5u : 3u);
    for (const auto& other : answer["others"]) EXPECT_GT(other["measured_seconds"], 0) << other;
    // Both timelines have all ops.
    const nlohmann::json trace = nlohmann::json::parse(Content(folder / "trace.json"));
    std::map<int, int> ops_by_process;
    for (const auto& event : trace["traceEvents"]) {
      if (event["ph"] == "X" && event["cat"] != "transfer") ++ops_by_process[event["pid"]];
    }
    ASSERT_EQ(ops_by_process.size(), 2u);
    EXPECT_EQ(ops_by_process.begin()->second, ops_by_process.rbegin()->second);
  }
  const Outcome hetero = RunBerth({"run", folder / "plan.json", "--runs", "2", "--with", "openvino"});
  EXPECT_THAT(hetero.out, AllOf(HasSubstr("The ops of each device by the runtime's counters"),
                                HasSubstr("The 12 longest ops:"), HasSubstr("HETERO does not tell its own")));
  const Outcome page = RunBerth({"run", folder / "plan.json", "--runs", "2"});
  EXPECT_EQ(page.code, 0);
  EXPECT_THAT(page.out, HasSubstr("this plan"));
  EXPECT_THAT(page.out, HasSubstr("equal to those of the first device alone"));
}

// A device file that calls the processor thousands of times as fast as it is. What another process has of the core
// while the plan runs is told as it was, so that the plan may be little slower than at the file's speed.
TEST(Run, ComparesPredictionsWithTimesAtTheSpeedOfTheDeviceFile) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", TwoCoresWith("pace: 40ns"));
  const Outcome plan = RunBerth(
      {"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--planner", "single", "-o", folder / "plan.json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  const Outcome run = RunBerth({"run", folder / "plan.json", "--runs", "3", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const nlohmann::json answer = run.json();
  EXPECT_GT(answer["slowdown"], 1);
  EXPECT_LT(answer["measured_seconds_at_file_speed"], answer["measured_seconds"]);
  const auto& others = answer["others"];
  ASSERT_EQ(others.size(), 3u);
  EXPECT_THAT(others, ::testing::Contains(::testing::Truly([](const auto& other) { return other["slowdown"] > 4; })));
  const Outcome page = RunBerth({"run", folder / "plan.json", "--runs", "3"});
  EXPECT_THAT(page.out, HasSubstr("at one speed"));
  EXPECT_THAT(page.out, HasSubstr("longer than when"));
  EXPECT_THAT(page.out, AllOf(HasSubstr("none, predicted or measured"), HasSubstr("none: this plan is a alone")));
}

TEST(Run, InAnotherPrecisionAllowsTheDifferenceThatItsRoundingMakes) {
  NEEDS_OPENVINO();
  const Folder folder;
  std::string two = kTwoCores;
  two.replace(two.find("cores: [1]"), 10, "cores: [1], precision: bf16");
  Write(folder / "two.yaml", two);
  ASSERT_EQ(RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--planner", "round_robin", "-o",
                      folder / "plan.json"})
                .code,
            0);
  const Outcome run = RunBerth({"run", folder / "plan.json", "--runs", "2", "--json"});
  if (run.err.find("precision bf16 is none of CPU's") != std::string::npos) GTEST_SKIP() << run.err;
  ASSERT_EQ(run.code, 0) << run.err << run.out;
  const nlohmann::json answer = run.json();
  EXPECT_EQ(answer["precision"], "bf16");
  EXPECT_EQ(answer["outputs_equal"], true);
  EXPECT_EQ(answer["output_tolerance"], 16.0 / 256);
  EXPECT_GT(answer["output_difference"], 1e-5) << "b computed in f32";
  ASSERT_EQ(answer["others"].size(), 3u);
  EXPECT_EQ(answer["others"][0]["precision"], "f32");
  EXPECT_EQ(answer["others"][1]["name"], "b alone in bf16");
  const Outcome page = RunBerth({"run", folder / "plan.json", "--runs", "1"});
  EXPECT_THAT(page.out, HasSubstr("is allowed where something is computed in bf16")) << page.err;
}

TEST(Run, ADeviceThatThePlanMayNotUseAloneIsStillADevice) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  ASSERT_EQ(RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--planner", "single", "--pin", "*=b",
                      "-o", folder / "plan.json"})
                .code,
            0);
  const Outcome page = RunBerth({"run", folder / "plan.json", "--runs", "2"});
  EXPECT_EQ(page.code, 0) << page.err;
  // It has no prediction, which does not make it OpenVINO's own threads.
  EXPECT_THAT(page.out, Not(HasSubstr("a alone take ")));
  EXPECT_THAT(page.out, HasSubstr("OpenVINO's own 2 threads take "));
}

// Its plan has a time per sample, which is not how long one run takes.
TEST(Run, OfAPipelinePredictsNothing) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  ASSERT_EQ(RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--objective", "throughput",
                      "--budget", "200evals", "-o", folder / "plan.json"})
                .code,
            0);
  const Outcome run = RunBerth({"run", folder / "plan.json", "--runs", "6", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(run.json()["predicted_seconds"].is_null());
  EXPECT_EQ(run.json()["measured_interval"].size(), 2u);
  const Outcome page = RunBerth({"run", folder / "plan.json", "--runs", "2"});
  EXPECT_THAT(page.out, HasSubstr("pipeline predicts the time per sample"));
  // Two runs have no interval.
  EXPECT_THAT(page.out, AllOf(HasSubstr("least to most"), HasSubstr("which may be noise: --runs 6 or more tell")));
  const Outcome latency = RunBerth({"run", folder / "plan.json", "--runs", "2", "--evaluator", "parts", "--json"});
  ASSERT_EQ(latency.code, 0) << latency.err;
  EXPECT_GT(latency.json()["predicted_seconds"], 0);
  EXPECT_TRUE(latency.json()["measured_interval"].is_null());
}

TEST(Run, ThatIsAskedToSearchByMeasuredTimesCountsEachRun) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  const Outcome plan =
      RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--planner",
                "on(group=merge(size=8),planner=local_search)", "--evaluator", "openvino_parallel(runs=2,keep=1)",
                "--budget", "6evals", "--json", "-o", folder / "plan.json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  // The machine is asked six times in all: each of two devices alone and the plan's timeline are three of these.
  EXPECT_EQ(plan.json()["evaluations"], 3);
  EXPECT_EQ(plan.json()["set_up_evaluations"], 3);
  EXPECT_GT(plan.json()["score_seconds"], 0);
  EXPECT_GE(plan.json()["stolen_share"], 0);
  EXPECT_EQ(plan.json()["speed_change"], 1) << "the device file knows no pace";
  // What was made by measuring is predicted by the simulator of what measured it.
  const Outcome run = RunBerth({"run", folder / "plan.json", "--runs", "1", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["evaluator"], "parts");
}

// Two chains of products and tangents that begin and end together, which compile within milliseconds.
void WriteTwoChains(const std::string& path) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("two_chains");
  const auto declare = [](onnx::ValueInfoProto& value, const char* name) {
    value.set_name(name);
    value.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    auto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < 2; ++axis) shape.add_dim()->set_dim_value(16);
  };
  const auto add = [&](const std::string& type, const std::string& name, const std::vector<std::string>& inputs) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(type);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(name);
    return name;
  };
  declare(*graph.add_input(), "x");
  std::vector<std::string> ends;
  for (const std::string side : {"left", "right"}) {
    std::string at = "x";
    for (const std::string step : {"1", "2", "3"}) {
      at = add("Tanh", side + "_tanh" + step, {add("MatMul", side + "_product" + step, {at, "x"})});
    }
    ends.push_back(at);
  }
  add("Add", "y", ends);
  declare(*graph.add_output(), "y");
  std::ofstream out(path, std::ios::binary);
  model.SerializeToOstream(&out);
}

// Beside a worker that reads its questions through `filter`, a shell's command.
RunOptions WithFilteredWorker(const Folder& folder, const std::string& filter) {
  const std::filesystem::path built = std::filesystem::path(BERTH_BINARY).parent_path();
  return BesideWorker(folder, filter + " | '" + (built / "berth-openvino").string() + "'");
}

TEST(Run, APlanThatDoesNotRunCostsASearchOneEvaluationAndIsNotRunAgain) {
  NEEDS_OPENVINO();
  const Folder folder;
  // Writes down what is asked, and takes device 1 for one that is not there where the first op is on it.
  const RunOptions filtered =
      WithFilteredWorker(folder, R"(tee -a asked | sed -u -e '/"do":"run"/s/"device":\[1,/"device":[7,/')");
  Write(folder / "two.yaml", kTwoCores);
  WriteTwoChains(folder / "chains.onnx");
  const Outcome plan = RunBerth(
      {"plan", "chains.onnx", "--cluster", "two.yaml", "--planner", "on(group=merge(size=7,balance=2),planner=random)",
       "--evaluator", "cached(of=openvino(runs=2,keep=1))", "--budget", "30evals", "--json"},
      filtered);
  ASSERT_EQ(plan.code, 0) << plan.err;
  const nlohmann::json answer = plan.json();
  EXPECT_EQ(answer["evaluations"].get<int>() + answer["set_up_evaluations"].get<int>(), 30) << answer;
  EXPECT_GT(answer["failed_evaluations"], 0);
  EXPECT_LT(answer["failed_evaluations"], 30);
  EXPECT_NE(answer["last_failure"], "");
  EXPECT_GT(answer["score_seconds"], 0) << "others run";
  std::map<std::string, int> asked;
  std::istringstream lines(Content(folder / "asked"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"do\":\"run\"") != std::string::npos) ++asked[line];
  }
  EXPECT_GE(asked.size(), 2u);
  int again = 0;
  for (const auto& [question, times] : asked) again += times - 1;
  EXPECT_LE(again, 1) << "the best is measured once more, to confirm it";
}

// As HSDAG was trained: the reward is what the machine takes.
TEST(Run, IsWhatLearnedPlannersLearnFromWhereTheyAreAskedTo) {
  NEEDS_OPENVINO();
#if !BERTH_HAS_LEARN
  GTEST_SKIP() << "the learned planners are not built";
#endif
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  WriteTwoChains(folder / "chains.onnx");
  for (const char* planner : {"hsdag(critic=blank)", "on(group=merge(size=10,balance=2),planner=placeto)"}) {
    const Outcome plan =
        RunBerth({"plan", folder / "chains.onnx", "--cluster", folder / "two.yaml", "--planner", planner, "--evaluator",
                  "openvino_parallel(runs=2,keep=1)", "--budget", "50evals,60s", "--json", "-o", folder / "plan.json"});
    ASSERT_EQ(plan.code, 0) << plan.err;
    const nlohmann::json answer = plan.json();
    EXPECT_EQ(answer["failed_evaluations"], 0) << answer["last_failure"];
    EXPECT_GT(answer["score_seconds"], 0);
    if (answer["ended"] == "clock") continue;  // a machine that is as slow as that
    EXPECT_EQ(answer["evaluations"].get<int>() + answer["set_up_evaluations"].get<int>(), 50) << planner;
  }
}

// What OpenVINO does by itself: whatever the plan, the whole model with devices of its own choice.
TEST(Run, MeasuresWhatTheRuntimeChoosesByItself) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  for (const std::string planner : {"single", "round_robin"}) {
    ASSERT_EQ(RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--planner", planner, "-o",
                        folder / (planner + ".json")})
                  .code,
              0);
    for (const char* evaluator : {"openvino_default(runs=2,keep=1)", "openvino_auto(runs=2,keep=1)"}) {
      const Outcome outcome = RunBerth({"simulate", folder / (planner + ".json"), "--evaluator", evaluator, "--json"});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(outcome.json()["evaluator"], evaluator);
      EXPECT_GT(outcome.json()["score_seconds"], 0);
    }
  }
  ExpectMistake({"simulate", folder / "single.json", "--evaluator", "openvino_auto(first=TPU)"},
                "first=TPU is not one of CPU, GPU, NPU");
}

TEST(Run, NamesWhatIsMissingInOneLine) {
  ExpectMistake({"run"}, "run: give a plan file, or --placement");
  ExpectMistake({"run", "--placement", "0,0"}, "--placement needs a model");
  if (!HasOpenVino()) {
    ExpectMistake({"run", "--model", "squeezenet1_1", "--placement", "0"}, "needs OpenVINO");
    GTEST_SKIP() << "berth-openvino, which needs OpenVINO, is not built";
  }
  const Folder folder;
  const Outcome plan =
      RunBerth({"plan", "squeezenet1_1", "--cluster", "cpu_gpu", "--planner", "single", "-o", folder / "plan.json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  ExpectMistake({"run", folder / "plan.json", "--with", "tea"}, "openvino_parallel");
  ExpectMistake({"run", folder / "plan.json", "--runs", "0"}, "--runs: '0'");
  ExpectMistake({"plan", "chain(ops=4)", "--evaluator", "openvino", "--budget", "1evals"}, "is a formula");
  ExpectMistake({"plan", "squeezenet1_1", "--mode", "training", "--evaluator", "openvino", "--budget", "1evals"},
                "OpenVINO runs inference");
  ExpectMistake({"cluster", "detect", "--split", "gpu:2"}, "expected cpu: and a number");
  ExpectMistake({"cluster", "detect", "--split", "cpu:100000"}, "this process may use");
  ExpectMistake({"cluster", "detect", "--precision", "bf61"}, "'bf61' (did you mean bf16?)");
  ExpectMistake({"cluster", "detect", "--precision", "f32,bf16"}, "2 precisions for 1 device");
}

TEST(Profile, GivesPlanTheTimesOfEachDevice) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  const std::string table = folder / "times.json";
  const Outcome profile =
      RunBerth({"profile", "squeezenet1_1", "--cluster", folder / "two.yaml", "--runs", "3", "-o", table, "--json"});
  ASSERT_EQ(profile.code, 0) << profile.err;
  const nlohmann::json answer = profile.json();
  ASSERT_EQ(answer["devices"].size(), 2u);
  // Until three compilations agree, five times at most.
  EXPECT_GE(answer["compilations"], 3);
  EXPECT_LE(answer["compilations"], 5);
  EXPECT_TRUE(answer["steady"] || answer["compilations"] == 5) << answer;
  double sum = 0;
  for (const auto& op : answer["devices"][0]["ops"]) sum += op["seconds"].get<double>();
  const Outcome plan = RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--costs",
                                 "profile(file=" + table + ")", "--planner", "single", "--json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  // Inputs are there already.
  EXPECT_NEAR(plan.json()["single_device_seconds"]["a"], sum, 1e-3 * sum);
  // What OpenVINO ran as one kernel, a convolution with its activation among it, is one for the plan too.
  const std::string conv = "/features/features.3/squeeze/Conv", relu = "/features/features.3/squeeze_activation/Relu";
  const auto has_both = [&](const std::vector<std::string>& kernel) {
    return std::ranges::count(kernel, conv) == 1 && std::ranges::count(kernel, relu) == 1;
  };
  for (const auto& device : answer["devices"]) {
    const auto kernels = device["fused"].get<std::vector<std::vector<std::string>>>();
    EXPECT_TRUE(std::ranges::any_of(kernels, has_both)) << device;
  }
  const Outcome parting = RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--costs",
                                    "profile(file=" + table + ")", "--planner", "round_robin", "--json"});
  ASSERT_EQ(parting.code, 0) << parting.err;
  EXPECT_EQ(parting.json()["assignment"][conv], parting.json()["assignment"][relu]);
  const Outcome alone = RunBerth({"profile", "squeezenet1_1", "--runs", "2"});
  EXPECT_EQ(alone.code, 0) << alone.err;
}

// A worker before which something stands that takes device 1 for one that is not there.
TEST(Profile, LeavesOutADeviceThatDoesNotRunTheModel) {
  NEEDS_OPENVINO();
  const Folder folder;
  const RunOptions filtered =
      WithFilteredWorker(folder, R"(sed -u -e '/"do":"profile"/s/"devices":\[0,1\]/"devices":[0,7]/')");
  Write(folder / "two.yaml", kTwoCores);
  WriteTwoChains(folder / "chains.onnx");
  const Outcome profile = RunBerth(
      {"profile", "chains.onnx", "--cluster", "two.yaml", "--runs", "3", "-o", "times.json", "--json"}, filtered);
  ASSERT_EQ(profile.code, 0) << profile.err;
  const nlohmann::json answer = profile.json();
  ASSERT_EQ(answer["devices"].size(), 1u);
  EXPECT_EQ(answer["devices"][0]["device"], "a");
  ASSERT_EQ(answer["failed"].size(), 1u);
  EXPECT_EQ(answer["failed"][0]["device"], "b");
  EXPECT_NE(answer["failed"][0]["failed_because"], "");
  // What the other device takes is predicted.
  const Outcome plan = RunBerth({"plan", "chains.onnx", "--cluster", "two.yaml", "--costs", "profile(file=times.json)",
                                 "--planner", "round_robin"},
                                filtered);
  EXPECT_EQ(plan.code, 0) << plan.err;
  const Outcome tuned =
      RunBerth({"tune", "chains.onnx", "--cluster", "two.yaml", "--evaluations", "2", "--runs", "2"}, filtered);
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_THAT(tuned.err, HasSubstr("b does not run the whole model, so that the times of its ops are predicted"));
}

TEST(Profile, EndsARunThatTakesLongerThanItMay) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  ExpectMistake({"profile", "squeezenet1_1", "--cluster", folder / "two.yaml", "--limit", "1ms"},
                "squeezenet1_1: no answer within 1.00 ms");
  ExpectMistake({"profile", "squeezenet1_1", "--limit", "0s"}, "--limit: '0s' is no time to run in");
  ExpectMistake({"run", "plan.json", "--limit", "soon"}, "--limit: ");
}

// A device file without what `calibrate` found of cuts.
std::string WithoutCutCosts(const std::string& file) {
  std::istringstream lines(file);
  std::string kept, line;
  bool in_cuts = false;
  while (std::getline(lines, line)) {
    if (!line.starts_with("      ")) in_cuts = line.starts_with("    cut_");
    if (!in_cuts && !line.starts_with("    part_overhead")) kept += line + "\n";
  }
  return kept;
}

TEST(Calibrate, WritesWhatCutsCostAndSaysHowFarOffItIsOnPlansThatItDidNotFit) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  const Outcome outcome = RunBerth({"calibrate", "squeezenet1_1", "--cluster", folder / "two.yaml", "--plans", "6",
                                    "--runs", "3", "-o", folder / "calibrated.yaml", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const nlohmann::json answer = outcome.json();
  EXPECT_GT(answer["parts"], 10);
  EXPECT_GE(answer["part_overhead_seconds"], 0);
  ASSERT_EQ(answer["held_out"].size(), 1u);
  EXPECT_EQ(answer["held_out"][0]["measured_seconds"].size(), 2u);  // each third of six
  // Of a model of convolutions each core gets their efficiency; on two equal cores it may be one number.
  std::set<std::string> with_convolutions;
  for (const auto& one : answer["efficiencies"]) {
    EXPECT_GT(one["efficiency"], 0);
    EXPECT_LE(one["efficiency"], 1);
    EXPECT_GE(one["kernels"], 5);
    EXPECT_EQ(one["models"], 1);
    if (one["op_class"] == "conv") with_convolutions.insert(one["device"].get<std::string>());
  }
  EXPECT_THAT(with_convolutions, ::testing::ElementsAre("a", "b"));
  EXPECT_THAT(Content(folder / "calibrated.yaml"), HasSubstr("kernels in profiles of 1 model"));
  ASSERT_EQ(answer["whole_models"]["models"].size(), 2u);
  for (const auto& one : answer["whole_models"]["models"]) {
    EXPECT_GT(one["measured_seconds"], 0);
    EXPECT_GT(one["after_seconds"], 0);
    EXPECT_TRUE(one["left_out_seconds"].is_null()) << "there is no other model";
  }
  // The numbers reach the evaluator: the same plan takes longer where cuts cost something.
  ASSERT_EQ(RunBerth({"plan", "squeezenet1_1", "--cluster", folder / "two.yaml", "--planner", "round_robin", "-o",
                      folder / "plan.json"})
                .code,
            0);
  const auto time_on = [&](const std::string& cluster) {
    const Outcome simulated = RunBerth(
        {"simulate", "--plan", folder / "plan.json", "--cluster", folder / cluster, "--evaluator", "parts", "--json"});
    EXPECT_EQ(simulated.code, 0) << simulated.err;
    return simulated.json()["score_seconds"].get<double>();
  };
  // Where other processes had the cores, runs may be explained without any cost of a part.
  if (answer["part_overhead_seconds"] > 0) {
    Write(folder / "uncut.yaml", WithoutCutCosts(Content(folder / "calibrated.yaml")));
    EXPECT_GT(time_on("calibrated.yaml"), time_on("uncut.yaml"));
  }
  Write(folder / "dear.yaml", TwoCoresWith("part_overhead: 1ms"));
  EXPECT_GT(time_on("dear.yaml"), time_on("two.yaml"));
}

// Tunes on the first two cores, into tuned.json; `two.yaml` is their device file.
nlohmann::json TuneInto(const Folder& folder, const std::string& model, const std::string& evaluations) {
  Write(folder / "two.yaml", kTwoCores);
  const Outcome outcome = RunBerth({"tune", model, "--cluster", folder / "two.yaml", "--evaluations", evaluations,
                                    "--runs", "2", "-o", folder / "tuned.json", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  return outcome.json();
}

TEST(Tune, RunsPlansLearnsFromThemAndWritesOneThatRunsAgain) {
  NEEDS_OPENVINO();
  const Folder folder;
  const nlohmann::json answer = TuneInto(folder, "squeezenet1_1", "4");
  // So small a model may not have four plans that searches end with.
  EXPECT_GE(answer["plans"].size(), 2u);
  EXPECT_LE(answer["plans"].size(), 4u);
  std::set<int> rounds;
  for (const auto& plan : answer["plans"]) {
    EXPECT_GT(plan["measured_seconds"], 0) << plan;
    EXPECT_GT(plan["predicted_seconds"], 0) << plan;
    rounds.insert(plan["round"].get<int>());
  }
  EXPECT_EQ(answer["plans"][0]["parts"], 1) << "the fastest device alone comes first";
  EXPECT_GT(rounds.size(), 1u);  // it plans again after the first runs
  // The answer is one device where no split was faster often enough.
  size_t alone = 0;
  bool is_faster = false;
  for (const auto& plan : answer["run_again"]) {
    EXPECT_GE(plan["times"], 3) << plan;
    EXPECT_LE(plan["fastest_seconds"], plan["measured_seconds"]) << plan;
    EXPECT_LE(plan["measured_seconds"], plan["slowest_seconds"]) << plan;
    if (plan["device_alone"]) {
      ++alone;
      EXPECT_TRUE(plan["pairs_won"].is_null()) << plan;
    } else {
      EXPECT_GE(plan["pairs"], 9) << plan;
      is_faster = is_faster || plan["pairs_won"] >= plan["pairs_needed"];
    }
  }
  EXPECT_GT(alone, 0u);
  EXPECT_EQ(answer["parts"].size() > 1, is_faster) << answer["run_again"];
  EXPECT_EQ(answer["failed_again"], 0);
  EXPECT_EQ(nlohmann::json::parse(Content(folder / "tuned.json"))["ended"],
            answer["plans"].size() == 4 ? "evaluations" : "itself");
  EXPECT_EQ(answer["outputs_equal"], true);
  EXPECT_TRUE(std::filesystem::exists(folder / "tuned.profile.json"));
  const Outcome again = RunBerth({"run", folder / "tuned.json", "--runs", "2", "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.json()["executor"], "openvino_parallel");
  EXPECT_EQ(again.json()["evaluator"], "parts");
  EXPECT_NEAR(again.json()["predicted_seconds"].get<double>(), answer["predicted_seconds"].get<double>(), 1e-9);

  EXPECT_THAT(again.err, Not(HasSubstr("has changed")));
  // Op times that lie beside the plan are found from anywhere.
  nlohmann::json moved = nlohmann::json::parse(Content(folder / "tuned.json"));
  moved["costs"]["name"] = "profile(file=tuned.profile.json)";
  Write(folder / "elsewhere.json", moved.dump());
  const Outcome beside = RunBerth({"simulate", "--plan", folder / "elsewhere.json", "--json"});
  ASSERT_EQ(beside.code, 0) << beside.err;
  EXPECT_NEAR(beside.json()["score_seconds"].get<double>(), answer["predicted_seconds"].get<double>(), 1e-9);

  const Outcome page =
      RunBerth({"tune", "squeezenet1_1", "--cluster", folder / "two.yaml", "--evaluations", "3", "--runs", "2",
                "--no-correction", "--costs", "profile(file=" + (folder / "tuned.profile.json") + ")"});
  ASSERT_EQ(page.code, 0) << page.err << page.out;
  EXPECT_THAT(page.out, HasSubstr("OpenVINO's own 2 threads"));
  EXPECT_THAT(page.out, HasSubstr("the fastest plans and the fastest device alone, "));
}

// A split that a moment of the machine flattered must not be the answer where one device alone is faster.
TEST(Tune, RunsTheFastestDeviceAloneAgainHoweverManyPlansAreFaster) {
  NEEDS_OPENVINO();
  const Folder folder;
  const nlohmann::json answer = TuneInto(folder, "two_towers", "8");
  // Where nothing else has the cores, three splits and more are faster than one tower after the other.
  if (answer["plans"].size() < 4 && answer["plans_stolen_share"] > 0.02) GTEST_SKIP() << "others have the cores";
  ASSERT_GE(answer["plans"].size(), 4u);
  const auto alone = [](const auto& plan) { return plan["parts"].template get<int>() == 1; };
  EXPECT_GE(std::ranges::count_if(answer["run_again"], alone), 1);
}

TEST(Tune, AnswersWithTheBestSoFarWhereItIsStopped) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  const Outcome stopped = RunBerth({"tune", "two_towers", "--cluster", folder / "two.yaml", "--evaluations", "5000",
                                    "--costs", "roofline", "--runs", "20", "-o", folder / "stopped.json", "--json"},
                                   {.interrupt_after = 8});
  // A machine may be so slow that Ctrl-C comes before the first plan was run.
  if (stopped.code != 0) {
    EXPECT_THAT(stopped.err, HasSubstr("stopped before"));
    return;
  }
  EXPECT_EQ(stopped.json()["stopped"], true);
  EXPECT_LT(stopped.json()["plans"].size(), 5000u);
  EXPECT_EQ(nlohmann::json::parse(Content(folder / "stopped.json"))["ended"], "interrupted");
}

// A thread that computes on each of the first two cores, while it lives.
class BusyCores {
 public:
  BusyCores() {
    for (int core = 0; core < 2; ++core) {
      threads_.emplace_back([core](const std::stop_token& stop) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        ::sched_setaffinity(0, sizeof set, &set);
        while (!stop.stop_requested()) continue;
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

TEST(Tune, SaysThatOtherProgramsHadTheCoresWhilePlansWereRunAndAfterwards) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  const BusyCores busy;
  const Outcome page = RunBerth({"tune", "squeezenet1_1", "--cluster", folder / "two.yaml", "--evaluations", "2",
                                 "--costs", "roofline", "--runs", "2", "-o", folder / "tuned.json"});
  ASSERT_EQ(page.code, 0) << page.err << page.out;
  EXPECT_THAT(page.out, ContainsRegex("Other programs had the cores for [0-9]+ % of a plan's time, at most: measure"));
  EXPECT_THAT(page.out, ContainsRegex("Other programs had the cores for [0-9]+ % of the time: measure"));
}

TEST(Profile, SaysThatOtherProgramsHadTheCores) {
  NEEDS_OPENVINO();
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  const std::vector<std::string> command = {"profile", "squeezenet1_1", "--cluster", folder / "two.yaml"};
  const BusyCores busy;
  const Outcome page = RunBerth(command);
  ASSERT_EQ(page.code, 0) << page.err << page.out;
  EXPECT_THAT(page.out,
              ContainsRegex("Other programs had the cores for [0-9]+ % of a device's time, at most: measure"));
  std::vector<std::string> as_json = command;
  as_json.emplace_back("--json");
  const auto answer = RunBerth(as_json).json();
  for (const auto& device : answer.at("devices")) EXPECT_GT(device.at("stolen_share"), 0.1);
}

TEST(Tune, AndCalibrateNameWhatIsWrongInOneLine) {
  const Folder folder;
  Write(folder / "two.yaml", kTwoCores);
  ExpectMistake({"tune", "squeezenet1_1"}, "--cluster");
  ExpectMistake({"calibrate", "--cluster", folder / "two.yaml"}, "MODEL is required");
  ExpectMistake({"tune", "squeezenet1_1", "--cluster", folder / "two.yaml", "--evaluations", "0"}, "--evaluations");
  ExpectMistake({"calibrate", "squeezenet1_1", "--cluster", folder / "two.yaml", "--plans", "2"}, "--plans");
  ExpectMistake({"tune", "squeezenet1_1", "--cluster", folder / "two.yaml", "-o", "/dev/null"},
                "/dev/null: is no file");
  ExpectMistake({"tune", "no_such_model", "--cluster", folder / "two.yaml"}, "no_such_model");
  NEEDS_OPENVINO();
  Write(folder / "one.yaml", "name: one\ndevices:\n  a: {kind: cpu, peak: {f32: 1GFLOP/s}, memory_bandwidth: 1GB/s}\n");
  ExpectMistake({"tune", "squeezenet1_1", "--cluster", folder / "one.yaml", "-o", folder / "p.json"}, "one device");
  ExpectMistake({"tune", "chain(ops=4)", "--cluster", folder / "two.yaml"}, "only the model of a file can be run");
  ExpectMistake({"calibrate", "chain(ops=4)", "--cluster", folder / "two.yaml"}, "only the model of a file can be run");
}

TEST(Detect, MeasuresEachDeviceInThePrecisionThatItIsAskedFor) {
  NEEDS_OPENVINO();
  const Folder folder;
  const std::string file = folder / "mixed.yaml";
  const Outcome detect =
      RunBerth({"cluster", "detect", "--split", "cpu:2", "--precision", "f32,bf16", "--quick", "-o", file});
  if (detect.err.find("precision bf16 is none of CPU's") != std::string::npos) {
    EXPECT_EQ(detect.code, 2);
    EXPECT_EQ(std::ranges::count(detect.err, '\n'), 1);
    GTEST_SKIP() << detect.err;
  }
  ASSERT_EQ(detect.code, 0) << detect.err;
  EXPECT_THAT(detect.out, HasSubstr("f32 in"));
  const nlohmann::json devices = RunBerth({"cluster", "show", file, "--json"}).json()["devices"];
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0]["precision"], "f32");
  EXPECT_FALSE(devices[0]["peak_flops_per_second"].contains("bf16"));
  EXPECT_EQ(devices[1]["precision"], "bf16");
  EXPECT_EQ(devices[1]["peak_flops_per_second"]["bf16"]["provenance"], "measured");
  EXPECT_EQ(devices[1]["peak_flops_per_second"]["f32"]["provenance"], "measured");
  EXPECT_NE(devices[1]["peak_flops_per_second"]["bf16"]["value"], devices[1]["peak_flops_per_second"]["f32"]["value"]);
  EXPECT_EQ(devices[1]["interchangeable_with"], "cpu1");
}

TEST(Detect, WritesADeviceFileThatSaysOfEachNumberHowItWasMeasured) {
  NEEDS_OPENVINO();
  const Folder folder;
  const std::string file = folder / "here.yaml";
  const Outcome detect = RunBerth({"cluster", "detect", "--split", "cpu:2", "--quick", "-o", file, "--json"});
  ASSERT_EQ(detect.code, 0) << detect.err;
  const Outcome show = RunBerth({"cluster", "show", file, "--json"});
  ASSERT_EQ(show.code, 0) << show.err;
  const nlohmann::json shown = show.json();
  EXPECT_EQ(shown["fingerprint"], detect.json()["fingerprint"]);
  ASSERT_EQ(shown["devices"].size(), 2u);
  for (const auto& device : shown["devices"]) {
    for (const char* key : {"memory_bandwidth_bytes_per_second", "op_overhead_seconds"}) {
      EXPECT_EQ(device.at(key).at("provenance"), "measured");
      EXPECT_GT(device.at(key).at("value"), 0);
    }
    EXPECT_EQ(device.at("peak_flops_per_second").at("f32").at("provenance"), "measured");
    EXPECT_GT(device.at("pace_seconds"), 0);
    EXPECT_THAT(device.at("op_overhead_seconds").at("source").get<std::string>(), HasSubstr("between the runs"));
  }
}

}  // namespace
}  // namespace berth::testing
