#include "base/chart.h"

#include <gmock/gmock.h>

#include <limits>

namespace berth {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Chart, DrawsLinesDotsAndALegend) {
  Chart chart{.title = "a<b", .x_title = "time", .left_title = "share"};
  chart.x = {0, 4};
  chart.lines.push_back({.points = {{0, 0}, {2, 0.5}, {4, 1}}, .colour = "#112233", .name = "ours"});
  chart.lines.push_back({.points = {{2, 1}}, .colour = "#445566", .dots = true});
  const std::string svg = chart.ToSvg();
  EXPECT_THAT(svg, HasSubstr("a&lt;b"));
  EXPECT_THAT(svg, HasSubstr("ours"));
  // 720 x 400 with margins of 64, 64, 44 and 48: the line begins in the lower left corner.
  EXPECT_THAT(svg, HasSubstr("points=\"64.0,352.0 360.0,198.0 656.0,44.0 \""));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"360.0\" cy=\"44.0\""));
  EXPECT_THAT(svg, Not(HasSubstr("text-anchor=\"start\" fill=\"#222222\"></text>"))) << "an axis without a title";
}

TEST(Chart, LeavesOutWhatIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  Chart chart{.title = "gaps"};
  chart.left = {3, 3};
  chart.lines.push_back({.points = {{0, kNan}, {kInfinity, 1}, {1, 3}}, .colour = "#112233"});
  EXPECT_THAT(chart.ToSvg(), Not(HasSubstr("nan")));
  EXPECT_THAT(chart.ToSvg(), Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace berth
