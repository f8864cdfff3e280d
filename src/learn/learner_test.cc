#include "learn/learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/system_limits.h"
#include "base/thread_ranks.h"
#include "learn/checkpoint.h"
#include "learn/placeto.h"
#include "learn/testing.h"
#include "placement/testing.h"
#include "placement/wrappers.h"
#include "sim/simulators.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::unique_ptr<Evaluator> Parallel(const Problem& problem) {
  return testing::EvaluatorNamed("parallel(io=everywhere)", RegisterParallel, problem);
}

// Device 1 is twice as fast, and nothing is gained by sending: all belongs there.
Problem FastSecond(size_t ops, size_t devices = 2) {
  const Problem chain = testing::Chain(ops, devices);
  OpTimes times{.time = {}, .source = "test"};
  for (size_t i = 0; i < ops * devices; ++i) times.time.push_back(i % devices == 1 ? 1 : 2);
  return Problem(chain.shared_graph(), chain.shared_cluster(), std::move(times));
}

Method SmallPlaceto(PlacetoOptions options = {.rounds = 2}) {
  return {.name = "placeto(test)",
          .make_policy =
              [options](const Problem& problem, const Random& random) {
                return std::make_shared<PlacetoPolicy>(problem, options, random);
              },
          .rule = {.reward = Reward::kLog, .credit = Credit::kToGo, .baseline = Baseline::kWindow},
          .learner = {.workers = 3,
                      .rollouts = 2,
                      .learning_rate = {.first = 1e-2, .last = 1e-3},
                      .entropy = {.first = 0.01},
                      .clip_norm = 1.25}};
}

Method SmallHsdag(const std::string& parameters) {
  return testing::MethodNamed(
      fmt::format("hsdag(hidden=8,steps=4,{}{}seeded=false)", parameters, parameters.empty() ? "" : ","));
}

class LearnerTest : public ::testing::Test {
 protected:
  LearnerTest() : folder_(std::filesystem::temp_directory_path() / fmt::format("berth-learner-{}", ::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~LearnerTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ / name; }

  // The error of a call, as text.
  template <typename Call>
  static std::string ErrorOf(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(LearnerTest, FindsTheObviousAnswerOfAChain) {
  const Problem problem = FastSecond(6);
  const auto evaluator = Parallel(problem);
  testing::OpenLearner learner(SmallPlaceto(), {*evaluator}, Random(1), 40);
  const double before = learner.Greedy(0, 1).cost;
  for (int i = 0; i < 40; ++i) learner.Update(1'000'000, 1);
  const double after = learner.Greedy(0, 1).cost;
  EXPECT_EQ(after, 6) << "all on device 1; it was " << before << " at first";
  EXPECT_LE(after, before);
  const PlanResult found = learner.search(0).Found();
  EXPECT_EQ(found.score.time, 6);
  EXPECT_EQ(found.plan.device, std::vector<DeviceId>(6, DeviceId{1}));
  EXPECT_EQ(found.evaluations, 40 * learner.evaluations_per_update() + 2);
}

TEST_F(LearnerTest, LearnsFromTheEndAlone) {
  const Problem problem = FastSecond(6);
  const auto evaluator = Parallel(problem);
  Method method = SmallPlaceto({.every_step = false, .rounds = 2});
  method.rule.credit = Credit::kTerminal;
  testing::OpenLearner learner(method, {*evaluator}, Random(1), 80);
  EXPECT_EQ(learner.evaluations_per_update(), 6);
  for (int i = 0; i < 80; ++i) learner.Update(1'000'000, 1);
  EXPECT_EQ(learner.Greedy(0, 1).cost, 6);
}

TEST_F(LearnerTest, GivesTheSameNumbersOnAnyNumberOfThreads) {
  Random random(3);
  const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 3});
  const auto evaluator = Parallel(problem);
  for (const Method& method :
       {SmallPlaceto(), SmallHsdag("workers=2,imagined=2"), SmallHsdag("mode=paper,workers=3"),
        testing::MethodNamed("rnn(hidden=8,rollouts=3,workers=3)"), testing::MethodNamed("tabular(workers=3)")}) {
    std::vector<std::string> bytes;
    for (const int64_t threads : {1, 2, 3}) {
      testing::OpenLearner learner(method, {*evaluator}, Random(1), 4);
      for (int i = 0; i < 4; ++i) learner.Update(1'000'000, threads);
      learner.Save(Path("threads"));
      bytes.push_back(ReadFile(Path("threads")));
    }
    EXPECT_TRUE(bytes[0] == bytes[1] && bytes[0] == bytes[2]) << "the bytes differ: " << method.name;
  }
}

// Each rank has played a part, and knows all.
TEST_F(LearnerTest, GivesTheSameBytesOnAnyNumberOfRanks) {
  Random random(3);
  const Problem problem = testing::RandomProblem(random, {.ops = 12, .devices = 3}), other = FastSecond(7, 3);
  const auto evaluator = Parallel(problem), on_other = Parallel(other);
  const std::string small = "hidden=8,rollouts=3,workers=3";
  for (const Method& method :
       {SmallPlaceto(), SmallHsdag("workers=2,imagined=2"), SmallHsdag("mode=paper,workers=3,columns=fixed"),
        testing::MethodNamed("gdp(" + small + ",sage=1,layers=1,heads=2,inner=8,epochs=2)"),
        testing::MethodNamed("gdp(" + small + ",sage=1,layers=0,heads=2,inner=8,near=0.7,priorities=3)"),
        testing::MethodNamed("gdp(" + small + ",sage=1,layers=0,heads=2,inner=8,near=0.7,learning_rate=0)"),
        testing::MethodNamed("hdp(" + small + ",grouper_hidden=8,groups=4,noise=0.1,noise_until=3)"),
        testing::MethodNamed("rnn(hidden=8,rollouts=3,workers=3,memory=2)"),
        testing::MethodNamed("tabular(workers=4,rows=type,memory=2)")}) {
    // A recurrent policy is for graphs of one size.
    const testing::Evaluators cases =
        method.name.starts_with("rnn") ? testing::Evaluators{*evaluator} : testing::Evaluators{*evaluator, *on_other};
    std::string alone;
    for (const int64_t count : {1, 2, 3}) {
      const auto mistakes = testing::RunRanks(count, [&](Ranks& ranks) {
        testing::OpenLearner learner(method, cases, Random(1), 4, &ranks);
        for (int i = 0; i < 4; ++i) learner.Update(1'000'000, 1 + ranks.rank());
        learner.GreedyCost(1 + ranks.rank());
        learner.Save(Path(fmt::format("rank{}", ranks.rank())));
      });
      EXPECT_THAT(mistakes, ::testing::Each(::testing::IsEmpty())) << method.name;
      if (count == 1) alone = ReadFile(Path("rank0"));
      for (int64_t rank = 0; rank < count; ++rank) {
        EXPECT_TRUE(ReadFile(Path(fmt::format("rank{}", rank))) == alone)
            << "the bytes differ: " << method.name << ", rank " << rank << " of " << count;
      }
    }
  }
}

TEST_F(LearnerTest, WhatIsStoppedOnOneRankIsStoppedOnAll) {
  const Problem problem = FastSecond(6);
  const auto evaluator = Parallel(problem);
  for (int64_t asked = 0; asked < 12; ++asked) {
    std::vector<int> learned(2, -1);
    const auto mistakes = testing::RunRanks(2, [&](Ranks& ranks) {
      testing::OpenLearner learner(SmallPlaceto(), {*evaluator}, Random(1), 9, &ranks);
      int64_t left = asked;
      const StopCheck stop = [&] { return ranks.rank() == 1 && left-- <= 0; };
      learned[static_cast<size_t>(ranks.rank())] = learner.Update(1'000'000, 1, stop).has_value() ? 1 : 0;
    });
    EXPECT_THAT(mistakes, ::testing::Each(::testing::IsEmpty()));
    EXPECT_EQ(learned[0], learned[1]) << "asked " << asked;
    EXPECT_TRUE(asked > 0 || learned[0] == 0);
  }
}

// What an update keeps grows with the graph, as the square of it where a policy looks at all pairs of nodes.
TEST(Policies, KeepMoreOfALargerGraph) {
  const Problem small = testing::Chain(100, 2), large = testing::Chain(400, 2);
  for (const auto& [method, growth] :
       std::vector<std::pair<Method, double>>{{SmallPlaceto(), 16},
                                              {SmallHsdag("colocation=none"), 4},
                                              {SmallHsdag("mode=paper,columns=fixed,colocation=none"), 4},
                                              {testing::MethodNamed("gdp"), 4},
                                              {testing::MethodNamed("gdp(priorities=20)"), 4},
                                              {testing::MethodNamed("hdp(nodes=ops,groups=2,hidden=2)"), 4},
                                              {testing::MethodNamed("rnn(colocation=none)"), 16},
                                              {testing::MethodNamed("tabular(rows=type)"), 4}}) {
    const auto numbers = [&, &of = method](const Problem& problem) {
      const auto policy = of.make_policy(problem, Random(1));
      return policy->recalled_numbers(*policy->Prepare(problem), 2);
    };
    EXPECT_NEAR(numbers(large) / numbers(small), growth, 0.1 * growth) << method.name;
    EXPECT_GT(numbers(small), 100) << method.name;
  }
}

TEST_F(LearnerTest, SaysBeforeItTrainsThatAnUpdateWouldHoldMoreMemoryThanThereIs) {
  const Problem problem = testing::Chain(400, 2), other = testing::Chain(30, 2);
  const auto evaluator = Parallel(problem), on_other = Parallel(other);
  const testing::OpenLearner learner(testing::MethodNamed("gdp(workers=2)"), {*on_other, *evaluator}, Random(1), 1);
  const std::optional<std::string> reason = learner.WhyTooLarge(1, Bytes{5 << 20});
  ASSERT_TRUE(reason.has_value());
  EXPECT_THAT(*reason,
              AllOf(StartsWith("an update on 2 graphs, of which the largest is graph chain of 400 ops, would hold"),
                    HasSubstr("5.00 MiB are left here")));
  EXPECT_EQ(learner.WhyTooLarge(1, Bytes{int64_t{1} << 30}), std::nullopt);
  EXPECT_EQ(learner.WhyTooLarge(1, std::nullopt), std::nullopt) << "nobody knows";
  const testing::OpenLearner twin(testing::MethodNamed("gdp(learning_rate=0)"), {*evaluator}, Random(1), 1);
  EXPECT_EQ(twin.WhyTooLarge(1, Bytes{1}), std::nullopt) << "nothing is kept of a step that is not made";
}

// 2,000 states of 2,000 nodes, each seen from 64 devices.
TEST(LearnedPlanner, RefusesWhatFewMachinesHaveTheMemoryFor) {
  if (!MemoryLeft()) GTEST_SKIP() << "the system does not say what memory is left";
  const auto refused = [&](const Problem& problem) {
    return MakeLearnedPlanner(testing::MethodNamed("placeto"))->Refuses(problem, *Parallel(problem));
  };
  EXPECT_EQ(refused(testing::Chain(20, 2)), std::nullopt);
  const auto reason = refused(testing::Chain(2000, 64));
  ASSERT_TRUE(reason.has_value());
  EXPECT_THAT(*reason, HasSubstr("would hold about"));
}

// With a critic, too: what it foresees and what it does not are shares of the same cost.
TEST_F(LearnerTest, LearnsTheSameInAnyUnitOfTime) {
  const Problem problem = FastSecond(6);
  Problem::Options options;
  options.seconds_per_unit = 1e-6;
  OpTimes times{.time = {}, .source = "test"};
  for (const OpId op : problem.graph().ops()) std::ranges::copy(problem.op_times(op), std::back_inserter(times.time));
  const Problem micro(problem.shared_graph(), problem.shared_cluster(), std::move(times), std::move(options));
  ASSERT_EQ(micro.seconds_per_unit(), 1e-6);
  // By time units alone. Moves near the best placement look at transfers too, whose times are given in seconds.
  const auto score = [](const PlanView& plan) {
    double time = 0;
    for (const DeviceId device : plan.device) time = 2 * time + static_cast<double>(Index(device));
    return Score{.time = 1 + time};
  };
  const testing::FakeEvaluator evaluator(problem, score), on_micro(micro, score);
  for (const Method& method :
       {SmallHsdag("critic=blank,imagined=3,near=0"), SmallHsdag("critic=blank,imagined=0,near=0")}) {
    testing::OpenLearner learner(method, {evaluator}, Random(1), 6), other(method, {on_micro}, Random(1), 6);
    for (int i = 0; i < 6; ++i) {
      const CurvePoint a = *learner.Update(1'000'000, 1), b = *other.Update(1'000'000, 1);
      EXPECT_EQ(a.loss, b.loss) << method.name;
      EXPECT_EQ(a.entropy, b.entropy) << method.name;
      EXPECT_GT(a.gradient_norm, 0) << method.name;
    }
  }
}

TEST_F(LearnerTest, AnUpdateThatIsStoppedChangesNothing) {
  const Problem problem = FastSecond(6);
  const auto evaluator = Parallel(problem);
  Method placeto = SmallPlaceto();
  placeto.rule.epochs = 3;
  for (const Method& method :
       {placeto, SmallHsdag("imagined=2"), testing::MethodNamed("rnn(hidden=8,rollouts=2,colocation=none)")}) {
    testing::OpenLearner learner(method, {*evaluator}, Random(1), 9);
    learner.Update(1'000'000, 1);
    learner.Save(Path("before"));
    // It is asked before every step of an episode, before every gradient and after the last.
    int64_t stopped = 0;
    for (int64_t asked = 0; asked < 200; ++asked) {
      int64_t left = asked;
      if (learner.Update(1'000'000, 1, [&] { return left-- <= 0; })) break;
      ++stopped;
      learner.Save(Path("after"));
      ASSERT_TRUE(ReadFile(Path("before")) == ReadFile(Path("after"))) << method.name << ", asked " << asked;
    }
    EXPECT_GT(stopped, 9) << method.name;
    EXPECT_LT(stopped, 200) << method.name;
    learner.AdoptDropped();
    const int64_t scored = learner.search(0).evaluations();
    EXPECT_GT(scored, 2 * learner.evaluations_per_update()) << "what was scored in between counts: " << method.name;
    EXPECT_EQ(learner.updates(), 2);
  }
}

TEST_F(LearnerTest, GoesOnFromACheckpointAsIfNothingHadHappened) {
  Random random(4);
  const Problem first = testing::RandomProblem(random, {.ops = 9, .devices = 2}), second = FastSecond(5);
  const auto on_first = Parallel(first), on_second = Parallel(second);
  const auto add_noisy = [](EvaluatorCatalog& catalog) {
    RegisterParallel(catalog);
    RegisterWrappers(catalog);
  };
  // Whose best placement is scored twice, and whose noise depends on how often it was asked.
  const auto noisy = testing::EvaluatorNamed("noisy(share=0.2,of=parallel(io=everywhere))", add_noisy, second);
  // The second has a critic per case, whose memory must be kept, too.
  for (const auto& [method, cases] :
       {std::pair(SmallPlaceto(), testing::Evaluators{*on_first, *on_second}),
        std::pair(SmallPlaceto(), testing::Evaluators{*on_first, *noisy}),
        std::pair(SmallHsdag("cache=true"), testing::Evaluators{*on_first, *noisy}),
        std::pair(SmallHsdag("imagined=2"), testing::Evaluators{*on_first, *on_second})}) {
    testing::OpenLearner unbroken(method, cases, Random(1), 6), before(method, cases, Random(1), 6),
        after(method, cases, Random(1), 6);
    for (int i = 0; i < 6; ++i) unbroken.Update(1'000'000, 1);
    for (int i = 0; i < 3; ++i) before.Update(1'000'000, 1);
    before.Save(Path("half"));
    after.Load(Path("half"), false);
    EXPECT_EQ(after.updates(), 3);
    for (int i = 0; i < 3; ++i) after.Update(1'000'000, 1);
    unbroken.Save(Path("unbroken"));
    after.Save(Path("resumed"));
    EXPECT_TRUE(ReadFile(Path("unbroken")) == ReadFile(Path("resumed"))) << "the bytes differ: " << method.name;
  }
}

TEST(Decide, DrawsAsOftenAsTheProbabilitiesSay) {
  Random random(5);
  const std::vector<float> log_probability = {std::log(0.2F), -1e4F, std::log(0.8F)};
  std::array<int, 3> count{};
  for (int i = 0; i < 10'000; ++i) ++count[Decide(log_probability, false, random)];
  EXPECT_NEAR(count[0], 2000, 200);
  EXPECT_EQ(count[1], 0);
  EXPECT_EQ(Decide(log_probability, true, random), 2U);
  EXPECT_EQ(Decide(std::vector<float>(3, std::log(1.0F / 3)), true, random), 0U) << "of equals the first";
}

TEST_F(LearnerTest, StaysWithinTheEvaluationsOfAnUpdate) {
  const Problem problem = FastSecond(6);
  const auto evaluator = Parallel(problem);
  for (int64_t evaluations = 1; evaluations < 45; ++evaluations) {
    testing::OpenLearner learner(SmallPlaceto(), {*evaluator}, Random(1), 1);
    const CurvePoint point = *learner.Update(evaluations, 1);
    EXPECT_LE(point.evaluations, evaluations);
    EXPECT_GE(point.evaluations, 1);
    EXPECT_FALSE(point.diverged) << evaluations;
    EXPECT_EQ(learner.search(0).evaluations(), point.evaluations);
  }
}

// Ten runs, the mean of the last five, as published; some of these fail, and all are noisy.
TEST_F(LearnerTest, LearnsFromANoisyEvaluatorThatFails) {
  const Problem problem = FastSecond(5);
  const auto simulator = Parallel(problem);
  Random noise(5);
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) {
    if (noise.Chance(0.003)) throw Error("the device did not answer");
    Score score = simulator->ScorePlan(plan, *simulator->NewWorkspace());
    score.time *= 1 + 0.05 * noise.Normal();
    return score;
  });
  Method method = SmallPlaceto();
  method.scoring = {.runs = 10, .kept = 5};
  testing::OpenLearner learner(method, {evaluator}, Random(1), 40);
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(learner.Update(1'000'000, 1)->diverged);
  const PlanResult found = learner.Greedy(0, 1).result;
  EXPECT_EQ(found.plan.device, std::vector<DeviceId>(5, DeviceId{1}));
}

TEST_F(LearnerTest, StopsWhenEveryPlacementFails) {
  const Problem problem = FastSecond(3);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView&) -> Score { throw Error("no device answers"); });
  testing::OpenLearner learner(SmallPlaceto(), {evaluator}, Random(1), 4);
  EXPECT_EQ(ErrorOf([&] { learner.Update(1'000'000, 1); }),
            "placeto(test): none of 24 placements could be scored: no device answers");
}

TEST_F(LearnerTest, CountsWhatItAskedForWhereItHasNoPlan) {
  const Problem problem = FastSecond(3);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView&) -> Score { throw Error("no device answers"); });
  try {
    MakeLearnedPlanner(SmallPlaceto())
        ->MakePlan({.evaluator = evaluator, .budget = {.evaluations = 1000}, .random = Random(1)});
    FAIL() << "it has a plan";
  } catch (const FailedSearch& error) {
    EXPECT_EQ(error.asked.evaluations, 24);
    EXPECT_EQ(error.asked.failures, 24);
  }
}

TEST_F(LearnerTest, CountsWhatConfirmsItsBestWhereScoresAreNoisy) {
  const Problem problem = FastSecond(5);
  const auto noisy = testing::EvaluatorNamed(
      "noisy(share=0.2,of=parallel(io=everywhere))",
      [](EvaluatorCatalog& catalog) {
        RegisterParallel(catalog);
        RegisterWrappers(catalog);
      },
      problem);
  testing::OpenLearner learner(SmallPlaceto(), {*noisy}, Random(1), 6);
  for (int i = 0; i < 6; ++i) {
    const CurvePoint point = *learner.Update(1'000'000, 1);
    EXPECT_EQ(point.evaluations, learner.search(0).evaluations());
  }
  EXPECT_GT(learner.search(0).evaluations(), 6 * learner.evaluations_per_update());
  learner.Greedy(0, 1);
  EXPECT_EQ(learner.evaluations(), learner.search(0).evaluations());
}

// Of views and shapes alone.
TEST_F(LearnerTest, LearnsNothingFromAGraphThatTakesNoTime) {
  const Problem problem = FastSecond(3), other = FastSecond(4);
  const testing::FakeEvaluator nothing(problem, [](const PlanView&) { return Score{.time = 0}; });
  const auto evaluator = Parallel(other);
  for (const Method& method : {SmallPlaceto(), SmallHsdag("imagined=2"), testing::MethodNamed("gdp(hidden=8)")}) {
    SCOPED_TRACE(method.name);
    testing::OpenLearner learner(method, {nothing, *evaluator}, Random(1), 4);
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(learner.Update(1'000'000, 1)->diverged);
    EXPECT_GT(learner.GreedyCost(1), 0);
    EXPECT_EQ(testing::OpenLearner(method, {nothing}, Random(1), 4).GreedyCost(1), 0);
  }
}

TEST_F(LearnerTest, LearnsWhereOneDeviceTakesNoTimeAndTwoTakeSome) {
  const Problem problem = FastSecond(3), other = FastSecond(4);
  const testing::FakeEvaluator views(problem, [](const PlanView& plan) {
    return Score{.time = std::ranges::equal(plan.device.subspan(1), plan.device.first(2)) ? 0.0 : 1.0};
  });
  const auto evaluator = Parallel(other);
  for (const Method& method :
       {SmallPlaceto(), testing::MethodNamed("tabular(rows=type)"), testing::MethodNamed("hsdag(mode=paper)")}) {
    SCOPED_TRACE(method.name);
    testing::OpenLearner learner(method, {views, *evaluator}, Random(1), 8);
    for (int i = 0; i < 8; ++i) EXPECT_FALSE(learner.Update(1'000'000, 1)->diverged);
    EXPECT_GT(learner.GreedyCost(1), 0);
    EXPECT_TRUE(std::isfinite(learner.GreedyCost(1)));
  }
}

TEST_F(LearnerTest, GoesOnFromACheckpointWithHowItsBestFailsToFit) {
  const Problem problem = FastSecond(3);
  const testing::FakeEvaluator evaluator(
      problem, [](const PlanView&) { return Score{.time = 2, .outcome = Outcome::kImpossible, .excess_bytes = 7}; });
  testing::OpenLearner before(SmallPlaceto(), {evaluator}, Random(1), 4),
      after(SmallPlaceto(), {evaluator}, Random(1), 4);
  before.Update(1'000'000, 1);
  before.Save(Path("half"));
  after.Load(Path("half"), false);
  const PlanResult was = before.search(0).Found(), is = after.search(0).Found();
  EXPECT_EQ(is.score.outcome, Outcome::kImpossible);
  EXPECT_EQ(is.score.excess_bytes, 7);
  EXPECT_EQ(is.evaluations, was.evaluations);
  EXPECT_EQ(is.best_after, was.best_after);
}

TEST_F(LearnerTest, AnswersWithASingleDeviceWhereAllThatItDrawsFails) {
  const Problem problem = FastSecond(3);
  int64_t asked = 0;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView&) -> Score {
    if (++asked > 2) throw Error("no device answers");
    return {.time = 7};
  });
  Method method = SmallPlaceto();
  method.seeded = true;
  const PlanResult result = MakeLearnedPlanner(method)->MakePlan(
      {.evaluator = evaluator, .budget = {.evaluations = 1000}, .random = Random(1)});
  EXPECT_EQ(result.score.time, 7);
  EXPECT_THAT(result.note, HasSubstr("training ended: placeto(test): none of 24 placements could be scored"));
  EXPECT_GE(result.evaluations, 26);
}

TEST_F(LearnerTest, ScoresThePolicysAnswerBeforeTheClockEnds) {
  const Problem problem = FastSecond(3);
  const auto evaluator = Parallel(problem);
  const PlanResult result = MakeLearnedPlanner(SmallPlaceto())
                                ->MakePlan({.evaluator = *evaluator, .budget = {.seconds = 2}, .random = Random(1)});
  ASSERT_TRUE(result.learned.has_value());
  EXPECT_TRUE(result.learned->likeliest.has_value()) << result.note;
  EXPECT_EQ(HowItEnded({.seconds = 2}, result), SearchEnd::kClock);
}

TEST_F(LearnerTest, SaysItsAnswerInTheUnitOfTheObjective) {
  const Problem problem = FastSecond(3);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView&) { return Score{.time = 2, .objective = 3.5}; },
                                         {.name = "energy", .unit = Objective::Unit::kJoules});
  const PlanResult result =
      MakeLearnedPlanner(SmallPlaceto())
          ->MakePlan({.evaluator = evaluator, .budget = {.evaluations = 100}, .random = Random(1)});
  EXPECT_THAT(result.note, HasSubstr("the policy's likeliest placement has 3.50 J"));
  EXPECT_EQ(result.learned->likeliest, 3.5);
}

TEST_F(LearnerTest, GoesOnAfterAFirstPlacementThatFails) {
  const Problem problem = FastSecond(3);
  const auto simulator = Parallel(problem);
  int64_t asked = 0;
  const testing::FakeEvaluator evaluator(problem, [&](const PlanView& plan) -> Score {
    if (asked++ == 0) throw Error("the device is busy");
    return simulator->ScorePlan(plan, *simulator->NewWorkspace());
  });
  testing::OpenLearner learner(testing::MethodNamed("rnn(mode=hsdag,colocation=none)"), {evaluator}, Random(1), 4);
  ASSERT_EQ(learner.evaluations_per_update(), 1);
  const auto failed = learner.Update(1'000'000, 1);
  EXPECT_TRUE(std::isnan(failed->mean_cost)) << "nothing was scored";
  EXPECT_GT(failed->entropy, kCollapsedEntropy) << "nothing was learned from it";
  EXPECT_GT(learner.Update(1'000'000, 1)->mean_cost, 0);
}

// A clock that ends in the first update, where nothing has a score, ends in an error and not in a plan.
TEST_F(LearnerTest, SaysWhenTheTimeWasOverBeforeAnythingHadAScore) {
  const Problem problem = FastSecond(3);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView&) -> Score { throw Error("no device answers"); });
  EXPECT_THAT(ErrorOf([&] {
                MakeLearnedPlanner(SmallPlaceto())
                    ->MakePlan({.evaluator = evaluator, .budget = {.seconds = 1e-9}, .random = Random(1)});
              }),
              HasSubstr("placements could be scored: "));
}

// Beyond the planned updates all schedules stay where they end.
TEST_F(LearnerTest, GoesOnBeyondItsPlannedUpdatesAsAtTheirEnd) {
  const Problem problem = FastSecond(5);
  const auto evaluator = Parallel(problem);
  testing::OpenLearner few(SmallHsdag("imagined=0"), {*evaluator}, Random(1), 1),
      fewer(SmallHsdag("imagined=0,hold=0.02"), {*evaluator}, Random(1), 1);
  for (int i = 0; i < 4; ++i) {
    const CurvePoint a = *few.Update(1'000'000, 1), b = *fewer.Update(1'000'000, 1);
    EXPECT_NE(a.loss, b.loss) << "what is held weighs a thousandth still, in update " << i + 1;
  }
}

TEST_F(LearnerTest, HasNoAnswerWhereThatHasNoScore) {
  const Problem problem = FastSecond(3);
  const testing::FakeEvaluator evaluator(problem, [](const PlanView&) -> Score { throw Error("no device answers"); });
  testing::OpenLearner learner(SmallPlaceto(), {evaluator}, Random(1), 4);
  const Learner::Answer answer = learner.Greedy(0, 1);
  EXPECT_EQ(answer.cost, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(answer.result.plan.device.empty());
  EXPECT_EQ(answer.result.failure, "no device answers");
}

TEST_F(LearnerTest, StopsBeforeAStepThatIsNotFinite) {
  Random random(6);
  const Problem problem = testing::RandomProblem(random, {.ops = 6, .devices = 3, .forbidden = 0.5});
  const auto evaluator = Parallel(problem);
  Method method = SmallPlaceto();
  method.learner.learning_rate = {.first = 1e30, .last = 1e30};
  testing::OpenLearner learner(method, {*evaluator}, Random(1), 4);
  EXPECT_FALSE(learner.Update(1'000'000, 1)->diverged);
  const CurvePoint point = *learner.Update(1'000'000, 1);
  EXPECT_TRUE(point.diverged);
  EXPECT_EQ(point.update, 2);
  EXPECT_EQ(FindViolation(problem, learner.search(0).best().view()), std::nullopt);
}

TEST_F(LearnerTest, SaysWhatIsWrongWithACheckpoint) {
  const Problem problem = FastSecond(3), wide = FastSecond(3, 3);
  const auto evaluator = Parallel(problem), on_wide = Parallel(wide);
  testing::OpenLearner learner(SmallPlaceto(), {*evaluator}, Random(1), 4);
  learner.Update(1'000'000, 1);
  learner.Save(Path("good"));

  WriteFile(Path("text"), "this is no checkpoint");
  const std::string bytes = ReadFile(Path("good"));
  WriteFile(Path("half"), bytes.substr(0, bytes.size() / 2));
  for (const char* const name : {"text", "half"}) {
    EXPECT_THAT(ErrorOf([&] { learner.Load(Path(name), false); }),
                AllOf(StartsWith(Path(name) + ": this is no checkpoint that Berth has written, or it is damaged ("),
                      EndsWith("); name another, or train anew")));
  }
  std::string broken = bytes;
  for (size_t i = bytes.size() / 3; i < bytes.size() / 3 + 64; ++i) broken[i] = static_cast<char>(~broken[i]);
  WriteFile(Path("broken"), broken);
  EXPECT_THAT(ErrorOf([&] { learner.Load(Path("broken"), false); }), HasSubstr("or it is damaged"));
  EXPECT_THAT(ErrorOf([&] { learner.Load(Path("none"), false); }), HasSubstr(Path("none")));

  testing::OpenLearner other(SmallPlaceto(), {*on_wide}, Random(1), 4);
  EXPECT_THAT(
      ErrorOf([&] { other.Load(Path("good"), true); }),
      HasSubstr("it has 'placeto with 7 columns, 2 devices', this one 'placeto with 8 columns, 3 devices'; give"));
  Method renamed = SmallPlaceto();
  renamed.name = "placeto(other)";
  testing::OpenLearner stranger(renamed, {*evaluator}, Random(1), 4);
  EXPECT_THAT(ErrorOf([&] { stranger.Load(Path("good"), false); }), HasSubstr("placeto(other)"));
  stranger.Save(Path("before"));
  EXPECT_THAT(ErrorOf([&] { stranger.Load(Path("good"), false); }), HasSubstr("resume with these"));
  stranger.Save(Path("after"));
  EXPECT_TRUE(ReadFile(Path("before")) == ReadFile(Path("after"))) << "what is refused changes nothing";
  stranger.Load(Path("good"), true);  // the policy alone is welcome
}

// Checkpoints come from strangers, too: with a hash that holds and content that does not.
TEST_F(LearnerTest, RefusesACheckpointWhoseContentIsFalse) {
  const Problem problem = FastSecond(3);
  const auto evaluator = Parallel(problem);
  Method method = SmallPlaceto();
  testing::OpenLearner learner(method, {*evaluator}, Random(1), 4);
  learner.Update(1'000'000, 1);
  learner.Save(Path("good"));
  const Checkpoint good = Checkpoint::Parse(ReadFile(Path("good")), "good");
  const auto error = [&](const std::function<void(Checkpoint&)>& change) {
    Checkpoint changed = good;
    change(changed);
    WriteFile(Path("changed"), changed.ToBytes());
    return ErrorOf([&] { learner.Load(Path("changed"), false); });
  };
  EXPECT_EQ(error([](Checkpoint&) {}), "no error");
  // Every number, text and list of it, replaced by what it is not, and left out.
  int refused = 0;
  const nlohmann::json flat = good.meta.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    const nlohmann::json::json_pointer at(pointer);
    EXPECT_THAT(error([&](Checkpoint& c) { c.meta[at] = nlohmann::json::object(); }),
                StartsWith(Path("changed") + ": "))
        << pointer;
    EXPECT_THAT(error([&](Checkpoint& c) { c.meta[at] = -1.5; }), AnyOf("no error", StartsWith(Path("changed") + ": ")))
        << pointer;
    if (good.meta[at.parent_pointer()].is_array()) continue;
    refused += error([&](Checkpoint& c) { c.meta[at.parent_pointer()].erase(at.back()); }) != "no error";
  }
  EXPECT_GT(refused, 5);
  EXPECT_THAT(error([](Checkpoint& c) { c.meta = nlohmann::json::array(); }), HasSubstr("expected an object"));
  EXPECT_THAT(error([](Checkpoint& c) { c.meta["found"][0]["device"] = {0, 1, 2}; }),
              HasSubstr("none of the 2 devices"));
  EXPECT_THAT(error([](Checkpoint& c) { c.meta["found"][0]["device"] = {0, 1}; }), HasSubstr("found[0].device"));
  EXPECT_THAT(error([](Checkpoint& c) { c.meta["found"].clear(); }), HasSubstr("found: expected 1 entries"));
  EXPECT_THAT(error([](Checkpoint& c) { c.meta["rule"] = "{\"moving\": [[1]], \"window\": []}"; }),
              HasSubstr("rule.moving: is no baseline"));
  EXPECT_THAT(error([](Checkpoint& c) { c.meta["rule"] = "{\"moving\": [], \"window\": [[0, [[\"x\"]]]]}"; }),
              HasSubstr("rule.window: is no baseline"));
  // Tensors of another size, of another type, and too few of them.
  EXPECT_THAT(error([](Checkpoint& c) { c.tensors[0].second = torch::zeros({7, 7, 7}); }), HasSubstr("does not fit"));
  EXPECT_THAT(error([](Checkpoint& c) { c.tensors[0].second = c.tensors[0].second.to(torch::kInt64); }),
              HasSubstr("does not fit"));
  EXPECT_THAT(error([](Checkpoint& c) { c.tensors.pop_back(); }), HasSubstr("tensors"));
}

// By the number of an evaluation: single devices are fastest, then the policy's answer; what it draws gets better for a
// while.
TEST_F(LearnerTest, TellsWhatWasDrawnFromWhatItBeganWithAndFromItsAnswer) {
  const Problem problem = FastSecond(6);
  constexpr int kBudget = 81;
  for (const bool seeded : {true, false}) {
    int calls = 0;
    const testing::FakeEvaluator evaluator(problem, [&](const PlanView&) {
      const int call = ++calls;
      Score score;
      score.time = seeded && call <= 2 ? 1 : call == kBudget ? 5 : call <= 40 ? 100 - call : 100;
      return score;
    });
    Method method = testing::MethodNamed("tabular");
    method.seeded = seeded;
    const PlanResult result = MakeLearnedPlanner(method)->MakePlan(
        {.evaluator = evaluator, .budget = {.evaluations = kBudget}, .random = Random(1)});
    EXPECT_EQ(result.score.time, seeded ? 1 : 5);
    ASSERT_TRUE(result.learned.has_value());
    const Learned& learned = *result.learned;
    EXPECT_EQ(learned.starts, seeded ? std::optional(1.0) : std::nullopt);
    EXPECT_EQ(learned.likeliest, 5);
    ASSERT_GT(learned.updates.size(), 1);
    const Learned::Update &first = learned.updates.front(), &last = learned.updates.back();
    EXPECT_EQ(first.drawn, 100 - static_cast<double>(first.evaluations));
    EXPECT_GT(first.mean, first.drawn);
    EXPECT_EQ(last.drawn, 60);
    EXPECT_EQ(last.mean, 100);
    EXPECT_EQ(last.evaluations, kBudget - 1);
  }
}

TEST_F(LearnerTest, TellsWhatEpisodesBeganWith) {
  const Problem problem = FastSecond(6);
  const auto evaluator = Parallel(problem);
  testing::OpenLearner learner(SmallPlaceto({.start = PlacetoOptions::Start::kFirst, .rounds = 2}), {*evaluator},
                               Random(1), 2);
  EXPECT_EQ(learner.Update(1'000'000, 1)->start_cost, 12) << "all on the slow device";
  testing::OpenLearner without(SmallHsdag(""), {*evaluator}, Random(1), 2);
  EXPECT_EQ(without.Update(1'000'000, 1)->start_cost, std::numeric_limits<double>::infinity());
}

// With a rate of 0 no gradient is needed: what is drawn is what a rate draws that changes nothing. (But for what learns
// beside the policy: gdp's model of costs.)
TEST_F(LearnerTest, AnUntrainedTwinDrawsWhatARateOfNextToNothingDraws) {
  const Problem problem = FastSecond(8);
  const auto evaluator = Parallel(problem);
  for (const char* const name :
       {"hsdag(hidden=8,imagined=3,{})", "hsdag(mode=paper,hidden=8,{})", "placeto(rounds=2,{})", "rnn(hidden=8,{})",
        "tabular({})", "gdp(hidden=8,heads=1,inner=16,layers=1,restart_every=3,near=0,{})"}) {
    const auto curve = [&](const char* rate) {
      testing::OpenLearner learner(testing::MethodNamed(fmt::format(fmt::runtime(name), rate)), {*evaluator}, Random(1),
                                   6);
      std::vector<std::pair<double, double>> points;
      for (int i = 0; i < 6; ++i) {
        const CurvePoint point = *learner.Update(1'000'000, 1);
        points.emplace_back(point.mean_cost, point.best_cost);
        EXPECT_GT(point.entropy, 0) << name;
      }
      points.emplace_back(learner.Greedy(0, 1).cost, 0);
      return points;
    };
    EXPECT_EQ(curve("learning_rate=0"), curve("learning_rate=1e-30")) << name;
  }
}

TEST_F(LearnerTest, SaysWhenThePolicyHasCollapsed) {
  const Problem problem = FastSecond(5);
  const auto evaluator = Parallel(problem);
  const auto note = [&](double learning_rate) {
    Method method = SmallPlaceto();
    method.learner.learning_rate = {.first = learning_rate, .last = learning_rate};
    return MakeLearnedPlanner(method)
        ->MakePlan({.evaluator = *evaluator, .budget = {.evaluations = 800}, .random = Random(1)})
        .note;
  };
  EXPECT_THAT(note(1.0), AllOf(HasSubstr("the policy collapsed in update "), HasSubstr("a smaller learning_rate")));
  EXPECT_THAT(note(1e-4), Not(HasSubstr("collapsed")));
}

}  // namespace
}  // namespace berth
