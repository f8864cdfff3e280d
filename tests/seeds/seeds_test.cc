// The benchmark of the field (tools/seeds): its cells, how it goes on, and its tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "base/error.h"
#include "cli/learning.h"
#include "tests/cli/run_berth.h"
#include "tools/seeds/measure.h"
#include "tools/seeds/play.h"
#include "tools/seeds/published_placement.h"
#include "tools/seeds/results.h"
#include "tools/seeds/tables.h"
#include "tools/seeds/tasks.h"

namespace berth::seeds {
namespace {

using berth::testing::Content;
using berth::testing::Folder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Limits kFew{.evaluations = 60, .seconds = 1000};

Task SmallTask(const std::string& graph) {
  return {.paper = Paper::kGo,
          .title = graph,
          .devices = 2,
          .graph = graph,
          .machine = "k80x2",
          .mode = "inference",
          .costs = "roofline(fusion=none)",
          .evaluator = "parallel(contention=ports)",
          .methods = {{"`heft`", "heft", false}, {"random", "random", true}, {"hill climbing", "local_search", true}}};
}

// What cells say, without the seconds that the clock said.
std::string WithoutClock(std::vector<Cell> cells) {
  std::string text;
  for (Cell& cell : cells) {
    cell.seconds = 0;
    for (Improvement& each : cell.on) each.seconds = 0;
    text += ToJson(cell).dump() + "\n";
  }
  return text;
}

std::vector<Cell> CellsOf(const std::vector<Question>& questions, const Results& results) {
  std::vector<Cell> cells;
  for (const Question& question : questions) {
    const Cell* cell = results.Find(question);
    if (cell != nullptr) cells.push_back(*cell);
  }
  return cells;
}

void MeasureAll(const std::vector<Question>& questions, const std::string& path, int stop_after = 1000,
                size_t at_once = 1) {
  Results results(path);
  std::atomic<int> answered = 0;
  std::vector<Answer> answers;
  for (size_t i = 0; i < at_once; ++i) {
    answers.emplace_back([&answered, player = std::make_shared<Player>()](const Question& question) {
      ++answered;
      return player->Play(question);
    });
  }
  const bool whole = Measure(
      Missing(questions, results), results, answers, "a test", [&] { return answered >= stop_after; },
      [](const std::string&) {});
  EXPECT_EQ(whole, answered < stop_after);
}

TEST(Seeds, GoesOnWhereItWasStoppedAndEndsWithTheSameCells) {
  const Folder folder;
  const std::vector<Task> tasks = {SmallTask("fork_join(width=3,depth=2)"), SmallTask("chain(ops=6)")};
  const std::vector<Question> questions = Questions(tasks, {.limits = kFew, .seeds = 2});
  ASSERT_EQ(questions.size(), 10u);
  MeasureAll(questions, folder / "whole");
  MeasureAll(questions, folder / "parts", 4);
  {
    const Results results(folder / "parts");
    // The fourth answer came after it was stopped.
    EXPECT_EQ(Missing(questions, results).size(), 7u);
  }
  MeasureAll(questions, folder / "parts");
  const Results whole(folder / "whole"), parts(folder / "parts");
  EXPECT_EQ(Missing(questions, parts).size(), 0u);
  EXPECT_EQ(WithoutClock(CellsOf(questions, whole)), WithoutClock(CellsOf(questions, parts)));
  for (const Cell& cell : CellsOf(questions, whole)) {
    EXPECT_EQ(cell.found, Found::kPlan) << cell.why;
    EXPECT_GE(cell.time, cell.bound);
    EXPECT_GT(cell.bound, 0);
    EXPECT_GT(cell.memory, 0);
    EXPECT_LE(cell.evaluations, kFew.evaluations);
    ASSERT_FALSE(cell.on.empty());
    EXPECT_LE(cell.time, cell.on.back().time);
  }
}

TEST(Seeds, SeveralAtATimeFindTheSameCells) {
  const Folder folder;
  const std::vector<Task> tasks = {SmallTask("fork_join(width=3,depth=2)"), SmallTask("chain(ops=6)")};
  const std::vector<Question> questions = Questions(tasks, {.limits = kFew, .seeds = 2});
  MeasureAll(questions, folder / "one");
  MeasureAll(questions, folder / "three", 1000, 3);
  const Results one(folder / "one"), three(folder / "three");
  EXPECT_EQ(Missing(questions, three).size(), 0U);
  EXPECT_EQ(WithoutClock(CellsOf(questions, one)), WithoutClock(CellsOf(questions, three)));
}

TEST(Seeds, WhatAnAnswerThrowsEndsAllAndIsThrown) {
  const Folder folder;
  const std::vector<Question> questions = Questions(std::vector{SmallTask("chain(ops=6)")}, {.limits = kFew});
  Results results(folder / "file");
  Player player;
  std::atomic<bool> has_thrown = false;
  const std::vector<Answer> answers = {[&](const Question& question) {
                                         while (!has_thrown) std::this_thread::yield();
                                         return player.Play(question);
                                       },
                                       [&](const Question&) -> Cell {
                                         has_thrown = true;
                                         throw Error("no such program");
                                       }};
  EXPECT_THROW(Measure(questions, results, answers, "a test", {}, [](const std::string&) {}), Error);
}

TEST(Seeds, ACellIsOfItsLimitsAndItsSeed) {
  const Folder folder;
  const std::vector<Task> tasks = {SmallTask("chain(ops=6)")};
  MeasureAll(Questions(tasks, {.limits = kFew, .seeds = 1}), folder / "file");
  const Results results(folder / "file");
  EXPECT_EQ(Missing(Questions(tasks, {.limits = kFew, .seeds = 1}), results).size(), 0u);
  EXPECT_EQ(Missing(Questions(tasks, {.limits = kFew, .seeds = 2}), results).size(), 2u);
  EXPECT_EQ(Missing(Questions(tasks, {.limits = {.evaluations = 61, .seconds = 1000}, .seeds = 1}), results).size(),
            3u);
}

TEST(Seeds, ALastLineThatWasCutShortIsTakenAway) {
  const Folder folder;
  const std::string path = folder / "file";
  const std::vector<Question> questions = Questions(std::vector{SmallTask("chain(ops=6)")}, {.limits = kFew});
  MeasureAll(questions, path);
  const std::string whole = Content(path);
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  berth::testing::Write(path, whole.substr(0, last + 40));
  {
    const Results results(path);
    EXPECT_EQ(results.mended(),
              fmt::format("{}:{}: the line was cut short and is taken away; its cell is measured again", path,
                          questions.size()));
    EXPECT_THAT(Missing(questions, results), ElementsAre(questions.back()));
  }
  EXPECT_EQ(Content(path), whole.substr(0, last));
  MeasureAll(questions, path);
  const Results results(path);
  EXPECT_EQ(results.mended(), "");
  EXPECT_EQ(Missing(questions, results).size(), 0u);
}

TEST(Seeds, AnyOtherLineThatIsNoCellIsTheUsersToMend) {
  const Folder folder;
  const std::string path = folder / "file";
  const auto mistake = [&](const std::string& text) -> std::string {
    berth::testing::Write(path, text);
    try {
      const Results results(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string line = ToJson({.question = SmallTask("chain").Ask({"", "heft", false}, 1, kFew)}).dump() + "\n";
  EXPECT_EQ(mistake(line), "");
  EXPECT_THAT(mistake("{\n" + line), AllOf(StartsWith(path + ":1:"), HasSubstr("take the line out")));
  EXPECT_THAT(mistake(line + "{}\n"), AllOf(StartsWith(path + ":2: "), HasSubstr("format")));
  std::string other = line;
  other.replace(other.find("\"format\":2"), 10, "\"format\":7");
  EXPECT_THAT(mistake(line + other), AllOf(StartsWith(path + ":2: format"), HasSubstr("knows 2 alone")));
  EXPECT_THAT(mistake(line.substr(0, line.size() - 2) + ",\"more\":1}\n"), HasSubstr("more"));
}

TEST(Seeds, OneRunWritesAFileAndOthersReadWhatItHasWrittenSoFar) {
  const Folder folder;
  const std::string path = folder / "file";
  EXPECT_THROW(Results(path, Results::Access::kReads), Error);
  Results first(path);
  EXPECT_THROW(Results{path}, Error);
  const Question question = SmallTask("chain").Ask({"", "heft", false}, 1, kFew);
  first.Add({.question = question});
  EXPECT_THAT(Missing(std::vector{question}, first), ElementsAre(question)) << "what failed is measured again";
  const std::string half = Content(path) + "{\"form";
  berth::testing::Write(path, half);
  const Results other(path, Results::Access::kReads);
  EXPECT_NE(other.Find(question), nullptr);
  EXPECT_EQ(Content(path), half);
  EXPECT_THROW(Results(folder / "no" + std::string("/file")), Error);
}

TEST(Seeds, WhatDoesNotFitAndWhatGoesWrongAreValues) {
  Player player;
  Task task = SmallTask("rnnlm(layers=2)");
  task.mode = "training";
  const Cell too_big = player.Play(task.Ask({"", "single", false}, 1, kFew));
  EXPECT_EQ(too_big.found, Found::kTooBig) << too_big.why;
  EXPECT_GT(too_big.memory, 12'000'000'000);
  EXPECT_EQ(too_big.time, 0);
  task.machine = "k80x4";  // a cut has two sides
  const Cell refused = player.Play(task.Ask({"", "mincut", false}, 1, kFew));
  EXPECT_EQ(refused.found, Found::kRefuses);
  EXPECT_NE(refused.why, "");
  const Cell fails = player.Play(task.Ask({"", "no_such_planner", false}, 1, kFew));
  EXPECT_EQ(fails.found, Found::kFails);
  EXPECT_THAT(fails.why, HasSubstr("no_such_planner"));
}

TEST(Seeds, AProcessThatDiesIsACellThatFails) {
  const Folder folder;
  const std::string program = folder / "program";
  berth::testing::Write(program, "#!/bin/sh\nread -r line\nkill -9 $$\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const Answer answer = AskProcess(program, 0, {});
  const Question question = SmallTask("chain").Ask({"", "heft", false}, 1, kFew);
  for (int again = 0; again < 2; ++again) {
    const Cell cell = answer(question);
    EXPECT_EQ(cell.question, question);
    EXPECT_EQ(cell.found, Found::kFails);
    EXPECT_THAT(cell.why, HasSubstr("signal 9"));
  }
}

TEST(Seeds, AProcessAnswersWithTheCell) {
  const Folder folder;
  const Question question = SmallTask("chain").Ask({"", "heft", false}, 1, kFew);
  Cell cell{
      .question = question, .found = Found::kPlan, .time = 0.25, .on = {{.evaluations = 1, .seconds = 2, .time = 3}}};
  berth::testing::Write(folder / "answer", ToJson(cell).dump() + "\n");
  const std::string program = folder / "program";
  berth::testing::Write(
      program, "#!/bin/sh\n[ \"$1 $2\" = '--answer 1' ] || exit 1\nread -r line\ncat '" + folder / "answer" + "'\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  EXPECT_EQ(ToJson(AskProcess(program, 1, {})(question)), ToJson(cell));
}

TEST(Seeds, PlansAboutFifteenHours) {
  const std::vector<Task> tasks = Tasks(true);
  const std::vector<Question> questions = Questions(tasks, {});
  std::set<std::string> keys;
  for (const Question& question : questions) keys.insert(question.Key());
  EXPECT_EQ(keys.size(), questions.size());
  if (kCanLearn) {
    EXPECT_GT(MostSeconds(questions) / 3600, 12);
    EXPECT_LT(MostSeconds(questions) / 3600, 18);
  }
  const std::vector<Task> few = ShortTasks(true);
  EXPECT_LT(MostSeconds(Questions(few, {.limits = {.evaluations = 500, .seconds = 2}, .seeds = 1})), 150);
  EXPECT_EQ(Questions(tasks, {.only = "nmt, k80x4, heft"}).size(), 1u);
}

TEST(Seeds, TasksAreProblemsOfTheCatalogs) {
  Player player;
  for (const Task& task : Tasks(false)) {
    // Those that take long to make differ from others in their sizes alone.
    if (task.graph.find("layers=8") != std::string::npos || task.graph.find("layers=4") != std::string::npos) continue;
    const Cell cell = player.Play(task.Ask(task.methods.front(), 1, kFew));
    EXPECT_NE(cell.found, Found::kFails) << task.Name() << ": " << cell.why;
    EXPECT_GT(cell.bound, 0) << task.Name();
  }
}

TEST(Seeds, ThePublishedPlacementIsOnTheOpsThatItNames) {
  if (!std::filesystem::exists(kPublishedPlacement)) GTEST_SKIP() << "the data sets are not in " << BERTH_SHARED_DIR;
  const Catalogs catalogs;
  ProblemStrings strings;
  strings.model = "inception_v3(batch=32)";
  strings.cluster = "k80x4";
  strings.mode = "training";
  const auto setup = MakeSetup(catalogs, strings);
  const Plan plan = ReadPublishedPlacement(kPublishedPlacement, *setup.problem);
  EXPECT_EQ(FindViolation(*setup.problem, plan.view()), std::nullopt);
  // Some lines of the file, of each kind; GPU0 is device 1 there.
  const std::vector<std::pair<const char*, int>> expected = {
      {"stem2/Conv", 1},                 // Conv2d_2b_3x3
      {"grad/stem2/Conv", 1},            //
      {"mixed0/5x5/conv1/Conv", 0},      // Mixed_5b/Branch_1/Conv2d_0b_5x5
      {"mixed0/3x3/conv2/Conv", 3},      // Mixed_5b/Branch_2/Conv2d_0c_3x3
      {"mixed0/Concat", 2},              //
      {"mixed2/AveragePool", 2},         // Mixed_5d/Branch_3/AvgPool_0a_3x3
      {"mixed3/double/conv2/Conv", 3},   // Mixed_6a/Branch_1, whose last convolution the file lacks
      {"mixed3/Concat", 1},              //
      {"mixed4/double/conv3/Conv", 3},   // Mixed_6b/Branch_2/Conv2d_0d_7x1
      {"mixed5/1x1/conv0/Conv", 1},      // Mixed_6c/Branch_0
      {"mixed8/7x7/conv1/Conv", 2},      // Mixed_7a/Branch_1/Conv2d_0b_1x7
      {"mixed9/3x3b/conv0/Conv", 1},     // Mixed_7b/Branch_1/Conv2d_0b_3x1
      {"mixed10/double/conv1/Conv", 0},  // Mixed_7c/Branch_2/Conv2d_0b_3x3
      {"mixed10/double_b/conv0/Conv", 3},
      {"classes/Gemm", 3}};
  const Graph& graph = setup.problem->graph();
  for (const auto& [name, device] : expected) {
    const auto ops = graph.ops();
    const auto op = std::ranges::find_if(ops, [&](OpId each) { return graph.op_name(each) == name; });
    ASSERT_NE(op, ops.end()) << name;
    EXPECT_EQ(plan.device[Index(*op)], MakeId<DeviceId>(static_cast<size_t>(device))) << name;
  }
  strings.model = "nasnet(batch=32)";
  const auto other = MakeSetup(catalogs, strings);
  EXPECT_THROW(ReadPublishedPlacement(kPublishedPlacement, *other.problem), Error);
  strings.model = "inception_v3(batch=32)";
  strings.cluster = "k80x2";
  const auto two = MakeSetup(catalogs, strings);
  EXPECT_THROW(ReadPublishedPlacement(kPublishedPlacement, *two.problem), Error);
}

// A cell that somebody has measured.
class Golden {
 public:
  Golden(const std::string& path, const Selection& selection) : selection_(selection), results_(path) {}

  void Plan(const Task& task, size_t method, int seed, double time, std::vector<Improvement> on) {
    Cell cell = Make(task, method, seed);
    cell.found = Found::kPlan;
    cell.time = time;
    cell.memory = 1'500'000'000;
    cell.evaluations = 40 + seed;
    cell.seconds = seed;
    cell.ended = "evaluations";
    cell.on = std::move(on);
    results_.Add(cell);
  }
  void Else(const Task& task, size_t method, int seed, Found found, const std::string& why) {
    Cell cell = Make(task, method, seed);
    cell.found = found;
    cell.why = why;
    cell.ended = "clock";
    cell.memory = found == Found::kTooBig ? 20'000'000'000 : 0;
    results_.Add(cell);
  }
  const Results& results() const { return results_; }

 private:
  Cell Make(const Task& task, size_t method, int seed) const {
    return {.question = task.Ask(task.methods[method], seed, selection_.limits),
            .bound = task.mode == "training" ? 0.1 : 0.005,
            .ops = 12,
            .from = seed == 1 ? "commit 1" : "commit 2"};
  }

  const Selection& selection_;
  Results results_;
};

TEST(Seeds, TablesSayWhatCellsSay) {
  const Folder folder;
  const auto make = [](Paper paper, const char* title, const char* machine, const char* mode,
                       std::vector<Method> methods) {
    return Task{.paper = paper,
                .title = title,
                .devices = 2,
                .graph = title,
                .machine = machine,
                .mode = mode,
                .costs = "c",
                .evaluator = "e",
                .methods = std::move(methods)};
  };
  const std::vector<Task> tasks = {
      make(Paper::kHsdag, "ResNet-50", "hsdag_20us", "inference",
           {{"CPU only", "single(device=cpu)", false},
            {"GPU only", "single(device=gpu)", false},
            {"`human`", "human", false},
            {"random", "random", true}}),
      make(Paper::kPlaceto, "NMT", "p2_host", "training", {{"CPU only", "single", false}}),
      make(Paper::kPlaceto, "NMT", "k80x2", "training",
           {{"one GPU", "single", false},
            {"published placement", std::string(kPublished), false},
            {"`human`", "human", false},
            {"`scotch`", "scotch", false},
            {"`rnn` on groups", "on(group=g(size=2),planner=rnn)", true},
            {"`placeto` on groups", "on(group=g(size=2),planner=placeto)", true}}),
      make(Paper::kGo, "GNMT", "p100x2", "training",
           {{"`human`", "human", false}, {"`metis`", "metis", false}, {"`hdp`", "hdp", true}, {"`gdp`", "gdp", true}}),
      make(Paper::kGo, "nobody", "p100x2", "training", {{"`human`", "human", false}})};
  const Selection selection{.limits = {.evaluations = 100, .seconds = 2}, .seeds = 2};
  Golden cells(folder / "file", selection);
  cells.Plan(tasks[0], 0, 1, 0.020, {{1, 0, 0.020}});
  cells.Plan(tasks[0], 1, 1, 0.008, {{1, 0, 0.008}});
  cells.Else(tasks[0], 2, 1, Found::kTooBig, "");
  cells.Plan(tasks[0], 3, 1, 0.010, {{7, 0.5, 0.010}});
  cells.Plan(tasks[0], 3, 2, 0.012, {{9, 0.5, 0.012}});
  cells.Plan(tasks[1], 0, 1, 5, {{1, 0, 5}});
  cells.Plan(tasks[2], 0, 1, 0.4, {{1, 0, 0.4}});
  cells.Plan(tasks[2], 2, 1, 0.3, {{1, 0, 0.3}});
  cells.Else(tasks[2], 3, 1, Found::kTooBig, "");
  cells.Plan(tasks[2], 4, 1, 0.21, {{80, 0.8, 0.21}});
  cells.Plan(tasks[2], 4, 2, 0.23, {{100, 0.9, 0.23}});
  cells.Plan(tasks[2], 5, 1, 0.20, {{10, 0.1, 0.25}, {40, 0.4, 0.20}});
  cells.Plan(tasks[2], 5, 2, 0.22, {{20, 0.2, 0.22}});
  cells.Plan(tasks[3], 0, 1, 0.25, {{1, 0, 0.25}});
  cells.Else(tasks[3], 1, 1, Found::kRefuses, "a | b");
  cells.Plan(tasks[3], 2, 1, 0.22, {{5, 1.5, 0.22}});
  cells.Else(tasks[3], 2, 2, Found::kFails, "gone");
  cells.Plan(tasks[3], 3, 1, 0.20, {{1, 0.5, 0.20}});
  cells.Plan(tasks[3], 3, 2, 0.20, {{1, 0.5, 0.20}});
  EXPECT_EQ(
      Tables(tasks, selection, cells.results()),
      R"(19 of 21 cells, from commit 1 (14); commit 2 (5). Limits of a cell: 100 evaluations and 2 s, on one thread; 2 seeds.

### Inference on hsdag_20us, as HSDAG's tables 2 and 5

| method | ResNet-50, ms | speed-up, % | search, s |
|---|---:|---:|---:|
| CPU only | 20.000 | 0.0 | 1.0 |
| GPU only | 8.000 | 60.0 | 1.0 |
| `human` | OOM |  |  |
| random | 11.000 (10.000 to 12.000) | 45.0 | 1.5 |

### Training on K80s, as Placeto's table

| graph | CPU only, s | one GPU | GPUs | `human` | `scotch` | published placement | `placeto` | `rnn` | evaluations of `placeto` | of `rnn` | `rnn` takes longer by | `rnn` needs more evaluations |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
| NMT | 5.000 | 0.4000 | 2 | 0.3000 | OOM |  | 0.2100 (0.2000 to 0.2200) | 0.2200 (0.2100 to 0.2300) | 30 | 90 | +4.8 % | 3.5x |

`rnn` over `placeto` in evaluations, geometric mean of 1: 3.5x.

### Training on P100s, as GO's table of placements

| graph | GPUs | `gdp`, s | `human` | `metis` | `hdp` | `human` takes longer by | `hdp` takes longer by | search speed-up over `hdp` |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| GNMT | 2 | 0.2000 | 0.2500 | refuses | 0.2200, fails in 1 of 2 | +25.0 % |  |  |
| geometric mean (of so many) |  |  |  |  |  | +25.0 % (1) |  |  |

### All methods: inference

| method | problems | a plan with every seed | OOM | refuses | fails | time over `human`, geometric mean (of so many) | over the bound, likewise | search, s |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| CPU only | 1 | 1 | 0 | 0 | 0 |  | 4.000 (1) | 1.0 |
| GPU only | 1 | 1 | 0 | 0 | 0 |  | 1.600 (1) | 1.0 |
| `human` | 1 | 0 | 1 | 0 | 0 |  |  |  |
| random | 1 | 1 | 0 | 0 | 0 |  | 2.200 (1) | 1.5 |

### All methods: training

| method | problems | a plan with every seed | OOM | refuses | fails | time over `human`, geometric mean (of so many) | over the bound, likewise | search, s |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| one GPU | 1 | 1 | 0 | 0 | 0 | 1.333 (1) | 4.000 (1) | 1.0 |
| `human` | 2 | 2 | 0 | 0 | 0 | 1.000 (2) | 2.739 (2) | 1.0 |
| `scotch` | 1 | 0 | 1 | 0 | 0 |  |  |  |
| `rnn` on groups | 1 | 1 | 0 | 0 | 0 | 0.733 (1) | 2.200 (1) | 1.5 |
| `placeto` on groups | 1 | 1 | 0 | 0 | 0 | 0.700 (1) | 2.100 (1) | 1.5 |
| `metis` | 1 | 0 | 0 | 1 | 0 |  |  |  |
| `hdp` | 1 | 0 | 0 | 0 | 1 |  |  |  |
| `gdp` | 1 | 1 | 0 | 0 | 0 | 0.800 (1) | 2.000 (1) | 1.5 |

### Every cell

#### inference, ResNet-50, hsdag_20us

12 ops; bound 5.000 ms.

| method | seeds | time, ms | above the bound | most memory on a device, GB | evaluations | search, s | ended by |
|---|---:|---:|---:|---:|---:|---:|---:|
| CPU only | 1 | 20.000 | 300.0 % | 1.50 | 41 | 1.00 | evaluations |
| GPU only | 1 | 8.000 | 60.0 % | 1.50 | 41 | 1.00 | evaluations |
| `human` | 1 | OOM |  | 20.00 | 0 | 0.00 | clock |
| random | 2 | 11.000 (10.000 to 12.000) | 120.0 % | 1.50 | 42 | 1.50 | evaluations |

#### training, NMT, p2_host

12 ops; bound 100.00 ms.

| method | seeds | time, ms | above the bound | most memory on a device, GB | evaluations | search, s | ended by |
|---|---:|---:|---:|---:|---:|---:|---:|
| CPU only | 1 | 5000.00 | 4900.0 % | 1.50 | 41 | 1.00 | evaluations |

#### training, NMT, k80x2

12 ops; bound 100.00 ms.

| method | seeds | time, ms | above the bound | most memory on a device, GB | evaluations | search, s | ended by |
|---|---:|---:|---:|---:|---:|---:|---:|
| one GPU | 1 | 400.00 | 300.0 % | 1.50 | 41 | 1.00 | evaluations |
| `human` | 1 | 300.00 | 200.0 % | 1.50 | 41 | 1.00 | evaluations |
| `scotch` | 1 | OOM |  | 20.00 | 0 | 0.00 | clock |
| `rnn` on groups | 2 | 220.00 (210.00 to 230.00) | 120.0 % | 1.50 | 42 | 1.50 | evaluations |
| `placeto` on groups | 2 | 210.00 (200.00 to 220.00) | 110.0 % | 1.50 | 42 | 1.50 | evaluations |

#### training, GNMT, p100x2

12 ops; bound 100.00 ms.

| method | seeds | time, ms | above the bound | most memory on a device, GB | evaluations | search, s | ended by |
|---|---:|---:|---:|---:|---:|---:|---:|
| `human` | 1 | 250.00 | 150.0 % | 1.50 | 41 | 1.00 | evaluations |
| `metis` | 1 | refuses |  |  |  |  | a / b |
| `hdp` | 2 | 220.00, fails in 1 of 2 | 120.0 % | 1.50 | 41 | 1.00 | evaluations, gone |
| `gdp` | 2 | 200.00 | 100.0 % | 1.50 | 42 | 1.50 | evaluations |

)");
}

}  // namespace
}  // namespace berth::seeds
