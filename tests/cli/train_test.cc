// What `berth train` leaves behind, on the built program.
#include <gmock/gmock.h>

#include "import/onnx_test_model.h"
#include "tests/cli/run_berth.h"

#if BERTH_HAS_LEARN

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kModel = "fork_join(width=3,depth=2)";

std::vector<std::string> Train(const std::string& planner, const std::string& folder,
                               const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "train",       "--planner", planner, "--on", std::string(kModel) + ",chain(ops=8)", "--cluster", "cpu_gpu",
      "--evaluator", "serial",    "--out", folder};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// One line with what was wrong, and the exit code of a mistake.
void ExpectMistake(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, AllOf(StartsWith("berth: "), HasSubstr(part)));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

// What the page of a run says at its end, run by a shell in `folder` on `model`.
Outcome RunWhatThePageSays(const Folder& folder, const std::string& page, const std::string& model) {
  const std::string start = "\n    berth plan MODEL ";
  const size_t at = page.find(start);
  if (at == std::string::npos) return {.out = "", .err = "no command in: " + page};
  const std::string options = page.substr(at + start.size());
  Write(folder / "command.sh", "cd '" + folder.path().string() + "' && " + BERTH_BINARY + " plan '" + model + "' " +
                                   options.substr(0, options.find('\n')) + " --budget 5evals --json >out 2>err\n");
  const int status = std::system(("sh " + folder / "command.sh").c_str());
  return {.code = WEXITSTATUS(status), .out = Content(folder / "out"), .err = Content(folder / "err")};
}

class Learned : public ::testing::TestWithParam<const char*> {};

TEST_P(Learned, LeavesAFolderWithAllOfARunAndAPolicyThatPlans) {
  const Folder folder;
  const std::string run = folder / "run";
  const Outcome outcome = RunBerth(
      Train(GetParam(), run, {"--updates", "3", "--checkpoint-every", "2", "--json", "--test", "chain(ops=5)"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // No terminal: its progress is lines.
  EXPECT_THAT(outcome.err, MatchesRegex("(update [1-3] of 3, [0-9]+ evaluations, relative cost [0-9.]+\n){3}"));
  for (const char* file : {"config.json", "curve.csv", "curve.svg", "last", "best", "results.txt", "results.json"}) {
    EXPECT_TRUE(std::filesystem::exists(run + "/" + file)) << file;
  }
  const std::string curve = Content(run + "/curve.csv");
  EXPECT_EQ(std::count(curve.begin(), curve.end(), '\n'), 4);
  EXPECT_THAT(Content(run + "/curve.svg"), AllOf(StartsWith("<svg"), HasSubstr("</svg>")));
  EXPECT_EQ(json::parse(Content(run + "/results.json")), outcome.json());
  const json results = outcome.json();
  EXPECT_EQ(results.at("updates"), 3);
  EXPECT_EQ(results.at("cases").size(), 2u);
  EXPECT_EQ(results.at("tests").size(), 1u);
  for (const json& trained : results.at("cases")) {
    std::vector<std::string> controls;
    double optimum = 0;
    for (const json& control : trained.at("controls")) {
      controls.push_back(control.at("planner"));
      EXPECT_LE(control.at("evaluations"), trained.at("evaluations"));
      if (controls.back() == "mincut") optimum = control.at("score_seconds");
    }
    for (const char* name :
         {"random", "random(bias=true)", "on(group=random,planner=random)", "one_cut", "local_search"})
      EXPECT_THAT(controls, Contains(name));
    EXPECT_GT(optimum, 0);
    EXPECT_GE(trained.at("best_seconds").get<double>(), optimum * (1 - 1e-12));
    EXPECT_LE(trained.at("lower_bound_seconds").get<double>(), optimum * (1 + 1e-12));
  }
  const Outcome plan = RunBerth(
      {"plan", kModel, "--cluster", "cpu_gpu", "--evaluator", "serial", "--json", "--planner", results.at("answer")});
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_FALSE(plan.json().at("controls").empty());
}

TEST_P(Learned, ResumedGivesTheSameBytesAsUnbroken) {
  const Folder folder;
  const std::string whole = folder / "whole", broken = folder / "broken";
  const Outcome outcome = RunBerth(Train(GetParam(), whole, {"--updates", "7", "--checkpoint-every", "2", "--json"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // As `kill -9` leaves it: an older checkpoint (`best` is one), rows of updates that it has not seen, half a row.
  ASSERT_LT(outcome.json().at("best_update"), 7) << "another seed is needed: resuming would do nothing";
  std::filesystem::copy(whole, broken);
  std::filesystem::copy_file(broken + "/best", broken + "/last", std::filesystem::copy_options::overwrite_existing);
  std::ofstream(broken + "/curve.csv", std::ios::app) << "8,12";
  const Outcome resumed = RunBerth({"train", "--resume", "--out", broken, "--threads", "1"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  for (const char* file : {"curve.csv", "curve.svg", "last", "best", "config.json"}) {
    EXPECT_EQ(Content(broken + "/" + file), Content(whole + "/" + file)) << file;
  }
  EXPECT_EQ(json::parse(Content(broken + "/results.json")).at("cases"), outcome.json().at("cases"));
}

TEST_P(Learned, EndsAtCtrlCWithACheckpointAndGoesOn) {
  const Folder folder;
  const std::string whole = folder / "whole", broken = folder / "broken";
  const std::vector<std::string> length = {"--updates", "60", "--checkpoint-every", "50"};
  ASSERT_EQ(RunBerth(Train(GetParam(), whole, length)).code, 0);
  const Outcome stopped = RunBerth(Train(GetParam(), broken, length), {.interrupt_after = 0.4});
  ASSERT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_TRUE(std::filesystem::exists(broken + "/last"));
  ASSERT_EQ(RunBerth({"train", "--resume", "--out", broken}).code, 0);
  for (const char* file : {"curve.csv", "last", "best"}) {
    EXPECT_EQ(Content(broken + "/" + file), Content(whole + "/" + file)) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Learned,
                         ::testing::Values("placeto(rounds=2,rollouts=1,epochs=1)",
                                           "hsdag(mode=paper,hidden=8,steps=4,type=false,degrees=false,position=1)",
                                           "hdp(hidden=8,grouper_hidden=8,groups=4,rollouts=2,epochs=1)",
                                           "tabular(rows=type)"),
                         [](const auto& test) {
                           return std::string(test.param).substr(0, std::string(test.param).find('('));
                         });

// Loading it takes longer than most commands.
TEST(LearnedModule, LibtorchIsLoadedOnlyWhenItIsNeeded) {
  ::setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);  // the loader lists what the program starts with, as ldd does
  const Outcome started = RunBerth({"--version"});
  ::unsetenv("LD_TRACE_LOADED_OBJECTS");
  EXPECT_THAT(started.out, AllOf(HasSubstr("libstdc++"), ::testing::Not(HasSubstr("torch"))));
  EXPECT_THAT(RunBerth({"list", "planners"}).out, HasSubstr("placeto"));
}

TEST(Train, RefusesWhatCannotBeDoneInOneLine) {
  const Folder folder;
  const std::string planner = "placeto(rounds=2,rollouts=1,epochs=1)", run = folder / "run";
  ExpectMistake(RunBerth(Train(planner, folder / "no/run", {"--updates", "1"})), "parent");
  ExpectMistake(RunBerth(Train("heft", run, {"--updates", "1"})), "heft is not a learned planner");
  ExpectMistake(RunBerth(Train("best_of(heft)", run)), "best_of(heft) is not a learned planner");
  ExpectMistake(RunBerth(Train("best_of(heft,placeto)", run)),
                "best_of has no policy of its own to train; name placeto");
  ExpectMistake(RunBerth(Train("on(planner=on(planner=placeto))", run)), "on(...) cannot stand inside on(...)");
  ExpectMistake(RunBerth(Train("placeto(train=false)", run)), "train=false");
  ExpectMistake(RunBerth(Train("on(planner=hsdag(train=false))", run)), "train=false");
  ExpectMistake(RunBerth(Train(planner, "")), "--out: its value is empty");
  ExpectMistake(RunBerth(Train(planner, folder / "a\"b")), "quotation mark");
  ExpectMistake(RunBerth(Train(planner, run, {"--test", "chain(ops=5),chain(ops=8)"})),
                "--test chain(ops=8): the policy is trained on this model (--on)");
  ExpectMistake(RunBerth(Train(planner, run, {"--test", "chain( ops=8)"})), "(--on), as chain(ops=8); leave");
  ExpectMistake(RunBerth(Train(planner, run, {"--validate", "chain(ops=8)"})),
                "--validate chain(ops=8): the policy is trained on this model (--on)");
  ExpectMistake(RunBerth(Train(planner, run, {"--validate", "chain(ops=5)", "--test", "chain( ops=5)"})),
                "--test chain( ops=5): the policy is chosen by this model (--validate), as chain(ops=5); leave");
  ExpectMistake(RunBerth(Train("tabular", run, {"--test", "chain(ops=5)"})), "a row for each op of another graph");
  ExpectMistake(RunBerth(Train("tabular", run, {"--validate", "chain(ops=5)"})), "a row for each op of another graph");
  ExpectMistake(RunBerth(Train(planner, run, {"--updates", "0"})), "--updates");
  ExpectMistake(RunBerth(Train(planner, run, {"--budget", "soon"})), "budget");
  ExpectMistake(RunBerth(Train(planner, run, {"--resume"})), "no training was begun");
  ExpectMistake(RunBerth({"train", "--planner", planner, "--on", "famly(name=enas_conv)", "--out", run}),
                "did you mean 'family'?");
  ExpectMistake(RunBerth({"train", "--planner", planner, "--out", run}), "--on");
  ExpectMistake(RunBerth(Train(planner, run, {"--threads", "x"})), "--threads");
  EXPECT_FALSE(std::filesystem::exists(run));

  ASSERT_EQ(RunBerth(Train(planner, run, {"--updates", "1"})).code, 0);
  ExpectMistake(RunBerth(Train(planner, run, {"--updates", "1"})), "--resume");
  ExpectMistake(RunBerth(Train(planner, run, {"--resume", "--seed", "9"})), "--seed 9");
  ExpectMistake(RunBerth({"train", "--resume", "--out", run, "--updates", "7"}), "--updates 1");
}

TEST(Train, ResumesWithTheDefaultsGivenAgain) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(RunBerth(Train("placeto(rounds=1,rollouts=1,epochs=1)", run, {"--updates", "1"})).code, 0);
  const Outcome resumed =
      RunBerth({"train", "--resume", "--out", run, "--seed", "1", "--checkpoint-every", "10", "--mode", "inference"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

// A run's file has them by number, and sorts them as texts.
TEST(Train, ResumesWithMoreShapesThanTen) {
  const Folder folder;
  std::vector<std::string> arguments = {"train",
                                        "--planner",
                                        "placeto(rounds=1,rollouts=1,epochs=1)",
                                        "--on",
                                        folder / "sum.onnx",
                                        "--cluster",
                                        "cpu_gpu",
                                        "--mode",
                                        "inference",
                                        "--evaluator",
                                        "serial",
                                        "--out",
                                        folder / "run",
                                        "--updates",
                                        "1"};
  TestOnnxModel model;
  std::vector<std::string> inputs;
  for (int i = 0; i < 11; ++i) {
    inputs.push_back(fmt::format("x{}", i));
    const std::string size = fmt::format("n{}", i);
    model.Input(inputs.back(), {size.c_str()});
    arguments.insert(arguments.end(), {"--shape", inputs.back() + "=4"});
  }
  model.Node("Sum", inputs, {"sum"});
  model.Node("Relu", {"sum"}, {"y"});
  model.Output("y");
  Write(folder / "sum.onnx", model.Bytes());
  const Outcome outcome = RunBerth(arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Outcome resumed = RunBerth({"train", "--resume", "--out", folder / "run"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST(Train, ChoosesByTheModelsForValidationAlsoWhenResumed) {
  const Folder folder;
  const std::string run = folder / "run";
  const std::string planner = "placeto(rounds=1,rollouts=1,epochs=1)";
  ASSERT_EQ(
      RunBerth(Train(planner, run, {"--updates", "4", "--checkpoint-every", "2", "--validate", "chain(ops=5)"})).code,
      0);
  const std::string whole = Content(folder / "run/results.json");
  EXPECT_EQ(nlohmann::json::parse(whole)["validation_evaluations"], 2);
  EXPECT_THAT(Content(folder / "run/results.txt"), HasSubstr("--validate"));
  EXPECT_THAT(Content(folder / "run/curve.svg"), HasSubstr("likeliest placements, --validate"));
  const Outcome resumed = RunBerth({"train", "--resume", "--out", run, "--json"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(Content(folder / "run/results.json"), whole);
  ExpectMistake(RunBerth({"train", "--resume", "--out", run, "--validate", "chain(ops=6)"}),
                "with --validate chain(ops=5), not with --validate chain(ops=6)");
}

TEST(Train, TellsARunFromAnotherFolder) {
  const Folder folder;
  const std::string other = folder / "other", planner = "placeto(rounds=1,rollouts=1,epochs=1)";
  std::filesystem::create_directory(other);
  ExpectMistake(RunBerth({"train", "--resume", "--out", other}), "leave --resume out");
  Write(other + "/notes", "mine");
  ExpectMistake(RunBerth({"train", "--resume", "--out", other}), "name the folder of a run, which has a config.json");
  ExpectMistake(RunBerth(Train(planner, other)), "holds no run to go on with");
  for (const char* config : {"", "[]", "{", R"({"berth_training":"x","arguments":{}})", R"({"berth_training":1})",
                             R"({"berth_training":2,"arguments":{}})", R"({"berth_training":1,"arguments":["a"]})",
                             R"({"berth_training":1,"arguments":null})", R"({"berth_training":[1],"arguments":{}})"}) {
    Write(other + "/config.json", config);
    ExpectMistake(RunBerth({"train", "--resume", "--out", other}), "no configuration of a training");
  }
  Write(other + "/config.json", R"({"berth_training":1,"arguments":{},"arguments":{}})");
  ExpectMistake(RunBerth({"train", "--resume", "--out", other}), "the key 'arguments' is there twice");
  Write(other + "/config.json", R"({"berth_training":1,"arguments":{"seed":1}})");
  ExpectMistake(RunBerth({"train", "--resume", "--out", other}), "arguments.seed");
}

TEST(Train, ResumingRemovesWhatAKilledSaveLeft) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(RunBerth(Train("placeto(rounds=1,rollouts=1,epochs=1)", run, {"--updates", "1"})).code, 0);
  for (const char* file : {"last.part-AbCd12", "curve.svg.part-000000", "results.txt.part-zzzzzz", "my.part-AbCd12"}) {
    Write(run + "/" + file, "half");
  }
  ASSERT_EQ(RunBerth({"train", "--resume", "--out", run}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(run + "/last.part-AbCd12"));
  EXPECT_FALSE(std::filesystem::exists(run + "/curve.svg.part-000000"));
  EXPECT_FALSE(std::filesystem::exists(run + "/results.txt.part-zzzzzz"));
  EXPECT_TRUE(std::filesystem::exists(run + "/my.part-AbCd12"));
}

TEST(Train, ARunWithoutItsCheckpointIsNotBegunAgain) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(
      RunBerth(Train("placeto(rounds=1,rollouts=1,epochs=1)", run, {"--updates", "3", "--checkpoint-every", "2"})).code,
      0);
  const std::string curve = Content(run + "/curve.csv");
  std::filesystem::remove(run + "/last");
  ExpectMistake(RunBerth({"train", "--resume", "--out", run}), "last: is missing, though curve.csv has 3 updates");
  EXPECT_EQ(Content(run + "/curve.csv"), curve);
  // As it is before the first checkpoint.
  const size_t third = curve.rfind('\n', curve.size() - 2) + 1;
  Write(run + "/curve.csv", curve.substr(0, third));
  ASSERT_EQ(RunBerth({"train", "--resume", "--out", run}).code, 0);
  EXPECT_EQ(Content(run + "/curve.csv"), curve);
}

TEST(Train, ThePageEndsWithACommandThatWorks) {
  const Folder folder;
  const std::string model = "fork_join(width=3,depth=2)";
  const Outcome first =
      RunBerth({"train", "--planner", "placeto(rounds=1,rollouts=1,epochs=1,train=true)", "--on", model, "--cluster",
                "k80x4", "--costs", "roofline", "--evaluator", "parallel(contention=none)", "--objective", "energy",
                "--updates", "2", "--out", "a (b), c's"},
               {.directory = folder.path().string()});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, AllOf(HasSubstr("1 decision per step"),
                               HasSubstr(" --cluster k80x4 --costs roofline --evaluator 'parallel(contention=none)' "
                                         "--objective energy --planner ")));
  const Outcome plan = RunWhatThePageSays(folder, first.out, model);
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.json().at("planner"), AllOf(HasSubstr("checkpoint=\"a (b), c's/"), Not(HasSubstr("train="))));

  const Outcome second =
      RunBerth({"train", "--planner",
                "on(group=chain, planner=placeto(epochs=1,rounds=1,rollouts=1,checkpoint=\"a (b), c's/last\"))", "--on",
                model, "--cluster", "k80x2", "--updates", "2", "--out", "b"},
               {.directory = folder.path().string()});
  ASSERT_EQ(second.code, 0) << second.err;
  const std::string whole =
      "on(group=chain,planner=placeto(rounds=1,epochs=1,rollouts=1,checkpoint=\"a (b), c's/last\"))";
  EXPECT_THAT(second.out, StartsWith(whole + " trained on 1 model"));
  EXPECT_EQ(json::parse(Content(folder / "b/results.json")).at("planner"), whole);
  const Outcome again = RunWhatThePageSays(folder, second.out, model);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.json().at("planner"), HasSubstr("rollouts=1,checkpoint=b/"));
}

TEST(Checkpoints, ThatDoNotFitAreRefusedInOneLine) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(RunBerth(Train("placeto(rounds=2,rollouts=1,epochs=1,head=devices)", run, {"--updates", "1"})).code, 0);
  const auto plan = [&](const std::string& cluster, const std::string& planner) {
    return RunBerth({"plan", kModel, "--cluster", cluster, "--planner", planner});
  };
  const std::string checkpoint = "checkpoint=" + run + "/last";
  ExpectMistake(plan("k80x4", "placeto(rounds=2,rollouts=1,epochs=1,head=devices," + checkpoint + ")"), "2 devices");
  ExpectMistake(plan("cpu_gpu", "placeto(rounds=2,rollouts=1,epochs=1,costs=columns,head=devices," + checkpoint + ")"),
                run);
  ExpectMistake(plan("cpu_gpu", "placeto(rounds=2,rollouts=1,epochs=1," + checkpoint + ")"), "any number of devices");
  ExpectMistake(plan("cpu_gpu", "hsdag(" + checkpoint + ")"), "hsdag");
  ExpectMistake(plan("cpu_gpu", "placeto(checkpoint=" + run + "/curve.csv)"), "no checkpoint");
  ExpectMistake(plan("cpu_gpu", "placeto(checkpoint=" + run + "/nothing)"), "cannot be read");
  std::string bytes = Content(run + "/last");
  bytes[bytes.size() / 2] ^= 1;
  Write(run + "/last", bytes);
  ExpectMistake(plan("cpu_gpu", "placeto(rounds=2,rollouts=1,epochs=1,head=devices," + checkpoint + ")"), "damaged");
}

TEST(Checkpoints, OfASharedNetworkServeAnyNumberOfDevices) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(RunBerth(Train("placeto(rounds=2,rollouts=1,epochs=1)", run, {"--updates", "1"})).code, 0);
  const Outcome outcome = RunBerth({"plan", kModel, "--cluster", "k80x4", "--planner",
                                    "placeto(rounds=2,rollouts=1,epochs=1,checkpoint=" + run + "/last)"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(Train, StopsWhereTheLossIsNotFiniteAndKeepsTheLastGoodCheckpoint) {
  const Folder folder;
  const std::string run = folder / "run";
  const Outcome outcome = RunBerth(Train(
      "hsdag(mode=paper,encoder=gin,layers=16,hidden=8,steps=4,type=false,degrees=false,position=1,learning_rate=10)",
      run, {"--updates", "20", "--checkpoint-every", "1"}));
  EXPECT_EQ(outcome.code, 2);
  // After the lines of its progress.
  const std::string last = outcome.err.substr(outcome.err.rfind("berth: "));
  EXPECT_THAT(last, AllOf(HasSubstr("diverged in update"), HasSubstr("last good checkpoint")));
}

TEST(Train, ItsPageFitsANarrowTerminalAndItsFileDoesNotMind) {
  const Folder folder;
  const Outcome outcome = RunBerth(
      Train("placeto(rounds=1,epochs=1,rollouts=1)", folder / "run", {"--updates", "1", "--test", "chain(ops=5)"}),
      {.columns = 60});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    // A folder's name and a command to copy are as long as they are.
    if (line.find("/tmp/") != line.npos || line.find("berth_cli") != line.npos) continue;
    EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }), 60) << line;
  }
  EXPECT_THAT(outcome.out, HasSubstr("(no room for: "));
  EXPECT_THAT(Content(folder / "run/results.txt"), Not(HasSubstr("no room for")));
}

TEST(Train, AFamilyOfTwoIsTwoModels) {
  const Folder folder;
  const Outcome outcome = RunBerth({"train", "--planner", "placeto(rounds=1,epochs=1,rollouts=1,credit=terminal)",
                                    "--on", "family(name=enas_rnn,count=2)", "--cluster", "k80x2", "--updates", "1",
                                    "--out", folder / "run", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.json().at("cases").size(), 2u);
}

}  // namespace
}  // namespace berth::testing

#endif
