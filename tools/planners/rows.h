// What the tables of docs/planners.md are made of: problems, planners, and how long these took.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/catalogs.h"
#include "cli/problem_factory.h"

namespace berth {

struct Column {
  std::string planner;
  bool searches = false;  // else a rule or a schedule, which ends by itself
};

struct Cell {
  double value = std::numeric_limits<double>::quiet_NaN();  // infinity where the plan does not fit
  double seconds = 0;
};

struct Options {
  std::optional<Budget> budget{};  // none: each table's own
  std::string only{};              // rows whose title contains this
  std::vector<Column> columns{};   // empty: those of the table

  Budget BudgetOr(double seconds) const { return budget.value_or(Budget{.seconds = seconds}); }
  std::vector<Column> ColumnsOr(std::vector<Column> own) const { return columns.empty() ? own : columns; }
};

// The score of the planner's plan times `unit`. Rules end by themselves; searches have the budget, and so many threads
// (0: one per processor).
Cell Play(const Catalogs& catalogs, const Evaluator& evaluator, const Column& column, const Budget& budget, double unit,
          int threads = 0);
// All columns' cells. Rules run one after another; then searches that have one thread each, two at a time; then `auto`,
// by itself on all processors.
std::vector<Cell> PlayAll(const Catalogs& catalogs, const Evaluator& evaluator, const std::vector<Column>& columns,
                          const Budget& budget, double unit);

// As text, with three digits.
std::string Number(double value);
std::string Text(const Cell& cell, bool best);
// Of all rows' cells in which both have a value: the geometric mean of the first over the second.
std::optional<double> MeanRatio(const std::vector<std::vector<Cell>>& table, size_t of, size_t to);

// "| a | b |" and the line below it; the first `left` columns are aligned to the left.
void WriteHead(const std::vector<std::string>& left, const std::vector<std::string>& right,
               const std::vector<Column>& columns);
// All columns' cells, the best bold. A row's cells are printed as it ends, so that a long run shows where it is.
std::vector<Cell> WriteCells(const Catalogs& catalogs, const Evaluator& evaluator, const std::vector<Column>& columns,
                             const Budget& budget, double unit);

// Training and inference of the papers' networks, training where memory binds, `auto` with more time, large graphs.
void WritePapers(const Catalogs& catalogs, const Options& options);
void WriteMemory(const Catalogs& catalogs, const Options& options);
void WriteTime(const Catalogs& catalogs, const Options& options);
void WriteLarge(const Catalogs& catalogs, const Options& options);
// Instances whose optimum is known, and Moirai's, from the folder of the data sets.
void WriteInstances(const Catalogs& catalogs, const std::string& data, const Options& options);

}  // namespace berth
