// Networks of the papers, as our formulas make them.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "placement/bound.h"
#include "tools/common/intervals.h"
#include "tools/common/problems.h"
#include "tools/planners/rows.h"

namespace berth {
namespace {

struct Row {
  const char* model;
  const char* cluster;
  bool tight = false;  // also where memory binds: one machine for most networks
};

// Sizes as in the papers (GDP's table, Placeto's table), as far as the formulas have them; training and inference.
constexpr Row kPapers[] = {
    {"rnnlm(layers=2)", "p100x2", true},
    {"rnnlm(layers=2)", "k80x2"},
    {"rnnlm(layers=4)", "p100x4", true},
    {"rnnlm(layers=4)", "k80x4"},
    {"rnnlm(layers=4)", "v100x4"},
    {"rnnlm(layers=8,steps=40)", "p100x8", true},
    {"rnnlm(layers=8,steps=40)", "k80x8"},
    {"rnnlm(layers=8,steps=40)", "h100x8"},
    {"gnmt(layers=2)", "p100x2", true},
    {"gnmt(layers=2)", "k80x2"},
    {"gnmt(layers=4)", "p100x4", true},
    {"gnmt(layers=4)", "k80x4"},
    {"gnmt(layers=4)", "v100x4"},
    {"gnmt(layers=8,steps=40)", "p100x8", true},
    {"gnmt(layers=8,steps=40)", "k80x8"},
    {"gnmt(layers=8,steps=40)", "h100x8", true},
    {"nmt", "k80x2"},
    {"nmt", "k80x4", true},
    {"nmt", "p100x4", true},
    {"transformer_xl(layers=2)", "p100x2", true},
    {"transformer_xl(layers=4)", "p100x4", true},
    {"transformer_xl(layers=4)", "v100x4"},
    {"transformer_xl(layers=8)", "p100x8", true},
    {"transformer_xl(layers=8)", "k80x8"},
    {"transformer_xl(layers=8)", "h100x8"},
    {"bert", "v100x4", true},
    {"bert", "h100x8"},
    {"inception_v3", "p100x2", true},
    {"inception_v3", "k80x2"},
    {"inception_v3", "k80x4", true},
    {"inception_v3", "v100x4"},
    {"nasnet", "p100x4", true},
    {"nasnet", "k80x2"},
    {"nasnet", "k80x4"},
    {"amoebanet", "p100x4", true},
    {"amoebanet", "v100x4"},
    {"wavenet(stacks=2)", "p100x2", true},
    {"wavenet", "p100x4", true},
    {"wavenet", "v100x4"},
};
// Inference alone: what has no training step of its own, and a machine of a processor and a GPU.
constexpr Row kOnlyInference[] = {{"lstm_grid", "p100x4"}, {"inception_v3", "cpu_gpu"}, {"nasnet", "cpu_gpu"}};
// Training: what more time is good for.
constexpr Row kTime[] = {
    {"rnnlm(layers=4)", "p100x4"},
    {"gnmt(layers=4)", "p100x4"},
    {"gnmt(layers=8,steps=40)", "h100x8"},
    {"nmt", "k80x4"},
    {"bert", "v100x4"},
    {"inception_v3", "k80x4"},
    {"nasnet", "p100x4"},
    {"amoebanet", "p100x4"},
    {"wavenet", "p100x4"},
};
// Inference of large graphs on eight devices.
constexpr Row kLarge[] = {
    {"lstm_grid(layers=8,steps=10000)", "p100x8"},
    {"gnmt(layers=8,steps=284)", "p100x8"},
    {"layered(ops=80000,flops=1e10)", "p100x8"},
    {"layered(ops=1000000,flops=1e10)", "p100x8"},
};

Setup MakeRow(const Catalogs& catalogs, const Row& row, const char* mode) {
  return MakeSetup(catalogs, StepOn(row.model, row.cluster, std::string_view(mode) == "training"));
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

// "| graph, cluster | ops | bound |": ms per unit of time.
double WriteTitle(const Row& row, const Setup& setup) {
  const double ms = setup.problem->seconds_per_unit() * 1e3;
  fmt::print("| `{}`, {} | {} | {} |", row.model, row.cluster, setup.problem->num_ops(),
             Number(LowerBound(*setup.evaluator).value() * ms));
  return ms;
}

void WriteRows(const Catalogs& catalogs, std::span<const Row> rows, const char* mode,
               const std::vector<Column>& columns, const Options& options, double seconds,
               std::vector<std::vector<Cell>>& table) {
  for (const Row& row : rows) {
    if (!Wanted(options, mode, row)) continue;
    const Setup setup = MakeRow(catalogs, row, mode);
    const double ms = WriteTitle(row, setup);
    table.push_back(WriteCells(catalogs, *setup.evaluator, columns, options.BudgetOr(seconds), ms));
  }
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
  constexpr double kSeconds = 5;
  const std::vector<Column> columns = options.ColumnsOr({{"single"},
                                                         {"human"},
                                                         {"metis"},
                                                         {"scotch"},
                                                         {"heft(clusters=never)"},
                                                         {"heft"},
                                                         {"etf"},
                                                         {"sct"},
                                                         {"annealing(order=rank,hot=0.001)", true},
                                                         {"multilevel", true},
                                                         {"auto", true}});
  for (const char* mode : {"training", "inference"}) {
    const bool training = std::string_view(mode) == "training";
    fmt::print("{}\n\n", training ? "### Training steps" : "\n### Inference");
    WriteHead({"graph, cluster"}, {"ops", "bound"}, columns);
    std::vector<std::vector<Cell>> table;
    WriteRows(catalogs, kPapers, mode, columns, options, kSeconds, table);
    if (!training) WriteRows(catalogs, kOnlyInference, mode, columns, options, kSeconds, table);
    WriteMeans(columns, table);
  }
}

void WriteTime(const Catalogs& catalogs, const Options& options) {
  constexpr double kSeconds[] = {1, 10, 60};
  fmt::print(
      "\n### What more time is good for\n\n| step of training | bound | 1 s | 10 s | 60 s | 1 s over 60 s |\n"
      "|---|---:|---:|---:|---:|---:|\n");
  std::vector<double> ratios;
  for (const Row& row : kTime) {
    if (!Wanted(options, "time", row)) continue;
    const Setup setup = MakeRow(catalogs, row, "training");
    const double ms = setup.problem->seconds_per_unit() * 1e3;
    fmt::print("| `{}`, {} | {} |", row.model, row.cluster, Number(LowerBound(*setup.evaluator).value() * ms));
    double first = 0, last = 0;
    for (const double seconds : kSeconds) {
      last = Play(catalogs, *setup.evaluator, {"auto", true}, Budget{.seconds = seconds}, ms).value;
      if (first == 0) first = last;
      fmt::print(" {} |", Number(last));
    }
    fmt::print(" {:.3f} |\n", first / last);
    std::fflush(stdout);
    ratios.push_back(first / last);
  }
  if (!ratios.empty()) fmt::print("| geometric mean | | | | | {:.3f} |\n", GeometricMean(ratios));
}

void WriteLarge(const Catalogs& catalogs, const Options& options) {
  const std::vector<Column> columns =
      options.ColumnsOr({{"human"}, {"metis"}, {"heft"}, {"etf"}, {"multilevel", true}, {"auto", true}});
  fmt::print("\n### Large graphs\n\n");
  WriteHead({"graph, cluster"}, {"ops", "bound"}, columns);
  for (const Row& row : kLarge) {
    if (!Wanted(options, "large", row)) continue;
    const Setup setup = MakeRow(catalogs, row, "inference");
    const double ms = WriteTitle(row, setup);
    // A million ops may take longer.
    const double seconds = setup.problem->num_ops() > 100'000 ? 30 : 10;
    WriteCells(catalogs, *setup.evaluator, columns, options.BudgetOr(seconds), ms);
  }
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
  for (const Row& row : kPapers) {
    if (!row.tight || !Wanted(options, "memory", row)) continue;
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
