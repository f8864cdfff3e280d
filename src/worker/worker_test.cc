// Models that ship, split and run: what comes out must be what the whole model gives.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/task_arena.h>
#include <sched.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <openvino/op/ops.hpp>
#include <thread>

#include "base/error.h"
#include "worker/outputs.h"
#include "worker/probe.h"
#include "worker/session.h"

namespace berth {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

json Devices(std::vector<int> first, std::vector<int> second) {
  return {{{"name", "a"}, {"runs_on", "CPU"}, {"cores", first}},
          {{"name", "b"}, {"runs_on", "CPU"}, {"cores", second}}};
}

std::string Shipped(const std::string& name) { return std::string(BERTH_SOURCE_DIR) + "/models/" + name + ".onnx"; }

// The cores of this machine, one each where there are two; both on one where there is one would be refused.
json TwoDevices() { return Devices({0}, {1}); }
bool HasTwoCores() { return std::thread::hardware_concurrency() >= 2; }

// An open question about squeezenet with one op per tensor that its reader names.
json OpenSqueezenet(ov::Core& core) {
  json ops = json::array();
  for (const auto& node : core.read_model(Shipped("squeezenet1_1"))->get_ordered_ops()) {
    const std::string type = node->get_type_name();
    if (type != "Add" && type != "Relu" && type != "MaxPool" && type != "Concat") continue;
    if (node->output(0).get_names().empty()) continue;
    ops.push_back({{"name", node->get_friendly_name()}, {"tensors", node->output(0).get_names()}, {"flops", 1000}});
  }
  return {{"do", "open"},
          {"model", Shipped("squeezenet1_1")},
          {"inputs", json::object()},
          {"ops", ops},
          {"devices", TwoDevices()}};
}

// With squeezenet opened on two devices of one core each.
class OnSqueezenet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasTwoCores()) GTEST_SKIP() << "needs two cores";
    opened = session.Answer(OpenSqueezenet(core));
    ASSERT_FALSE(opened.contains("error")) << opened.dump();
  }

  ov::Core core;
  WorkerSession session;
  json opened;
};

TEST_F(OnSqueezenet, GivesTheSameOutputsHoweverAModelIsSplit) {
  const size_t ops = opened["ops"];
  ASSERT_GT(ops, 50u) << "a convolution with a bias is named where the bias is added";
  EXPECT_EQ(opened["ops_found"], ops);
  EXPECT_GT(opened["weights_filled"], 20);
  std::vector<int> alternating(ops), half(ops);
  for (size_t op = 0; op < ops; ++op) alternating[op] = (op / 3) % 2, half[op] = op < ops / 2 ? 0 : 1;
  const json answer = session.Answer({{"do", "run"},
                                      {"ways",
                                       {{{"how", "parallel"}, {"device", alternating}},
                                        {{"how", "hetero"}, {"device", alternating}},
                                        {{"how", "parallel"}, {"device", half}},
                                        {{"how", "alone"}, {"device", 1}},
                                        {{"how", "default"}},
                                        {{"how", "threads"}}}},
                                      {"rounds", 2},
                                      {"compare", true}});
  ASSERT_TRUE(answer.contains("ways")) << answer.dump();
  for (const json& way : answer["ways"]) {
    ASSERT_FALSE(way.contains("error")) << way.dump();
    EXPECT_TRUE(way["outputs"]["equal"]) << way["outputs"].dump();
    EXPECT_EQ(way["outputs"]["compared"], 1);
    EXPECT_EQ(way["outputs"]["finite"], 1.0);
    EXPECT_EQ(way["seconds"].size(), 2u);
    for (const double seconds : way["seconds"]) EXPECT_GT(seconds, 0);
  }
  EXPECT_GT(answer["ways"][0]["subgraphs"], 10);
  EXPECT_GT(answer["ways"][1]["subgraphs"], 10);
  // Half and half: the cut may cross two branches of a module.
  EXPECT_LE(answer["ways"][2]["subgraphs"], 4);
  EXPECT_LE(answer["ways"][2]["transfers"].size(), 2u);
  EXPECT_GE(answer["ways"][2]["transfers"].size(), 1u);
  // A part begins when those that it takes tensors from have ended.
  const json& parts = answer["ways"][0]["parts"];
  for (size_t part = 0; part < parts.size(); ++part) {
    const json& run = answer["ways"][0]["part_runs"][part];
    EXPECT_LT(run[0], run[1]);
    EXPECT_GT(answer["ways"][0]["part_seconds"][part], 0);
    for (const size_t before : parts[part]["before"]) {
      EXPECT_GE(run[0].get<double>(), answer["ways"][0]["part_runs"][before][1].get<double>());
    }
  }
}

// Of devices that the file calls faster than they are, and slower.
TEST_F(OnSqueezenet, TellsByHowMuchDevicesAreSlowerThanTheirFileSays) {
  const json unknown = session.Answer({{"do", "run"}, {"ways", {{{"how", "alone"}, {"device", 0}}}}, {"rounds", 1}});
  EXPECT_FALSE(unknown["ways"][0].contains("slowdown")) << "the file says nothing";
  json question = OpenSqueezenet(core);
  question["devices"][0]["pace"] = 1e-6;
  question["devices"][1]["pace"] = 1.0;
  opened = session.Answer(question);
  ASSERT_FALSE(opened.contains("error")) << opened.dump();
  const std::vector<int> first(opened["ops"].get<size_t>(), 0);
  const json answer = session.Answer({{"do", "run"},
                                      {"ways",
                                       {{{"how", "alone"}, {"device", 0}},
                                        {{"how", "alone"}, {"device", 1}},
                                        {{"how", "threads"}},
                                        {{"how", "parallel"}, {"device", first}}}},
                                      {"rounds", 3}});
  const auto slowdown = [&](size_t way) { return answer["ways"][way]["slowdown"].get<std::vector<double>>(); };
  for (size_t way = 0; way < 4; ++way) ASSERT_EQ(slowdown(way).size(), 3u) << answer.dump();
  for (size_t round = 0; round < 3; ++round) {
    EXPECT_GT(slowdown(0)[round], 10);
    EXPECT_LT(slowdown(1)[round], 0.1);
    EXPECT_GT(slowdown(2)[round], slowdown(1)[round]) << "the mean of both";
    EXPECT_GT(slowdown(2)[round], 5) << "the mean of both";
  }
  // Of parts on both devices, by when the last would have ended.
  std::vector<int> half = first;
  for (size_t op = half.size() / 2; op < half.size(); ++op) half[op] = 1;
  const json split =
      session.Answer({{"do", "run"}, {"ways", {{{"how", "parallel"}, {"device", half}}}}, {"rounds", 10}})["ways"][0];
  const auto slowdowns = split["slowdown"].get<std::vector<double>>();
  // Of many rounds, since a processor may be twice as fast in one of them as in another.
  EXPECT_GT(std::ranges::max(slowdowns), std::ranges::min(slowdown(1)));
  for (const double each : slowdowns) {
    EXPECT_LT(each, 1) << "at the second device's pace its half would have taken hundreds of times as long";
  }
  // Parts are told at the file's pace.
  double parts = 0;
  for (const double seconds : answer["ways"][3]["part_seconds"]) parts += seconds;
  EXPECT_LT(parts, answer["ways"][3]["seconds"][0].get<double>() / 5);
  const json profile = session.Answer({{"do", "profile"}, {"devices", {0, 1}}, {"rounds", 2}});
  EXPECT_GT(profile["devices"][0]["slowdown"][1], 10);
  EXPECT_LT(profile["devices"][1]["slowdown"][1], 0.1);
}

TEST(Worker, ComputesInThePrecisionOfEachDevice) {
  if (!HasTwoCores()) GTEST_SKIP() << "needs two cores";
  ov::Core core;
  const auto has = core.get_property("CPU", ov::device::capabilities);
  json question = OpenSqueezenet(core);
  for (const auto& [precision, capability] : {std::pair("bf16", "BF16"), std::pair("f16", "FP16")}) {
    SCOPED_TRACE(precision);
    question["devices"][1]["precision"] = precision;
    WorkerSession session;
    const json opened = session.Answer(question);
    if (std::ranges::count(has, capability) == 0) {
      EXPECT_EQ(opened["error"],
                fmt::format("device b: precision {} is none of CPU's on this machine; leave it out for "
                            "f32",
                            precision));
      continue;
    }
    ASSERT_FALSE(opened.contains("error")) << opened.dump();
    const size_t ops = opened["ops"];
    std::vector<int> half(ops), first(ops, 0);
    for (size_t op = 0; op < ops; ++op) half[op] = op < ops / 2 ? 0 : 1;
    const json answer = session.Answer({{"do", "run"},
                                        {"ways",
                                         {{{"how", "alone"}, {"device", 0}},
                                          {{"how", "parallel"}, {"device", first}},
                                          {{"how", "alone"}, {"device", 1}},
                                          {{"how", "parallel"}, {"device", half}},
                                          {{"how", "hetero"}, {"device", half}},
                                          {{"how", "threads"}}}},
                                        {"rounds", 1},
                                        {"compare", true}});
    ASSERT_TRUE(answer.contains("ways")) << answer.dump();
    for (size_t way = 0; way < 6; ++way) {
      const json& one = answer["ways"][way];
      ASSERT_FALSE(one.contains("error")) << one.dump();
      const json& outputs = one["outputs"];
      EXPECT_TRUE(outputs["equal"]) << way << ": " << outputs.dump();
      EXPECT_EQ(one["precision"], way < 2 ? "f32" : precision) << way;
      if (way < 2) {
        EXPECT_EQ(outputs["tolerance"], 1e-4);
      } else {
        EXPECT_GT(outputs["tolerance"], 1e-3);
        EXPECT_GT(outputs["largest_difference"], 1e-5) << way << ": it was computed in f32";
      }
    }
  }
}

TEST(OnThisThread, LetsAThreadOfOneCoreComputeAlone) {
  const auto all = tbb::this_task_arena::max_concurrency();
  const std::thread::id here = std::this_thread::get_id();
  OnThisThread(true, [&] {
    EXPECT_EQ(tbb::this_task_arena::max_concurrency(), 1);
    EXPECT_EQ(std::this_thread::get_id(), here);
    OnThisThread(true, [] { EXPECT_EQ(tbb::this_task_arena::max_concurrency(), 1); });
  });
  OnThisThread(false, [&] { EXPECT_EQ(tbb::this_task_arena::max_concurrency(), all); });
  RunPinned({0}, true, [&] {
    EXPECT_EQ(tbb::this_task_arena::max_concurrency(), 1);
    cpu_set_t cores;
    ::sched_getaffinity(0, sizeof cores, &cores);
    EXPECT_EQ(CPU_COUNT(&cores), 1);
    EXPECT_TRUE(CPU_ISSET(0, &cores));
  });
  EXPECT_THROW(OnThisThread(true, [] { throw Error("a kernel failed"); }), Error);
  EXPECT_THROW(RunPinned({0}, true, [] { throw Error("a kernel failed"); }), Error);
}

TEST(Probe, TellsWhetherTheDeviceComputesIn8Bits) {
  ov::Core core;
  const RuntimeDevice device = ReadDevices(json::array({Devices({0}, {1})[0]}), core).front();
  const ProbeInput matrix = MakeProbeInput({64, 64}), image = MakeProbeInput({1, 16, 8, 8});
  EXPECT_FALSE(Probe(core, device, ProductBy(matrix, 64, 1), matrix).ComputesIn8Bits());
  EXPECT_FALSE(Probe(core, device, ConvolutionOf(image, 16, 1), image).ComputesIn8Bits());
  const auto has = core.get_property("CPU", ov::device::capabilities);
  if (std::ranges::count(has, "INT8") == 0) GTEST_SKIP() << "the processor computes nothing in 8 bits";
  EXPECT_TRUE(Probe(core, device, ProductBy(matrix, 64, 1, true), matrix).ComputesIn8Bits());
  EXPECT_TRUE(Probe(core, device, ConvolutionOf(image, 16, 1, true), image).ComputesIn8Bits());
}

TEST_F(OnSqueezenet, ProfilesTheOtherDevicesWhereOneCannotRunTheModel) {
  const json answer = session.Answer({{"do", "profile"}, {"devices", {7, 1}}, {"rounds", 2}});
  EXPECT_TRUE(answer["devices"][0].contains("error")) << answer.dump();
  EXPECT_EQ(answer["devices"][1]["seconds"].size(), 2U) << answer.dump();
}

TEST_F(OnSqueezenet, RunsThePlansThatAreSoundBesideOnesThatAreNot) {
  const size_t ops = opened["ops"];
  const std::vector<int> sound(ops, 1), beyond(ops, 7), below(ops, -1), fewer = {0, 1};
  const json ways = session.Answer({{"do", "run"},
                                    {"ways",
                                     {{{"how", "hetero"}, {"device", beyond}},
                                      {{"how", "parallel"}, {"device", beyond}},
                                      {{"how", "hetero"}, {"device", below}},
                                      {{"how", "parallel"}, {"device", fewer}},
                                      {{"how", "hetero"}, {"device", sound}}}},
                                    {"rounds", 2}})["ways"];
  for (int way = 0; way < 2; ++way) EXPECT_EQ(ways[way]["error"], "a placement names device 7, where there are 2");
  EXPECT_EQ(ways[2]["error"], "a placement names device -1, where there are 2");
  EXPECT_EQ(ways[3]["error"], fmt::format("a placement of 2 ops, where the model has {}", ops));
  EXPECT_EQ(ways[4]["seconds"].size(), 2U) << ways[4].dump();
  EXPECT_EQ(session.Answer({{"do", "op_times"}, {"device", beyond}, {"rounds", 1}})["error"], ways[0]["error"]);
}

TEST_F(OnSqueezenet, DividesTheTimeOfAllKernelsAmongTheOps) {
  const json answer = session.Answer({{"do", "profile"}, {"devices", {0, 1}}, {"rounds", 5}});
  ASSERT_FALSE(answer.contains("error")) << answer.dump();
  ASSERT_EQ(answer["devices"].size(), 2U);
  EXPECT_EQ(answer["devices"][1]["totals"].size(), 1U) << "a processor's counters are means of all runs";
  const json& profile = answer["devices"][0];
  ASSERT_FALSE(profile.contains("error")) << profile.dump();
  double sum = 0;
  for (const json& op : profile["ops"]) sum += op[0].get<double>();
  EXPECT_NEAR(sum, profile["totals"][0].get<double>() * (1 - profile["unassigned"].get<double>()), 1e-9);
  EXPECT_LT(profile["unassigned"], 0.02);
  // Of the ops that this question places, a convolution's bias and its activation ran as one.
  EXPECT_GE(profile["kernels"].size(), 26u);
  std::vector<int> seen;
  for (const json& kernel : profile["kernels"]) {
    const auto ops_of_kernel = kernel.get<std::vector<int>>();
    EXPECT_GE(ops_of_kernel.size(), 2u);
    EXPECT_TRUE(std::ranges::is_sorted(ops_of_kernel)) << kernel;
    seen.insert(seen.end(), ops_of_kernel.begin(), ops_of_kernel.end());
  }
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end()) << "no op is in two";
}

TEST_F(OnSqueezenet, TimesTheOpsOfAPlanUnderHetero) {
  const size_t ops = opened["ops"];
  std::vector<int> alternating(ops);
  for (size_t op = 0; op < ops; ++op) alternating[op] = (op / 3) % 2;
  const json answer = session.Answer({{"do", "op_times"}, {"device", alternating}, {"rounds", 4}});
  ASSERT_FALSE(answer.contains("error")) << answer.dump();
  size_t timed = 0;
  for (const json& op : answer["ops"]) timed += op[0].get<double>() > 0 ? 1 : 0;
  EXPECT_GT(timed, ops / 2);
  EXPECT_GT(answer["totals"][0], 0);
}

TEST_F(OnSqueezenet, TellsWhichOpsAreOneKernel) {
  const json answer = session.Answer({{"do", "kernels"}, {"device", 0}});
  ASSERT_TRUE(answer.contains("kernels")) << answer.dump();
  size_t convolutions = 0;
  for (const json& kernel : answer["kernels"]) {
    if (kernel["type"] != "Convolution") continue;
    // The bias that ends a convolution of the file, and its activation.
    EXPECT_EQ(kernel["ops"].size(), 2u) << kernel.dump();
    ++convolutions;
  }
  EXPECT_EQ(convolutions, 26u);
}

TEST(Worker, SaysInOneLineWhatIsWrong) {
  ov::Core core;
  WorkerSession session;
  const auto error = [&](const json& question) {
    const json answer = session.Answer(question);
    const std::string text = answer.value("error", "no error");
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
  };
  EXPECT_THAT(error({{"do", "dance"}}), HasSubstr("dance"));
  json question = OpenSqueezenet(core);
  question["devices"][0]["runs_on"] = "TPU";
  EXPECT_THAT(error(question), HasSubstr("device a runs on TPU, which this machine lacks: OpenVINO finds CPU"));
  if (core.get_available_devices().size() == 1) {
    question["devices"][0]["runs_on"] = "GPU";
    EXPECT_THAT(error(question),
                AnyOf(HasSubstr("device a runs on GPU, which this machine lacks"),
                      AllOf(HasSubstr("device a runs on GPU, whose plugin OpenVINO cannot load here: "),
                            HasSubstr("libOpenCL"))));
  }
  question["devices"] = Devices({0}, {0});
  EXPECT_THAT(error(question), HasSubstr("devices a and b both have core 0"));
  question["devices"] = Devices({0}, {});
  EXPECT_THAT(error(question), HasSubstr("device b: a second device that runs on CPU"));
  question["devices"][0]["precision"] = "bf61";
  EXPECT_THAT(error(question), HasSubstr("device a: precision 'bf61'; expected f32, f16 or bf16"));
  question["devices"] = Devices({100'000}, {});
  EXPECT_THAT(error(question), HasSubstr("core 100000 is none that this process may use"));
  question["devices"] = Devices({0}, {}).get<std::vector<json>>();
  question["devices"].erase(1);
  question["model"] = Shipped("no_such_model");
  EXPECT_THAT(error(question), HasSubstr("OpenVINO does not take it"));
  question["model"] = Shipped("squeezenet1_1");
  for (json& op : question["ops"]) op["tensors"] = json::array(), op["name"] = "other " + op["name"].get<std::string>();
  EXPECT_THAT(error(question), HasSubstr("OpenVINO's reading has 0 of the"));
}

TEST(Worker, WritesAnIrThatSaysForEachNodeWhereItRuns) {
  ov::Core core;
  json question = OpenSqueezenet(core);
  const size_t ops = question["ops"].size();
  std::vector<int> half(ops);
  for (size_t op = 0; op < ops; ++op) half[op] = op < ops / 2 ? 0 : 1;
  // Neither need be here.
  question["devices"] = {
      {{"name", "a"}, {"runs_on", "CPU"}, {"cores", {100'000}}, {"plugin", "CPU"}},
      {{"name", "b"}, {"runs_on", "GPU"}, {"cores", json::array()}, {"plugin", "GPU.7"}, {"precision", "f16"}}};
  const std::string xml = ::testing::TempDir() + "/berth_worker_ir.xml";
  question.update({{"do", "write_ir"}, {"device", half}, {"to", xml}});
  const json answer = WorkerSession().Answer(question);
  ASSERT_FALSE(answer.contains("error")) << answer.dump();
  EXPECT_EQ(answer["ops_found"], ops);
  EXPECT_EQ(answer["devices"][0]["settings"]["INFERENCE_NUM_THREADS"], "1");
  EXPECT_EQ(answer["devices"][0]["settings"]["NUM_STREAMS"], "0");
  EXPECT_EQ(answer["devices"][0]["settings"]["INFERENCE_PRECISION_HINT"], "f32");
  EXPECT_EQ(answer["devices"][1]["settings"]["INFERENCE_PRECISION_HINT"], "f16");
  const auto model = core.read_model(xml);
  std::map<std::string, size_t> nodes_on;
  for (const auto& node : model->get_ordered_ops()) {
    const auto on = [&](const ov::Node& one) {
      return model->get_rt_info<std::string>("affinity", one.get_friendly_name());
    };
    ++nodes_on[on(*node)];
    // A weight is where it is used.
    if (ov::is_type<ov::op::v0::Constant>(node)) {
      EXPECT_EQ(on(*node), on(*node->output(0).get_target_inputs().begin()->get_node()));
    }
  }
  EXPECT_EQ(nodes_on.size(), 2u);
  EXPECT_GT(nodes_on["CPU"], ops / 3);
  EXPECT_GT(nodes_on["GPU.7"], ops / 3);
  EXPECT_EQ(model->get_ordered_ops().size(), answer["nodes"].get<size_t>());
}

TEST(CompareOutputs, TellsRoundingFromADifference) {
  const auto tensor = [](std::vector<float> values) {
    ov::Tensor made(ov::element::f32, {values.size()});
    std::ranges::copy(values, made.data<float>());
    return made;
  };
  const float inf = std::numeric_limits<float>::infinity();
  const double f32 = OutputTolerance(ov::element::f32), bf16 = OutputTolerance(ov::element::bf16);
  EXPECT_TRUE(CompareOutputs({tensor({1, 2})}, {tensor({1.00001f, 2})}, f32)["equal"]);
  EXPECT_FALSE(CompareOutputs({tensor({1, 2})}, {tensor({1.01f, 2})}, f32)["equal"]);
  EXPECT_FALSE(CompareOutputs({tensor({1, 2})}, {tensor({1, 2, 3})}, f32)["equal"]);
  EXPECT_FALSE(CompareOutputs({tensor({1, 2})}, {tensor({1, inf})}, bf16)["equal"]);
  EXPECT_FALSE(CompareOutputs({tensor({1, inf})}, {tensor({1, -inf})}, bf16)["equal"]);
  EXPECT_FALSE(CompareOutputs({tensor({1, inf})}, {tensor({1, std::nanf("")})}, bf16)["equal"]);
  ov::Tensor row(ov::element::f32, {1, 2});
  std::fill_n(row.data<float>(), 2, 1.0f);
  EXPECT_FALSE(CompareOutputs({row}, {tensor({1, 1})}, f32)["equal"]) << "another shape";
  EXPECT_TRUE(CompareOutputs({tensor({1, inf})}, {tensor({1, inf})}, f32)["equal"]);
  EXPECT_EQ(CompareOutputs({tensor({1, inf})}, {tensor({1, inf})}, f32)["finite"], 0.5);
  EXPECT_FALSE(CompareOutputs({tensor({inf, inf})}, {tensor({inf, inf})}, f32)["equal"]) << "it says nothing";
  EXPECT_TRUE(CompareOutputs({tensor({})}, {tensor({})}, f32)["equal"]);
  EXPECT_FALSE(CompareOutputs({}, {}, bf16)["equal"]) << "nothing was compared";
  // 8 bits round to 1 in 256; another tensor is off by as much as its values are large.
  EXPECT_EQ(bf16, 16.0 / 256);
  EXPECT_EQ(OutputTolerance(ov::element::f16), 16.0 / 2048);
  EXPECT_TRUE(CompareOutputs({tensor({1, 2})}, {tensor({1.1f, 2})}, bf16)["equal"]);
  EXPECT_FALSE(CompareOutputs({tensor({1, 2})}, {tensor({2, 1})}, bf16)["equal"]);
}

}  // namespace
}  // namespace berth
