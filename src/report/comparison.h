// Planners side by side, and why the fastest is the fastest.
#pragma once

#include <string>
#include <vector>

#include "report/plan_report.h"

namespace berth {

struct ComparisonRow {
  PlanReport report;
  bool simple = false;  // a rule of thumb that anybody could apply by hand: one device, one cut
};

struct Comparison {
  std::vector<ComparisonRow> rows;  // best first; of equals the one that was added first
  // Planners that cannot answer this problem, with their reason.
  std::vector<std::pair<std::string, std::string>> refusals;
  Objective objective{};
  std::vector<DeviceId> class_of{};  // InterchangeableDevices of the evaluator

  const ComparisonRow& winner() const { return rows.front(); }
  // Of the devices alone, which all rows have alike: PlanReport::single_device_time.
  const std::vector<double>& single_device_time() const { return winner().report.single_device_time; }
  // The best row that is simple; null without one.
  const ComparisonRow* best_simple() const;
};

// Orders the rows, and gives all the sharpest of their bounds.
Comparison MakeComparison(const Evaluator& evaluator, std::vector<ComparisonRow> rows,
                          std::vector<std::pair<std::string, std::string>> refusals);

std::string ComparisonTable(const Problem& problem, const Comparison& comparison);

// Which is fastest, by how much over the best simple rule, what it does differently, and what limits it now.
std::string Verdict(const Problem& problem, const Comparison& comparison);

}  // namespace berth
