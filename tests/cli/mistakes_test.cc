// What users get wrong: one line that says what, where and how to mend it; exit code 2; no file left behind.
#include <gmock/gmock.h>

#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr const char* kModel = "fork_join(width=3,depth=2)";

// Expects one line on standard error with all of `parts`, and nothing on standard output.
void ExpectMistake(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
  const Outcome outcome = RunBerth(arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, MatchesRegex("berth: [^\n]+\n"));
  for (const std::string& part : parts) EXPECT_THAT(outcome.err, HasSubstr(part));
}

TEST(Mistakes, InTheCommandLine) {
  ExpectMistake({}, {"give a command", "plan"});
  ExpectMistake({"pln", "resnet50"}, {"no command 'pln'; did you mean 'plan'? There are: "});
  ExpectMistake({"help", "pln"}, {"no command 'pln'; did you mean 'plan'? There are: "});
  ExpectMistake({"plan"}, {"MODEL is required", "berth plan --help"});
  ExpectMistake({"calibrate"}, {"calibrate: MODEL is required"});
  ExpectMistake({"list"}, {"list: WHAT is required"});
  ExpectMistake({"plan", kModel, "--colour", "red"},
                {"berth: --colour: there is no such option; see `berth plan --help`\n"});
  ExpectMistake({"plan", kModel, "--budgt", "1evals"},
                {"berth: --budgt: there is no such option; did you mean --budget?\n"});
  ExpectMistake({"plan", kModel, "--budgt=1evals"},
                {"berth: --budgt: there is no such option; did you mean --budget?\n"});
  ExpectMistake({"train", "--outt", "run"}, {"berth: --outt: there is no such option; did you mean --out?\n"});
  ExpectMistake({"cluster", "show", "edge", "--yml"},
                {"berth: --yml: there is no such option; did you mean --yaml?\n"});
  ExpectMistake({"--versoin"}, {"berth: --versoin: there is no such option; did you mean --version?\n"});
  ExpectMistake({"plan", kModel, "-b", "5s"}, {"berth: -b: there is no such option; see `berth plan --help`\n"});
  ExpectMistake({"plan", kModel, "one", "two"}, {"berth: plan: 'one' was not expected; see `berth plan --help`\n"});
  ExpectMistake({"plan", kModel, "--seed", "-1"}, {"--seed", "integer"});
  ExpectMistake({"plan", kModel, "--seed", "1e3"}, {"--seed", "integer"});
  ExpectMistake({"plan", kModel, "--budget", "soon"}, {"'soon'", "200evals"});
  ExpectMistake({"plan", kModel, "--budget", "0evals"}, {"0evals", "10s"});
  ExpectMistake({"list", "animals"}, {"animals", "planners"});
  ExpectMistake({"cluster", "burn"}, {"cluster"});
  ExpectMistake({"simulate"}, {"plan.json", "--placement"});
  ExpectMistake({"simulate", "--placement", "0,1"}, {"MODEL"});
}

TEST(Mistakes, InHowOftenAnOptionIsGivenAndInWhatIsDeeper) {
  ExpectMistake({"check", "plan.json", "--max-latency", "5ms", "--max-latency", "50ms"},
                {"berth: check: --max-latency is given 2 times; once is enough; see"});
  ExpectMistake({"plan", kModel, "--cluster"}, {"berth: plan: --cluster needs a value, CLUSTER; see"});
  ExpectMistake({"plan", kModel, "--pin", "a=cpu", "--pin", "b=cpu", "--pin"}, {"berth: plan: --pin needs a value, "});
  ExpectMistake({"plan", kModel, "--out", "plan.json"}, {"there is no such option; did you mean --output?"});
  ExpectMistake({"cluster"}, {"berth: cluster: give one of show, list, detect; see"});
  ExpectMistake({"cluster", "shwo", "cpu_gpu"}, {"berth: cluster: no 'shwo'; did you mean 'show'?; see"});
}

TEST(Mistakes, AnEmptyValueIsNoChoice) {
  ExpectMistake({"check", "plan.json", "--max-latency", ""},
                {"berth: --max-latency: its value is empty; give one, or leave it out\n"});
  ExpectMistake({"check", "plan.json", "--max-memory", ""}, {"--max-memory: its value is empty"});
  ExpectMistake({"check", "plan.json", "--max-memory=", "--json"}, {"--max-memory: its value is empty"});
  ExpectMistake({"plan", kModel, "--cluster", ""}, {"--cluster: its value is empty"});
  ExpectMistake({"plan", kModel, "--output", ""}, {"--output: its value is empty"});
  ExpectMistake({"plan", ""}, {"berth: MODEL: its value is empty; give one\n"});
  ExpectMistake({"cluster", "show", ""}, {"CLUSTER: its value is empty"});
  ExpectMistake({"plan", kModel, "--memory-limit", "0GiB"}, {"--memory-limit: '0GiB' is no memory to work with"});
}

TEST(Mistakes, ADeviceThatTakesNoTime) {
  ExpectMistake({"plan", kModel, "--costs", "calibrated(totals=0ms/7ms)"},
                {"totals=0ms/7ms: a device that takes no time cannot be"});
  ExpectMistake({"plan", kModel, "--costs", "calibrated(totals=16/7)"},
                {"calibrated: totals=16/7: '16' is not a time", "like totals=16ms/7.81ms"});
}

TEST(Mistakes, FilesOfOtherProgramsAreCalledByTheirNames) {
  const Folder folder;
  const auto message = [&](const std::string& name, const std::string& content, const std::string& part) {
    Write(folder / name, content);
    ExpectMistake({"plan", folder / name}, {name + ": is " + part});
  };
  message("net.pt", std::string("PK\3\4") + std::string(200, 'x'), "a zip archive, as PyTorch's .pt");
  message("net.onnx.gz", "\x1f\x8b" + std::string(200, 'x'), "compressed with gzip; unpack it first");
  message("net.onnx.xz", std::string("\xfd") + "7zXZ" + std::string(200, '\0'), "compressed with xz; unpack it first");
  message("net.gguf", "GGUF" + std::string(200, 'x'), "a GGUF file, which holds weights and no graph");
  message("net.h5", "\x89HDF\r\n" + std::string(200, 'x'), "an HDF5 file");
  message("net.safetensors", std::string("\x40\0\0\0\0\0\0\0", 8) + "{\"w\":{\"dtype\":\"F32\"}}",
          "a safetensors file, which holds weights and no graph");
}

TEST(Mistakes, UnknownNamesPrintTheList) {
  ExpectMistake({"plan", kModel, "--planner", "heff"},
                {"no planner 'heff'; did you mean 'heft'? There are: ", "mincut"});
  ExpectMistake({"plan", kModel, "--evaluator", "paralel"}, {"paralel", "parallel", "serial"});
  ExpectMistake({"plan", kModel, "--cluster", "cpu_gpuu"}, {"cpu_gpuu", "cpu_gpu", "k80x4"});
  ExpectMistake({"plan", kModel, "--costs", "rooflin"}, {"rooflin", "roofline"});
  ExpectMistake({"plan", "resnet51"}, {"resnet51", "resnet50", "`berth list models`"});
  ExpectMistake({"plan", "zzzzzzzz"}, {"zzzzzzzz", "resnet50", "lstm_grid"});
  ExpectMistake({"plan", "famly(name=enas_conv)"}, {"did you mean 'family'?"});
  ExpectMistake({"plan", "family(name=enas_conv)"}, {"many models", "`berth train --on`", "enas_conv(seed=10"});
  ExpectMistake({"plan", "family(count=0)"}, {"berth: model family: count=0 is not a whole number from 1"});
  ExpectMistake({"plan", kModel, "--cluster", "."},
                {"berth: .: is a folder; expected a device file or one of cpu_gpu"});
  ExpectMistake({"compare", kModel, "--planners", "heft,bogus"}, {"bogus", "heft"});
}

TEST(Mistakes, ParametersThatNobodyReads) {
  ExpectMistake({"plan", kModel, "--planner", "annealing(colour=3)"}, {"colour"});
  ExpectMistake({"plan", kModel, "--evaluator", "parallel(contention=maybe)"}, {"maybe", "ports"});
  ExpectMistake({"plan", kModel, "--planner", "local_search(restarts=many)"}, {"many"});
  ExpectMistake({"plan", kModel, "--evaluator", "serial(subgraph_overhead=1mile)"},
                {"1mile is not a time", "like 20us", "subgraph_overhead: seconds for each subgraph"});
  ExpectMistake({"plan", kModel, "--planner", "heft("}, {"'heft(': a closing parenthesis is missing"});
  ExpectMistake({"compare", kModel, "--planners", "heft,annealing)"},
                {"'heft,annealing)': one closing parenthesis too many"});
  ExpectMistake({"inspect", "lstm_grid(layers=8,stepz=40)"}, {"stepz", "steps"});
  ExpectMistake({"plan", kModel, "--planner", "single(device=tpu)"}, {"tpu", "gpu"});
  ExpectMistake({"plan", "resnet50", "--planner", "exhaustive"}, {"exhaustive", "does not answer this problem"});
}

TEST(Mistakes, Shapes) {
  ExpectMistake({"inspect", "resnet50", "--shape", "input"}, {"input=32,3,224,224"});
  ExpectMistake({"inspect", "resnet50", "--shape", "input=0,3,224,224"}, {"'0'"});
  ExpectMistake({"inspect", "resnet50", "--shape", "image=1,3,224,224"}, {"image", "input"});
}

TEST(Mistakes, ModelFiles) {
  const Folder folder;
  const std::string model = Content(std::string(BERTH_SOURCE_DIR) + "/models/squeezenet1_1.onnx");
  ASSERT_FALSE(model.empty());
  Write(folder / "empty.onnx", "");
  ExpectMistake({"inspect", folder / "empty.onnx"}, {"empty.onnx", "empty"});
  for (const size_t size : {model.size() / 3, model.size() - 1}) {
    Write(folder / "cut.onnx", model.substr(0, size));
    ExpectMistake({"inspect", folder / "cut.onnx"}, {"cut.onnx"});
  }
  Write(folder / "text.onnx", "this is no model");
  ExpectMistake({"inspect", folder / "text.onnx"}, {"text.onnx"});
  ASSERT_EQ(RunBerth({"inspect", kModel, "-o", folder / "whole.json"}).code, 0);
  Write(folder / "broken.json", Content(folder / "whole.json").substr(0, 300));
  ExpectMistake({"inspect", folder / "broken.json"}, {"broken.json"});
  Write(folder / "deep.json", std::string(200000, '['));
  ExpectMistake({"inspect", folder / "deep.json"}, {"deep.json"});
  ExpectMistake({"inspect", folder / "no.onnx"}, {"no.onnx", "no such file"});
  ExpectMistake({"inspect", folder.path().string()}, {});
}

TEST(Mistakes, ClusterFiles) {
  const Folder folder;
  const auto with = [&](const std::string& text) {
    Write(folder / "c.yaml", text);
    return std::vector<std::string>{"plan", kModel, "--cluster", folder / "c.yaml"};
  };
  ExpectMistake(with(""), {"c.yaml"});
  ExpectMistake(with("devices: 5\n"), {"c.yaml:1"});
  ExpectMistake(with("name: x\ndevices: {cpu: {kind: cpu, peak: {f32: fast}}}\n"), {"c.yaml:2", "fast"});
  ExpectMistake(with("devices: [unclosed\n"), {"c.yaml"});
  ExpectMistake(with("name: x\ncolour: red\ndevices: {}\n"), {"c.yaml", "colour"});
  ExpectMistake({"cluster", "show", folder / "no.yaml"}, {"no.yaml"});
}

TEST(Mistakes, PlanFiles) {
  const Folder folder;
  ASSERT_EQ(RunBerth({"plan", kModel, "--budget", "20evals", "-o", folder / "p.json"}).code, 0);
  const std::string plan = Content(folder / "p.json");
  const auto with = [&](const std::string& text) {
    Write(folder / "q.json", text);
    return std::vector<std::string>{"simulate", "--plan", folder / "q.json"};
  };
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string text = plan;
    const size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return with(text.replace(at, what.size(), by));
  };
  ExpectMistake(with(""), {"q.json", "is empty"});
  ExpectMistake(with(plan.substr(0, plan.size() / 2)), {"q.json:", "not valid JSON"});
  ExpectMistake(with("{\"a\": 1}"), {"q.json", "is no plan file"});
  ExpectMistake(replaced("\"device\": \"", "\"device\": \"x"), {"q.json: ops[0].device", "cpu, gpu"});
  ExpectMistake(replaced("\"seed\": 1", "\"seed\": \"one\""), {"q.json: seed"});
  ExpectMistake(replaced("\"seed\": 1", "\"seeed\": 1"), {"q.json: seed: is missing"});
  ExpectMistake(replaced("width=3", "width=4"), {"q.json", "make a new plan"});
  ExpectMistake(replaced("width=3,depth=2", "width=3,depth=2,flops=3e9"), {"q.json", "has changed"});
  ExpectMistake(replaced("fork_join(", "no_such_model("), {"q.json", "no_such_model"});
  ExpectMistake({"simulate", folder / "no.json"}, {"no.json"});
  ExpectMistake({"explain", folder / "no.json"}, {"no.json"});
  ExpectMistake({"explain", folder / "p.json", "--op", "nothing*"}, {"nothing*"});
  ExpectMistake({"simulate", "chain(ops=8)", "--plan", folder / "p.json"}, {"p.json"});
  ExpectMistake({"simulate", kModel, "--placement", "0,1,7"}, {"entry 3"});
  ExpectMistake({"simulate", kModel, "--placement", "0,1"}, {"8 ops"});
  ExpectMistake({"simulate", kModel, "--placement", "@" + folder / "none.txt"}, {"none.txt"});
}

TEST(Mistakes, OutputsThatCannotBeWrittenAreFoundBeforeTheWork) {
  const Folder folder;
  ExpectMistake({"plan", kModel, "-o", folder / "no/p.json"}, {"no/p.json", "cannot be written"});
  ExpectMistake({"plan", kModel, "--picture", folder / "no/p.svg"}, {"no/p.svg"});
  ExpectMistake({"inspect", kModel, "-o", folder / "no/g.json"}, {"no/g.json"});
  ExpectMistake({"plan", kModel, "--budget", "1h", "-o", folder.path().string()}, {"is a directory"});
  EXPECT_THAT(folder.files(), IsEmpty());
  // A mistake that is found late leaves what was there before, whole.
  ASSERT_EQ(RunBerth({"plan", kModel, "--budget", "5evals", "-o", folder / "p.json"}).code, 0);
  const std::string before = Content(folder / "p.json");
  ExpectMistake({"plan", kModel, "--planner", "nobody", "-o", folder / "p.json"}, {"nobody"});
  EXPECT_EQ(Content(folder / "p.json"), before);
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(Mistakes, ADeviceWithoutMemoryForAnythingDoesNotFit) {
  const Folder folder;
  Write(folder / "c.yaml",
        "name: x\ndevices:\n  a: {kind: cpu, memory: 1B, peak: {f32: 1TFLOP/s}, memory_bandwidth: 10GB/s, op_overhead: "
        "0s, "
        "watts: {idle: 1, busy: 2}}\n");
  const Outcome outcome = RunBerth({"plan", kModel, "--cluster", folder / "c.yaml", "--budget", "5evals"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("a, the only device for them, has\n1 B."));
}

TEST(Mistakes, NamesFromFilesCannotSteerTheTerminal) {
  const Folder folder;
  const Outcome outcome = RunBerth({"inspect", "evil\x1b[2Jname"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace berth::testing
