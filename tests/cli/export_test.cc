// Plans that are handed to runtimes, which then run them without Berth. What needs a runtime is skipped where it is not
// here.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/model_with_weights.h"
#include "tests/cli/run_berth.h"

namespace berth::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

// Of the shell: its exit code, and what it printed in `output`.
int Shell(const std::string& command, std::string& output) {
  const Folder folder;
  const int status = std::system((command + " >" + folder / "out" + " 2>&1").c_str());
  output = Content(folder / "out");
  return status;
}

bool PythonHas(const std::string& wheels, const std::string& packages) {
  std::string output;
  return fs::exists("/usr/bin/python3") &&
         Shell("PYTHONPATH=" + wheels + " /usr/bin/python3 -c 'import " + packages + "'", output) == 0;
}

const std::string kOrt = BERTH_ONNXRUNTIME_WHEEL;
const std::string kOpenVino = std::string(BERTH_OPENVINO_WHEEL) + ":" + BERTH_ONNXRUNTIME_WHEEL;  // numpy is there

void ExpectFine(const Outcome& outcome) { ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out; }

void ExpectMistake(const std::vector<std::string>& arguments, const std::string& said) {
  const Outcome outcome = RunBerth(arguments);
  EXPECT_EQ(outcome.code, 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr(said));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
}

// Plans `model` with alternating groups of ops, so that branches, merges and long cuts are all there.
void Plan(const Folder& folder, const std::string& model, const std::vector<std::string>& more = {}) {
  Write(folder / "two.yaml", kTwoCores);
  std::vector<std::string> arguments = {"plan",      model,
                                        "--cluster", folder / "two.yaml",
                                        "--planner", "on(group=merge(size=12),planner=round_robin)",
                                        "-o",        folder / "plan.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  ExpectFine(RunBerth(arguments));
}

void ExpectSameOutputs(const std::string& runtime, const std::string& wheels, const std::string& model,
                       const std::string& folder) {
  std::string output;
  const int status =
      Shell("PYTHONPATH=" + wheels + " /usr/bin/python3 " BERTH_SOURCE_DIR "/tests/cli/export_outputs.py " + runtime +
                " " + model + " " + folder,
            output);
  EXPECT_EQ(status, 0) << output;
  EXPECT_THAT(output, HasSubstr("largest difference"));
}

#define NEEDS_ONNXRUNTIME()                               \
  if (!PythonHas(kOrt, "onnxruntime, numpy"))             \
  GTEST_SKIP() << "/usr/bin/python3 has no onnxruntime: " \
                  "./dev wheel onnxruntime fetches it, for Python 3.11"

TEST(Export, PartsForOnnxRuntimeGiveTheOutputsOfTheWholeModel) {
  NEEDS_ONNXRUNTIME();
  for (const auto& [name, beside] :
       {std::pair("two_towers", ""), std::pair("googlenet", "googlenet.weights"), std::pair("wavenet_4x9", "")}) {
    SCOPED_TRACE(name);
    const Folder folder;
    const std::string model = folder / "model.onnx";
    WriteModelWithWeights(name, model, beside);
    Plan(folder, model);
    const Outcome exported =
        RunBerth({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "parts", "--json"});
    ExpectFine(exported);
    const nlohmann::json answer = exported.json();
    EXPECT_GE(answer["parts"], 3);
    ASSERT_EQ(answer["devices"].size(), 2u);
    EXPECT_EQ(fs::exists(folder / "parts/weights.bin"), *beside != '\0');
    ExpectSameOutputs("onnxruntime", kOrt, model, folder / "parts");
    // Weights are in the parts that use them, and no more of them than there are.
    uintmax_t bytes = 0;
    for (const auto& file : fs::directory_iterator(folder / "parts")) bytes += file.file_size();
    const uintmax_t whole = fs::file_size(model) + (*beside != '\0' ? fs::file_size(folder / beside) : 0);
    EXPECT_GT(bytes, whole * 9 / 10);
    EXPECT_LT(bytes, whole * 5 / 4);
  }
}

TEST(Export, PartsHaveTheSizesOfThePlan) {
  NEEDS_ONNXRUNTIME();
  const Folder folder;
  const std::string model = folder / "model.onnx";
  WriteModelWithWeights("googlenet", model);
  Plan(folder, model, {"--batch", "2"});
  ExpectFine(RunBerth({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "parts"}));
  std::string output;
  EXPECT_EQ(Shell("PYTHONPATH=" + kOrt + " /usr/bin/python3 " + folder / "parts/run.py --runs 1", output), 0) << output;
  EXPECT_THAT(output, HasSubstr("float32 (2, 1000)"));
}

TEST(Export, OfAProviderThatIsNotThereIsSaidByTheProgram) {
  NEEDS_ONNXRUNTIME();
  const Folder folder;
  const std::string model = folder / "model.onnx";
  WriteModelWithWeights("squeezenet1_1", model);
  ExpectFine(RunBerth({"plan", model, "--cluster", "cpu_gpu", "--planner", "round_robin", "-o", folder / "plan.json"}));
  ExpectFine(RunBerth({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "parts"}));
  std::string output;
  EXPECT_NE(Shell("PYTHONPATH=" + kOrt + " /usr/bin/python3 " + folder / "parts/run.py", output), 0);
  EXPECT_THAT(output, HasSubstr("this onnxruntime has no CUDAExecutionProvider"));
  ExpectSameOutputs("onnxruntime", kOrt, model, folder / "parts --provider CPUExecutionProvider");
}

// ONNX Runtime goes on with the processor where CUDA's libraries or a GPU are missing.
TEST(Export, OfAProviderThatCannotBeLoadedIsSaidByTheProgram) {
  NEEDS_ONNXRUNTIME();
  const Folder folder;
  const std::string model = folder / "model.onnx";
  WriteModelWithWeights("squeezenet1_1", model);
  ExpectFine(
      RunBerth({"plan", model, "--cluster", "cpu_gpu", "--planner", "single(device=gpu)", "-o", folder / "plan.json"}));
  ExpectFine(RunBerth({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "parts"}));
  const nlohmann::json manifest = nlohmann::json::parse(Content(folder / "parts/manifest.json"));
  EXPECT_EQ(manifest["parts"][0]["provider_options"], (nlohmann::json{{"device_id", "0"}, {"use_tf32", "0"}}));
  fs::create_directory(folder / "stand_in");
  Write(folder / "stand_in/onnxruntime.py", R"(
def set_global_thread_pool_sizes(within, between): pass
class SessionOptions:
    def add_session_config_entry(self, key, value): pass
class InferenceSession:
    def __init__(self, path, options, providers): pass
    def get_providers(self): return ["CPUExecutionProvider"]
def get_available_providers(): return ["CUDAExecutionProvider", "CPUExecutionProvider"]
def preload_dlls(): print("preloaded")
)");
  std::string output;
  EXPECT_NE(Shell("PYTHONPATH=" + folder / "stand_in:" + kOrt + " /usr/bin/python3 " + folder / "parts/run.py", output),
            0);
  EXPECT_THAT(output, AllOf(HasSubstr("preloaded"),
                            HasSubstr("onnxruntime has CUDAExecutionProvider but cannot load it here")));
}

TEST(Export, TheIrForOpenVinoGivesTheOutputsOfTheWholeModel) {
  if (!HasOpenVino()) GTEST_SKIP() << "berth-openvino, which needs OpenVINO, is not built";
  const bool python = PythonHas(kOpenVino, "openvino, numpy");
  for (const char* name : {"two_towers", "googlenet"}) {
    SCOPED_TRACE(name);
    const Folder folder;
    const std::string model = folder / "model.onnx";
    WriteModelWithWeights(name, model);
    Plan(folder, model);
    const Outcome exported = RunBerth({"export", folder / "plan.json", "--to", "openvino", "-o", folder / "ir"});
    ExpectFine(exported);
    EXPECT_THAT(exported.out, AllOf(HasSubstr("CPUB"), HasSubstr("ir/run.py")));
    std::vector<std::string> files;
    for (const auto& file : fs::directory_iterator(folder / "ir")) files.push_back(file.path().filename().string());
    EXPECT_THAT(files, UnorderedElementsAre("model.xml", "model.bin", "run.py", "run.cpp"));
    // Weights are the file's, not those that a run would fill in.
    EXPECT_GT(fs::file_size(folder / "ir/model.bin"), fs::file_size(model) * 9 / 10);
    // Batch normalizations and the like are several ops there.
    const double onnx = RunBerth({"inspect", model, "--json"}).json()["flops"],
                 ir = RunBerth({"inspect", folder / "ir/model.xml", "--json"}).json()["flops"];
    EXPECT_NEAR(ir / onnx, 1, 1e-4);
    if (python) ExpectSameOutputs("openvino", kOpenVino, model, folder / "ir");
  }
  if (!python) GTEST_SKIP() << "/usr/bin/python3 has no openvino and numpy: ./dev wheel onnxruntime fetches numpy";
}

// OpenVINO turns ONNX's Scan into a TensorIterator; the files are those of tests/data/make_loops.py.
TEST(Export, LoopsAndBranchesCostAsMuchInTheIrAsInOnnx) {
  if (!HasOpenVino()) GTEST_SKIP() << "berth-openvino, which needs OpenVINO, is not built";
  for (const auto& [name, type] :
       {std::pair("loop", "Loop"), std::pair("scan", "TensorIterator"), std::pair("branch", "If")}) {
    SCOPED_TRACE(name);
    const Folder folder;
    const std::string model = fmt::format("{}/tests/data/loops/{}.onnx", BERTH_SOURCE_DIR, name);
    Plan(folder, model);
    ExpectFine(RunBerth({"export", folder / "plan.json", "--to", "openvino", "-o", folder / "ir"}));
    const Outcome onnx = RunBerth({"inspect", model, "--json"}),
                  ir = RunBerth({"inspect", folder / "ir/model.xml", "--json"});
    ExpectFine(onnx);
    ExpectFine(ir);
    EXPECT_GT(onnx.json()["flops"], 0);
    for (const char* what : {"flops", "parameter_bytes", "ops"}) EXPECT_EQ(ir.json()[what], onnx.json()[what]) << what;
    EXPECT_EQ(ir.json()["op_type_details"][0]["type"], type);
    EXPECT_EQ(ir.json()["op_type_details"][0]["bytes_moved"], onnx.json()["op_type_details"][0]["bytes_moved"]);
    EXPECT_EQ(ir.json()["estimated_shapes"].is_null(), onnx.json()["estimated_shapes"].is_null());
  }
}

TEST(Export, TheCppProgramForOpenVinoCompilesAndRuns) {
  const std::string openvino = std::string(BERTH_OPENVINO_WHEEL) + "/openvino";
  if (!HasOpenVino() || !fs::exists(openvino)) GTEST_SKIP() << "OpenVINO's wheel is not here";
  const Folder folder;
  const std::string model = folder / "model.onnx";
  WriteModelWithWeights("two_towers", model);
  Plan(folder, model);
  ExpectFine(RunBerth({"export", folder / "plan.json", "--to", "openvino", "-o", folder / "ir"}));
  std::string output;
  ASSERT_EQ(Shell(BERTH_CXX " -std=c++17 -I" + openvino + "/include " + folder / "ir/run.cpp" + " -o " +
                      folder / "run" + " $(ls " + openvino + "/libs/libopenvino.so.*) -Wl,-rpath," + openvino + "/libs",
                  output),
            0)
      << output;
  EXPECT_EQ(Shell(folder / "run " + folder / "ir", output), 0) << output;
  EXPECT_THAT(output, HasSubstr("output 0: f32"));
}

TEST(Export, RefusesInOneLineWhatNoRuntimeTakes) {
  const Folder folder;
  const auto plan = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan", "--planner", "single", "-o", folder / "plan.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ExpectFine(RunBerth(arguments));
  };
  const auto refused = [&](const std::string& to, const std::string& said) {
    ExpectMistake({"export", folder / "plan.json", "--to", to, "-o", folder / "out"}, said);
    EXPECT_FALSE(fs::exists(folder / "out"));
    for (const std::string& file : folder.files()) EXPECT_EQ(file.find(".part-"), std::string::npos) << file;
  };
  plan({"chain(ops=4)"});
  refused("onnxruntime", "chain(ops=4) is a formula");
  refused("openvino", "chain(ops=4) is a formula");
  plan({"squeezenet1_1", "--mode", "training"});
  refused("onnxruntime", "is of a step of training");
  plan({BERTH_SOURCE_DIR "/samples/piper.json"});
  refused("openvino", "JSON of Piper, which no runtime reads");
  plan({BERTH_SOURCE_DIR "/samples/ir.xml"});
  refused("onnxruntime", "is OpenVINO's IR, the .xml, which ONNX Runtime does not read; export it --to openvino");
  if (HasOpenVino()) refused("openvino", "its weights are not there");
  Write(folder / "odd.yaml",
        "name: odd\ndevices:\n  x: {kind: tpu, peak: {f32: 1TFLOP/s}, memory_bandwidth: 20GB/s, op_overhead: 1us}\n");
  plan({"squeezenet1_1", "--cluster", folder / "odd.yaml"});
  refused("onnxruntime", "device x is of kind tpu");
  if (HasOpenVino()) refused("openvino", "device x is of kind tpu");
  plan({"squeezenet1_1"});
  refused("tea", "onnxruntime");
  // A model that has changed since, and one that is gone.
  fs::copy_file(BERTH_SOURCE_DIR "/models/squeezenet1_1.onnx", folder / "m.onnx");
  plan({folder / "m.onnx"});
  fs::copy_file(BERTH_SOURCE_DIR "/models/resnet18.onnx", folder / "m.onnx", fs::copy_options::overwrite_existing);
  refused("onnxruntime", "make a new plan");
  fs::remove(folder / "m.onnx");
  refused("onnxruntime", "there is no such file");
  // A folder with something in it is left as it is.
  plan({"squeezenet1_1"});
  fs::create_directory(folder / "full");
  Write(folder / "full/mine", "mine");
  ExpectMistake({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "full"}, "is not empty");
  ExpectMistake({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "full/mine"}, "no folder");
  ExpectMistake({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "none/out"}, "cannot be made");
  EXPECT_EQ(Content(folder / "full/mine"), "mine");
  // An empty one is used.
  fs::create_directory(folder / "empty");
  ExpectFine(RunBerth({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "empty"}));
  EXPECT_TRUE(fs::exists(folder / "empty/manifest.json"));
}

TEST(Export, RefusesWeightsThatAreMissing) {
  const Folder folder;
  const std::string model = folder / "model.onnx";
  WriteModelWithWeights("squeezenet1_1", model, "stored");
  Plan(folder, model);
  fs::rename(folder / "stored", folder / "gone");
  ExpectMistake({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "out"},
                "stored, which cannot be read");
  Write(folder / "stored", "short");
  ExpectMistake({"export", folder / "plan.json", "--to", "onnxruntime", "-o", folder / "out"}, "ends beyond");
  EXPECT_FALSE(fs::exists(folder / "out"));
}

}  // namespace
}  // namespace berth::testing
