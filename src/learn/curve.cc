#include "learn/curve.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

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

constexpr double kWidth = 720, kHeight = 400, kLeft = 64, kRight = 64, kTop = 44, kBottom = 48;
constexpr std::string_view kCostColour = "#1f5fa8", kEntropyColour = "#b8651b";

std::string Escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

// An axis from `low` to `high` with round steps, about four of them.
struct Axis {
  double low, high, step;

  Axis(double least, double most) {
    const double span = std::max(most - least, 1e-9 * std::max(std::abs(most), 1.0));
    const double rough = span / 4, power = std::pow(10, std::floor(std::log10(rough)));
    step = power;
    for (const double factor : {2, 5, 10}) {
      if (step < rough) step = factor * power;
    }
    low = std::floor(least / step) * step;
    high = std::max(std::ceil(most / step), std::floor(least / step) + 1) * step;
  }
  double Share(double value) const { return (value - low) / (high - low); }
};

struct Line {
  std::vector<std::pair<double, double>> points;  // update, value; finite
  std::string_view colour;
  double width, opacity;
};

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

Line LineOf(std::span<const CurvePoint> points, double CurvePoint::* member, std::string_view colour, size_t window) {
  Line line{.points = {}, .colour = colour, .width = window > 1 ? 2.4 : 1, .opacity = window > 1 ? 1 : 0.45};
  for (size_t i = 0; i < points.size(); ++i) {
    double sum = 0, count = 0;
    for (size_t j = i + 1 - std::min(i + 1, window); j <= i; ++j) {
      if (!std::isfinite(points[j].*member)) continue;
      sum += points[j].*member;
      ++count;
    }
    if (count > 0) line.points.emplace_back(static_cast<double>(points[i].update), sum / count);
  }
  return line;
}

std::string Drawn(const Line& line, const Axis& x, const Axis& y) {
  std::string text;
  for (const auto& [update, value] : line.points) {
    text += fmt::format("{:.1f},{:.1f} ", kLeft + x.Share(update) * (kWidth - kLeft - kRight),
                        kHeight - kBottom - y.Share(value) * (kHeight - kTop - kBottom));
  }
  return fmt::format(
      "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\" stroke-linejoin=\"round\" "
      "points=\"{}\"/>\n",
      line.colour, line.width, line.opacity, text);
}

std::string Text(double x, double y, std::string_view anchor, std::string_view colour, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor, colour,
                     Escaped(text));
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

std::string CurvePicture(std::span<const CurvePoint> points, std::string_view title) {
  constexpr std::string_view kInk = "#222222", kGrid = "#dddddd";
  const auto last = points.empty() ? 1.0 : static_cast<double>(points.back().update);
  const Axis x(0, std::max(last, 1.0));
  const auto [least_cost, most_cost] = Range(points, &CurvePoint::relative_cost);
  const auto [least_greedy, most_greedy] = Range(points, &CurvePoint::greedy_cost, {least_cost, most_cost});
  const Axis cost(std::min(least_cost, least_greedy), std::max(most_cost, most_greedy)),
      entropy(0, std::max(Range(points, &CurvePoint::entropy).second, 1e-6));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  svg += Text(kLeft, 24, "start", kInk, title);
  const auto ticks = [](const Axis& axis, const auto& draw) {
    const auto count = static_cast<int>(std::lround((axis.high - axis.low) / axis.step));
    for (int i = 0; i <= count; ++i) draw(axis.low + i * axis.step);
  };
  ticks(cost, [&](double value) {
    const double y = kHeight - kBottom - cost.Share(value) * (kHeight - kTop - kBottom);
    svg += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", kLeft,
                       kWidth - kRight, y, y, kGrid);
    svg += Text(kLeft - 8, y + 4, "end", kCostColour, fmt::format("{:.4g}", value));
  });
  ticks(entropy, [&](double value) {
    svg += Text(kWidth - kRight + 8, kHeight - kBottom - entropy.Share(value) * (kHeight - kTop - kBottom) + 4, "start",
                kEntropyColour, fmt::format("{:.3g}", value));
  });
  ticks(x, [&](double value) {
    svg += Text(kLeft + x.Share(value) * (kWidth - kLeft - kRight), kHeight - kBottom + 18, "middle", kInk,
                fmt::format("{:.6g}", value));
  });
  svg += Drawn(LineOf(points, &CurvePoint::entropy, kEntropyColour, 1), x, entropy);
  svg += Drawn(LineOf(points, &CurvePoint::relative_cost, kCostColour, 1), x, cost);
  svg +=
      Drawn(LineOf(points, &CurvePoint::relative_cost, kCostColour, std::max<size_t>(points.size() / 10, 2)), x, cost);
  for (const CurvePoint& point : points) {
    if (!std::isfinite(point.greedy_cost)) continue;
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                       kLeft + x.Share(static_cast<double>(point.update)) * (kWidth - kLeft - kRight),
                       kHeight - kBottom - cost.Share(point.greedy_cost) * (kHeight - kTop - kBottom), kCostColour);
  }
  svg += Text(kLeft, kTop - 4, "start", kCostColour, "cost, relative to the work; dots: likeliest placements");
  svg += Text(kWidth - kRight, kTop - 4, "end", kEntropyColour, "entropy per decision, nats");
  svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", kInk, "update");
  return svg + "</svg>\n";
}

}  // namespace berth
