#include "learn/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<CurvePoint> SomePoints(int64_t count) {
  std::vector<CurvePoint> points;
  for (int64_t i = 1; i <= count; ++i) {
    const auto x = static_cast<double>(i);
    points.push_back({.update = i,
                      .evaluations = 20 * i,
                      .mean_cost = 1 / (3 * x),
                      .best_cost = i == 2 ? std::numeric_limits<double>::infinity() : 0.1 / x,
                      .relative_cost = i == 2 ? std::nan("") : std::exp(-x / 3),
                      .greedy_cost = i % 3 == 0 ? 1.5 / x : std::nan(""),
                      .entropy = 0.7 / x,
                      .groups = 12.5,
                      .loss = -1e-7 * x,
                      .gradient_norm = 1e9 / x});
  }
  return points;
}

std::string Csv(const std::vector<CurvePoint>& points) {
  std::string csv = CurveTitle();
  for (const CurvePoint& point : points) csv += CurveRow(point);
  return csv;
}

TEST(Curve, IsReadAsItWasWritten) {
  const std::string csv = Csv(SomePoints(9));
  const std::vector<CurvePoint> read = ParseCurve(csv, "curve.csv");
  ASSERT_EQ(read.size(), 9u);
  EXPECT_EQ(Csv(read), csv);
  EXPECT_EQ(read[6].mean_cost, 1 / 21.0);
  EXPECT_TRUE(std::isnan(read[1].relative_cost));
}

TEST(Curve, EndsWhereARowIsNotWhole) {
  const std::string csv = Csv(SomePoints(3));
  for (size_t length = CurveTitle().size(); length < csv.size(); ++length) {
    const auto rows = std::count(csv.begin(), csv.begin() + static_cast<std::ptrdiff_t>(length), '\n') - 1;
    EXPECT_EQ(ParseCurve(csv.substr(0, length), "curve.csv").size(), static_cast<size_t>(rows)) << length;
  }
  EXPECT_THROW(ParseCurve("update,cost\n1,2\n", "curve.csv"), Error);
  EXPECT_THROW(ParseCurve("", "curve.csv"), Error);
}

TEST(Curve, IsDrawnWhateverItsNumbersAre) {
  std::vector<CurvePoint> flat(5);
  for (size_t i = 0; i < flat.size(); ++i) flat[i] = {.update = static_cast<int64_t>(i) + 1, .relative_cost = 1};
  for (const auto& points : {SomePoints(0), SomePoints(1), SomePoints(2), SomePoints(40), flat}) {
    const std::string svg = CurvePicture(points, "placeto(a<b)", "likeliest placements");
    EXPECT_THAT(svg, StartsWith("<svg"));
    EXPECT_THAT(svg, HasSubstr("placeto(a&lt;b)"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_LT(svg.size(), 20'000u);
  }
}

TEST(Curve, SaysWhenThePolicyCollapsed) {
  const auto collapsed = [](const std::vector<double>& entropies, int64_t planned) {
    std::vector<CurvePoint> curve;
    for (const double entropy : entropies) {
      curve.push_back({.update = static_cast<int64_t>(curve.size()) + 1, .entropy = entropy});
    }
    EXPECT_EQ(DescribeCollapse(curve, planned).empty(), !CollapsedAt(curve, planned).has_value());
    return CollapsedAt(curve, planned);
  };
  EXPECT_EQ(collapsed({0.5, 1e-7, 1e-8, 0}, 50), 2);
  EXPECT_EQ(collapsed({0.5, 0.4, 0.3, 0.2}, 50), std::nullopt);
  EXPECT_EQ(collapsed({0.5, 1e-7, 0.2, 0.1}, 50), std::nullopt) << "it came back";
  EXPECT_EQ(collapsed({0.5, 1e-7, 0.2, 1e-5, 1e-6}, 50), 4);
  EXPECT_EQ(collapsed({0, 0, 0}, 50), std::nullopt) << "there was never a choice";
  EXPECT_EQ(collapsed({0.5, 0.4, 1e-6, 1e-6}, 4), std::nullopt) << "it was done";
  EXPECT_EQ(collapsed({0.5, 1e-6, 1e-6, 1e-6}, 4), 2);
  EXPECT_EQ(collapsed({}, 50), std::nullopt);
  EXPECT_EQ(collapsed({0.5, std::nan("")}, 50), std::nullopt);
}

}  // namespace
}  // namespace berth
