// The benchmark of the field (tools/seeds): its cells, how it goes on, and its tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

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

void MeasureAll(const std::vector<Question>& questions, const std::string& path, int stop_after = 1000) {
  Results results(path);
  Player player;
  int answers = 0;
  const Answer answer = [&](const Question& question) {
    ++answers;
    return player.Play(question);
  };
  const bool whole = Measure(
      Missing(questions, results), results, answer, "a test", [&] { return answers >= stop_after; },
      [](const std::string&) {});
  EXPECT_EQ(whole, answers < stop_after);
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
  EXPECT_THAT(mistake("{\n" + line), AllOf(StartsWith(path + ":1: "), HasSubstr("take the line out")));
  EXPECT_THAT(mistake(line + "{}\n"), AllOf(StartsWith(path + ":2: "), HasSubstr("format")));
  std::string other = line;
  other.replace(other.find("\"format\":1"), 10, "\"format\":7");
  EXPECT_THAT(mistake(line + other), AllOf(StartsWith(path + ":2: format"), HasSubstr("knows 1 alone")));
  EXPECT_THAT(mistake(line.substr(0, line.size() - 2) + ",\"more\":1}\n"), HasSubstr("more"));
}

TEST(Seeds, OneRunWritesAFile) {
  const Folder folder;
  const Results first(folder / "file");
  EXPECT_THROW(Results(folder / "file"), Error);
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
  const Answer answer = AskProcess(program, {});
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
  berth::testing::Write(program,
                        "#!/bin/sh\n[ \"$1\" = --answer ] || exit 1\nread -r line\ncat '" + folder / "answer" + "'\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  EXPECT_EQ(ToJson(AskProcess(program, {})(question)), ToJson(cell));
}

TEST(Seeds, PlansAboutFifteenHours) {
  const std::vector<Task> tasks = Tasks(true);
  const std::vector<Question> questions = Questions(tasks, {});
  std::set<std::string> keys;
  for (const Question& question : questions) keys.insert(question.Key());
  EXPECT_EQ(keys.size(), questions.size());
  if (kCanLearn) {
    EXPECT_GT(MostSeconds(tasks, questions) / 3600, 10);
    EXPECT_LT(MostSeconds(tasks, questions) / 3600, 18);
  }
  const std::vector<Task> few = ShortTasks(true);
  EXPECT_LT(MostSeconds(few, Questions(few, {.limits = {.evaluations = 500, .seconds = 2}, .seeds = 1})), 150);
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
  strings.model = "inception_v3";
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
  strings.model = "nasnet";
  const auto other = MakeSetup(catalogs, strings);
  EXPECT_THROW(ReadPublishedPlacement(kPublishedPlacement, *other.problem), Error);
  strings.model = "inception_v3";
  strings.cluster = "k80x2";
  const auto two = MakeSetup(catalogs, strings);
  EXPECT_THROW(ReadPublishedPlacement(kPublishedPlacement, *two.problem), Error);
}

}  // namespace
}  // namespace berth::seeds
