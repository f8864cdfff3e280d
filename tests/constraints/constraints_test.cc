// Constraints from their text to the plan: every planner of the catalog on random constrained problems, and the
// examples of docs/constraints.md as they stand there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/catalogs.h"
#include "placement/constraint_file.h"
#include "placement/diagnosis.h"
#include "placement/testing.h"
#include "tests/small_forms.h"

namespace berth {
namespace {

using ::testing::ContainsRegex;

const Catalogs& All() {
  static const Catalogs catalogs;
  return catalogs;
}

std::vector<std::string> RandomConstraints(Random& random, const Problem& problem) {
  const auto op = [&] { return fmt::format("op{}", random.Below(problem.num_ops())); };
  const auto device = [&] { return std::to_string(random.Below(problem.num_devices())); };
  std::vector<std::string> texts;
  for (size_t k = 1 + random.Below(4); k > 0; --k) {
    const std::string a = op(), b = op(), p = device(), q = device();
    const size_t kind = random.Below(7);
    if (kind == 0) texts.push_back(fmt::format("pin {}={}", a, p));
    if (kind == 1) texts.push_back(fmt::format("forbid {},{}={}", a, b, p));
    if (kind == 2 && a != b) texts.push_back(fmt::format("colocate {},{}", a, b));
    if (kind == 3 && a != b) texts.push_back(fmt::format("separate {},{}", a, b));
    if (kind == 4) texts.push_back(fmt::format("memory {}={}B", p, random.Below(20'000)));
    if (kind >= 5 && p != q && problem.graph().num_tensors() > 0) {
      texts.push_back(fmt::format("forbid-transfer *={}>{}", p, q));
    }
  }
  return texts;
}

// Null when no placement keeps them.
std::unique_ptr<Problem> Constrained(const Problem& base, const std::vector<std::string>& texts) {
  OpTimes times{.time = {}, .source = "copy"};
  for (const OpId op : base.graph().ops()) {
    const auto row = base.op_times(op);
    times.time.insert(times.time.end(), row.begin(), row.end());
  }
  std::vector<ConstraintText> stated;
  for (const std::string& text : texts) stated.push_back(ParseConstraint(text, "test"));
  Problem::Options options;
  const auto constraints = ResolveConstraints(stated, base.graph(), base.cluster(), options);
  const ConstraintCheck check(base.shared_graph(), base.shared_cluster(), times, options, constraints);
  if (check.Diagnose("none")) return nullptr;
  ApplyConstraints(constraints, base.graph(), base.cluster(), times, options);
  return std::make_unique<Problem>(base.shared_graph(), base.shared_cluster(), std::move(times), std::move(options));
}

// The least score of all placements that fit; kCannotRun where none does.
double BestOfAll(const Problem& problem, const Evaluator& evaluator) {
  const auto workspace = evaluator.NewWorkspace();
  std::vector<DeviceId> device(problem.num_ops(), DeviceId{0});
  double best = kCannotRun;
  while (true) {
    if (!FindViolation(problem, {.device = device})) {
      const Score score = evaluator.ScorePlan({.device = device}, *workspace);
      if (score.fits()) best = std::min(best, score.value());
    }
    size_t v = 0;
    for (; v < device.size(); ++v) {
      device[v] = MakeId<DeviceId>(Index(device[v]) + 1);
      if (Index(device[v]) < problem.num_devices()) break;
      device[v] = DeviceId{0};
    }
    if (v == device.size()) return best;
  }
}

Cluster PlacetoCluster(size_t devices) { return All().clusters.Make(fmt::format("placeto(devices={})", devices)); }

// The ops and times of `problem` on devices of another cluster.
Problem On(const Problem& problem, Cluster cluster) {
  OpTimes times{.time = {}, .source = "copy"};
  for (const OpId op : problem.graph().ops()) {
    const auto row = problem.op_times(op);
    times.time.insert(times.time.end(), row.begin(), row.end());
  }
  return Problem(problem.shared_graph(), std::make_shared<const Cluster>(std::move(cluster)), std::move(times));
}

// Runs every planner of the catalog that does not refuse.
void ExpectKept(const Problem& problem, const Evaluator& evaluator) {
  const double best = BestOfAll(problem, evaluator);
  for (const std::string& name : All().planners.Names()) {
    if (name == "fixed" || name == "best_of") continue;  // of a file, of others
    SCOPED_TRACE(name);
    const auto planner = All().planners.MakePlanner(testing::SmallForm(name));
    if (const auto refused = planner->Refuses(problem, evaluator)) {
      EXPECT_THAT(*refused, ContainsRegex("two devices|constraint|time alone|separate|apart|pipeline|pieces|placeto"));
      EXPECT_NE(name, "auto");
      continue;
    }
    // Two updates of a learned planner draw as they all do, and each costs a hundred evaluations' time.
    const int64_t evaluations = planner->facts().learned ? 41 : 300;
    const PlanResult result =
        planner->MakePlan({.evaluator = evaluator, .budget = {.evaluations = evaluations}, .random = Random(1)});
    EXPECT_EQ(FindViolation(problem, result.plan.view()), std::nullopt);
    const Timeline timeline = evaluator.Trace(result.plan.view());
    EXPECT_EQ(timeline.score, result.score);
    for (const DeviceId id : problem.cluster().ids()) {
      if (timeline.memory.empty() || !result.score.fits()) break;
      EXPECT_LE(timeline.memory[Index(id)].peak_bytes, problem.memory_limit(id));
    }
    const bool ordered = result.plan.sequence || !result.plan.priority.empty();
    if (result.score.fits() && !ordered) {
      EXPECT_GE(result.score.value(), best * (1 - 1e-12));
    }
    if (result.optimal) {
      EXPECT_LE(result.score.value(), best * (1 + 1e-12));
    }
    if (name == "exhaustive") {
      EXPECT_EQ(result.score.fits(), best < kCannotRun);
      EXPECT_TRUE(result.optimal || !result.score.fits());
    }
  }
}

constexpr int kRoundsOfAPart = 4;
constexpr int kParts = 10;

// In parts, so that several processes share the rounds.
class Constraints : public ::testing::TestWithParam<int> {};

TEST_P(Constraints, AreKeptByEveryPlannerOrRefused) {
  Random random(17 + static_cast<uint64_t>(GetParam()));
  int constrained = 0;
  for (int round = 0; round < kRoundsOfAPart; ++round) {
    const Problem random_links = testing::RandomProblem(
        random, {.ops = 5, .devices = 2 + random.Below(2), .ties = round % 2 == 0, .forbidden = 0.1});
    const bool placeto = round % 4 == 3;
    const Problem base = placeto ? On(random_links, PlacetoCluster(random_links.num_devices()))
                                 : On(random_links, random_links.cluster());
    // Some hold no placement at all.
    std::vector<std::string> texts;
    std::unique_ptr<Problem> problem;
    for (int tries = 0; tries < 20 && problem == nullptr; ++tries) {
      texts = RandomConstraints(random, base);
      problem = Constrained(base, texts);
    }
    SCOPED_TRACE(fmt::format("round {}: {}", round, fmt::join(texts, "; ")));
    if (problem == nullptr) continue;
    ++constrained;
    const std::vector<std::string> models = placeto
                                                ? std::vector<std::string>{"placeto"}
                                                : std::vector<std::string>{"parallel(contention=none,io=everywhere)",
                                                                           "parallel(contention=ports,io=everywhere)",
                                                                           "parallel(contention=egress,io=everywhere)",
                                                                           "serial(io=everywhere)",
                                                                           "pipeline",
                                                                           "pieces(q=2)"};
    for (const std::string& model : models) {
      SCOPED_TRACE(model);
      ExpectKept(*problem, *All().evaluators.Make(model, *problem));
    }
  }
  EXPECT_GE(constrained, kRoundsOfAPart - 1);
}

INSTANTIATE_TEST_SUITE_P(Parts, Constraints, ::testing::Range(0, kParts));

// A folder of its own for the time of a test.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("berth-constraints-{}", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string File(const std::string& name) const { return (path_ / name).string(); }

  // Standard output and error of a shell command run in it, by lines.
  std::vector<std::string> Run(const std::string& command) const {
    const std::string whole = fmt::format("cd '{}' && PATH=\"$(dirname '{}')\":$PATH && {{ {} ; }} 2>&1",
                                          path_.string(), BERTH_BINARY, command);
    std::FILE* pipe = ::popen(whole.c_str(), "r");
    std::string output;
    std::array<char, 4096> buffer{};
    while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), got);
    ::pclose(pipe);
    return Lines(output);
  }

  static std::vector<std::string> Lines(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

 private:
  std::filesystem::path path_;
};

// A command and the lines that the page shows of its output; "..." stands for any lines.
struct Example {
  std::string command;
  std::vector<std::string> output;
};

std::vector<Example> ExamplesOf(const std::string& page, std::string& yaml) {
  std::vector<Example> examples;
  std::string fence;
  for (const std::string& line : Folder::Lines(page)) {
    if (line.starts_with("```")) {
      fence = fence.empty() ? line.substr(3) : "";
    } else if (fence == "yaml") {
      yaml += line + "\n";
    } else if (fence == "console" && line.starts_with("$ ")) {
      examples.push_back({.command = line.substr(2), .output = {}});
    } else if (fence == "console") {
      examples.back().output.push_back(line);
    }
  }
  return examples;
}

TEST(ConstraintsPage, ShowsWhatTheProgramSays) {
  const std::string page = ReadFile(std::string(BERTH_SOURCE_DIR) + "/docs/constraints.md");
  std::string yaml;
  const std::vector<Example> examples = ExamplesOf(page, yaml);
  EXPECT_EQ(ParseConstraintFile(yaml, "rules.yaml").size(), 7u);
  EXPECT_GE(examples.size(), 5u);
  const Folder folder;
  WriteFile(folder.File("rules.yaml"), yaml);
  for (const auto& [command, expected] : examples) {
    const std::vector<std::string> output = folder.Run(command);
    const std::string all = fmt::format("$ {}\n{}", command, fmt::join(output, "\n"));
    // Each line of the page follows the one before it, at once but for "...".
    size_t at = 0;
    bool gap = false;
    for (const std::string& line : expected) {
      if (line == "...") {
        gap = true;
        continue;
      }
      while (gap && at < output.size() && output[at] != line) ++at;
      ASSERT_LT(at, output.size()) << "no line '" << line << "' in\n" << all;
      EXPECT_EQ(output[at], line) << all;
      ++at;
      gap = false;
    }
    EXPECT_TRUE(gap || at == output.size()) << "there is more in\n" << all;
  }
}

TEST(ConstraintsPage, NamesEveryConstraint) {
  const std::string page = ReadFile(std::string(BERTH_SOURCE_DIR) + "/docs/constraints.md");
  for (const std::string_view name : kConstraintNames) {
    EXPECT_THAT(page, ::testing::HasSubstr(fmt::format("`{} ", name))) << name;
  }
}

}  // namespace
}  // namespace berth
