#include "exec/compilations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

OpMeasurement Took(double seconds) {
  return {.op_seconds = {seconds / 4, 3 * seconds / 4}, .totals = {seconds}, .seconds = {seconds, seconds * 1.001}};
}

// By compilation, on one device.
std::vector<std::vector<OpMeasurement>> Compilations(std::initializer_list<double> seconds) {
  std::vector<std::vector<OpMeasurement>> all;
  for (const double one : seconds) all.push_back({Took(one)});
  return all;
}

TEST(Agreeing, TakesThreeCompilationsThatDifferByFivePercent) {
  const Agreement agreement = Agreeing(Compilations({10, 10.2, 10.4}));
  EXPECT_TRUE(agreement.steady);
  EXPECT_THAT(agreement.which, ElementsAre(0, 1, 2));
}

TEST(Agreeing, LeavesOutThoseOfASlowMoment) {
  EXPECT_FALSE(Agreeing(Compilations({16, 10, 10.2})).steady);
  const Agreement agreement = Agreeing(Compilations({16, 10, 10.2, 10.3}));
  EXPECT_TRUE(agreement.steady);
  EXPECT_THAT(agreement.which, ElementsAre(1, 2, 3));
}

TEST(Agreeing, LeavesOutThoseOfAFastMoment) {
  const Agreement agreement = Agreeing(Compilations({16, 10, 16.2, 11, 16.1}));
  EXPECT_TRUE(agreement.steady);
  EXPECT_THAT(agreement.which, ElementsAre(0, 2, 4));
}

TEST(Agreeing, TakesTheMiddleThreeWhereNoneAgree) {
  const Agreement agreement = Agreeing(Compilations({10, 18, 14, 12, 16}));
  EXPECT_FALSE(agreement.steady);
  EXPECT_THAT(agreement.which, ElementsAre(2, 3, 4));
}

TEST(Agreeing, AsksEachDevice) {
  std::vector<std::vector<OpMeasurement>> all = {{Took(10), Took(5)}, {Took(10), Took(5)}, {Took(10), Took(8)}};
  EXPECT_FALSE(Agreeing(all).steady) << "one device is steady only";
  all.push_back({Took(10.1), Took(5.1)});
  EXPECT_THAT(Agreeing(all).which, ElementsAre(0, 1, 3));
}

// Ordered by the time on both, the one on which the devices changed in opposite ways is between two that agree.
TEST(Agreeing, FindsThreeThatAgreeWithAnotherBetweenThem) {
  const std::vector<std::vector<OpMeasurement>> all = {
      {Took(10), Took(10)}, {Took(10.4), Took(10.4)}, {Took(10.2), Took(10.2)}, {Took(11.5), Took(9.05)}};
  const Agreement agreement = Agreeing(all);
  EXPECT_TRUE(agreement.steady);
  EXPECT_THAT(agreement.which, ElementsAre(0, 1, 2));
}

TEST(Agreeing, NeverCallsFewerThanThreeSteady) {
  const Agreement agreement = Agreeing(Compilations({10, 10}));
  EXPECT_FALSE(agreement.steady);
  EXPECT_THAT(agreement.which, ElementsAre(0, 1));
}

TEST(MeanOf, AveragesOpTimesAndKeepsAllRuns) {
  const auto all = Compilations({10, 50, 12, 14});
  const OpMeasurement mean = MeanOf(all, std::vector<size_t>{0, 2, 3}).front();
  EXPECT_THAT(mean.op_seconds, ElementsAre(DoubleEq(3), DoubleEq(9)));
  EXPECT_THAT(mean.totals, ElementsAre(10, 12, 14));
  EXPECT_EQ(mean.seconds.size(), 6u);
}

TEST(MeanOf, SaysThatAModelHasOtherOpsWhenCompiledAgain) {
  auto all = Compilations({10, 10});
  all[1].front().op_seconds = {1};
  EXPECT_EQ(MeanOf(all, std::vector<size_t>{0, 1}).front().error, "it has other ops each time that it is compiled");
}

}  // namespace
}  // namespace berth
