// Lines over two axes, as an SVG picture.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

struct Chart {
  struct Line {
    std::vector<std::pair<double, double>> points{};  // those that are not finite are left out
    std::string colour{};
    std::string name{};  // for the legend; empty: not in it
    double width = 1.6, opacity = 1;
    bool dots = false;   // points alone
    bool right = false;  // measured on the right axis
  };

  std::string title{}, x_title{};
  std::string left_title{}, left_colour = "#222222";
  std::string right_title{}, right_colour = "#222222";  // without a title there is no right axis
  // The least and largest value that must be seen. Axes are as long as round steps make them.
  std::pair<double, double> x{0, 1}, left{0, 1}, right{0, 1};
  std::vector<Line> lines{};  // later ones above earlier ones

  std::string ToSvg() const;
};

}  // namespace berth
