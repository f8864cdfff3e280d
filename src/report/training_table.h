// What came of a training, for people and for machines.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "placement/bound.h"
#include "placement/evaluator.h"
#include "placement/planner.h"
#include "report/comparison.h"
#include "report/json.h"

namespace berth {

// A model that was learned on, or that the trained policy has answered. Costs, penalties for memory included, are the
// learner's: an objective's value times the problem's seconds per unit. TrainingJson gives them in the objective's own
// unit.
struct TrainingRow {
  std::string model{};
  const Evaluator& evaluator;
  double first_cost = 0;   // of the first placement that was drawn; NaN where none was
  PlanResult best{};       // of all that were drawn, with their number; no plan where none was
  double greedy_cost = 0;  // of the policy's likeliest placement; infinity where it has no score
  PlanResult greedy{};     // that placement; no plan where it has no score
  Bound bound{};
  std::optional<Comparison> controls{};  // what planners found that learn nothing; empty where nobody asked

  // How many evaluations its controls get: as many as drew, or as the answer took where nothing was drawn.
  int64_t control_evaluations() const { return best.evaluations > 0 ? best.evaluations : greedy.evaluations; }
};

// A line per model: what the policy found, and what each control did. `unseen`: the policy drew nothing there but its
// answer.
std::string TrainingTable(std::span<const TrainingRow> rows, bool unseen);
Json TrainingJson(std::span<const TrainingRow> rows);

// "▇▅▃▂": these numbers in at most `width` bars; those that are not finite are left out.
std::string Sparkline(std::span<const double> values, size_t width);

}  // namespace berth
