// Which of the plans that `tune` has compiled and run several times it answers with, and which of them it runs again.
#include "cli/finals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "base/random.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using Placement = std::vector<DeviceId>;

const Placement kAlone = {DeviceId(0), DeviceId(0)}, kOther = {DeviceId(1), DeviceId(1)},
                kSplit = {DeviceId(0), DeviceId(1)}, kTurned = {DeviceId(1), DeviceId(0)};

// Milliseconds of a compilation; below zero: it failed.
PlanRun RunOf(const Placement& device, double time) {
  PlanRun run{.device = device};
  if (time < 0) {
    run.measured.error = "out of memory";
  } else {
    run.measured.seconds = {time / 1e3};
  }
  return run;
}

Finalist Of(const Placement& device, const std::vector<double>& times) {
  Finalist finalist;
  for (const double time : times) finalist.runs.push_back(RunOf(device, time));
  return finalist;
}

Placement AnswerOf(std::vector<Finalist> finalists) {
  return Finals{.finalists = std::move(finalists)}.winner().device();
}

// A machine on which plans take so long, turn by turn; after the last of these it is stopped.
struct Played {
  Finals finals;
  std::map<Placement, size_t> turns;
};
Played Play(const std::vector<std::pair<Placement, std::vector<double>>>& plans) {
  Played played;
  std::map<Placement, std::vector<double>> times(plans.begin(), plans.end());
  Placements order;
  for (const auto& [plan, _] : plans) order.push_back(plan);
  played.finals = RunFinals(order, [&](const Placements& of_turn) {
    std::vector<PlanRun> ran;
    for (const Placement& plan : of_turn) {
      const size_t turn = played.turns[plan];
      if (turn == times[plan].size()) break;
      ran.push_back(RunOf(plan, times[plan][turn]));
      ++played.turns[plan];
    }
    return ran;
  });
  return played;
}

std::vector<size_t> TimesOf(const Finals& finals) {
  std::vector<size_t> times;
  for (const Finalist& each : finals.finalists) times.push_back(each.runs.size());
  return times;
}

// At the file's speed the split is faster, since the core that it also uses was slow; as measured it is not.
TEST(Finals, ASplitThatIsFasterAtOneSpeedOnlyHasNotWon) {
  Finalist split = Of(kSplit, {12, 12, 12});
  for (PlanRun& run : split.runs) run.measured.slowdown = {1.5};
  const Finalist alone = Of(kAlone, {10, 10, 10});
  EXPECT_LT(split.seconds(), alone.seconds());
  EXPECT_EQ(CountWins(split, alone).won, 0u);
  EXPECT_EQ(AnswerOf({alone, split}), kAlone);
  for (PlanRun& run : split.runs) run.measured.seconds = {9e-3};
  EXPECT_EQ(AnswerOf({alone, split}), kSplit);
}

TEST(SpeedChange, IsOfTheRunsThatDidNotFail) {
  SpeedChange change;
  EXPECT_EQ(change.factor(), 1);
  for (const double speed : {1.2, 0.8, 1.0}) {
    PlanRun run = RunOf(kAlone, 1);
    run.machine_speed = speed;
    change.Add(run);
  }
  PlanRun failed = RunOf(kSplit, -1);
  failed.machine_speed = 9;
  change.Add(failed);
  EXPECT_DOUBLE_EQ(change.factor(), 1.5);
}

TEST(Finalist, SaysItsFastestMedianAndSlowestCompilation) {
  const Finalist three = Of(kSplit, {7, 9, 6});
  EXPECT_DOUBLE_EQ(three.fastest(), 6e-3);
  EXPECT_DOUBLE_EQ(three.seconds(), 7e-3);
  EXPECT_DOUBLE_EQ(three.slowest(), 9e-3);
  EXPECT_DOUBLE_EQ(Of(kSplit, {7, 9, 6, 8, 10, 5}).seconds(), 7.5e-3);
}

TEST(AnswerOfTune, IsTheFastestSplitThatBeatTheDeviceAloneEveryTime) {
  EXPECT_EQ(AnswerOf({Of(kAlone, {11, 9, 10}), Of(kSplit, {6, 8.9, 7}), Of(kTurned, {7, 7.5, 8})}), kSplit);
}

TEST(AnswerOfTune, IsTheDeviceAloneWhereASplitWasAsSlowOnceOfThreeTimes) {
  EXPECT_EQ(AnswerOf({Of(kSplit, {6, 7, 9}), Of(kAlone, {9, 10, 11})}), kAlone);
  EXPECT_EQ(AnswerOf({Of(kSplit, {12, 6, 7}), Of(kAlone, {9, 10, 11})}), kAlone);
}

TEST(AnswerOfTune, IsTheSteadySplitWhereAFasterOneWasAsSlowAsTheDeviceOnce) {
  EXPECT_EQ(AnswerOf({Of(kAlone, {9, 10, 11}), Of(kSplit, {6, 7, 9.5}), Of(kTurned, {7, 7.5, 8})}), kTurned);
}

TEST(AnswerOfTune, IsTheSplitThatWasDisturbedOnceOfSixTimesOrTwiceOfNine) {
  const std::vector<double> alone = {30, 31, 30, 30, 31, 30, 30, 30, 30};
  const Finalist six = Of(kAlone, {alone.begin(), alone.begin() + 6}), nine = Of(kAlone, alone);
  EXPECT_EQ(AnswerOf({six, Of(kSplit, {17, 32, 17, 16, 17, 17})}), kSplit);
  EXPECT_EQ(AnswerOf({six, Of(kSplit, {17, 32, 17, 16, 33, 17})}), kAlone);
  EXPECT_EQ(AnswerOf({nine, Of(kSplit, {17, 32, 17, 16, 33, 17, 17, 17, 16})}), kSplit);
  EXPECT_EQ(AnswerOf({nine, Of(kSplit, {17, 32, 17, 16, 33, 17, 32, 17, 16})}), kAlone);
}

TEST(AnswerOfTune, ComparesASplitThatHadFewerTurnsWithTheDeviceInThese) {
  EXPECT_EQ(AnswerOf({Of(kAlone, {9, 10, 9, 20, 20, 20}), Of(kSplit, {8, 9.5, 8})}), kAlone);
  EXPECT_EQ(AnswerOf({Of(kAlone, {9, 10, 9, 7, 7, 7}), Of(kSplit, {8, 8.5, 8})}), kSplit);
}

TEST(AnswerOfTune, IsTheDeviceThatWasFasterInTheFirstTurnsOfTwo) {
  EXPECT_EQ(AnswerOf({Of(kAlone, {9, 10, 11}), Of(kOther, {8, 9, 10}), Of(kSplit, {8, 8.5, 8.8})}), kOther);
  // What it took later does not change with which of the two a split is compared.
  EXPECT_EQ(AnswerOf({Of(kAlone, {9, 10, 11}), Of(kOther, {8, 9, 10, 20, 20, 20}), Of(kSplit, {8, 8.5, 8.8})}), kOther);
}

TEST(AnswerOfTune, IsTheFastestSplitWhereNoDeviceRanAlone) {
  EXPECT_EQ(AnswerOf({Of(kTurned, {8}), Of(kSplit, {7})}), kSplit);
}

TEST(Finals, EndAfterThreeTurnsWhereASplitWinsOrNoneHasASmallerMedian) {
  const Played won = Play({{kAlone, {30, 30, 30}}, {kSplit, {17, 17, 17}}, {kTurned, {16, 40, 16}}});
  EXPECT_EQ(won.finals.turns, 3u);
  EXPECT_EQ(won.finals.winner().device(), kSplit);
  const Played lost = Play({{kAlone, {30, 30, 30}}, {kSplit, {31, 17, 30}}});
  EXPECT_EQ(lost.finals.turns, 3u);
  EXPECT_EQ(lost.finals.winner().device(), kAlone);
}

TEST(Finals, CompileTheUndecidedMoreOften) {
  const Played played = Play({{kAlone, {30, 30, 30, 30, 30, 30}},
                              {kOther, {31, 31, 31}},
                              {kSplit, {17, 31, 17, 17, 17, 17}},
                              {kTurned, {32, 32, 32}}});
  EXPECT_EQ(played.finals.turns, 6u);
  EXPECT_THAT(TimesOf(played.finals), ElementsAre(6u, 3u, 6u, 3u));
  EXPECT_EQ(played.finals.winner().device(), kSplit);
  const Wins wins = CountWins(played.finals.winner(), *played.finals.device_alone());
  EXPECT_EQ(wins.pairs, 36u);
  EXPECT_EQ(wins.won, 30u);
  EXPECT_EQ(wins.needed, 30u);
}

TEST(Finals, EndAfterNineTurnsWithTheDeviceWhereNothingDecides) {
  const std::vector<double> alone(20, 30), split = {17, 31, 17, 17, 31, 17, 31, 17, 17, 17, 17, 17};
  const Played played = Play({{kAlone, alone}, {kSplit, split}});
  EXPECT_EQ(played.finals.turns, 9u);
  EXPECT_EQ(played.finals.winner().device(), kAlone);
}

TEST(Finals, TakeATieForNoWin) {
  const Played played = Play({{kAlone, {30, 30, 30}}, {kSplit, {30, 30, 30}}});
  EXPECT_EQ(played.finals.turns, 3u);
  EXPECT_EQ(played.finals.winner().device(), kAlone);
}

TEST(Finals, LeaveOutWhatFailsInTheFirstTurns) {
  const Played played = Play({{kAlone, {30, 30, 30}}, {kSplit, {17, -1, 17}}, {kTurned, {18, 18, 18}}});
  EXPECT_THAT(TimesOf(played.finals), ElementsAre(3u, 3u));
  EXPECT_EQ(played.finals.failed, 1u);
  EXPECT_EQ(played.finals.failure, "out of memory");
  EXPECT_EQ(played.finals.winner().device(), kTurned);
}

TEST(Finals, KeepTheTurnsBeforeAFailure) {
  // Of a split: it is not decided, so the device is the answer.
  const Played split = Play({{kAlone, {30, 30, 30, 30, 30, 30}}, {kSplit, {17, 31, 17, 17, -1, 17}}});
  EXPECT_THAT(TimesOf(split.finals), ElementsAre(6u, 3u));
  EXPECT_EQ(split.finals.failed, 1u);
  EXPECT_EQ(split.finals.winner().device(), kAlone);
  // Of the device: it is still what the split did not beat often enough in the turns that both had.
  const Played alone = Play({{kAlone, {30, 30, 30, 30, -1, 30}}, {kSplit, {17, 31, 17, 17, 17, 17}}});
  EXPECT_THAT(TimesOf(alone.finals), ElementsAre(3u, 6u));
  EXPECT_EQ(alone.finals.winner().device(), kAlone);
  EXPECT_EQ(alone.finals.turns, 6u);
}

TEST(Finals, AreEmptyWhereAllFailOrTheFirstTurnsAreStopped) {
  const Played failed = Play({{kAlone, {-1, 30, 30}}, {kSplit, {17, -1, 17}}});
  EXPECT_TRUE(failed.finals.finalists.empty());
  EXPECT_EQ(failed.finals.failed, 2u);
  const Played stopped = Play({{kAlone, {30, 30, 30}}, {kSplit, {17, 17}}});
  EXPECT_TRUE(stopped.finals.finalists.empty());
  EXPECT_EQ(stopped.finals.turns, 0u);
  EXPECT_EQ(stopped.finals.failed, 0u);
}

TEST(Finals, KeepThreeTurnsWhereTheNextAreStopped) {
  const Played played = Play({{kAlone, {30, 30, 30, 30, 30}}, {kSplit, {17, 31, 17, 17}}});
  EXPECT_EQ(played.finals.turns, 3u);
  EXPECT_THAT(TimesOf(played.finals), ElementsAre(3u, 3u));
  EXPECT_EQ(played.finals.winner().device(), kAlone);
}

// How often one of so many splits wins that are just as fast as the device.
double WonByChance(const std::vector<Placement>& splits) {
  Random random(1);
  constexpr int kCases = 20000;
  int won = 0;
  Placements plans = {kAlone};
  plans.insert(plans.end(), splits.begin(), splits.end());
  for (int i = 0; i < kCases; ++i) {
    const Finals finals = RunFinals(plans, [&](const Placements& of_turn) {
      std::vector<PlanRun> ran;
      for (const Placement& plan : of_turn) ran.push_back(RunOf(plan, 1 + random.Uniform()));
      return ran;
    });
    won += !finals.winner().is_device_alone();
  }
  return static_cast<double>(won) / kCases;
}

TEST(Finals, LetEqualSplitsWinByChanceAsOftenAsTheHeaderSays) {
  EXPECT_NEAR(WonByChance({kSplit}), 1.0 / 13, 0.008);
  EXPECT_NEAR(WonByChance({{DeviceId(0), DeviceId(1), DeviceId(0)},
                           {DeviceId(0), DeviceId(0), DeviceId(1)},
                           {DeviceId(1), DeviceId(0), DeviceId(0)}}),
              2.0 / 11, 0.012);
}

}  // namespace
}  // namespace berth
