#include "learn/schedule.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Schedule, GoesFromTheFirstValueToTheLast) {
  const Schedule line{.first = 2, .last = 1};
  EXPECT_EQ(line.At(0), 2);
  EXPECT_EQ(line.At(0.5), 1.5);
  EXPECT_EQ(line.At(1), 1);
  EXPECT_EQ(line.At(-1), 2);
  EXPECT_EQ(line.At(7), 1);
  const Schedule geometric{.shape = Schedule::Shape::kGeometric, .first = 4, .last = 1};
  EXPECT_DOUBLE_EQ(geometric.At(0.5), 2);
  const Schedule to_nothing{.shape = Schedule::Shape::kGeometric, .first = 4, .last = 0};
  EXPECT_EQ(to_nothing.At(0.5), 2) << "by a line, since no factor leads to 0";
}

TEST(Rounds, ShareThePlannedUpdatesAndTheLastHasTheRest) {
  const Rounds rounds{.every = 45, .planned = 100};
  EXPECT_EQ(rounds.count(), 2);
  EXPECT_EQ(rounds.Of(44), 0);
  EXPECT_EQ(rounds.Of(45), 1);
  EXPECT_EQ(rounds.Of(90), 1);
  EXPECT_EQ(rounds.Of(1000), 1);
  for (int64_t update = 0; update < 200; ++update) EXPECT_EQ(rounds.Begins(update), update == 45) << update;
  EXPECT_DOUBLE_EQ(rounds.Share(0, 9), 0.2);
  EXPECT_DOUBLE_EQ(rounds.Share(1, 56), 0.2);
  EXPECT_DOUBLE_EQ(rounds.Share(1, 100), 1);
  for (const Rounds& one : {Rounds{.every = 0, .planned = 100}, Rounds{.every = 60, .planned = 100}}) {
    EXPECT_EQ(one.count(), 1);
    EXPECT_EQ(one.Of(70), 0);
    EXPECT_FALSE(one.Begins(60));
    EXPECT_DOUBLE_EQ(one.Share(0, 25), 0.25);
  }
}

TEST(Staircase, StepsAfterEverySoManyUpdates) {
  const Staircase decay{.factor = 0.5, .every = 50, .after = 400};
  EXPECT_EQ(decay.At(0), 1);
  EXPECT_EQ(decay.At(449), 1);
  EXPECT_EQ(decay.At(450), 0.5);
  EXPECT_EQ(decay.At(500), 0.25);
  EXPECT_EQ(Staircase().At(1000), 1);
}

}  // namespace
}  // namespace berth
