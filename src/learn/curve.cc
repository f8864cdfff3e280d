#include "learn/curve.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/chart.h"
#include "base/error.h"

namespace berth {
namespace {

struct Column {
  const char* name;
  double CurvePoint::* number = nullptr;
  int64_t CurvePoint::* count = nullptr;
};

constexpr Column kColumns[] = {
    {.name = "update", .count = &CurvePoint::update},
    {.name = "evaluations", .count = &CurvePoint::evaluations},
    {.name = "mean_cost", .number = &CurvePoint::mean_cost},
    {.name = "best_cost", .number = &CurvePoint::best_cost},
    {.name = "relative_cost", .number = &CurvePoint::relative_cost},
    {.name = "greedy_cost", .number = &CurvePoint::greedy_cost},
    {.name = "entropy", .number = &CurvePoint::entropy},
    {.name = "groups", .number = &CurvePoint::groups},
    {.name = "loss", .number = &CurvePoint::loss},
    {.name = "gradient_norm", .number = &CurvePoint::gradient_norm},
};

template <typename Number>
bool Parse(std::string_view text, Number& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

std::optional<CurvePoint> ParseRow(std::string_view line) {
  CurvePoint point;
  for (const Column& column : kColumns) {
    const size_t comma = std::min(line.find(','), line.size());
    const std::string_view cell = line.substr(0, comma);
    if (!(column.number != nullptr ? Parse(cell, point.*column.number) : Parse(cell, point.*column.count))) return {};
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return line.empty() ? std::optional(point) : std::nullopt;
}

// --- The picture ---------------------------------------------------------------------------------------------------

constexpr std::string_view kCostColour = "#1f5fa8", kEntropyColour = "#b8651b";

std::pair<double, double> Range(std::span<const CurvePoint> points, double CurvePoint::* member,
                                std::pair<double, double> otherwise = {0, 1}) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const CurvePoint& point : points) {
    if (!std::isfinite(point.*member)) continue;
    low = std::min(low, point.*member);
    high = std::max(high, point.*member);
  }
  return low <= high ? std::pair(low, high) : otherwise;
}

// A member over the updates, as the mean of the last `window` of them.
Chart::Line LineOf(std::span<const CurvePoint> points, double CurvePoint::* member, std::string_view colour,
                   size_t window) {
  Chart::Line line{.colour = std::string(colour), .width = window > 1 ? 2.4 : 1, .opacity = window > 1 ? 1 : 0.45};
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (std::isfinite(points[i].*member)) sum += points[i].*member, ++count;
    if (i >= window && std::isfinite(points[i - window].*member)) sum -= points[i - window].*member, --count;
    // Where nothing is left, what rounding has left of the sum is not a value.
    if (count == 0) sum = 0;
    line.points.emplace_back(static_cast<double>(points[i].update), sum / static_cast<double>(count));
  }
  return line;
}

}  // namespace

std::string CurveTitle() {
  std::string title;
  for (const Column& column : kColumns) title += fmt::format("{}{}", title.empty() ? "" : ",", column.name);
  return title + "\n";
}

std::string CurveRow(const CurvePoint& point) {
  std::string row;
  for (const Column& column : kColumns) {
    if (!row.empty()) row += ',';
    row += column.number != nullptr ? fmt::format("{}", point.*column.number) : fmt::format("{}", point.*column.count);
  }
  return row + "\n";
}

std::vector<CurvePoint> ParseCurve(std::string_view csv, const std::string& path) {
  if (!csv.starts_with(CurveTitle())) {
    throw Error("{}: this is no curve that Berth has written; its first line should be {}", path,
                CurveTitle().substr(0, CurveTitle().size() - 1));
  }
  csv.remove_prefix(CurveTitle().size());
  std::vector<CurvePoint> points;
  for (size_t end = csv.find('\n'); end != std::string_view::npos; end = csv.find('\n')) {
    const std::optional<CurvePoint> point = ParseRow(csv.substr(0, end));
    if (!point) break;
    points.push_back(*point);
    csv.remove_prefix(end + 1);
  }
  return points;
}

std::string CurvePicture(std::span<const CurvePoint> points, std::string_view title, std::string_view dots) {
  const auto [least_cost, most_cost] = Range(points, &CurvePoint::relative_cost);
  Chart chart{
      .title = std::string(title),
      .x_title = "update",
      .left_title = dots.empty() ? "relative cost" : fmt::format("relative cost; dots: {}", dots),
      .left_colour = std::string(kCostColour),
      .right_title = "entropy per decision, nats",
      .right_colour = std::string(kEntropyColour),
      .x = {0, points.empty() ? 1.0 : static_cast<double>(points.back().update)},
      .left = {least_cost, most_cost},
      .right = {0, std::max(Range(points, &CurvePoint::entropy).second, 1e-6)},
  };
  chart.lines = {LineOf(points, &CurvePoint::entropy, kEntropyColour, 1),
                 LineOf(points, &CurvePoint::relative_cost, kCostColour, 1),
                 LineOf(points, &CurvePoint::relative_cost, kCostColour, std::max<size_t>(points.size() / 10, 2))};
  chart.lines[0].right = true;
  if (!dots.empty()) {
    const auto [least_greedy, most_greedy] = Range(points, &CurvePoint::greedy_cost, {least_cost, most_cost});
    chart.lines.push_back(LineOf(points, &CurvePoint::greedy_cost, kCostColour, 1));
    chart.lines.back().dots = true;
    chart.left = {std::min(least_cost, least_greedy), std::max(most_cost, most_greedy)};
  }
  return chart.ToSvg();
}

}  // namespace berth
