#include "cli/training_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/catalog.h"
#include "cli/controls.h"
#include "report/objective_text.h"
#include "report/table.h"

namespace berth {
namespace {

std::string ScoreText(const Setup& setup, const Score& score) {
  return score.fits() ? ObjectiveText(*setup.problem, setup.evaluator->facts().objective, score.value())
                      : "does not fit";
}

// A cost of the learner's.
std::string CostText(const Setup& setup, double cost) {
  if (std::isnan(cost)) return "-";
  return ObjectiveText(*setup.problem, setup.evaluator->facts().objective, cost / setup.problem->seconds_per_unit());
}

// The best of those controls whose name is `name`, or begins so before a parenthesis.
const PlanReport* Control(const TrainedRow& row, std::string_view name) {
  if (!row.controls) return nullptr;
  const auto found = std::ranges::find_if(row.controls->rows, [&](const ComparisonRow& control) {
    return control.report.planner == name || control.report.planner.starts_with(fmt::format("{}(device", name));
  });
  return found == row.controls->rows.end() ? nullptr : &found->report;
}

struct ControlColumn {
  const char* title;
  const char* planner;
  int rank;  // Table::Column
};
constexpr std::array<ControlColumn, 8> kControls = {{{"random", "random", 5},
                                                     {"biased", "random(bias=true)", 6},
                                                     {"grouped", "on(group=random,planner=random)", 7},
                                                     {"climbing", "local_search", 1},
                                                     {"cross-entropy", "cross_entropy", 3},
                                                     {"one cut", "one_cut", 4},
                                                     {"one device", "single", 2},
                                                     {"optimum", "mincut", 0}}};

Json FiniteOrNull(double number) { return std::isfinite(number) ? Json(number) : Json(); }

}  // namespace

std::string TrainingTable(const std::vector<TrainedRow>& rows, bool unseen) {
  using enum Table::Align;
  std::vector<ControlColumn> shown;
  for (const ControlColumn& column : kControls) {
    if (std::ranges::any_of(rows, [&](const TrainedRow& row) { return Control(row, column.planner) != nullptr; }))
      shown.push_back(column);
  }
  std::vector<Table::Column> columns = {{unseen ? "unseen model" : "model"}, {"ops", kRight, 10}};
  if (!unseen) columns.insert(columns.end(), {{"first", kRight, 9}, {"best", kRight}});
  columns.push_back({"greedy", kRight});
  for (const ControlColumn& column : shown) columns.push_back({column.title, kRight, column.rank});
  columns.insert(columns.end(), {{"bound", kRight, 4}, {"evaluations", kRight, 8}});
  Table table(std::move(columns));
  for (const TrainedRow& row : rows) {
    const TrainedCase& trained = row.trained;
    const Setup& setup = row.setup;
    std::vector<std::string> cells = {Shorten(setup.strings.model, 32),
                                      Count(static_cast<int64_t>(setup.problem->num_ops()))};
    if (!unseen) {
      cells.push_back(CostText(setup, trained.first_cost));
      cells.push_back(trained.best.plan.device.empty() ? "-" : ScoreText(setup, trained.best.score));
    }
    cells.push_back(trained.greedy.plan.device.empty() ? "-" : ScoreText(setup, trained.greedy.score));
    for (const ControlColumn& column : shown) {
      const PlanReport* control = Control(row, column.planner);
      cells.push_back(control == nullptr ? "-" : ScoreText(setup, control->timeline.score));
    }
    cells.push_back(row.bound.value() > 0
                        ? ObjectiveText(*setup.problem, setup.evaluator->facts().objective, row.bound.value())
                        : "-");
    cells.push_back(Count(unseen ? trained.greedy.evaluations : trained.best.evaluations));
    table.Add(std::move(cells));
  }
  return table.ToString();
}

Json TrainingJson(const std::vector<TrainedRow>& rows) {
  Json list = Json::array();
  for (const TrainedRow& row : rows) {
    const Problem& problem = *row.setup.problem;
    const TrainedCase& trained = row.trained;
    const bool found = !trained.best.plan.device.empty();
    Json json = {{"model", row.setup.strings.model},
                 {"ops", problem.num_ops()},
                 {"cluster", problem.cluster().name()},
                 {"evaluator", row.setup.evaluator->name()},
                 {"first_cost", FiniteOrNull(trained.first_cost)},
                 {"best_seconds", found ? Json(problem.ToSeconds(trained.best.score.time).value) : Json()},
                 {"best_feasible", found && trained.best.score.fits()},
                 {"evaluations", trained.best.evaluations},
                 {"greedy_cost", FiniteOrNull(trained.greedy_cost)},
                 {"greedy_feasible", !trained.greedy.plan.device.empty() && trained.greedy.score.fits()},
                 {"greedy_evaluations", trained.greedy.evaluations},
                 {"lower_bound_seconds", problem.ToSeconds(row.bound.time).value}};
    if (row.controls) json["controls"] = ControlsJson(problem, *row.controls);
    list.push_back(std::move(json));
  }
  return list;
}

std::string Sparkline(const std::vector<CurvePoint>& curve, size_t width) {
  constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t bars = std::min(width, curve.size());
  std::vector<double> height;
  for (size_t i = 0; i < bars; ++i) {
    double sum = 0, count = 0;
    for (size_t j = i * curve.size() / bars; j < (i + 1) * curve.size() / bars; ++j) {
      if (!std::isfinite(curve[j].relative_cost)) continue;
      sum += curve[j].relative_cost;
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
