#include "learn/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "base/file.h"
#include "base/thread_ranks.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "placement/wrappers.h"
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
  // Whose checkpoints are judged by their answers to another model.
  TrainingRequest Validated(const Evaluator& evaluator, const Evaluator& other, const std::string& name,
                            Ranks& ranks) const {
    TrainingRequest request = Request(evaluator, name, ranks);
    request.validation.push_back({.name = "another", .evaluator = other});
    return request;
  }

  const Problem problem_ = testing::Chain(7, 2);
  const std::unique_ptr<Evaluator> evaluator_ = testing::EvaluatorNamed("parallel", RegisterParallel, problem_);

 private:
  std::filesystem::path folder_;
};

TEST_F(TrainingTest, LeavesTheSameBytesOnAnyNumberOfRanks) {
  const Problem other = testing::Chain(9, 2);
  const auto of_other = testing::EvaluatorNamed("parallel", RegisterParallel, other);
  for (const int64_t count : {1, 2, 3}) {
    const std::string run = fmt::format("run{}", count);
    const auto mistakes = RunRanks(count, [&](Ranks& ranks) {
      const TrainingResult result = Train(Validated(*evaluator_, *of_other, run, ranks));
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

// What is learned is the same, and so is the budget; what is kept answers the other model best.
TEST_F(TrainingTest, KeepsTheCheckpointThatAnswersTheModelsForValidationBest) {
  Alone alone;
  const Problem other = testing::Chain(12, 2);
  const auto of_other = testing::EvaluatorNamed("parallel", RegisterParallel, other);
  int differ = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto train = [&](const std::string& name, bool validated) {
      TrainingRequest request =
          validated ? Validated(*evaluator_, *of_other, name, alone) : Request(*evaluator_, name, alone);
      request.planner = "placeto(rounds=2,rollouts=1,epochs=1,workers=3,learning_rate=0.05)";
      request.updates = 9;
      request.checkpoint_every = 1;
      request.seed = seed;
      // Its answer of the end is what the checkpoint had.
      if (!validated) request.tests.push_back({.name = "another", .evaluator = *of_other});
      return Train(request);
    };
    const TrainingResult plain = train(fmt::format("plain{}", seed), false),
                         validated = train(fmt::format("validated{}", seed), true);
    ASSERT_EQ(validated.curve.size(), plain.curve.size());
    double least = std::numeric_limits<double>::infinity();
    int64_t best_update = 0;
    for (size_t i = 0; i < validated.curve.size(); ++i) {
      EXPECT_EQ(validated.curve[i].mean_cost, plain.curve[i].mean_cost) << i;
      if (validated.curve[i].greedy_cost < least) {
        least = validated.curve[i].greedy_cost;
        best_update = validated.curve[i].update;
      }
    }
    EXPECT_EQ(validated.best_update, best_update);
    EXPECT_EQ(validated.validation_evaluations, 9);
    EXPECT_EQ(plain.validation_evaluations, 0);
    EXPECT_EQ(plain.evaluations, validated.evaluations + 9) << "each checkpoint of the other answers its own model";
    // Twelve ops of one unit; logarithms are taken of it and undone.
    EXPECT_LE(least, plain.tests[0].greedy_cost / other.seconds_per_unit() / 12 * (1 + 1e-9));
    differ += validated.best_update != plain.best_update ? 1 : 0;
  }
  EXPECT_GT(differ, 0);
}

TEST_F(TrainingTest, SpendsItsWholeBudgetOnLearningWhereAnotherModelIsForValidation) {
  Alone alone;
  const Problem other = testing::Chain(12, 2);
  const auto of_other = testing::EvaluatorNamed("parallel", RegisterParallel, other);
  const auto updates = [&](TrainingRequest request) {
    request.updates = std::nullopt;
    request.checkpoint_every = 1;
    request.budget.evaluations = 200;
    const TrainingResult result = Train(request);
    EXPECT_EQ(result.evaluations, 200);
    return result.updates;
  };
  const int64_t plain = updates(Request(*evaluator_, "plain", alone));
  EXPECT_GT(updates(Validated(*evaluator_, *of_other, "validated", alone)), plain);
}

TEST_F(TrainingTest, GoesOnWithValidationWhereItStoppedThoughScoresAreNoisy) {
  Alone alone;
  const Problem other = testing::Chain(12, 2);
  const auto add_noisy = [](EvaluatorCatalog& catalog) {
    RegisterParallel(catalog);
    RegisterWrappers(catalog);
  };
  const auto noisy = [&](const Problem& problem) {
    return testing::EvaluatorNamed("noisy(share=0.2,of=parallel)", add_noisy, problem);
  };
  const auto own = noisy(problem_), of_other = noisy(other);
  int resumed = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const std::string whole = fmt::format("whole{}", seed), broken = fmt::format("broken{}", seed);
    TrainingRequest request = Validated(*own, *of_other, whole, alone);
    request.planner = "placeto(rounds=2,rollouts=1,epochs=1,workers=3,learning_rate=0.05)";
    request.checkpoint_every = 1;
    request.updates = 5;
    request.seed = seed;
    resumed += Train(request).best_update < 5 ? 1 : 0;
    // As it was after the checkpoint that is kept.
    std::filesystem::copy(Path(whole), Path(broken));
    std::filesystem::copy_file(Path(whole + "/best"), Path(broken + "/last"),
                               std::filesystem::copy_options::overwrite_existing);
    request.folder = Path(broken);
    request.resume = true;
    EXPECT_EQ(Train(request).validation_evaluations, 5);
    for (const char* file : {"/curve.csv", "/last", "/best"}) {
      EXPECT_TRUE(ReadFile(Path(broken + file)) == ReadFile(Path(whole + file))) << seed << file;
    }
  }
  EXPECT_GT(resumed, 0);
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
