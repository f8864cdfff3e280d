// Writes the tables of docs/planners.md to standard output: ./dev bench-planners. Every figure in it is measured here.
//   usage: planners [--seconds N | --evaluations N] [--only TEXT] [--planners LIST]
//          planners --why
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "cli/catalogs.h"
#include "cli/problem_factory.h"
#include "placement/bound.h"
#include "tools/planners/why.h"

namespace berth {
namespace {

struct Row {
  const char* model;
  const char* cluster;
};

// Sizes as in the papers (GDP's table, Placeto's table), as far as the formulas have them.
constexpr Row kTraining[] = {
    {"rnnlm(layers=2)", "p100x2"},
    {"rnnlm(layers=4)", "p100x4"},
    {"rnnlm(layers=8,steps=40)", "p100x8"},
    {"gnmt(layers=2)", "p100x2"},
    {"gnmt(layers=4)", "p100x4"},
    {"gnmt(layers=8,steps=40)", "p100x8"},
    {"gnmt(layers=8,steps=40)", "h100x8"},
    {"nmt", "p100x4"},
    {"nmt", "k80x4"},
    {"transformer_xl(layers=2)", "p100x2"},
    {"transformer_xl(layers=4)", "p100x4"},
    {"transformer_xl(layers=8)", "p100x8"},
    {"bert", "v100x4"},
    {"inception_v3", "p100x2"},
    {"inception_v3", "k80x4"},
    {"nasnet", "p100x4"},
    {"amoebanet", "p100x4"},
    {"wavenet(stacks=2)", "p100x2"},
    {"wavenet", "p100x4"},
};
constexpr Row kInference[] = {
    {"rnnlm(layers=8,steps=40)", "p100x8"},
    {"gnmt(layers=4)", "p100x4"},
    {"gnmt(layers=8,steps=40)", "h100x8"},
    {"nmt", "p100x4"},
    {"lstm_grid", "p100x4"},
    {"transformer_xl(layers=4)", "p100x4"},
    {"inception_v3", "p100x4"},
    {"inception_v3", "cpu_gpu"},
    {"nasnet", "p100x4"},
    {"wavenet", "p100x4"},
    {"bert", "v100x4"},
};

struct Column {
  std::string planner;
  bool searches = false;  // else a rule or a schedule, which ends by itself
};

std::vector<Column> DefaultColumns() {
  return {
      {"single"},    {"human"}, {"metis"}, {"heft(clusters=never)"}, {"heft"}, {"etf"}, {"annealing(order=rank)", true},
      {"auto", true}};
}

struct Cell {
  double value = std::numeric_limits<double>::quiet_NaN();  // ms; infinity where the plan does not fit
  double seconds = 0;
};

struct Options {
  Budget budget{.seconds = 5};
  std::string only;
  std::vector<Column> columns = DefaultColumns();
};

Cell Play(const Catalogs& catalogs, const Setup& setup, const Column& column, const Budget& budget) {
  const auto planner = catalogs.planners.MakePlanner(column.planner);
  if (planner->Refuses(*setup.problem, *setup.evaluator)) return {};
  // Rules end by themselves; the clock is for those that would not.
  const PlanResult result = planner->MakePlan({.evaluator = *setup.evaluator,
                                               .budget = column.searches ? budget : Budget{.seconds = 600},
                                               .random = Random(1)});
  const double value = result.score.fits() ? result.score.value() * setup.problem->seconds_per_unit() * 1e3
                                           : std::numeric_limits<double>::infinity();
  return {.value = value, .seconds = result.wall_seconds};
}

std::string Number(double ms) {
  if (std::isnan(ms)) return "-";
  if (std::isinf(ms)) return "out of memory";
  return ms < 10 ? fmt::format("{:.2f}", ms) : ms < 100 ? fmt::format("{:.1f}", ms) : fmt::format("{:.0f}", ms);
}

std::string Text(const Cell& cell, bool best) {
  if (std::isnan(cell.value)) return "refuses";
  const std::string number = Number(cell.value);
  return fmt::format("{} ({:.2g} s)", best ? fmt::format("**{}**", number) : number, cell.seconds);
}

// A row's cells as it ends, so that a long run shows where it is.
std::vector<Cell> WriteRow(const Catalogs& catalogs, const Row& row, const char* mode, const Options& options) {
  ProblemStrings strings;
  strings.model = row.model;
  strings.cluster = row.cluster;
  strings.mode = mode;
  strings.evaluator = "parallel(contention=ports)";
  const Setup setup = MakeSetup(catalogs, strings);
  const double bound = LowerBound(*setup.evaluator).value() * setup.problem->seconds_per_unit() * 1e3;
  std::vector<Cell> cells;
  double best = std::numeric_limits<double>::infinity();
  for (const Column& column : options.columns) {
    cells.push_back(Play(catalogs, setup, column, options.budget));
    if (cells.back().value < best) best = cells.back().value;
  }
  fmt::print("| `{}`, {} | {} | {} |", row.model, row.cluster, setup.problem->num_ops(), Number(bound));
  for (const Cell& cell : cells) fmt::print(" {} |", Text(cell, cell.value <= best));
  fmt::print("\n");
  std::fflush(stdout);
  return cells;
}

// Over the rows in which each of the two has a plan that fits.
std::optional<double> MeanRatio(const std::vector<std::vector<Cell>>& table, size_t of, size_t to) {
  double sum = 0;
  int count = 0;
  for (const std::vector<Cell>& row : table) {
    const double ratio = row[of].value / row[to].value;
    if (!std::isfinite(ratio)) continue;
    sum += std::log(ratio);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::exp(sum / count);
}

void WriteTable(const Catalogs& catalogs, std::span<const Row> rows, const char* mode, const Options& options) {
  fmt::print("| graph, cluster | ops | bound |");
  for (const Column& column : options.columns) fmt::print(" `{}` |", column.planner);
  fmt::print("\n|---|---:|---:|");
  for (size_t i = 0; i < options.columns.size(); ++i) fmt::print("---:|");
  fmt::print("\n");
  std::vector<std::vector<Cell>> table;
  for (const Row& row : rows) {
    if (fmt::format("{} {} {}", mode, row.model, row.cluster).find(options.only) == std::string::npos) continue;
    table.push_back(WriteRow(catalogs, row, mode, options));
  }
  size_t reference = 0;
  while (reference < options.columns.size() && options.columns[reference].planner != "human") ++reference;
  if (reference == options.columns.size() || table.empty()) return;
  fmt::print("| geometric mean over `human` | | |");
  for (size_t i = 0; i < options.columns.size(); ++i) {
    const std::optional<double> ratio = MeanRatio(table, i, reference);
    fmt::print(" {} |", ratio ? fmt::format("{:.3f}", *ratio) : "-");
  }
  fmt::print("\n");
}

int Run(int argc, char** argv) {
  Options options;
  bool why = false;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view argument = argv[i];
    if (argument == "--why") {
      why = true;
      --i;  // it has no value
      continue;
    }
    if (i + 1 == argc) throw Error("{} wants a value", argument);
    if (argument == "--seconds") {
      options.budget = {.seconds = std::stod(argv[i + 1])};
    } else if (argument == "--evaluations") {
      options.budget = {.evaluations = std::stoll(argv[i + 1])};
    } else if (argument == "--only") {
      options.only = argv[i + 1];
    } else if (argument == "--planners") {
      options.columns.clear();
      for (std::string& name : SplitList(argv[i + 1])) options.columns.push_back({std::move(name), true});
    } else {
      throw Error("it knows --seconds N, --evaluations N, --only TEXT and --planners LIST, not {}", argument);
    }
  }
  const Catalogs catalogs;
  if (why) {
    WriteWhy(catalogs);
    return 0;
  }
  fmt::print("### Training steps\n\n");
  WriteTable(catalogs, kTraining, "training", options);
  fmt::print("\n### Inference\n\n");
  WriteTable(catalogs, kInference, "inference", options);
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) try { return berth::Run(argc, argv); } catch (const std::exception& error) {
  fmt::print(stderr, "bench-planners: {}\n", error.what());
  return 2;
}
