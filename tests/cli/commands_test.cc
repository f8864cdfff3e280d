// What each command answers, on the built program.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// A small graph and two small machines of our own, so that answers can be worked out.
constexpr const char* kModel = "fork_join(width=6,depth=2)";

std::string SmallCluster(const std::string& memory = "1GiB") {
  const std::string both = "memory: " + memory + ", op_overhead: 10us, watts: {idle: 10, busy: 100}}\n";
  return "name: pair\ndevices:\n"
         "  slow: {kind: cpu, peak: {f32: 1TFLOP/s}, memory_bandwidth: 10GB/s, " +
         both + "  fast: {kind: gpu, peak: {f32: 9TFLOP/s}, memory_bandwidth: 90GB/s, " + both +
         "links:\n  - {latency: 1us, bandwidth: 10GB/s}\n";
}

void ExpectFine(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // Standard error is no terminal here: no progress, and nothing is wrong.
  EXPECT_THAT(outcome.err, IsEmpty());
}

void ExpectPlanFields(const json& plan) {
  EXPECT_TRUE(plan.at("planner").is_string());
  EXPECT_TRUE(plan.at("evaluator").is_string());
  EXPECT_TRUE(plan.at("feasible").is_boolean());
  EXPECT_GT(plan.at("score_seconds").get<double>(), 0);
  EXPECT_GT(plan.at("lower_bound_seconds").get<double>(), 0);
  EXPECT_LE(plan.at("lower_bound_seconds").get<double>(), plan.at("score_seconds").get<double>());
  EXPECT_GE(plan.at("gap").get<double>(), 0);
  EXPECT_GE(plan.at("evaluations").get<int64_t>(), 1);
  EXPECT_GE(plan.at("wall_seconds").get<double>(), 0);
  EXPECT_TRUE(plan.at("seed").is_number_unsigned());
  EXPECT_TRUE(plan.at("assignment").is_object());
}

constexpr const char* kCommands[] = {"inspect", "plan",    "compare", "train", "simulate", "explain",
                                     "check",   "cluster", "list",    "demo",  "export"};

// The lines below "Examples:" that are commands.
std::vector<std::string> ExamplesIn(const std::string& help) {
  std::vector<std::string> examples;
  std::istringstream lines(help.substr(std::min(help.find("Examples:"), help.size())));
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find("berth "); at != std::string::npos && line.find_first_not_of(' ') == at)
      examples.push_back(line.substr(at));
  }
  return examples;
}

TEST(Program, HelpAndVersionAreNoMistakes) {
  const Outcome whole = RunBerth({"--help"});
  ExpectFine(whole);
  EXPECT_EQ(RunBerth({"help"}).out, whole.out);
  for (const char* command : kCommands) {
    const Outcome outcome = RunBerth({command, "--help"});
    ExpectFine(outcome);
    EXPECT_THAT(outcome.out, HasSubstr(command));
    EXPECT_THAT(whole.out, HasSubstr(command));
    EXPECT_EQ(RunBerth({"help", command}).out, outcome.out);
  }
  EXPECT_EQ(RunBerth({"help", "cluster", "show"}).out, RunBerth({"cluster", "show", "--help"}).out);
  EXPECT_THAT(RunBerth({"--version"}).out, HasSubstr("berth 0."));
  EXPECT_EQ(RunBerth({"-V"}).out, RunBerth({"--version"}).out);
}

TEST(Program, TheExamplesOfEachHelpAreOfThatCommandAndWork) {
  const Folder folder;
  std::vector<std::string> examples = ExamplesIn(RunBerth({"--help"}).out);
  EXPECT_GT(examples.size(), 3u);
  // `plan` writes what others read.
  for (const std::string command : {"plan", "inspect", "compare", "simulate", "explain", "check", "cluster", "list"}) {
    const std::vector<std::string> own = ExamplesIn(RunBerth({command, "--help"}).out);
    EXPECT_FALSE(own.empty()) << command;
    for (const std::string& example : own) EXPECT_THAT(example, StartsWith("berth " + command + " "));
    examples.insert(examples.end(), own.begin(), own.end());
  }
  for (const std::string command : {"train", "run", "export", "profile"}) {
    EXPECT_FALSE(ExamplesIn(RunBerth({command, "--help"}).out).empty()) << command;
  }
  EXPECT_EQ(ExamplesIn(RunBerth({"demo", "--help"}).out), std::vector<std::string>{"berth demo"});
  for (const std::string& example : examples) {
    // What measures this machine takes its time, and OpenVINO: tests/cli/run_test.cc.
    if (example == "berth demo" || example.starts_with("berth cluster detect")) continue;
    Write(folder / "example.sh",
          "cd '" + folder.path().string() + "' && '" + BERTH_BINARY + "'" + example.substr(5) + " >out 2>err\n");
    EXPECT_EQ(std::system(("sh " + folder / "example.sh").c_str()), 0) << example << ": " << Content(folder / "err");
  }
}

TEST(Program, EveryAnswerInJsonSaysItsFormat) {
  const Folder folder;
  ExpectFine(RunBerth({"plan", kModel, "--budget", "20evals", "-o", folder / "p.json"}));
  ExpectFine(RunBerth({"plan", "two_towers", "--budget", "20evals", "-o", folder / "m.json"}));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"inspect", kModel},
                                             {"plan", kModel, "--budget", "20evals"},
                                             {"compare", kModel, "--planners", "heft", "--budget", "20evals"},
                                             {"simulate", "--plan", folder / "p.json"},
                                             {"explain", folder / "p.json"},
                                             {"check", folder / "p.json"},
                                             {"export", folder / "m.json", "--to", "onnxruntime", "-o", folder / "o"},
                                             {"check", folder / "p.json", "--pin", "*=cpu", "--forbid", "*=gpu"},
                                             {"plan", kModel, "--pin", "*=cpu", "--forbid", "*=cpu"},
                                             {"cluster", "list"},
                                             {"cluster", "show", "cpu_gpu"},
                                             {"list", "planners"},
                                             {"list", "evaluators"},
                                             {"list", "objectives"},
                                             {"list", "clusters"},
                                             {"list", "models"},
                                             {"list", "costs"},
                                             {"list", "groupings"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--json");
    const Outcome outcome = RunBerth(arguments);
    ASSERT_NE(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.json().at("format_version"), 1) << command[0];
    EXPECT_THAT(outcome.out, StartsWith("{\n  \"format_version\": 1,\n"));
  }
}

// Terminal cells of text that has no characters of two cells in it.
size_t Cells(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// No line of more than 60 cells, but for commands to copy.
void ExpectNarrow(const std::string& page) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = std::min(line.find_first_not_of(' '), line.size());
    if (line.compare(at, 6, "berth ") == 0) continue;
    EXPECT_LE(Cells(line), 60u) << line;
  }
}

TEST(Program, EveryPageFitsANarrowTerminal) {
  const Folder folder;
  Write(folder / "tiny.yaml", SmallCluster("49MiB"));
  const RunOptions narrow = {.directory = folder.path(), .columns = 60};
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"plan", "--help"},
           {"train", "--help"},
           {"calibrate", "--help"},
           {"inspect", "bert_base_s128"},
           {"plan", "bert_base_s128", "--cluster", "k80x4", "--budget", "50evals", "-o", "p.json", "--pin",
            "*MatMul=gpu0"},
           {"plan", "resnet50", "--cluster", "tiny.yaml", "--budget", "20evals"},
           {"plan", "resnet50", "--pin", "*=cpu", "--forbid", "/layer1*=cpu"},
           {"plan", "inception_v3", "--evaluator", "serial", "--planner", "mincut", "--objective", "energy"},
           {"compare", "inception_v3", "--cluster", "cpu_igpu_gpu", "--planners",
            "heft,on(group=merge(size=16),planner=random),annealing", "--budget", "50evals"},
           {"compare", "resnet50", "--objective", "weighted(latency=1,energy=1)", "--planners", "heft", "--budget",
            "50evals"},
           {"simulate", "--plan", "p.json", "--trace", "t.json"},
           {"explain", "p.json", "--op", "*MatMul"},
           {"check", "p.json", "--max-latency", "1us", "--max-memory", "1MiB", "--max-gap", "1%", "--max-transfers",
            "0"},
           {"cluster", "show", "cpu_gpu"},
           {"cluster", "show", "p100x8"},
           {"cluster", "list"},
           {"list", "planners"},
           {"list", "evaluators"},
           {"list", "objectives"},
           {"list", "models"},
           {"list", "costs"},
           {"list", "groupings"}}) {
    SCOPED_TRACE(command[0]);
    const Outcome outcome = RunBerth(command, narrow);
    ASSERT_NE(outcome.code, 2) << outcome.err;
    ExpectNarrow(outcome.out);
  }
}

TEST(Inspect, CountsWhatAModelConsistsOf) {
  const Outcome outcome = RunBerth({"inspect", "resnet50", "--json"});
  ExpectFine(outcome);
  const json model = outcome.json();
  int64_t ops = 0;
  for (const auto& [type, count] : model.at("op_types").items()) ops += count.get<int64_t>();
  EXPECT_EQ(model.at("ops"), ops);
  EXPECT_EQ(model.at("op_types").at("Conv"), 53);
  // 4.1 billion multiply-adds, 25.6 million weights.
  EXPECT_NEAR(model.at("flops").get<double>(), 8.2e9, 0.1e9);
  EXPECT_NEAR(model.at("parameter_bytes").get<double>(), 102e6, 1e6);
  EXPECT_NEAR(model.at("average_degree").get<double>(), model.at("edges").get<double>() / static_cast<double>(ops),
              1e-9);
  const Outcome page = RunBerth({"inspect", "resnet50"});
  ExpectFine(page);
  EXPECT_THAT(page.out, AllOf(HasSubstr("resnet50"), HasSubstr("Conv"), HasSubstr("GFLOP"), HasSubstr("97.")));
}

TEST(Inspect, ScalesWithTheShapeThatIsAskedFor) {
  const double one = RunBerth({"inspect", "resnet50", "--json"}).json().at("flops");
  const Outcome outcome = RunBerth({"inspect", "resnet50", "--shape", "input=8,3,224,224", "--json"});
  ExpectFine(outcome);
  EXPECT_NEAR(outcome.json().at("flops").get<double>() / one, 8, 0.01);
}

TEST(Inspect, WritesAGraphThatReadsBackEqual) {
  const Folder folder;
  ExpectFine(RunBerth({"inspect", "squeezenet1_1", "-o", folder / "net.json"}));
  const json original = RunBerth({"inspect", "squeezenet1_1", "--json"}).json();
  const json again = RunBerth({"inspect", folder / "net.json", "--json"}).json();
  EXPECT_EQ(again.at("fingerprint"), original.at("fingerprint"));
  EXPECT_EQ(again.at("op_types"), original.at("op_types"));
}

TEST(Plan, NamesADeviceForEachOp) {
  const Outcome outcome = RunBerth({"plan", "resnet50", "--budget", "100evals", "--json"});
  ExpectFine(outcome);
  const json plan = outcome.json();
  ExpectPlanFields(plan);
  EXPECT_EQ(plan.at("seed"), 1);
  EXPECT_EQ(plan.at("assignment").size(), RunBerth({"inspect", "resnet50", "--json"}).json().at("ops").get<size_t>());
  for (const auto& [op, device] : plan.at("assignment").items()) EXPECT_TRUE(device == "cpu" || device == "gpu");
}

TEST(Plan, PrintsAPageForPeople) {
  const Outcome outcome = RunBerth({"plan", "resnet50", "--planner", "heft", "--budget", "100evals"});
  ExpectFine(outcome);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("heft"), HasSubstr("lower bound"), HasSubstr("peak memory"),
                                 HasSubstr("Limited by"), HasSubstr(" guessed, ")));
}

TEST(Plan, TheSameSeedGivesTheSameBytes) {
  const Folder folder;
  for (const char* planner : {"auto", "annealing", "local_search", "random"}) {
    for (const char* name : {"a.json", "b.json"}) {
      ExpectFine(
          RunBerth({"plan", kModel, "--planner", planner, "--budget", "300evals", "--seed", "7", "-o", folder / name}));
    }
    EXPECT_EQ(Content(folder / "a.json"), Content(folder / "b.json")) << planner;
  }
  EXPECT_THAT(folder.files(), UnorderedElementsAre("a.json", "b.json"));
}

TEST(Plan, SimulateAndExplainNeedNothingButThePlan) {
  const Folder folder;
  const json plan =
      RunBerth({"plan", "squeezenet1_1", "--budget", "200evals", "-o", folder / "p.json", "--json"}).json();
  const Outcome simulated = RunBerth({"simulate", "--plan", folder / "p.json", "--trace", folder / "t.json", "--json"});
  ExpectFine(simulated);
  const json run = simulated.json();
  ExpectPlanFields(run);
  EXPECT_EQ(run.at("score_seconds"), plan.at("score_seconds"));
  EXPECT_EQ(run.at("assignment"), plan.at("assignment"));
  EXPECT_EQ(run.at("planner"), plan.at("planner"));

  double last = 0;
  for (const json& op : run.at("ops")) {
    EXPECT_EQ(op.at("device"), plan.at("assignment").at(op.at("name").get<std::string>()));
    EXPECT_LE(op.at("start_seconds"), op.at("end_seconds"));
    last = std::max(last, op.at("end_seconds").get<double>());
  }
  for (const json& transfer : run.at("transfers")) {
    last = std::max(last, transfer.at("end_seconds").get<double>());
    EXPECT_TRUE(transfer.at("tensor").is_string());
    EXPECT_NE(transfer.at("from"), transfer.at("to"));
    EXPECT_LE(transfer.at("start_seconds"), transfer.at("end_seconds"));
  }
  EXPECT_EQ(last, run.at("score_seconds").get<double>());
  EXPECT_EQ(run.at("peak_memory_bytes").size(), 2u);

  const json trace = json::parse(Content(folder / "t.json"));
  size_t slices = 0;
  for (const json& event : trace.at("traceEvents")) slices += event.at("ph") == "X" ? 1 : 0;
  EXPECT_EQ(slices, run.at("ops").size() + run.at("transfers").size());

  const Outcome explained = RunBerth({"explain", folder / "p.json", "--json"});
  ExpectFine(explained);
  const json why = explained.json();
  EXPECT_EQ(why.at("ops").size(), run.at("ops").size());
  for (const json& op : why.at("ops")) {
    EXPECT_THAT(op.at("cause").get<std::string>(), Not(IsEmpty()));
    ASSERT_EQ(op.at("alternatives").size(), 1u);
    EXPECT_GE(op.at("alternatives")[0].at("score_seconds").get<double>(), run.at("lower_bound_seconds").get<double>());
  }
  ASSERT_EQ(why.at("memory").size(), 2u);
  for (const auto& [device, memory] : why.at("memory").items()) {
    EXPECT_EQ(memory.at("peak_bytes"), run.at("peak_memory_bytes").at(device));
    int64_t held = 0;
    for (const json& holder : memory.at("holders")) held += holder.at("bytes").get<int64_t>();
    EXPECT_EQ(held, memory.at("peak_bytes").get<int64_t>());
  }
  const Outcome page = RunBerth({"explain", folder / "p.json", "--op", "*Conv"});
  EXPECT_EQ(page.code, 0) << page.err;
}

TEST(Plan, IsReadFromWhereItLies) {
  const Folder folder;
  ExpectFine(RunBerth({"inspect", kModel, "-o", folder / "net.json"}));
  Write(folder / "pair.yaml", SmallCluster());
  ExpectFine(RunBerth({"plan", "net.json", "--cluster", "pair.yaml", "--budget", "50evals", "-o", "p.json"},
                      {.directory = folder.path()}));
  // From elsewhere the relative paths of model and cluster follow the plan.
  ExpectFine(RunBerth({"simulate", "--plan", folder / "p.json"}, {.directory = "/"}));
}

TEST(Plan, DrawsAPictureInTheFormatOfItsName) {
  const Folder folder;
  for (const auto& [name, start] :
       {std::pair("p.svg", "<?xml"), std::pair("p.png", "\x89PNG"), std::pair("p.pdf", "%PDF")}) {
    const Outcome outcome = RunBerth({"plan", kModel, "--budget", "50evals", "--picture", folder / name});
    ExpectFine(outcome);
    EXPECT_THAT(outcome.out, HasSubstr("Drawn in "));
    EXPECT_THAT(Content(folder / name), StartsWith(start));
  }
  EXPECT_THAT(Content(folder / "p.svg"), AllOf(HasSubstr("<svg"), HasSubstr("</svg>")));
  ExpectFine(RunBerth({"plan", kModel, "--budget", "50evals", "--picture", folder / "p.svg", "--json"}));
}

TEST(Plan, SaysBeforeTheWorkThatItCannotDraw) {
  const Folder folder;
  const Outcome without =
      RunBerth({"plan", kModel, "--budget", "50evals", "--picture", folder / "q.svg"}, {.path = "/nowhere"});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.out, IsEmpty());
  EXPECT_THAT(without.err, HasSubstr("install graphviz"));
  const Outcome jpeg = RunBerth({"plan", kModel, "--budget", "50evals", "--picture", folder / "q.jpeg"});
  EXPECT_EQ(jpeg.code, 2);
  EXPECT_THAT(jpeg.out, IsEmpty());
  EXPECT_THAT(jpeg.err, HasSubstr("let it end in .svg, .png or .pdf"));
  EXPECT_THAT(folder.files(), IsEmpty());
}

TEST(Plan, APictureThatIsInterruptedIsNotWrittenAndTheResultsAreOutBefore) {
  const Folder folder;
  const Folder programs;
  Write(programs / "dot", "#!/bin/sh\nexec /bin/sleep 1000\n");
  std::filesystem::permissions(programs / "dot", std::filesystem::perms::owner_all);
  const Outcome outcome =
      RunBerth({"plan", kModel, "--budget", "50evals", "--picture", folder / "p.svg", "-o", folder / "p.json"},
               {.interrupt_printed = "lower bound", .path = programs.path().string() + ":/usr/bin:/bin"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("peak memory"), Not(HasSubstr("Drawn"))));
  EXPECT_THAT(outcome.err, MatchesRegex("berth: [^\n]*p.svg: not drawn: stopped by Ctrl-C\n"));
  EXPECT_THAT(folder.files(), UnorderedElementsAre("p.json"));
}

TEST(Plan, APictureOfThousandsOfOpsIsFolded) {
  const Folder folder;
  const Outcome outcome = RunBerth({"plan", "gnmt(steps=24)", "--planner", "random", "--budget", "1evals", "--cluster",
                                    "p100x4", "--picture", folder / "p.svg"});
  ExpectFine(outcome);
  const std::string svg = Content(folder / "p.svg");
  EXPECT_THAT(svg, AllOf(HasSubstr(" ops "), HasSubstr("gpu3"), Not(HasSubstr("nan"))));
  EXPECT_LT(svg.size(), 1'000'000u);
}

TEST(Plan, OneThatDoesNotFitIsSaidAndIsNoMistake) {
  const Folder folder;
  Write(folder / "tiny.yaml", SmallCluster("49MiB"));
  const Outcome outcome = RunBerth(
      {"plan", "resnet50", "--cluster", folder / "tiny.yaml", "--budget", "100evals", "-o", folder / "p.json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("DOES NOT FIT"), HasSubstr("weight")));
  const Outcome simulated = RunBerth({"simulate", "--plan", folder / "p.json", "--json"});
  EXPECT_EQ(simulated.code, 1);
  EXPECT_EQ(simulated.json().at("feasible"), false);
  EXPECT_EQ(
      RunBerth({"compare", "resnet50", "--cluster", folder / "tiny.yaml", "--planners", "heft", "--budget", "50evals"})
          .code,
      1);
}

TEST(Compare, AlwaysHasTheSimpleRulesAndMarksTheFastest) {
  const Outcome outcome =
      RunBerth({"compare", "inception_v3", "--planners", "heft,random", "--budget", "100evals", "--json"});
  ExpectFine(outcome);
  const json comparison = outcome.json();
  ExpectPlanFields(comparison);
  std::map<std::string, double> score;
  double best = 1e300, best_simple = 1e300;
  for (const json& row : comparison.at("results")) {
    ExpectPlanFields(row);
    const double seconds = row.at("score_seconds");
    score[row.at("planner")] = seconds;
    best = std::min(best, seconds);
    if (row.at("simple")) best_simple = std::min(best_simple, seconds);
    EXPECT_NEAR(row.at("speedup_over").at("cpu").get<double>(),
                comparison.at("single_device_seconds").at("cpu").get<double>() / seconds, 1e-9);
  }
  for (const char* name : {"single(device=cpu)", "single(device=gpu)", "one_cut", "heft", "random"})
    EXPECT_TRUE(score.contains(name)) << name;
  EXPECT_EQ(comparison.at("score_seconds").get<double>(), best);
  EXPECT_EQ(score.at(comparison.at("best_simple")), best_simple);

  const Outcome page = RunBerth({"compare", "inception_v3", "--planners", "heft,random", "--budget", "100evals"});
  ExpectFine(page);
  EXPECT_THAT(page.out,
              AllOf(HasSubstr("planner"), HasSubstr("above bound"), HasSubstr("vs gpu"), HasSubstr("transfers"),
                    HasSubstr("◀ fastest"), HasSubstr("is fastest with"), HasSubstr("What limits it now")));
}

TEST(Compare, TheProvenOptimumBoundsTheOthers) {
  const json comparison = RunBerth({"compare", "bert_base_s128", "--evaluator", "serial", "--planners", "mincut",
                                    "--budget", "500evals", "--json"})
                              .json();
  EXPECT_EQ(comparison.at("gap").get<double>(), 0);
  for (const json& row : comparison.at("results")) EXPECT_GE(row.at("score_seconds"), comparison.at("score_seconds"));
}

TEST(Simulate, TakesABarePlacement) {
  const Folder folder;
  const size_t ops = RunBerth({"inspect", kModel, "--json"}).json().at("ops");
  std::string list;
  for (size_t i = 0; i < ops; ++i) list += i == 0 ? "0" : i % 2 == 0 ? ",0" : ",1";
  const Outcome text = RunBerth({"simulate", kModel, "--placement", list, "--json"});
  ExpectFine(text);
  Write(folder / "placement.txt", list);
  const Outcome file = RunBerth({"simulate", kModel, "--placement", "@" + folder / "placement.txt", "--json"});
  ExpectFine(file);
  EXPECT_EQ(file.json().at("score_seconds"), text.json().at("score_seconds"));
  const json run = text.json();
  std::set<std::string> used;
  for (const json& op : run.at("ops")) used.insert(op.at("device"));
  EXPECT_THAT(used, UnorderedElementsAre("cpu", "gpu"));
  EXPECT_EQ(RunBerth({"simulate", kModel, "--placement", list + ",0"}).code, 2);
}

TEST(Simulate, AnotherClusterIsAWhatIf) {
  const Folder folder;
  ExpectFine(RunBerth({"plan", kModel, "--budget", "50evals", "-o", folder / "p.json"}));
  const Outcome outcome = RunBerth({"simulate", "--plan", folder / "p.json", "--cluster", "cpu_igpu_gpu", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("berth: warning: "), HasSubstr("what-if")));
  const Outcome serial = RunBerth({"simulate", "--plan", folder / "p.json", "--evaluator", "serial", "--json"});
  EXPECT_EQ(serial.json().at("evaluator"), "serial(io=host)");
}

TEST(Io, IsOnTheHostWhereThereIsACpuAndPlansSayIt) {
  const auto evaluator = [](const std::string& cluster, const std::string& name) {
    return RunBerth({"plan", kModel, "--cluster", cluster, "--evaluator", name, "--budget", "20evals", "--json"})
        .json()
        .at("evaluator")
        .get<std::string>();
  };
  EXPECT_EQ(evaluator("cpu_gpu", "parallel"), "parallel(io=host)");
  EXPECT_EQ(evaluator("cpu_gpu", "serial(io=everywhere)"), "serial(io=everywhere)");
  EXPECT_EQ(evaluator("k80x2", "parallel"), "parallel(io=everywhere)");
  EXPECT_EQ(evaluator("k80x2", "parallel(io=1)"), "parallel(io=gpu1)");
  const Outcome none = RunBerth({"plan", kModel, "--cluster", "k80x2", "--evaluator", "parallel(io=host)"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("no device of kind cpu"), HasSubstr("io=everywhere")));
  const Outcome unknown = RunBerth({"plan", kModel, "--cluster", "cpu_gpu", "--evaluator", "parallel(io=gpuu)"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean gpu?"));
}

TEST(Io, IsEverywhereInAPlanThatDoesNotSayIt) {
  const Folder folder;
  ExpectFine(
      RunBerth({"plan", kModel, "--cluster", "cpu_gpu", "--planner", "single(device=gpu)", "-o", folder / "p.json"}));
  const std::string plan = Content(folder / "p.json");
  const std::string said = "parallel(contention=ports,io=host)";
  ASSERT_THAT(plan, HasSubstr(said));
  const auto simulate = [&](const std::string& evaluator) {
    Write(folder / "p.json", std::string(plan).replace(plan.find(said), said.size(), evaluator));
    return RunBerth({"simulate", "--plan", folder / "p.json", "--json"}).json();
  };
  const json host = simulate(said), everywhere = simulate("parallel(contention=ports,io=everywhere)");
  EXPECT_GT(host.at("score_seconds"), everywhere.at("score_seconds"));
  for (const auto& [before, now] :
       std::map<std::string, std::string>{{"parallel(contention=ports)", "parallel(contention=ports,io=everywhere)"},
                                          {"parallel", "parallel(io=everywhere)"},
                                          {"serial", "serial(io=everywhere)"}}) {
    EXPECT_EQ(simulate(before).at("evaluator"), now);
  }
  EXPECT_EQ(simulate("parallel(contention=ports)").at("score_seconds"), everywhere.at("score_seconds"));
}

TEST(List, ShowsEverythingThatCanBeNamed) {
  for (const auto& [what, name] : std::map<std::string, std::string>{{"planners", "heft"},
                                                                     {"evaluators", "parallel"},
                                                                     {"clusters", "cpu_gpu"},
                                                                     {"models", "resnet50"},
                                                                     {"costs", "roofline"}}) {
    const Outcome text = RunBerth({"list", what});
    ExpectFine(text);
    EXPECT_THAT(text.out, HasSubstr(name));
    const Outcome outcome = RunBerth({"list", what, "--json"});
    ExpectFine(outcome);
    EXPECT_THAT(outcome.json().dump(), HasSubstr('"' + name + '"'));
  }
}

TEST(ClusterCommand, ShowsAPresetThatReadsBackEqual) {
  const Folder folder;
  const Outcome list = RunBerth({"cluster", "list"});
  ExpectFine(list);
  EXPECT_THAT(list.out, HasSubstr("k80x4"));
  EXPECT_THAT(RunBerth({"cluster", "show", BERTH_SOURCE_DIR "/tools/onnxruntime/h100.yaml"}).out,
              AllOf(HasSubstr("half rate at"), HasSubstr("352,000 !")));
  const Outcome page = RunBerth({"cluster", "show", "cpu_gpu"});
  ExpectFine(page);
  EXPECT_THAT(page.out, AllOf(HasSubstr("bandwidth"), HasSubstr("guesses (?)")));
  const Outcome yaml = RunBerth({"cluster", "show", "cpu_gpu", "--yaml"});
  ExpectFine(yaml);
  Write(folder / "copy.yaml", yaml.out);
  const json copy = RunBerth({"cluster", "show", folder / "copy.yaml", "--json"}).json();
  EXPECT_EQ(copy.at("fingerprint"), RunBerth({"cluster", "show", "cpu_gpu", "--json"}).json().at("fingerprint"));
}

TEST(Demo, ShowsWhichIsFastestAndWhyAlsoOnANarrowTerminal) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "it takes minutes under the sanitizers: run it with BERTH_PRESET=ci; .ci/run shows the demo itself";
#endif
  const Outcome outcome = RunBerth({"demo"}, {.columns = 60});
  ExpectFine(outcome);
  ExpectNarrow(outcome.out);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("planner"), HasSubstr("is fastest with"), HasSubstr("Compared with that rule, it"),
                    HasSubstr("best simple rule"), HasSubstr("proves")));
}

TEST(CtrlC, KeepsTheBestSoFar) {
  const Folder folder;
  const Outcome outcome =
      RunBerth({"plan", "gnmt_4l_t20_b64", "--planner", "local_search", "--budget", "600s", "-o", folder / "p.json"},
               {.interrupt_after = 5});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Stopped by Ctrl-C"));
  EXPECT_EQ(RunBerth({"simulate", "--plan", folder / "p.json"}).code, 0);
}

TEST(Plans, MayBeAskedAboutAnotherBatch) {
  const Folder folder;
  ASSERT_EQ(RunBerth({"plan", "resnet50", "--budget", "50evals", "-o", folder / "plan.json"}).code, 0);
  const Outcome eight = RunBerth({"simulate", folder / "plan.json", "--batch", "8", "--json"});
  EXPECT_EQ(eight.code, 0);
  EXPECT_THAT(eight.err, HasSubstr("was made for other sizes, or for another version, of resnet50: this is a what-if"));
  const Outcome one = RunBerth({"simulate", folder / "plan.json", "--json"});
  EXPECT_GT(eight.json().at("score_seconds").get<double>(), one.json().at("score_seconds").get<double>());
}

TEST(Plans, AreFoundWithTheirModelBesideThem) {
  const Folder folder;
  const std::string model = std::string(BERTH_SOURCE_DIR) + "/models/squeezenet1_1.onnx";
  std::filesystem::create_directory(folder / "made");
  std::filesystem::copy_file(model, folder / "made/net.onnx");
  ASSERT_EQ(RunBerth({"plan", "made/net.onnx", "--budget", "50evals", "-o", "made/plan.json"},
                     {.directory = folder.path().string()})
                .code,
            0);
  std::filesystem::rename(folder / "made", folder / "moved");
  EXPECT_EQ(RunBerth({"check", "plan.json"}, {.directory = folder / "moved"}).code, 0);
}

}  // namespace
}  // namespace berth::testing
