#include "learn/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/thread_ranks.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RunRanks;

constexpr const char* kPlaceto = "placeto(rounds=2,rollouts=1,epochs=1,workers=3)";

class TrainingTest : public ::testing::Test {
 protected:
  TrainingTest() : folder_(std::filesystem::temp_directory_path() / fmt::format("berth-training-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~TrainingTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }
  TrainingRequest Request(const Evaluator& evaluator, const std::string& name, Ranks& ranks) const {
    return {.planner = kPlaceto,
            .cases = {{.name = "a model", .evaluator = evaluator}},
            .updates = 5,
            .folder = Path(name),
            .checkpoint_every = 2,
            .threads = 1,
            .ranks = &ranks};
  }

  const Problem problem_ = testing::Chain(7, 2);
  const std::unique_ptr<Evaluator> evaluator_ = testing::EvaluatorNamed("parallel", RegisterParallel, problem_);

 private:
  std::filesystem::path folder_;
};

TEST_F(TrainingTest, LeavesTheSameBytesOnAnyNumberOfRanks) {
  for (const int64_t count : {1, 2, 3}) {
    const std::string run = fmt::format("run{}", count);
    const auto mistakes = RunRanks(count, [&](Ranks& ranks) {
      const TrainingResult result = Train(Request(*evaluator_, run, ranks));
      EXPECT_EQ(result.updates, 5);
      EXPECT_TRUE(result.finished);
      EXPECT_EQ(result.lock != nullptr, ranks.first()) << "one of them has the folder";
    });
    EXPECT_THAT(mistakes, Each(IsEmpty()));
    for (const char* file : {"config.json", "curve.csv", "curve.svg", "last", "best"}) {
      EXPECT_TRUE(ReadFile(Path(run + "/" + file)) == ReadFile(Path(std::string("run1/") + file)))
          << file << " of " << count;
    }
  }
}

TEST_F(TrainingTest, GoesOnWithAnotherNumberOfRanks) {
  const auto train = [&](int64_t count, const std::string& run, bool resume) {
    const auto mistakes = RunRanks(count, [&](Ranks& ranks) {
      TrainingRequest request = Request(*evaluator_, run, ranks);
      request.resume = resume;
      EXPECT_EQ(Train(request).updates, 5);
    });
    EXPECT_THAT(mistakes, Each(IsEmpty()));
  };
  train(1, "whole", false);
  // As it was after the first checkpoint that was better than all later ones, or after none.
  std::filesystem::copy(Path("whole"), Path("broken"));
  std::filesystem::copy_file(Path("whole/best"), Path("broken/last"),
                             std::filesystem::copy_options::overwrite_existing);
  train(3, "broken", true);
  for (const char* file : {"curve.csv", "last", "best"}) {
    EXPECT_TRUE(ReadFile(Path(std::string("broken/") + file)) == ReadFile(Path(std::string("whole/") + file))) << file;
  }
}

// Each round begins with that policy again, so another one would be another training.
TEST_F(TrainingTest, GoesOnOnlyWithTheCheckpointThatItBeganWith) {
  Alone alone;
  TrainingRequest request = Request(*evaluator_, "first", alone);
  Train(request);
  request.folder = Path("other");
  request.seed = 2;
  Train(request);
  request.folder = Path("further");
  request.planner = fmt::format("placeto(rounds=2,rollouts=1,epochs=1,workers=3,checkpoint={})", Path("first/last"));
  Train(request);
  request.resume = true;
  EXPECT_EQ(Train(request).updates, 5);
  std::filesystem::copy_file(Path("other/last"), Path("first/last"), std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(RunRanks(1,
                       [&](Ranks& ranks) {
                         request.ranks = &ranks;
                         Train(request);
                       }),
              Each(HasSubstr("the checkpoint that this run began with has changed since")));
}

TEST_F(TrainingTest, RefusesRanksThatWouldHaveNothingToPlay) {
  const auto mistakes = RunRanks(4, [&](Ranks& ranks) { Train(Request(*evaluator_, "run", ranks)); });
  EXPECT_THAT(mistakes, Each(AllOf(HasSubstr("4 ranks"), HasSubstr("3 plays"), HasSubstr("workers"))));
  EXPECT_FALSE(std::filesystem::exists(Path("run")));
}

TEST_F(TrainingTest, RefusesARankThatReadsAnotherModel) {
  const Problem longer = testing::Chain(8, 2);
  const auto on_longer = testing::EvaluatorNamed("parallel", RegisterParallel, longer);
  const auto mistakes =
      RunRanks(2, [&](Ranks& ranks) { Train(Request(ranks.first() ? *evaluator_ : *on_longer, "run", ranks)); });
  EXPECT_THAT(mistakes[0], HasSubstr("rank 1 on a thread: a model is another problem here"));
  EXPECT_THAT(mistakes[1], HasSubstr("give all ranks the same files"));
}

TEST_F(TrainingTest, RefusesRanksThatWouldMeasureOnOneMachineAtOnce) {
  const testing::FakeEvaluator measured(problem_, [](const PlanView&) { return Score{.time = 1}; });
  const auto mistakes = RunRanks(2, [&](Ranks& ranks) { Train(Request(measured, "run", ranks)); });
  EXPECT_THAT(mistakes, Each(AllOf(HasSubstr("fake"), HasSubstr("2 ranks"), HasSubstr("ppr:1:node"))));
}

TEST_F(TrainingTest, AFolderThatCannotBeMadeEndsAllRanks) {
  const auto mistakes = RunRanks(3, [&](Ranks& ranks) { Train(Request(*evaluator_, "no/such/run", ranks)); });
  EXPECT_THAT(mistakes, Each(HasSubstr("cannot be made")));
  EXPECT_THAT(mistakes[1], HasSubstr("rank 0 on a thread: "));
}

}  // namespace
}  // namespace berth
