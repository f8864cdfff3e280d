// What an answer claims, on the built program: that a plan is proven, better, or within its limits; and that a command
// leaves alone what it reads.
#include <gmock/gmock.h>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kModel = "fork_join(width=6,depth=2)";

TEST(AProof, OfThePlacementAloneIsNoneWhereAnotherOrderMayBeFaster) {
  const std::vector<std::string> problem = {"layered(ops=12,width=4,degree=2,spread=3,seed=23,bytes=3000000)",
                                            "--cluster", "desktop"};
  const auto planned = [&](const char* planner) {
    std::vector<std::string> words = {"plan"};
    words.insert(words.end(), problem.begin(), problem.end());
    words.insert(words.end(), {"--planner", planner, "--budget", "3000evals"});
    return Answer(words);
  };
  const json exhaustive = planned("exhaustive"), better = planned("auto");
  EXPECT_LT(better.at("score_seconds"), exhaustive.at("score_seconds"));
  EXPECT_FALSE(exhaustive.at("optimal"));
  EXPECT_THAT(exhaustive.at("note"), HasSubstr("in another order one may be"));
}

TEST(AProof, IsStillOneWhenThePlanIsReadAgain) {
  const Folder folder;
  const json plan = Answer({"plan", kModel, "--evaluator", "serial", "--planner", "mincut", "-o", folder / "p.json"});
  ASSERT_TRUE(plan.at("optimal"));
  const json again = Answer({"simulate", folder / "p.json"});
  EXPECT_TRUE(again.at("optimal"));
  EXPECT_DOUBLE_EQ(again.at("gap"), plan.at("gap"));
  EXPECT_EQ(RunBerth({"check", folder / "p.json", "--max-gap", "0.1%"}).code, 0);
  // Of another problem nothing is proven.
  const json other = Answer({"simulate", folder / "p.json", "--cluster", "cpu_igpu_gpu"});
  EXPECT_GT(other.at("gap"), plan.at("gap"));
}

TEST(AnAnswer, SaysWhereASimpleRuleIsBetter) {
  const Outcome outcome =
      RunBerth({"plan", "mobilenet_v2", "--cluster", "edge", "--planner", "random", "--budget", "20evals"});
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("A BETTER PLAN IS KNOWN: "), HasSubstr("a larger --budget")));
  EXPECT_THAT(RunBerth({"plan", "mobilenet_v2", "--cluster", "edge", "--budget", "3000evals"}).out,
              Not(HasSubstr("A BETTER PLAN IS KNOWN")));
}

TEST(APlanThatDoesNotFit, HasNoSpeedUpAndSaysWhatFits) {
  const Folder folder;
  Write(folder / "small.yaml",
        "name: small\ndevices:\n"
        "  big: {kind: gpu, memory: 1KiB, peak: {f32: 9TFLOP/s}, memory_bandwidth: 90GB/s}\n"
        "  home: {kind: cpu, memory: 8GiB, peak: {f32: 1TFLOP/s}, memory_bandwidth: 10GB/s}\n"
        "links:\n  - {latency: 1us, bandwidth: 10GB/s}\n");
  const Outcome outcome =
      RunBerth({"plan", kModel, "--cluster", folder / "small.yaml", "--planner", "single(device=big)"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("none: this plan does not fit"), HasSubstr("Everything on home fits")));
}

TEST(AConstraintOfMemory, IsNotSaidToBeKeptWhereThePlanDoesNotFit) {
  const Folder folder;
  ASSERT_EQ(RunBerth({"plan", kModel, "--planner", "single(device=gpu)", "-o", folder / "p.json"}).code, 0);
  const Outcome outcome = RunBerth({"check", folder / "p.json", "--memory", "gpu=1KiB"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("MISSED  fits"), Not(HasSubstr("kept"))));
}

// Each of these once replaced its own input.
TEST(ACommand, DoesNotOverwriteWhatItReads) {
  const Folder folder;
  const std::string model = folder / "net.json", cluster = folder / "c.yaml", plan = folder / "p.json";
  ASSERT_EQ(RunBerth({"inspect", kModel, "-o", model}).code, 0);
  Write(cluster, RunBerth({"cluster", "show", "cpu_gpu", "--yaml"}).out);
  Write(folder / "rules.yaml", "keep-free: 10%\n");
  ASSERT_EQ(RunBerth({"plan", model, "--budget", "20evals", "-o", plan}).code, 0);
  const std::string before = Content(model);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"plan", model, "-o", model},
           {"compare", model, "-o", model},
           {"inspect", model, "-o", model},
           {"plan", model, "--cluster", cluster, "-o", cluster},
           {"plan", model, "--constraints", folder / "rules.yaml", "-o", folder / "rules.yaml"},
           {"simulate", plan, "--trace", plan},
           {"simulate", plan, "--costs", "profile(file=" + cluster + ")", "--trace", cluster},
           {"simulate", plan, "--trace", model},  // which the plan names
           {"simulate", kModel, "--placement", "@" + folder / "rules.yaml", "--trace", folder / "rules.yaml"},
           {"run", plan, "--trace", model},
           {"tune", model, "--cluster", cluster, "-o", model},
           {"tune", model, "--cluster", cluster, "-o", cluster},
           {"calibrate", model, "--cluster", cluster, "-o", model}}) {
    const Outcome outcome = RunBerth(words);
    EXPECT_EQ(outcome.code, 2) << words[0];
    EXPECT_THAT(outcome.err, HasSubstr("is read here, and would be overwritten")) << words[0];
  }
  EXPECT_EQ(Content(model), before);
}

TEST(APlan, MayHaveAnyName) {
  const Folder folder;
  ASSERT_EQ(RunBerth({"plan", kModel, "--budget", "20evals", "-o", folder / "my plan"}).code, 0);
  EXPECT_EQ(RunBerth({"simulate", folder / "my plan"}).code, 0);
}

}  // namespace
}  // namespace berth::testing
