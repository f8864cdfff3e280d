// The learning curve, as data, as a table that grows, and as a picture. No torch in it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

struct CurvePoint {
  int64_t update = 0;
  int64_t evaluations = 0;  // up to and with this update
  double mean_cost = 0;     // seconds; of this update's placements that did not fail; NaN where all failed
  double best_cost = 0;     // seconds; of this update's placements
  // Seconds; the best of what this update's episodes began with, where that was scored: nothing that the policy drew.
  // Not in the file.
  double start_cost = std::numeric_limits<double>::infinity();
  // The geometric mean of this update's costs, each over the time of its graph's ops one after another, all on their
  // fastest devices (where another objective than time is given, over the graph's first cost): comparable over graphs
  // of any size. NaN where all failed.
  double relative_cost = 0;
  // The same of the policy's answer to each graph, or to each that it is validated on (where another objective than
  // time is given, of the costs of these as they are), after this update; NaN where no checkpoint was due.
  double greedy_cost = std::numeric_limits<double>::quiet_NaN();
  double entropy = 0;  // mean per decision, nats
  double groups = 0;   // mean decisions per step
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  bool diverged = false;     // the loss, the gradient or the policy is not finite
};

// Nats per decision: of a hundred thousand decisions that are as sure as this, about one is not the likeliest.
inline constexpr double kCollapsedEntropy = 1e-4;

// A policy has collapsed when the mean entropy of its decisions falls below kCollapsedEntropy within the first half of
// the planned updates and stays there: it draws the same placements again and again, and learns nothing more from them.
// One that was as sure from the first update on had no choice, and one that is so at the end is done. The update at
// which that began; empty for one that has not collapsed.
inline std::optional<int64_t> CollapsedAt(std::span<const CurvePoint> curve, int64_t planned_updates) {
  size_t sure = curve.size();  // from this point on all are
  while (sure > 0 && curve[sure - 1].entropy < kCollapsedEntropy) --sure;
  if (sure == 0 || sure == curve.size() || 2 * curve[sure].update > planned_updates) return std::nullopt;
  return curve[sure].update;
}

// What is said of it, and what to try; empty for one that has not.
inline std::string DescribeCollapse(std::span<const CurvePoint> curve, int64_t planned_updates) {
  const std::optional<int64_t> update = CollapsedAt(curve, planned_updates);
  if (!update) return {};
  return fmt::format(
      "the policy collapsed in update {} of {}: since then each decision is as good as certain (entropy below {} "
      "nats), and nothing else is tried; a smaller learning_rate, a larger entropy or another --seed may help",
      *update, planned_updates, kCollapsedEntropy);
}

// One line per point under a line of names; numbers in full, so that reading gives the same points. `diverged` is not
// in it.
std::string CurveTitle();
std::string CurveRow(const CurvePoint& point);
// Ends at the first line that is not whole, as a killed process leaves it. Throws Error naming `path` where the first
// line is another.
std::vector<CurvePoint> ParseCurve(std::string_view csv, const std::string& path);

// relative_cost, greedy_cost and entropy over updates, as an SVG picture; the cost's mean over a tenth of the updates
// as a bold line. `dots`: for readers, what greedy_cost is of; empty where it is not drawn, since it has another scale.
std::string CurvePicture(std::span<const CurvePoint> points, std::string_view title, std::string_view dots);

}  // namespace berth
