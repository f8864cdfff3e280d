// Input that once went wrong, on the built program: files that break a rule, numbers beyond all bounds, and what the
// surroundings can do to a run.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <set>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

const std::string kFaults = std::string(BERTH_SOURCE_DIR) + "/tests/data/faults/";
constexpr const char* kModel = "fork_join(width=6,depth=2)";

// One line on standard error, exit code 2, and nothing on standard output.
void ExpectMistake(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.code, 2) << outcome.out.substr(0, 1000);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, MatchesRegex("berth: [^\n]+\n"));
  EXPECT_THAT(outcome.err, HasSubstr(part));
}

void ExpectFine(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, IsEmpty());
}

std::string Pair(const std::string& gpu_rate = "9TFLOP/s") {
  return "name: pair\ndevices:\n"
         "  slow: {kind: cpu, peak: {f32: 1TFLOP/s vendor (a sheet)}, memory_bandwidth: 10GB/s, op_overhead: 0us "
         "vendor}\n"
         "  fast: {kind: gpu, memory: 1GiB, peak: {f32: " +
         gpu_rate + "}, memory_bandwidth: 90GB/s}\nlinks:\n  - {latency: 1us, bandwidth: 10GB/s}\n";
}

// --- Proofs, bounds and gates ---------------------------------------------------------------------------------------

nlohmann::json Planned(const std::string& graph, const std::string& cluster, std::vector<std::string> more) {
  std::vector<std::string> words = {"plan", kFaults + graph, "--cluster", kFaults + cluster, "--json"};
  std::ranges::move(more, std::back_inserter(words));
  const Outcome outcome = RunBerth(words);
  EXPECT_LE(outcome.code, 1) << outcome.err;
  return outcome.json();
}

// Beside a host priorities let an output leave later than any sequence can say.
TEST(AnOrderOfAllOps, IsNoProofWhereTransfersQueueBesideAHost) {
  const json order = Planned("queue_at_port.json", "lacking.yaml", {"--planner", "exhaustive(space=order)"});
  const json search =
      Planned("queue_at_port.json", "lacking.yaml", {"--planner", "annealing(order=search)", "--budget", "2000evals"});
  EXPECT_LT(search.at("score_seconds"), order.at("score_seconds"));
  EXPECT_FALSE(order.at("optimal"));
  EXPECT_LE(order.at("lower_bound_seconds"), search.at("score_seconds"));
  EXPECT_LE(Planned("queue_at_port.json", "lacking.yaml", {"--budget", "2000evals"}).at("score_seconds"),
            search.at("score_seconds"));
}

// Equal devices differ to transfers that start by the number of their destination.
TEST(AnOrderOfAllOps, TriesEqualDevicesApart) {
  const auto score = [](const std::string& planner) {
    return Planned("separate.json", "twins.yaml", {"--separate", "a,b", "--planner", planner}).at("score_seconds");
  };
  EXPECT_LE(score("exhaustive(space=order)"), score("exhaustive"));
}

TEST(Placeto, CountsNoWeightsSoThatNoneRuleAPlacementOut) {
  const auto score = [](const std::string& planner) {
    return Planned("heavy.json", "small_fast.yaml", {"--evaluator", "placeto", "--planner", planner})
        .at("score_seconds");
  };
  EXPECT_EQ(score("exhaustive"), score("single"));
  const json noisy =
      Planned("heavy.json", "small_fast.yaml", {"--evaluator", "noisy(of=placeto)", "--planner", "exhaustive"});
  EXPECT_LT(noisy.at("score_seconds"), 1e-3);
}

TEST(AMinimumCut, ThatCostsFarLessThanOneDeviceIsExact) {
  const json plan = Planned("far_apart.json", "far_apart.yaml", {"--evaluator", "serial", "--planner", "mincut"});
  EXPECT_NEAR(plan.at("score_seconds"), 8.89e-3, 1e-5);
  EXPECT_TRUE(plan.at("optimal"));
}

TEST(ADeviceOfNoBytes, IsNotOneWithoutALimit) {
  for (const char* planner : {"first_fit", "memory_proportional"}) {
    EXPECT_TRUE(Planned("heavy.json", "no_memory.yaml", {"--planner", planner}).at("feasible")) << planner;
  }
  EXPECT_TRUE(Planned("heavy.json", "no_memory.yaml", {"--planner", "best_of(round_robin)", "--budget", "3evals"})
                  .at("feasible"));
}

// A plan that splits a kernel is bounded by those that keep it whole.
TEST(ABound, HoldsForPlansThatKeepAKernelWhole) {
  const Outcome split = RunBerth({"simulate", kFaults + "one_kernel.json", "--cluster", kFaults + "slow_fast.yaml",
                                  "--placement", "1,0,0", "--json"});
  const json best = Planned("one_kernel.json", "slow_fast.yaml", {"--budget", "50evals"});
  EXPECT_LE(split.json().at("lower_bound_seconds"), best.at("score_seconds"));
}

// All numbers of the file are measured; what it leaves to the kind of the device is a guess all the same.
TEST(AnEfficiencyThatIsADefault, IsVariedLikeAnyGuess) {
  const Folder folder;
  Write(
      folder / "pair.yaml",
      "name: pair\nprovenance: measured\ndevices:\n"
      "  a: {kind: cpu, peak: {f32: 100GFLOP/s}, memory_bandwidth: 10GB/s, op_overhead: 1us, efficiency: {conv: 0.7}}\n"
      "  b: {kind: cpu, peak: {f32: 50GFLOP/s}, memory_bandwidth: 10GB/s, op_overhead: 1us}\n"
      "links:\n  - {latency: 1us, bandwidth: 10GB/s}\n");
  const Outcome outcome =
      RunBerth({"plan", "inception_v3", "--cluster", folder / "pair.yaml", "--budget", "2000evals", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::set<std::string> whats;
  const json numbers = outcome.json().at("guesses").at("numbers");
  ASSERT_FALSE(numbers.empty());
  for (const json& number : numbers) {
    whats.insert(number.at("what"));
    EXPECT_EQ(number.at("measure_with"), "berth profile");
  }
  EXPECT_EQ(whats.count("efficiency conv of a"), 0u) << "the file has it";
  EXPECT_EQ(whats.count("efficiency conv of b"), 1u);
  EXPECT_EQ(whats.count("efficiency elementwise of a and b"), 1u) << "a default is one guess";
  EXPECT_EQ(whats.count("efficiency recurrent of a"), 0u) << "no op of the model is of this class";
}

TEST(AnAnswerOfOneDevice, IsComparedWithASplitWhileGuessesVary) {
  const Outcome outcome = RunBerth({"plan", "densenet121", "--cluster", "desktop", "--budget", "2000evals", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json answer = outcome.json();
  std::set<json> devices;
  for (const json& device : answer.at("assignment")) devices.insert(device);
  ASSERT_EQ(devices.size(), 1u);
  const json& guesses = answer.at("guesses");
  ASSERT_FALSE(guesses.is_null());
  EXPECT_GE(guesses.at("gain"), 1);
  EXPECT_EQ(guesses.at("rival").get<std::string>().find("alone"), std::string::npos) << guesses.at("rival");
}

TEST(AGuessThatEntersNoTime, MovesNoGain) {
  const Outcome outcome =
      RunBerth({"compare", kFaults + "kernels.json", "--cluster", kFaults + "slow_fast.yaml", "--pin", "conv=gpu",
                "--pin", "relu=cpu", "--planners", "annealing", "--budget", "2000evals", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json guesses = outcome.json().at("guesses");
  EXPECT_EQ(guesses.at("least_gain"), guesses.at("gain"));
  EXPECT_EQ(guesses.at("most_gain"), guesses.at("gain"));
}

TEST(AKernel, MovesAGraphInputOnce) {
  const Outcome outcome = RunBerth({"simulate", kFaults + "swish.json", "--cluster", kFaults + "gpus.yaml",
                                    "--placement", "0,0", "--evaluator", "parallel(io=everywhere)", "--json"});
  EXPECT_NEAR(outcome.json().at("score_seconds"), 80e-3, 1e-5);
}

TEST(RawWeights, MakeNoSubgraphs) {
  const Outcome outcome =
      RunBerth({"simulate", kFaults + "raw.json", "--cluster", kFaults + "half.yaml", "--placement",
                "0,1,1,0,1,0,1,0,0", "--evaluator", "serial(subgraph_overhead=1,io=everywhere)", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.json().at("subgraphs"), 1);
  EXPECT_NEAR(outcome.json().at("score_seconds"), 1, 0.01);
}

TEST(AScoreThatIsNeverTheSame, IsAskedForWhereAPlanIsGiven) {
  const Folder folder;
  ASSERT_EQ(RunBerth({"plan", kFaults + "constant.json", "--cluster", kFaults + "half.yaml", "--budget", "30evals",
                      "-o", folder / "p.json"})
                .code,
            0);
  EXPECT_EQ(RunBerth({"check", folder / "p.json", "--evaluator", "noisy(of=parallel)", "--max-latency", "1us"}).code,
            1);
  const Outcome given = RunBerth({"simulate", folder / "p.json", "--evaluator", "noisy(of=parallel)", "--json"});
  EXPECT_GT(given.json().at("score_seconds"), 1e-3);
  EXPECT_EQ(given.json().at("memory_rule"), "berth");
}

// --- Models ---------------------------------------------------------------------------------------------------------

double FlopsOf(const std::string& model) {
  const Outcome outcome = RunBerth({"inspect", kFaults + model, "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.json().at("flops");
}

std::vector<int64_t> LastShapeOf(const std::string& model) {
  const Folder folder;
  EXPECT_EQ(RunBerth({"inspect", kFaults + model, "-o", folder / "g.json"}).code, 0);
  return json::parse(Content(folder / "g.json")).at("ops").back().at("outputs").back().at("shape");
}

TEST(AFunction, HasItsDefaultAttributesAndTheOverloadThatIsCalled) {
  EXPECT_THAT(LastShapeOf("function_default.onnx"), ElementsAre(4, 16));
  EXPECT_THAT(LastShapeOf("function_overload.onnx"), ElementsAre(4, 8));
}

TEST(AModelOfBeforeOpset7, BroadcastsTheSecondOperandFromAnAxisOn) {
  EXPECT_THAT(LastShapeOf("old_broadcast.onnx"), ElementsAre(1, 64, 1, 1));
}

TEST(AnInputOfSizeMinusOne, IsOpen) {
  const Outcome outcome = RunBerth({"inspect", kFaults + "open_as_minus_one.onnx", "--shape", "x=2,3,8,8", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.json().at("flops"), 384);
}

TEST(Attention, ThatIsPackedCountsWhatItCountsApart) {
  EXPECT_EQ(FlopsOf("packed_groups.onnx"), FlopsOf("groups.onnx"));
  EXPECT_NEAR(FlopsOf("packed_heads.onnx"), 10.9e6, 0.1e6);
  EXPECT_EQ(FlopsOf("scaled_attention.xml"), 2088);
}

TEST(AnIr, CountsTheFilterOfADeformableConvolutionAndRunsWhatDrawsNumbers) {
  EXPECT_NEAR(FlopsOf("deformable.xml"), 231.2e6, 0.1e6);
  EXPECT_GT(FlopsOf("random.xml"), 5e5);
}

TEST(ASliceOfNothing, IsNothing) { EXPECT_THAT(LastShapeOf("slice_of_nothing.onnx"), ElementsAre(0, 4)); }

TEST(ATensor, OfTooFewNumbersIsDamaged) {
  ExpectMistake(RunBerth({"inspect", kFaults + "short_data.onnx"}), "it has 3 numbers, its shape says 4");
}

TEST(TwoOutputs, AreTwoFiles) {
  const Folder folder;
  ExpectMistake(RunBerth({"plan", kModel, "-o", folder / "a.svg", "--picture", folder / "a.svg"}),
                "name another file for the picture");
  ExpectMistake(RunBerth({"plan", kModel, "-o", folder / "a.svg", "--picture", folder / "./a.svg"}),
                "name another file for the picture");
  ExpectMistake(RunBerth({"inspect", "chain(ops=4)", "--format", "bogus"}), "--format are for model files");
  ExpectMistake(RunBerth({"cluster", "show", "cpu_gpu", "--yaml", "--json"}), "give one of them");
}

// --- Constants ------------------------------------------------------------------------------------------------------

double ScoreOf(const std::string& graph, const std::string& placement, const std::string& evaluator) {
  const Outcome outcome = RunBerth({"simulate", kFaults + graph, "--placement", placement, "--cluster",
                                    kFaults + "two.yaml", "--evaluator", evaluator, "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.json().at("score_seconds");
}

// Two transfers of 30 us over one link, requested at 1 and 2 us, after a latency of 20 us: both are on the link from 22
// us on, so the first ends at 21 + 1 + 2 * 29 = 80, the second at 81, and each of their consumers takes 1 us.
TEST(AnUnrelatedConstant, LeavesTheLatencyOfAllOtherTransfersOffTheSharedLink) {
  const std::string links = "parallel(contention=links,io=everywhere)";
  EXPECT_NEAR(ScoreOf("links_plain.json", "0,0,1,1", links), 82e-6, 1e-15);
  EXPECT_NEAR(ScoreOf("links_const.json", "0,0,1,1,0,0", links), 82e-6, 1e-15);
}

// --- Standard error -------------------------------------------------------------------------------------------------

TEST(StandardError, ThatCannotBeWrittenChangesNoExitCode) {
  EXPECT_EQ(RunBerth({"plan", "nosuch"}, {.error_to = "/dev/full"}).code, 2);
  EXPECT_EQ(RunBerth({"plan", "--nosuch"}, {.error_to = "/dev/full"}).code, 2);
  const Folder folder;
  ASSERT_EQ(RunBerth({"plan", kModel, "--budget", "20evals", "-o", folder / "p.json"}).code, 0);
  // With a warning to say.
  const Outcome outcome =
      RunBerth({"simulate", "--plan", folder / "p.json", "--cluster", "k80x2", "--json"}, {.error_to = "/dev/full"});
  EXPECT_NE(outcome.code, 128 + SIGABRT);
  EXPECT_EQ(outcome.code, RunBerth({"simulate", "--plan", folder / "p.json", "--cluster", "k80x2", "--json"}).code);
  // With progress to tell.
  EXPECT_EQ(RunBerth({"train", "--planner", "placeto(rounds=2,rollouts=1,epochs=1)", "--on", kModel, "--updates", "2",
                      "--out", folder / "run"},
                     {.error_to = "/dev/full"})
                .code,
            0);
}

// --- What is no regular file ----------------------------------------------------------------------------------------

TEST(Files, DevicesPipesAndFoldersAreRefusedEverywhere) {
  const Folder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& [path, why] :
       std::vector<std::pair<std::string, std::string>>{{"/dev/zero", "is a device and no regular file"},
                                                        {fifo, "is a pipe and no regular file"},
                                                        {folder.path().string(), "is a directory"}}) {
    SCOPED_TRACE(path);
    ExpectMistake(RunBerth({"simulate", "--plan", path}), why);
    ExpectMistake(RunBerth({"explain", path}), why);
    ExpectMistake(RunBerth({"check", path, "--model", kModel}), why);
    ExpectMistake(RunBerth({"simulate", kModel, "--placement", "@" + path}), why);
    ExpectMistake(RunBerth({"plan", kModel, "--constraints", path}), why);
    ExpectMistake(RunBerth({"plan", kModel, "--costs", "profile(file=" + path + ")"}), why);
    ExpectMistake(RunBerth({"plan", kModel, "--planner", "fixed(file=" + path + ")"}), why);
    if (path != folder.path()) ExpectMistake(RunBerth({"plan", kModel, "--cluster", path}), why);
  }
  ExpectMistake(RunBerth({"inspect", "/dev/zero"}), "is a device and no regular file; write the model into a file");
  ExpectMistake(RunBerth({"inspect", folder.path().string()}), "is a directory");
  ExpectMistake(RunBerth({"inspect", fifo}), "nobody writes into this pipe");
}

TEST(Files, AModelMayComeThroughAPipe) {
  const Folder folder;
  ExpectFine(RunBerth({"inspect", kModel, "-o", folder / "net.json"}));
  Write(folder / "run.sh", "cat '" + folder / "net.json" + "' | " + BERTH_BINARY + " inspect /dev/stdin --json >'" +
                               folder / "out" + "'\n");
  ASSERT_EQ(std::system(("sh '" + folder / "run.sh" + "'").c_str()), 0);
  EXPECT_EQ(json::parse(Content(folder / "out")).at("ops"), RunBerth({"inspect", kModel, "--json"}).json().at("ops"));
}

// --- Names and numbers ----------------------------------------------------------------------------------------------

TEST(AnEndlessName, IsShortenedOnPagesAndInErrors) {
  const Folder folder;
  const std::string name(100'000, 'n');
  ASSERT_EQ(RunBerth({"inspect", "chain(ops=4)", "-o", folder / "net.json"}).code, 0);
  json net = json::parse(Content(folder / "net.json"));
  net["name"] = name;
  net["ops"][1]["name"] = name;
  net["ops"][1]["type"] = "T" + name;
  net["ops"][1]["outputs"][0]["name"] = "out" + name;
  net["ops"][2]["consumes"] = {"out" + name};
  Write(folder / "net.json", net.dump());
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"inspect", folder / "net.json"},
           {"plan", folder / "net.json", "--budget", "50evals", "-o", folder / "p.json"},
           {"compare", folder / "net.json", "--planners", "heft", "--budget", "50evals"},
           {"explain", folder / "p.json"},
           {"simulate", "--plan", folder / "p.json"},
           {"check", folder / "p.json", "--max-transfers", "0", "--max-latency", "1ns"},
           {"plan", folder / "net.json", "--forbid", name + "=cpu,gpu"},
           {"plan", folder / "net.json", "--pin", name + "x=cpu"},
           {"plan", name},
           {"plan", kModel, "--planner", name},
           {"plan", kModel, "--" + name},
           {"simulate", folder / "net.json", "--placement", name + ",0,0,0"}}) {
    const Outcome outcome = RunBerth(arguments);
    SCOPED_TRACE(arguments[0]);
    EXPECT_LT(outcome.code, 3);
    EXPECT_EQ(outcome.out.find(std::string(300, 'n')), std::string::npos);
    EXPECT_EQ(outcome.err.find(std::string(300, 'n')), std::string::npos);
  }
  // For machines they are whole.
  EXPECT_EQ(RunBerth({"inspect", folder / "net.json", "--json"}).json().at("model"), name);
}

TEST(Numbers, ThatOverflowAreRefused) {
  ExpectMistake(RunBerth({"inspect", kFaults + "bigflops.json"}),
                "the FLOPs of its ops add up to more than a number can hold; correct those of op 'a0', 1.7e+308");
  ExpectMistake(RunBerth({"plan", kFaults + "bigflops.json", "--cluster", kFaults + "two.yaml", "--json"}),
                "the FLOPs of its ops");
  // One of them is a number, but its time is none on a slow device, and its energy none anywhere.
  const Folder folder;
  json graph = json::parse(Content(kFaults + "bigflops.json"));
  graph["ops"].erase(1);
  graph["ops"].erase(1);
  Write(folder / "one.json", graph.dump());
  const auto with = [&](const std::string& rate, const std::string& more) {
    Write(folder / "c.yaml", "name: c\ndevices:\n  a: {kind: cpu, peak: {f32: " + rate +
                                 "}, memory_bandwidth: 1GB/s, efficiency: {other: 1}" + more + "}\n");
    return RunBerth({"plan", folder / "one.json", "--cluster", folder / "c.yaml", "--budget", "5evals"});
  };
  ExpectMistake(with("0.1FLOP/s", ""), "op a0 takes longer than a number can hold");
  ExpectMistake(with("1FLOP/s", ", op_overhead: 1.7e308s"), "takes longer than a number can hold");
  ExpectMistake(with("1FLOP/s", ", watts: {idle: 1e10, busy: 1e10}"),
                "its times add up to more than a number can hold");
  const Outcome fine = with("1GFLOP/s", "");
  EXPECT_EQ(fine.code, 0) << fine.err;
  EXPECT_THAT(fine.out, AllOf(HasSubstr("1.70e+299 s"), Not(HasSubstr("00000000000000"))));
}

TEST(Keys, ThatAreThereTwiceAreRefused) {
  const Folder folder;
  std::string graph = Content(kFaults + "links_plain.json");
  const size_t at = graph.find("\"flops\": 1000");
  ASSERT_NE(at, std::string::npos);
  Write(folder / "g.json", graph.insert(at, "\"flops\": 1, "));
  ExpectMistake(RunBerth({"inspect", folder / "g.json"}), "g.json: ops[0]: the key 'flops' is there twice; remove one");
  ASSERT_EQ(RunBerth({"plan", kModel, "--budget", "20evals", "-o", folder / "p.json"}).code, 0);
  std::string plan = Content(folder / "p.json");
  Write(folder / "p.json", plan.insert(plan.find("\"seed\""), "\"seed\": 3, "));
  ExpectMistake(RunBerth({"explain", folder / "p.json"}), "p.json: the key 'seed' is there twice");
  Write(folder / "profile.json", R"([{"cat": "Node", "dur": 1, "dur": 2, "name": "a_kernel_time", "args": {}}])");
  ExpectMistake(RunBerth({"plan", kModel, "--costs", "profile(file=" + folder / "profile.json" + ")"}),
                "profile.json: [0]: the key 'dur' is there twice");
}

TEST(Sizes, NeedAUnit) {
  const std::string said = "is not an amount of memory: write a number and a unit, like 512MiB or 16GiB";
  const Folder folder;
  ExpectMistake(RunBerth({"plan", kModel, "--memory", "gpu=100"}), "'100' " + said);
  Write(folder / "rules.yaml", "memory:\n  - gpu=100\n");
  ExpectMistake(RunBerth({"plan", kModel, "--constraints", folder / "rules.yaml"}), "'100' " + said);
  ASSERT_EQ(RunBerth({"plan", kModel, "--budget", "20evals", "-o", folder / "p.json"}).code, 0);
  ExpectMistake(RunBerth({"check", folder / "p.json", "--max-memory", "gpu=100"}), "'100' " + said);
  ExpectMistake(RunBerth({"check", folder / "p.json", "--max-memory", "100"}), "'100' " + said);
  Write(folder / "c.yaml", "name: x\ndevices: {a: {kind: cpu, memory: 100}}\n");
  ExpectMistake(RunBerth({"cluster", "show", folder / "c.yaml"}), said);
}

// --- Outputs and signals --------------------------------------------------------------------------------------------

TEST(Outputs, ASymbolicLinkIsWrittenThrough) {
  const Folder folder;
  std::filesystem::create_directory(folder / "there");
  Write(folder / "there/real.json", "old");
  std::filesystem::create_symlink("there/real.json", folder / "link.json");
  ExpectFine(RunBerth({"plan", kModel, "--budget", "20evals", "-o", folder / "link.json"}));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.json"));
  EXPECT_THAT(Content(folder / "there/real.json"), HasSubstr("\"berth_plan\""));
  std::filesystem::create_symlink("nowhere/p.json", folder / "lost.json");
  ExpectMistake(RunBerth({"plan", kModel, "-o", folder / "lost.json"}), "lost.json: cannot be written");
  std::filesystem::create_symlink("circle.json", folder / "circle.json");
  ExpectMistake(RunBerth({"plan", kModel, "-o", folder / "circle.json"}), "lead in a circle");
}

TEST(Sigterm, EndsASearchLikeCtrlCAndThePlanSaysSo) {
  const Folder folder;
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string plan = folder / std::to_string(signal) + ".json";
    const Outcome outcome = RunBerth({"plan", "resnet50", "--planner", "annealing", "--budget", "100s", "-o", plan},
                                     {.interrupt_after = 5, .signal = signal});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string stopped = "Stopped by Ctrl-C, SIGTERM or --memory-limit";
    EXPECT_THAT(outcome.out, HasSubstr(stopped));
    EXPECT_EQ(json::parse(Content(plan)).at("ended"), "interrupted");
    EXPECT_THAT(RunBerth({"explain", plan}).out, HasSubstr(stopped));
    EXPECT_THAT(RunBerth({"simulate", "--plan", plan}).out, HasSubstr(stopped));
    EXPECT_THAT(RunBerth({"check", plan}).out, HasSubstr(stopped));
    EXPECT_EQ(RunBerth({"check", plan, "--json"}).json().at("ended"), "interrupted");
  }
}

TEST(MemoryLimit, EndsASearchWithTheBestPlanSoFar) {
  const Folder folder;
  // The program itself holds more than that.
  const std::string plan = folder / "p.json";
  const Outcome outcome =
      RunBerth({"plan", kModel, "--planner", "annealing", "--budget", "100s", "--memory-limit", "1MiB", "-o", plan});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("The search ended at --memory-limit 1.00 MiB: Berth held "));
  EXPECT_EQ(json::parse(Content(plan)).at("ended"), "interrupted");
  ExpectFine(RunBerth({"simulate", "--plan", plan}));
  const auto said = RunBerth({"plan", kModel, "--budget", "100s", "--memory-limit", "1MiB", "--json"}).json();
  EXPECT_GT(said.at("memory_limit_reached_at_bytes"), 1 << 20);
  EXPECT_THAT(RunBerth({"compare", kModel, "--budget", "100s", "--memory-limit", "1MiB"}).out,
              HasSubstr("The search ended at --memory-limit"));
  // Enough is no news.
  EXPECT_THAT(RunBerth({"plan", kModel, "--budget", "20evals", "--memory-limit", "64GiB"}).out,
              Not(HasSubstr("memory-limit")));
  ExpectMistake(RunBerth({"plan", kModel, "--memory-limit", "100"}),
                "--memory-limit: '100' is not an amount of memory");
}

TEST(APlan, SaysWhyItsSearchEnded) {
  const Folder folder;
  const auto ended = [&](const std::string& planner, const std::string& budget, const char* model = kModel) {
    EXPECT_EQ(RunBerth({"plan", model, "--planner", planner, "--budget", budget, "-o", folder / "p.json"}).code, 0);
    return json::parse(Content(folder / "p.json")).at("ended");
  };
  EXPECT_EQ(ended("heft", "1000evals"), "itself");
  EXPECT_EQ(ended("annealing", "300evals"), "evaluations");
  EXPECT_EQ(ended("annealing", "0.2s"), "clock");
  EXPECT_THAT(RunBerth({"simulate", "--plan", folder / "p.json"}).out, HasSubstr("The clock ended the search"));
  // Portfolios with a search that never ends by itself, whatever they leave of their budget.
  for (const char* planner : {"auto", "best_of(annealing,heft)"}) {
    SCOPED_TRACE(planner);
    EXPECT_EQ(ended(planner, "500evals", "bert_base_s128"), "evaluations");
    EXPECT_EQ(ended(planner, "0.1s", "bert_base_s128"), "clock");
  }
}

TEST(APlan, IsNoModelAndSaidSo) {
  const Folder folder;
  ExpectFine(RunBerth({"plan", kModel, "--planner", "single", "-o", folder / "plan.json"}));
  for (const char* command : {"plan", "inspect", "compare"}) {
    ExpectMistake(RunBerth({command, folder / "plan.json"}), "plan.json: is a plan, and a model was expected");
  }
  Write(folder / "profile.json", R"({"berth-profile": 1, "devices": []})");
  ExpectMistake(RunBerth({"plan", folder / "profile.json"}), "profile.json: is a profile, and a model was expected");
  Write(folder / "two.yaml", kTwoCores);
  ExpectMistake(RunBerth({"plan", folder / "two.yaml"}), "two.yaml: is a device file, and a model was expected; write");
}

// --- The machines of a plan -----------------------------------------------------------------------------------------

TEST(APlan, HoldsItsMachines) {
  const Folder folder;
  Write(folder / "pair.yaml", Pair());
  const auto plan = [&](const std::string& cluster) {
    ExpectFine(RunBerth({"plan", kModel, "--cluster", cluster, "--budget", "50evals", "-o", folder / "p.json"}));
    return RunBerth({"simulate", "--plan", folder / "p.json", "--json"});
  };
  const auto simulate = [&](const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"simulate", "--plan", folder / "p.json", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunBerth(arguments);
  };
  const Outcome before = plan(folder / "pair.yaml");
  ExpectFine(before);

  // The file changes: the plan's own copy counts, and it is said.
  Write(folder / "pair.yaml", Pair("1GFLOP/s"));
  const Outcome changed = simulate();
  EXPECT_EQ(changed.code, 0);
  EXPECT_THAT(changed.err, AllOf(HasSubstr("berth: warning: "), HasSubstr("pair.yaml has changed since"),
                                 HasSubstr("these count; --cluster ")));
  EXPECT_EQ(changed.json().at("score_seconds"), before.json().at("score_seconds"));
  EXPECT_EQ(changed.json().at("hints"), before.json().at("hints")) << "where the numbers come from is kept";
  // Asked for, it is a what-if.
  const Outcome asked = simulate({"--cluster", folder / "pair.yaml"});
  EXPECT_THAT(asked.err, AllOf(HasSubstr("than those of pair, which are used: this is a what-if"),
                               Not(HasSubstr("has changed since"))));
  EXPECT_NE(asked.json().at("score_seconds"), before.json().at("score_seconds"));
  // One that is no device file any more has changed as well.
  Write(folder / "pair.yaml", "nonsense");
  EXPECT_THAT(simulate().err, HasSubstr("pair.yaml has changed since"));

  // What `tune` has corrected is no change of the file; anything else is.
  const auto tuned_on = [&](const std::string& machines) {
    Write(folder / "pair.yaml", Pair());
    Write(folder / "corrected.yaml", machines);
    plan(folder / "corrected.yaml");
    json file = json::parse(Content(folder / "p.json"));
    file["cluster"]["name"] = folder / "pair.yaml";
    file["planner"] = "tune";
    Write(folder / "p.json", file.dump());
    return simulate().err;
  };
  std::string corrected = Pair();
  corrected.replace(corrected.find("{kind: cpu,"), 11, "{kind: cpu, part_overhead: 20us,");
  EXPECT_THAT(tuned_on(corrected), IsEmpty());
  EXPECT_THAT(tuned_on(Pair("1GFLOP/s")), HasSubstr("pair.yaml has changed since"));
  ASSERT_EQ(plan(folder / "pair.yaml").code, 0);

  // The file goes: nothing is missed.
  std::filesystem::remove(folder / "pair.yaml");
  for (const Outcome& outcome : {simulate(), RunBerth({"explain", folder / "p.json", "--json"}),
                                 RunBerth({"check", folder / "p.json", "--json"})}) {
    ExpectFine(outcome);
    EXPECT_EQ(outcome.json().at("score_seconds"), before.json().at("score_seconds"));
  }

  // Presets, and those that are made by a formula.
  for (const char* cluster : {"cpu_gpu", "p100x4", "placeto(devices=3)"}) {
    SCOPED_TRACE(cluster);
    const Outcome of_preset = plan(cluster);
    ExpectFine(of_preset);
    json file = json::parse(Content(folder / "p.json"));
    EXPECT_THAT(file.at("cluster").at("device_file"), Not(IsEmpty()));
    file["cluster"]["name"] = "no_such_preset";
    Write(folder / "p.json", file.dump());
    ExpectFine(simulate());
    EXPECT_EQ(simulate().json().at("score_seconds"), of_preset.json().at("score_seconds"));
  }
  // A preset that is another than when the plan was made.
  plan("cpu_gpu");
  json file = json::parse(Content(folder / "p.json"));
  file["cluster"]["name"] = "k80x2";
  Write(folder / "p.json", file.dump());
  EXPECT_THAT(simulate().err, HasSubstr("k80x2 has changed since"));
}

#if BERTH_HAS_LEARN

// --- Training -------------------------------------------------------------------------------------------------------

std::vector<std::string> Train(const std::string& folder, const std::string& updates) {
  return {"train",     "--planner",   "placeto(rounds=1,rollouts=1,epochs=1)",
          "--on",      kModel,        "--cluster",
          "cpu_gpu",   "--evaluator", "serial",
          "--updates", updates,       "--checkpoint-every",
          "2",         "--out",       folder};
}

TEST(TwoTrainings, InOneFolderAreOneTooMany) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(RunBerth(Train(run, "3")).code, 0);
  // As another process holds it.
  const int lock = ::open((run + "/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const std::string said = "works in this folder; wait for its end, or name another folder";
  const std::string curve = Content(run + "/curve.csv");
  ExpectMistake(RunBerth({"train", "--resume", "--out", run}), said);
  EXPECT_EQ(Content(run + "/curve.csv"), curve);
  // A folder in which a run is just being begun.
  std::filesystem::create_directory(folder / "fresh");
  const int fresh = ::open((folder / "fresh/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(fresh, LOCK_EX | LOCK_NB), 0);
  ExpectMistake(RunBerth(Train(folder / "fresh", "3")), said);
  // A process that died holds nothing.
  ::close(lock);
  ::close(fresh);
  EXPECT_EQ(RunBerth({"train", "--resume", "--out", run}).code, 0);
  EXPECT_EQ(RunBerth(Train(folder / "fresh", "3")).code, 0);
}

TEST(Sigterm, EndsATrainingWithACheckpoint) {
  const Folder folder;
  const std::string run = folder / "run";
  const Outcome outcome = RunBerth(Train(run, "100000"), {.interrupt_at = run + "/curve.csv", .signal = SIGTERM});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Stopped by Ctrl-C or SIGTERM: `berth train --resume"));
  EXPECT_TRUE(std::filesystem::exists(run + "/last"));
}

// The hash of Berth's first layout of checkpoints around any header, whose sizes were believed.
TEST(ACheckpoint, WithFalseSizesIsRefused) {
  const Folder folder;
  const std::string run = folder / "run";
  ASSERT_EQ(RunBerth(Train(run, "3")).code, 0);
  const std::string good = Content(run + "/last");
  const auto plan = [&](const std::string& bytes) {
    Write(folder / "c", bytes);
    return RunBerth({"plan", kModel, "--cluster", "cpu_gpu", "--planner",
                     "placeto(rounds=1,rollouts=1,epochs=1,train=false,checkpoint=" + folder / "c" + ")"});
  };
  EXPECT_EQ(plan(good).code, 0);
  const std::string said = "c: this is no checkpoint that Berth has written, or it is damaged";
  ExpectMistake(plan("berth checkpoint 0123456789abcdef\n{\"meta\": {}, \"tensors\": []}\n"), said);
  const auto header = [&](const std::string& text) {
    std::string bytes(8, '\0');
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
    return bytes + text + std::string(64, 'x');
  };
  ExpectMistake(plan(header(R"({"t": {"dtype": "F32", "shape": [1000000000], "data_offsets": [0, 4000000000]}})")),
                said);
  ExpectMistake(plan(header(R"({"t": {"dtype": "F32", "shape": [4611686018427387904], "data_offsets": [0, 64]}})")),
                said);
  ExpectMistake(plan(header(R"({"t": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 64]}})")), said);
  ExpectMistake(plan(header(R"({"t": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}})")), "no metadata");
  std::string changed = good;
  changed.back() = static_cast<char>(~changed.back());
  ExpectMistake(plan(changed), "its hash is another");
  ExpectMistake(plan(good.substr(0, good.size() - 1)), said);
}

#endif  // BERTH_HAS_LEARN

// Of a plan that was edited by hand.
TEST(Plans, AreNotBelievedWhereTheyDoNotTakeWhatTheySay) {
  const Folder folder;
  ASSERT_EQ(RunBerth({"plan", "squeezenet1_1", "--planner", "single", "-o", folder / "plan.json"}).code, 0);
  EXPECT_EQ(RunBerth({"simulate", folder / "plan.json"}).err, "");
  nlohmann::json plan = nlohmann::json::parse(Content(folder / "plan.json"));
  plan["result"]["optimal"] = true;
  Write(folder / "plan.json", plan.dump());
  const std::string proof = "proved this plan optimal";
  EXPECT_THAT(RunBerth({"simulate", folder / "plan.json"}).out, HasSubstr(proof));
  plan["result"]["score_seconds"] = 1e-9;
  Write(folder / "plan.json", plan.dump());
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"simulate", folder / "plan.json"}, {"simulate", "squeezenet1_1", "--plan", folder / "plan.json"}}) {
    const Outcome edited = RunBerth(command);
    EXPECT_EQ(edited.code, 0);
    EXPECT_THAT(edited.err, HasSubstr("plan.json says that it takes 1e-09 s, but it takes "));
    EXPECT_THAT(edited.out, ::testing::Not(HasSubstr(proof)));
  }
  EXPECT_THAT(RunBerth({"simulate", folder / "plan.json", "--costs", "roofline(fusion=none)"}).err,
              ::testing::Not(HasSubstr("says that it takes")))
      << "a what-if";
}

// Latencies that a linear program's digits do not hold.
TEST(Plans, AreMadeWhereLinksAreSlowBeyondMeasure) {
  const Folder folder;
  std::string slow = kTwoCores;
  slow.replace(slow.find("latency: 10us"), 13, "latency: 1e12s");
  Write(folder / "slow.yaml", slow);
  const Outcome plan = RunBerth({"plan", "inception_v3", "--cluster", folder / "slow.yaml", "--budget", "300evals"});
  EXPECT_EQ(plan.code, 0) << plan.err;
}

}  // namespace
}  // namespace berth::testing
