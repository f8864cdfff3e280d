// Kernels on the built program: what a runtime fuses is timed as one and stays on one device.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kConv = "/features/features.3/squeeze/Conv";
constexpr const char* kRelu = "/features/features.3/squeeze_activation/Relu";

Outcome Plan(std::vector<std::string> options) {
  options.insert(options.begin(), {"plan", "squeezenet1_1", "--cluster", "cpu_gpu", "--budget", "300evals", "--json"});
  return RunBerth(options);
}

double SecondsOn(const std::string& costs) {
  return Plan({"--planner", "single(device=gpu)", "--costs", costs}).json().at("score_seconds");
}

TEST(Fusion, IsWhatInferenceIsPlannedWith) {
  const json plan = Plan({}).json();
  EXPECT_EQ(plan.at("costs"), "roofline(fusion=openvino)");
  const double fused = SecondsOn("roofline"), apart = SecondsOn("roofline(fusion=none)");
  EXPECT_LT(fused, 0.9 * apart);
  const json training = RunBerth({"plan", "squeezenet1_1", "--cluster", "cpu_gpu", "--mode", "training", "--planner",
                                  "single(device=gpu)", "--json"})
                            .json();
  EXPECT_EQ(training.at("costs"), "roofline");
}

TEST(Fusion, NoPlannerPartsAKernel) {
  for (const char* planner : {"auto", "random", "round_robin", "local_search", "heft", "metis", "one_cut"}) {
    const Outcome outcome = Plan({"--planner", planner});
    ASSERT_EQ(outcome.code, 0) << planner << ": " << outcome.err;
    const json place = outcome.json().at("assignment");
    EXPECT_EQ(place.at(kConv), place.at(kRelu)) << planner;
  }
}

TEST(Fusion, AConstraintThatPartsAKernelIsKeptAndTheKernelTimedApart) {
  const std::string pin_conv = std::string(kConv) + "=cpu", pin_relu = std::string(kRelu) + "=gpu";
  const Outcome outcome = Plan({"--pin", pin_conv, "--pin", pin_relu});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.json().at("assignment").at(kConv), "cpu");
  EXPECT_EQ(outcome.json().at("assignment").at(kRelu), "gpu");
  EXPECT_THAT(outcome.json().at("hints").dump(), HasSubstr("The constraints part 1 more, whose ops are timed apart."));
}

TEST(Fusion, APinTakesAKernelAlong) {
  const json place = Plan({"--pin", std::string(kRelu) + "=cpu"}).json().at("assignment");
  EXPECT_EQ(place.at(kConv), "cpu");
}

TEST(Fusion, APlacementThatPartsKernelsPaysForIt) {
  std::string list;
  for (int op = 0; op < 65; ++op) list += (op > 0 ? "," : "") + std::to_string(op % 2);
  const auto simulate = [&](const std::string& costs) {
    return RunBerth(
        {"simulate", "squeezenet1_1", "--cluster", "cpu_gpu", "--placement", list, "--costs", costs, "--json"});
  };
  const Outcome fused = simulate("roofline(fusion=openvino)"), apart = simulate("roofline(fusion=none)");
  ASSERT_EQ(fused.code, 0) << fused.err;
  EXPECT_THAT(fused.err, HasSubstr("parts 26 kernels: their ops are timed apart"));
  EXPECT_THAT(apart.err, IsEmpty());
  // The classifier's ops are all that is left whole, and it ends with none.
  EXPECT_EQ(fused.json().at("score_seconds"), apart.json().at("score_seconds"));
}

TEST(Fusion, AnOlderPlanMeansTheCostsThatItWasMadeWith) {
  const Folder folder;
  const std::string path = (folder.path() / "plan.json").string();
  const double apart =
      Plan({"--planner", "random", "--costs", "roofline(fusion=none)", "-o", path}).json().at("score_seconds");
  std::string text = Content(path);
  const std::string name = "roofline(fusion=none)";
  text.replace(text.find(name), name.size(), "roofline");
  std::ofstream(path) << text;
  const Outcome again = RunBerth({"simulate", "--plan", path, "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.json().at("score_seconds"), apart);
}

// A profile in which every op of the model takes 10 us on both devices; `fused` is what it says of kernels.
void WriteFlatProfile(const std::string& path, const std::string& fused) {
  json file = {{"berth-profile", 1}, {"devices", json::array()}};
  const json plan = Plan({"--planner", "single"}).json();
  for (const char* device : {"cpu", "gpu"}) {
    json one = {{"device", device}, {"nodes", json::array()}};
    if (!fused.empty()) one["fused"] = json::parse(fused);
    for (const auto& [op, on] : plan.at("assignment").items()) one["nodes"].push_back({{"name", op}, {"us", 10}});
    file["devices"].push_back(one);
  }
  std::ofstream(path) << file;
}

TEST(Fusion, WhatAProfileMeasuredAsOneKernelIsNotPartedForFree) {
  const Folder folder;
  const std::string path = (folder.path() / "profile.json").string(), costs = "profile(file=" + path + ")";
  WriteFlatProfile(path, json::array({json::array({kConv, kRelu})}).dump());
  const auto plan = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--costs", costs, "--evaluator", "parallel(io=everywhere)"});
    return Plan(std::move(options)).json();
  };
  const json whole = plan({"--planner", "single(device=cpu)"});
  EXPECT_NEAR(whole.at("score_seconds").get<double>(), 10e-6 * 65, 1e-12) << "as measured";
  EXPECT_THAT(whole.at("hints").dump(), HasSubstr("2 ops are 1 kernel"));
  const json random = plan({"--planner", "round_robin"});
  EXPECT_EQ(random.at("assignment").at(kConv), random.at("assignment").at(kRelu));

  // Who has it parted pays: for the two launches, and for the tensor that is written and read.
  const std::string pin_conv = std::string(kConv) + "=cpu", pin_relu = std::string(kRelu) + "=gpu";
  const std::string saved = (folder.path() / "plan.json").string();
  const json pinned = plan({"--pin", pin_conv, "--pin", pin_relu, "-o", saved});
  EXPECT_THAT(pinned.at("hints").dump(), HasSubstr("The constraints part 1 more, whose ops are timed apart."));
  const Outcome parted = RunBerth({"simulate", "--plan", saved, "--json"});
  ASSERT_EQ(parted.code, 0) << parted.err;
  double seconds = 0;
  const json ops = parted.json().at("ops");
  for (const json& op : ops) {
    if (op.at("name") != kConv && op.at("name") != kRelu) continue;
    const double took = op.at("end_seconds").get<double>() - op.at("start_seconds").get<double>();
    EXPECT_GT(took, 0) << op;
    seconds += took;
  }
  EXPECT_GT(seconds, 1.05 * 20e-6);

  // A profile that does not say what ran as one has the kernels of the rules; one that says nothing did has none.
  WriteFlatProfile(path, "");
  EXPECT_THAT(plan({"--planner", "single"}).at("hints").dump(), HasSubstr("52 ops are 26 kernels"));
  WriteFlatProfile(path, "[]");
  EXPECT_THAT(plan({"--planner", "single"}).at("hints").dump(), ::testing::Not(HasSubstr("kernel")));
}

TEST(Fusion, ExplainMovesAKernelAsAWhole) {
  const Folder folder;
  const std::string path = (folder.path() / "plan.json").string();
  ASSERT_EQ(Plan({"--planner", "single(device=gpu)", "-o", path}).code, 0);
  const auto alternative = [&](const char* op) {
    const json ops = RunBerth({"explain", path, "--op", op, "--json"}).json().at("ops");
    return ops.at(0).at("alternatives").at(0);
  };
  EXPECT_TRUE(alternative(kConv).at("allowed"));
  EXPECT_EQ(alternative(kConv), alternative(kRelu));
}

}  // namespace
}  // namespace berth::testing
