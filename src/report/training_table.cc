#include "report/training_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "placement/objective_text.h"
#include "report/controls.h"
#include "report/table.h"

namespace berth {
namespace {

std::string ValueText(const Evaluator& evaluator, double value) {
  return ObjectiveText(evaluator.problem(), evaluator.facts().objective, value);
}

std::string ScoreText(const Evaluator& evaluator, const Score& score) {
  return score.fits() ? ValueText(evaluator, score.value()) : "does not fit";
}

// Of a cost of the learner's, which counts in seconds whatever the objective is, the objective's value.
double ValueOf(const Evaluator& evaluator, double cost) { return cost / evaluator.problem().seconds_per_unit(); }

std::string CostText(const Evaluator& evaluator, double cost) {
  return std::isnan(cost) ? "-" : ValueText(evaluator, ValueOf(evaluator, cost));
}

double CostNumber(const Evaluator& evaluator, double cost) {
  return ObjectiveNumber(evaluator.problem(), evaluator.facts().objective, ValueOf(evaluator, cost));
}

const PlanReport* Find(const TrainingRow& row, const Control& control) {
  return row.controls ? FindControl(*row.controls, control) : nullptr;
}

}  // namespace

std::string TrainingTable(std::span<const TrainingRow> rows, bool unseen) {
  using enum Table::Align;
  std::vector<Control> shown;
  for (const Control& column : kControls) {
    if (std::ranges::any_of(rows, [&](const TrainingRow& row) { return Find(row, column) != nullptr; }))
      shown.push_back(column);
  }
  std::vector<Table::Column> columns = {{unseen ? "unseen model" : "model"}, {"ops", kRight, 10}};
  if (!unseen) columns.insert(columns.end(), {{"first", kRight, 9}, {"best", kRight}});
  columns.push_back({"greedy", kRight});
  for (const Control& column : shown) columns.push_back({std::string(column.title), kRight, column.rank});
  columns.insert(columns.end(), {{"bound", kRight, 4}, {"evaluations", kRight, 8}});
  Table table(std::move(columns));
  for (const TrainingRow& row : rows) {
    const Evaluator& evaluator = row.evaluator;
    std::vector<std::string> cells = {Shorten(row.model, 32),
                                      Count(static_cast<int64_t>(evaluator.problem().num_ops()))};
    if (!unseen) {
      cells.push_back(CostText(evaluator, row.first_cost));
      cells.push_back(row.best.plan.device.empty() ? "-" : ScoreText(evaluator, row.best.score));
    }
    cells.push_back(row.greedy.plan.device.empty() ? "-" : ScoreText(evaluator, row.greedy.score));
    for (const Control& column : shown) {
      const PlanReport* control = Find(row, column);
      cells.push_back(control == nullptr ? "-" : ScoreText(evaluator, control->timeline.score));
    }
    cells.push_back(row.bound.value() > 0 ? ValueText(evaluator, row.bound.value()) : "-");
    cells.push_back(Count(unseen ? row.greedy.evaluations : row.best.evaluations));
    table.Add(std::move(cells));
  }
  return table.ToString();
}

Json TrainingJson(std::span<const TrainingRow> rows) {
  Json list = Json::array();
  for (const TrainingRow& row : rows) {
    const Problem& problem = row.evaluator.problem();
    const bool found = !row.best.plan.device.empty();
    Json json = {{"model", row.model},
                 {"ops", problem.num_ops()},
                 {"cluster", problem.cluster().name()},
                 {"evaluator", row.evaluator.name()},
                 {"first_cost", FiniteOrNull(CostNumber(row.evaluator, row.first_cost))},
                 {"best_seconds", found ? Json(problem.ToSeconds(row.best.score.time).value) : Json()},
                 {"best_feasible", found && row.best.score.fits()},
                 {"evaluations", row.best.evaluations},
                 {"greedy_cost", FiniteOrNull(CostNumber(row.evaluator, row.greedy_cost))},
                 {"greedy_feasible", !row.greedy.plan.device.empty() && row.greedy.score.fits()},
                 {"greedy_evaluations", row.greedy.evaluations},
                 {"lower_bound_seconds", problem.ToSeconds(row.bound.time).value}};
    if (row.controls) json["controls"] = ControlsJson(problem, *row.controls);
    list.push_back(std::move(json));
  }
  return list;
}

std::string Sparkline(std::span<const double> values, size_t width) {
  constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t bars = std::min(width, values.size());
  std::vector<double> height;
  for (size_t i = 0; i < bars; ++i) {
    double sum = 0, count = 0;
    for (size_t j = i * values.size() / bars; j < (i + 1) * values.size() / bars; ++j) {
      if (!std::isfinite(values[j])) continue;
      sum += values[j];
      ++count;
    }
    if (count > 0) height.push_back(sum / count);
  }
  if (height.empty()) return {};
  const auto [least, most] = std::ranges::minmax(height);
  std::string text;
  for (const double each : height) {
    text += kBars[most > least ? static_cast<size_t>(std::lround((each - least) / (most - least) * 7)) : 0];
  }
  return text;
}

}  // namespace berth
