// Evaluators made of others, on the built program.
#include <gmock/gmock.h>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

Outcome Plan(const std::string& evaluator, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"plan",     "resnet18", "--cluster",   "cpu_gpu",
                                        "--budget", "60evals",  "--evaluator", evaluator};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunBerth(arguments);
}

TEST(Wrappers, NestByNameAndSayHowFarRunsWereApart) {
  const Folder folder;
  const std::string name = "repeat(runs=4,keep=3,of=noisy(share=0.1,seed=2,of=parallel(contention=ports,io=host)))";
  const Outcome planned = Plan(name, {"-o", folder / "plan.json"});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("The time is the mean of"));
  EXPECT_THAT(planned.out, HasSubstr("none is known for this execution model"));
  const json answer = json::parse(Plan(name, {"--json"}).out);
  EXPECT_GE(answer.at("runs"), 3);
  EXPECT_GT(answer.at("spread_seconds"), 0);
  EXPECT_EQ(answer.at("failed_evaluations"), 0);
  EXPECT_EQ(answer.at("evaluator"), name);
  // The same seed, the same noise.
  json again = json::parse(Plan(name, {"--json"}).out);
  EXPECT_EQ(again.at("score_seconds"), answer.at("score_seconds"));
  EXPECT_EQ(again.at("assignment"), answer.at("assignment"));
  // A plan file is scored by what it names.
  EXPECT_EQ(RunBerth({"simulate", "--plan", folder / "plan.json"}).code, 0);
}

TEST(Wrappers, SayWhatFailedAndWhy) {
  const Outcome outcome = Plan("checked(a=parallel,b=serial)");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("of these failed, the last one so: parallel(io=host) says"));
  const Outcome never = Plan("checked(a=parallel,b=pipeline)");
  EXPECT_EQ(never.code, 2);
  EXPECT_THAT(never.err,
              HasSubstr("could be scored by checked(a=parallel(io=host),b=pipeline,tolerance=0); the last one:"));
}

TEST(Wrappers, RefuseWhatTheyCannotPromise) {
  const Outcome outcome = Plan("deadline(seconds=1)");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "berth: deadline: parallel(io=host) cannot be stopped while it works; leave the deadline out\n");
  EXPECT_THAT(Plan("repeat(runs=2,keep=5)").err, HasSubstr("keep is 5; of 2 runs it can be 1 to 2"));
  EXPECT_THAT(Plan("noisy(of=nonsense)").err, HasSubstr("nonsense"));
}

}  // namespace
}  // namespace berth::testing
