// Which of the plans that `tune` has compiled and run several times it answers with.
#include "cli/tuning.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth {
namespace {

const std::vector<DeviceId> kAlone = {DeviceId(0), DeviceId(0)}, kOther = {DeviceId(1), DeviceId(1)},
                            kSplit = {DeviceId(0), DeviceId(1)}, kTurned = {DeviceId(1), DeviceId(0)};

// In milliseconds.
Finalist Of(const std::vector<DeviceId>& device, double fastest, double median, double slowest) {
  return {.run = {.device = device, .measured = {.seconds = {median / 1e3}}},
          .fastest = fastest / 1e3,
          .slowest = slowest / 1e3};
}

std::vector<DeviceId> AnswerOf(std::vector<Finalist> finalists) {
  Tuning tuning;
  tuning.finalists = std::move(finalists);
  return tuning.winner().run.device;
}

TEST(AnswerOfTune, IsTheFastestSplitThatBeatTheDeviceAloneEveryTime) {
  EXPECT_EQ(AnswerOf({Of(kAlone, 9, 10, 11), Of(kSplit, 6, 7, 8.9), Of(kTurned, 7, 7.5, 8)}), kSplit);
}

TEST(AnswerOfTune, IsTheDeviceAloneWhereASplitWasAsSlowOnce) {
  EXPECT_EQ(AnswerOf({Of(kSplit, 6, 7, 9), Of(kAlone, 9, 10, 11)}), kAlone);
  EXPECT_EQ(AnswerOf({Of(kSplit, 6, 7, 12), Of(kAlone, 9, 10, 11)}), kAlone);
}

TEST(AnswerOfTune, IsTheSteadySplitWhereAFasterOneWasAsSlowAsTheDeviceOnce) {
  EXPECT_EQ(AnswerOf({Of(kAlone, 9, 10, 11), Of(kSplit, 6, 7, 9.5), Of(kTurned, 7, 7.5, 8)}), kTurned);
}

TEST(AnswerOfTune, IsTheFasterOfTwoDevicesAlone) {
  EXPECT_EQ(AnswerOf({Of(kAlone, 9, 10, 11), Of(kOther, 8, 9, 10), Of(kSplit, 8, 8.5, 8.8)}), kOther);
}

TEST(AnswerOfTune, IsTheFastestSplitWhereNoDeviceRanAlone) {
  EXPECT_EQ(AnswerOf({Of(kTurned, 8, 8, 8), Of(kSplit, 7, 7, 7)}), kSplit);
}

}  // namespace
}  // namespace berth
