#include "tools/planners/rows.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "base/in_parallel.h"
#include "tools/common/intervals.h"

namespace berth {

Cell Play(const Catalogs& catalogs, const Evaluator& evaluator, const Column& column, const Budget& budget, double unit,
          int threads) {
  const auto planner = catalogs.planners.MakePlanner(column.planner);
  if (planner->Refuses(evaluator.problem(), evaluator)) return {};
  // Rules end by themselves; the clock is for those that would not.
  const PlanResult result = planner->MakePlan({.evaluator = evaluator,
                                               .budget = column.searches ? budget : Budget{.seconds = 60},
                                               .random = Random(1),
                                               .threads = threads});
  const double value = result.score.fits() ? result.score.value() * unit : std::numeric_limits<double>::infinity();
  return {.value = value, .seconds = result.wall_seconds};
}

std::vector<Cell> PlayAll(const Catalogs& catalogs, const Evaluator& evaluator, const std::vector<Column>& columns,
                          const Budget& budget, double unit) {
  std::vector<Cell> cells(columns.size());
  std::vector<size_t> searches, last;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].searches) {
      cells[i] = Play(catalogs, evaluator, columns[i], budget, unit);
    } else {
      (columns[i].planner == "auto" ? last : searches).push_back(i);
    }
  }
  constexpr int64_t kAtATime = 2;
  InParallel(static_cast<int64_t>(searches.size()), kAtATime,
             [&](size_t i) { cells[searches[i]] = Play(catalogs, evaluator, columns[searches[i]], budget, unit, 1); });
  for (const size_t i : last) cells[i] = Play(catalogs, evaluator, columns[i], budget, unit);
  return cells;
}

std::string Number(double value) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return "out of memory";
  return value < 10    ? fmt::format("{:.2f}", value)
         : value < 100 ? fmt::format("{:.1f}", value)
                       : fmt::format("{:.0f}", value);
}

std::string Text(const Cell& cell, bool best) {
  if (std::isnan(cell.value)) return "refuses";
  const std::string number = Number(cell.value);
  return fmt::format("{} ({:.2g} s)", best ? fmt::format("**{}**", number) : number, cell.seconds);
}

std::optional<double> MeanRatio(const std::vector<std::vector<Cell>>& table, size_t of, size_t to) {
  std::vector<double> ratios;
  for (const std::vector<Cell>& row : table) {
    const double ratio = row[of].value / row[to].value;
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  if (ratios.empty()) return std::nullopt;
  return GeometricMean(ratios);
}

void WriteHead(const std::vector<std::string>& left, const std::vector<std::string>& right,
               const std::vector<Column>& columns) {
  for (const std::string& title : left) fmt::print("| {} ", title);
  for (const std::string& title : right) fmt::print("| {} ", title);
  for (const Column& column : columns) fmt::print("| `{}` ", column.planner);
  fmt::print("|\n");
  for (size_t i = 0; i < left.size(); ++i) fmt::print("|---");
  for (size_t i = 0; i < right.size() + columns.size(); ++i) fmt::print("|---:");
  fmt::print("|\n");
}

std::vector<Cell> WriteCells(const Catalogs& catalogs, const Evaluator& evaluator, const std::vector<Column>& columns,
                             const Budget& budget, double unit) {
  const std::vector<Cell> cells = PlayAll(catalogs, evaluator, columns, budget, unit);
  double best = std::numeric_limits<double>::infinity();
  for (const Cell& cell : cells) {
    if (cell.value < best) best = cell.value;
  }
  for (const Cell& cell : cells) fmt::print(" {} |", Text(cell, cell.value <= best));
  fmt::print("\n");
  std::fflush(stdout);
  return cells;
}

}  // namespace berth
