#include "exec/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace berth {
namespace {

TEST(Quotients, AreOfEachValueAndTheOneInItsPlace) {
  const std::vector<double> values = {6, 8}, by = {2, 4};
  EXPECT_EQ(Quotients(values, by), (std::vector<double>{3, 2}));
  EXPECT_EQ(Quotients(values, {}), values) << "by nothing";
}

TEST(Mean, IsTheSumOverTheNumber) {
  EXPECT_EQ(Mean(std::vector<double>{3}), 3);
  EXPECT_EQ(Mean(std::vector<double>{1, 2, 6}), 3);
}

TEST(MedianInterval, LeavesOutAsManyOfEachEndAsTheBinomialDistributionAllows) {
  std::vector<double> values;
  for (int i = 1; i <= 10; ++i) values.push_back(i);
  EXPECT_EQ(Median(values), 5.5);
  // The table of the sign test: the second smallest and the second largest of ten, 97.9 %.
  EXPECT_EQ(MedianInterval(values).low, 2);
  EXPECT_EQ(MedianInterval(values).high, 9);
  EXPECT_EQ(MedianInterval(std::vector<double>{3, 1, 2}).low, 1);
  EXPECT_EQ(MedianInterval(std::vector<double>{3, 1, 2}).high, 3);
  EXPECT_EQ(MedianInterval(std::vector<double>{4}).high, 4);
}

TEST(MedianInterval, OfThousandsOfValuesIsAsWideAsTheNormalDistributionSays) {
  for (const int count : {1000, 1074, 1075, 2000, 100'000}) {
    std::vector<double> values;
    for (int i = 1; i <= count; ++i) values.push_back(i);
    EXPECT_NEAR(MedianInterval(values).low, 0.5 * count - 0.98 * std::sqrt(count), 2) << count;
  }
}

TEST(MedianInterval, HoldsTheMedianAsOftenAsItSays) {
  Random random(5);
  for (const int count : {6, 15, 40}) {
    int held = 0;
    for (int trial = 0; trial < 2000; ++trial) {
      std::vector<double> values;
      for (int i = 0; i < count; ++i) values.push_back(std::exp(random.Normal()));  // the median is 1
      const Interval interval = MedianInterval(values);
      held += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
    }
    EXPECT_GE(held, 1870) << count;  // 0.95 less three standard deviations
  }
}

}  // namespace
}  // namespace berth
