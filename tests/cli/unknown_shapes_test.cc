// Models of which sizes are unknown, and what a user is told of inputs, batches and costs, on the built program.
#include <gmock/gmock.h>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// A chain of four ops; from the third on sizes are unknown. With `open` it is the input's sizes that nobody told.
std::string Model(bool open) {
  std::string ops;
  for (int i = 0; i < 4; ++i) {
    ops += fmt::format(
        R"({}{{"name": "op{}", "type": "Relu", "class": "elementwise", "data_type": "f32", "flops": 1000, )"
        R"("bytes_read": 40000, "bytes_written": 40000, {}, {}"outputs": [{{"name": "t{}", "bytes": 40000{}}}]}})",
        i > 0 ? ",\n" : "", i, i == 0 ? R"("inputs": ["ids"])" : fmt::format(R"("consumes": ["t{}"])", i - 1),
        i > 1 || open ? R"("sizes": "unknown", )" : "", i, i == 3 ? R"(, "result": true)" : "");
  }
  return R"({"format": "berth-graph", "version": 1, "name": "guessed", "inputs": [{"name": "ids", "bytes": 8, )"
         R"("shape": [1, 1], "type": "int64"}], "ops": [)" +
         ops + "]}\n";
}

class UnknownShapes : public ::testing::Test {
 protected:
  UnknownShapes() : model_(folder_ / "model.json"), plan_(folder_ / "plan.json") { Write(model_, Model(false)); }

  Outcome Plan(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan", model_, "--budget", "50evals"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunBerth(arguments);
  }

  const Folder folder_;
  const std::string model_, plan_;
};

TEST_F(UnknownShapes, AreRefusedInOneLineThatSaysWhatHelps) {
  for (const Outcome& outcome : {Plan({}), RunBerth({"compare", model_, "--budget", "50evals"}),
                                 RunBerth({"check", "--model", model_, "--placement", "0,0,0,0"})}) {
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err,
                MatchesRegex("berth: [^\n]*model.json: the sizes of 2 of 4 ops \\(50 %\\) with 50 % of the "
                             "work are unknown, from op 'op2' \\(Relu\\) on, and `berth inspect` says why; [^\n]*"
                             "--allow-unknown-shapes\n"));
  }
  Write(model_, Model(true));
  EXPECT_THAT(Plan({}).err,
              HasSubstr("from input 'ids' on; say its sizes with --shape ids=1,? (a number for each ?), or"));
}

TEST_F(UnknownShapes, AreSaidWhereverANumberStands) {
  const std::string headline = "GUESSED: the sizes of 2 of 4 ops (50 %) with 50 % of the work are unknown";
  const Outcome planned = Plan({"--allow-unknown-shapes", "-o", plan_, "--picture", folder_ / "plan.svg"});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr(headline));
  EXPECT_THAT(planned.out, HasSubstr("none is claimed, because sizes of the model are unknown"));
  for (const char* claim : {"no plan can", "no plan has", "optimal", "No plan"}) {
    EXPECT_THAT(planned.out, Not(HasSubstr(claim)));
  }
  EXPECT_THAT(Content(folder_ / "plan.svg"), HasSubstr("GUESSED: the sizes of 2 of 4 ops are unknown"));

  const json answer = json::parse(Plan({"--allow-unknown-shapes", "--json"}).out);
  EXPECT_EQ(answer.at("unknown_shapes").at("ops"), 2);
  EXPECT_EQ(answer.at("unknown_shapes").at("share_of_ops"), 0.5);
  EXPECT_EQ(answer.at("unknown_shapes").at("share_of_work"), 0.5);
  EXPECT_EQ(answer.at("unknown_shapes").at("first_op"), "op2");
  EXPECT_EQ(answer.at("lower_bound_seconds"), 0);
  EXPECT_TRUE(answer.at("gap").is_null());
  EXPECT_FALSE(answer.at("optimal").get<bool>());

  const Outcome compared = RunBerth({"compare", model_, "--budget", "50evals", "--planners", "mincut,heft",
                                     "--evaluator", "serial", "--allow-unknown-shapes"});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, AllOf(HasSubstr(headline), Not(HasSubstr("No plan")), Not(HasSubstr("proven"))));
  EXPECT_THAT(compared.out, ContainsRegex("bound:\\s+none\\s+is\\s+claimed,\\s+because\\s+sizes"));

  // Nor does a planner's own remark: a minimum cut proves what it finds.
  for (const char* evaluator : {"serial", "serial(subgraph_overhead=1e-6)"}) {
    const Outcome cut = Plan({"--planner", "mincut", "--evaluator", evaluator, "--allow-unknown-shapes"});
    EXPECT_EQ(cut.code, 0) << cut.err;
    EXPECT_THAT(cut.out, AllOf(HasSubstr(headline), Not(HasSubstr("o placement is")))) << evaluator;
  }

  for (const std::vector<std::string>& command : {std::vector<std::string>{"check", plan_, "--allow-unknown-shapes"},
                                                  {"simulate", "--plan", plan_},
                                                  {"explain", plan_}}) {
    const Outcome outcome = RunBerth(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(headline)) << command.front();
  }
  const Outcome checked = RunBerth({"check", plan_, "--allow-unknown-shapes", "--max-gap", "50%"});
  EXPECT_EQ(checked.code, 1);
  EXPECT_THAT(checked.out, HasSubstr("sizes of the model are unknown"));
}

TEST_F(UnknownShapes, AreInTheFirstLinesOfInspect) {
  const Outcome outcome = RunBerth({"inspect", model_});
  EXPECT_THAT(outcome.out, StartsWith("guessed\n\n  UNKNOWN      the sizes of 2 of 4 ops (50 %) with 50 % of the work: "
                                      "guessed, from Relu 'op2' on\n"));
  EXPECT_EQ(json::parse(RunBerth({"inspect", model_, "--json"}).out).at("unknown_shapes").at("ops"), 2);
  EXPECT_TRUE(json::parse(RunBerth({"inspect", "resnet50", "--json"}).out).at("unknown_shapes").is_null());
}

TEST(Inspect, NamesTheInputsWithShapesAndTypes) {
  EXPECT_THAT(RunBerth({"inspect", "resnet50"}).out, HasSubstr("[1, 3, 224, 224] float32 (588 KiB)"));
  const json inputs = json::parse(RunBerth({"inspect", "resnet50", "--batch", "8", "--json"}).out).at("inputs");
  EXPECT_EQ(inputs.at(0).at("shape"), (json{8, 3, 224, 224}));
  EXPECT_EQ(inputs.at(0).at("type"), "float32");
}

TEST(Inspect, SaysWhatEachOpTypeCostsOnEachDevice) {
  const Outcome outcome = RunBerth({"inspect", "resnet50", "--cluster", "cpu_gpu"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("on cpu"), HasSubstr("on gpu"), HasSubstr("one op after another")));
  const json answer = json::parse(RunBerth({"inspect", "resnet50", "--cluster", "cpu_gpu", "--json"}).out);
  double sum = 0;
  for (const auto& [type, seconds] : answer.at("op_type_seconds").items()) sum += seconds.at("gpu").get<double>();
  // Everything on one device is one op after another.
  const json plan =
      json::parse(RunBerth({"plan", "resnet50", "--cluster", "cpu_gpu", "--evaluator",
                            "parallel(contention=none,io=everywhere)", "--planner", "single(device=gpu)", "--json"})
                      .out);
  EXPECT_NEAR(plan.at("score_seconds").get<double>(), sum, 1e-9);
  EXPECT_NEAR(plan.at("single_device_seconds").at("gpu").get<double>(), sum, 1e-9);
}

TEST(Batch, IsPartOfThePlan) {
  const Folder folder;
  const std::string plan = folder / "plan.json";
  const Outcome planned = RunBerth({"plan", "resnet50", "--batch", "8", "--budget", "20evals", "-o", plan, "--json"});
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(json::parse(Content(plan)).at("model").at("batch"), "8");
  const json again = json::parse(RunBerth({"simulate", "--plan", plan, "--json"}).out);
  EXPECT_EQ(again.at("score_seconds"), json::parse(planned.out).at("score_seconds"));
  EXPECT_THAT(RunBerth({"plan", "resnet50", "--batch", "0"}).err,
              MatchesRegex("berth: --batch: '0' is no integer[^\n]*\n"));
  EXPECT_THAT(RunBerth({"plan", "chain(ops=4)", "--batch", "8"}).err, HasSubstr("takes its sizes as parameters"));
}

TEST(Plan, AnswersOneDeviceOrSeveral) {
  const Outcome outcome = RunBerth({"plan", "inception_v3", "--budget", "200evals"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("  one device   gpu "), HasSubstr(", cpu "), HasSubstr("  speed-up     "),
                                 HasSubstr("over gpu alone, the fastest single device; no plan has more than "),
                                 HasSubstr("Time spent: ")));
  const Outcome alone = RunBerth({"plan", "inception_v3", "--planner", "single"});
  EXPECT_THAT(alone.out, HasSubstr("none: gpu alone is as fast as this plan"));
}

#if BERTH_HAS_LEARN
TEST_F(UnknownShapes, AreAllowedInARunThatIsResumedWhereTheyWereAtFirst) {
  const std::string run = folder_ / "run";
  const Outcome begun =
      RunBerth({"train", "--planner", "placeto(rounds=1,rollouts=1,epochs=1)", "--on", model_, "--cluster", "cpu_gpu",
                "--evaluator", "serial", "--updates", "1", "--out", run, "--allow-unknown-shapes"});
  ASSERT_EQ(begun.code, 0) << begun.err;
  const Outcome resumed = RunBerth({"train", "--resume", "--out", run});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}
#endif

}  // namespace
}  // namespace berth::testing
