// Networks of the papers, as our formulas make them.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "placement/bound.h"
#include "tools/planners/rows.h"

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

Setup MakeRow(const Catalogs& catalogs, const Row& row, const char* mode) {
  ProblemStrings strings;
  strings.model = row.model;
  strings.cluster = row.cluster;
  strings.mode = mode;
  strings.costs = "roofline(fusion=none)";  // as published, op by op
  strings.evaluator = "parallel(contention=ports)";
  return MakeSetup(catalogs, strings);
}

bool Wanted(const Options& options, const char* table, const Row& row) {
  return fmt::format("{} {} {}", table, row.model, row.cluster).find(options.only) != std::string::npos;
}

// The geometric means over the planner `human`, where that is a column.
void WriteMeans(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& table) {
  size_t reference = 0;
  while (reference < columns.size() && columns[reference].planner != "human") ++reference;
  if (reference == columns.size() || table.empty()) return;
  fmt::print("| geometric mean over `human` | | |");
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::optional<double> ratio = MeanRatio(table, i, reference);
    fmt::print(" {} |", ratio ? fmt::format("{:.3f}", *ratio) : "-");
  }
  fmt::print("\n");
}

void WriteTable(const Catalogs& catalogs, std::span<const Row> rows, const char* mode,
                const std::vector<Column>& columns, const Options& options) {
  WriteHead({"graph, cluster"}, {"ops", "bound"}, columns);
  std::vector<std::vector<Cell>> table;
  for (const Row& row : rows) {
    if (!Wanted(options, mode, row)) continue;
    const Setup setup = MakeRow(catalogs, row, mode);
    const double ms = setup.problem->seconds_per_unit() * 1e3;
    fmt::print("| `{}`, {} | {} | {} |", row.model, row.cluster, setup.problem->num_ops(),
               Number(LowerBound(*setup.evaluator).value() * ms));
    table.push_back(WriteCells(catalogs, *setup.evaluator, columns, options.BudgetOr(5), ms));
  }
  WriteMeans(columns, table);
}

// The same problem with other limits.
Problem WithLimits(const Problem& problem, std::vector<int64_t> limits) {
  OpTimes times{.time = {}, .measured = {}, .source = problem.cost_source()};
  for (const OpId op : problem.graph().ops()) {
    for (const double time : problem.op_times(op)) times.time.push_back(time);
  }
  return Problem(problem.shared_graph(), problem.shared_cluster(), std::move(times),
                 {.seconds_per_unit = problem.seconds_per_unit(),
                  .constraints = problem.constraints(),
                  .memory_limits = std::move(limits)});
}

}  // namespace

void WritePapers(const Catalogs& catalogs, const Options& options) {
  const std::vector<Column> columns = options.ColumnsOr({{"single"},
                                                         {"human"},
                                                         {"metis"},
                                                         {"heft(clusters=never)"},
                                                         {"heft"},
                                                         {"etf"},
                                                         {"annealing(order=rank,hot=0.001)", true},
                                                         {"multilevel", true},
                                                         {"brkga", true},
                                                         {"cross_entropy", true},
                                                         {"auto", true}});
  fmt::print("### Training steps\n\n");
  WriteTable(catalogs, kTraining, "training", columns, options);
  fmt::print("\n### Inference\n\n");
  WriteTable(catalogs, kInference, "inference", columns, options);
}

void WriteMemory(const Catalogs& catalogs, const Options& options) {
  constexpr double kRoom = 1.1;
  const std::vector<Column> columns = options.ColumnsOr({{"human"},
                                                         {"memory_proportional"},
                                                         {"topo"},
                                                         {"heft"},
                                                         {"etf"},
                                                         {"annealing(order=rank,hot=0.001)", true},
                                                         {"multilevel", true},
                                                         {"brkga", true},
                                                         {"cross_entropy", true},
                                                         {"auto", true}});
  fmt::print("\n### Training steps where memory binds\n\n");
  WriteHead({"graph, cluster"}, {"GB in all", "bound"}, columns);
  std::vector<std::vector<Cell>> table;
  for (const Row& row : kTraining) {
    if (!Wanted(options, "memory", row)) continue;
    const Setup setup = MakeRow(catalogs, row, "training");
    const PlanResult human = catalogs.planners.MakePlanner("human")->MakePlan(
        {.evaluator = *setup.evaluator, .budget = {}, .random = Random(1)});
    std::vector<int64_t> limits;
    double sum = 0;
    for (const DeviceMemory& device : setup.evaluator->Trace(human.plan.view()).memory) {
      limits.push_back(static_cast<int64_t>(kRoom * static_cast<double>(device.peak_bytes)));
      sum += static_cast<double>(limits.back());
    }
    const Problem problem = WithLimits(*setup.problem, std::move(limits));
    const auto evaluator = catalogs.evaluators.Make(setup.evaluator->name(), problem);
    const double ms = problem.seconds_per_unit() * 1e3;
    fmt::print("| `{}`, {} | {:.2f} | {} |", row.model, row.cluster, sum / 1e9,
               Number(LowerBound(*evaluator).value() * ms));
    table.push_back(WriteCells(catalogs, *evaluator, columns, options.BudgetOr(10), ms));
  }
  WriteMeans(columns, table);
}

}  // namespace berth
