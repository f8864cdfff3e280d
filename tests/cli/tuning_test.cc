// Which of the plans that `tune` has compiled and run several times it answers with.
#include "cli/tuning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace berth {
namespace {

const std::vector<DeviceId> kAlone = {DeviceId(0), DeviceId(0)}, kOther = {DeviceId(1), DeviceId(1)},
                            kSplit = {DeviceId(0), DeviceId(1)}, kTurned = {DeviceId(1), DeviceId(0)};

// What each compilation took, in milliseconds.
Finalist Of(const std::vector<DeviceId>& device, const std::vector<double>& times) {
  Finalist finalist;
  for (const double time : times) finalist.runs.push_back({.device = device, .measured = {.seconds = {time / 1e3}}});
  return finalist;
}

std::vector<DeviceId> AnswerOf(std::vector<Finalist> finalists) {
  Tuning tuning;
  tuning.finalists = std::move(finalists);
  return tuning.winner().device();
}

TEST(Finalist, SaysItsFastestMedianAndSlowestCompilation) {
  const Finalist finalist = Of(kSplit, {7, 9, 6});
  EXPECT_DOUBLE_EQ(finalist.fastest(), 6e-3);
  EXPECT_DOUBLE_EQ(finalist.median().seconds(), 7e-3);
  EXPECT_DOUBLE_EQ(finalist.slowest(), 9e-3);
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
  // The device was slower in the turns that this split did not have.
  EXPECT_EQ(AnswerOf({Of(kAlone, {9, 10, 9, 20, 20, 20}), Of(kSplit, {8, 9.5, 8})}), kAlone);
  EXPECT_EQ(AnswerOf({Of(kAlone, {9, 10, 9, 7, 7, 7}), Of(kSplit, {8, 8.5, 8})}), kSplit);
}

TEST(AnswerOfTune, IsTheFasterOfTwoDevicesAlone) {
  EXPECT_EQ(AnswerOf({Of(kAlone, {9, 10, 11}), Of(kOther, {8, 9, 10}), Of(kSplit, {8, 8.5, 8.8})}), kOther);
}

TEST(AnswerOfTune, IsTheFastestSplitWhereNoDeviceRanAlone) {
  EXPECT_EQ(AnswerOf({Of(kTurned, {8}), Of(kSplit, {7})}), kSplit);
}

TEST(AnswerOfTune, WinsAsOftenByChanceAsTheHeaderSays) {
  // Of a split that is just as fast, as turns go: three, then three more where its median is below the device's.
  Random random(1);
  constexpr int kCases = 20000;
  int won = 0;
  for (int i = 0; i < kCases; ++i) {
    std::vector<double> split, alone;
    while (split.size() < kMostTurns) {
      for (size_t turn = 0; turn < kFirstTurns; ++turn) {
        split.push_back(random.Uniform());
        alone.push_back(random.Uniform());
      }
      const Finalist s = Of(kSplit, split), a = Of(kAlone, alone);
      if (CountWins(s, a).enough()) {
        ++won;
        break;
      }
      if (s.median().seconds() >= a.median().seconds()) break;
    }
  }
  EXPECT_NEAR(static_cast<double>(won) / kCases, 1.0 / 13, 0.008);
}

}  // namespace
}  // namespace berth
