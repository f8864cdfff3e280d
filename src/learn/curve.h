// The learning curve, as data, as a table that grows, and as a picture. No torch in it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

struct CurvePoint {
  int64_t update = 0;
  int64_t evaluations = 0;  // up to and with this update
  double mean_cost = 0;     // seconds; of this update's placements that did not fail
  double best_cost = 0;     // seconds; of this update's placements
  // The geometric mean of this update's costs, each over the time of its graph's ops one after another, all on their
  // fastest devices (where another objective than time is given, over the graph's first cost): comparable over graphs
  // of any size. NaN where all failed.
  double relative_cost = 0;
  // The same of the likeliest placement of each graph after this update; NaN where no checkpoint was due.
  double greedy_cost = std::numeric_limits<double>::quiet_NaN();
  double entropy = 0;  // mean per decision, nats
  double groups = 0;   // mean decisions per step
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  bool diverged = false;     // the loss, the gradient or the policy is not finite
};

// One line per point under a line of names; numbers in full, so that reading gives the same points. `diverged` is not
// in it.
std::string CurveTitle();
std::string CurveRow(const CurvePoint& point);
// Ends at the first line that is not whole, as a killed process leaves it. Throws Error naming `path` where the first
// line is another.
std::vector<CurvePoint> ParseCurve(std::string_view csv, const std::string& path);

// relative_cost, greedy_cost and entropy over updates, as an SVG picture; the cost's mean over a tenth of the updates
// as a bold line.
std::string CurvePicture(std::span<const CurvePoint> points, std::string_view title);

}  // namespace berth
