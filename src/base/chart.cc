#include "base/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace berth {
namespace {

constexpr double kWidth = 720, kHeight = 400, kLeft = 64, kRight = 64, kTop = 44, kBottom = 48;
constexpr std::string_view kInk = "#222222", kGrid = "#dddddd";

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

std::string Text(double x, double y, std::string_view anchor, std::string_view colour, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y, anchor, colour,
                     Escaped(text));
}

// An axis from `low` to `high` with round steps, about four of them, over `length` pixels from `origin`.
struct Axis {
  double low, high, step, origin, length;

  Axis(std::pair<double, double> range, double origin_, double length_) : origin(origin_), length(length_) {
    const auto [least, most] = range;
    const double span = std::max(most - least, 1e-9 * std::max(std::abs(most), 1.0));
    const double rough = span / 4, power = std::pow(10, std::floor(std::log10(rough)));
    step = power;
    for (const double factor : {2, 5, 10}) {
      if (step < rough) step = factor * power;
    }
    low = std::floor(least / step) * step;
    high = std::max(std::ceil(most / step), std::floor(least / step) + 1) * step;
  }
  double At(double value) const { return origin + length * (value - low) / (high - low); }

  template <typename Draw>
  void EachTick(const Draw& draw) const {
    const auto count = static_cast<int>(std::lround((high - low) / step));
    for (int i = 0; i <= count; ++i) draw(low + i * step);
  }
};

std::string Drawn(const Chart::Line& line, const Axis& x, const Axis& y) {
  std::string points, dots;
  for (const auto& [along, value] : line.points) {
    if (!std::isfinite(along) || !std::isfinite(value)) continue;
    points += fmt::format("{:.1f},{:.1f} ", x.At(along), y.At(value));
    if (!line.dots) continue;
    dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x.At(along), y.At(value),
                        line.colour);
  }
  if (line.dots) return dots;
  return fmt::format(
      "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\" stroke-linejoin=\"round\" "
      "points=\"{}\"/>\n",
      line.colour, line.width, line.opacity, points);
}

}  // namespace

std::string Chart::ToSvg() const {
  // The picture's y grows downward.
  const double height = kHeight - kTop - kBottom;
  const Axis along(x, kLeft, kWidth - kLeft - kRight), on_left(left, kHeight - kBottom, -height),
      on_right(right, kHeight - kBottom, -height);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  svg += Text(kLeft, 24, "start", kInk, title);
  on_left.EachTick([&](double value) {
    svg += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", kLeft,
                       kWidth - kRight, on_left.At(value), on_left.At(value), kGrid);
    svg += Text(kLeft - 8, on_left.At(value) + 4, "end", left_colour, fmt::format("{:.4g}", value));
  });
  if (!right_title.empty()) {
    on_right.EachTick([&](double value) {
      svg += Text(kWidth - kRight + 8, on_right.At(value) + 4, "start", right_colour, fmt::format("{:.3g}", value));
    });
    svg += Text(kWidth - kRight, kTop - 4, "end", right_colour, right_title);
  }
  along.EachTick([&](double value) {
    svg += Text(along.At(value), kHeight - kBottom + 18, "middle", kInk, fmt::format("{:.6g}", value));
  });
  double legend = kHeight - kBottom - 10;
  for (const Line& line : lines) {
    svg += Drawn(line, along, line.right ? on_right : on_left);
    if (line.name.empty()) continue;
    svg += Text(kWidth - kRight - 8, legend, "end", line.colour, line.name);
    legend -= 16;
  }
  svg += Text(kLeft, kTop - 4, "start", left_colour, left_title);
  svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", kInk, x_title);
  return svg + "</svg>\n";
}

}  // namespace berth
