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
