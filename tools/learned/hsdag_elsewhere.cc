// HSDAG off its benchmark: ops run side by side, so that no sum of prices is what a placement costs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "exec/statistics.h"
#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

constexpr const char* kBlackBox = "hsdag as a black box";

// What a user is answered with, in seconds, by seed.
std::vector<double> Answers(const Row& row) {
  std::vector<double> answers;
  for (const Outcome& outcome : row.outcome) answers.push_back(outcome.found);
  return answers;
}

const Row& RowOf(const Table& table, const std::string& title) {
  return *std::ranges::find(table.rows, title, &Row::title);
}

}  // namespace

void WriteHsdagElsewhere(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 5;
  const int64_t evaluations = quick ? 100 : 2000;
  std::vector<Table> tables;
  for (const char* model : {"inception_v3", "nasnet", "mixture", "dlrm", "resnet50"}) {
    for (const char* cluster : {"cpu_gpu", "k80x4"}) {
      if (quick && !tables.empty()) continue;
      Table& table = tables.emplace_back(Table{.title = fmt::format("{}, {}", model, cluster),
                                               .setup = MakePorts(catalogs, model, cluster, false),
                                               .digits = 3});
      table.sentence = fmt::format("{} ops.", table.setup->problem->num_ops());
      AddRules(table, seeds, evaluations);
      AddSearches(table, seeds, evaluations, "**hsdag**");
      AddLearned(table, kBlackBox, "hsdag(critic=blank,costs=false)", seeds, evaluations);
      AddLearned(table, "**hsdag**", "hsdag", seeds, evaluations, kOurs, kOursPale);
    }
  }
  Measure(catalogs, "hsdag-elsewhere", tables);
  fmt::print(
      "## HSDAG off its benchmark\n\nOne inference under `parallel(contention=ports)`, {} evaluations, {}; ms, "
      "medians. The best simple answer is that of `heft` or of the simple searches with as many evaluations (random and "
      "hill climbing on ops, hill climbing and annealing on co-location groups); `hsdag` answers with the best that it scored, "
      "whoever brought it up. As a black box (`critic=blank,costs=false`) it reads no op or transfer times, and knows of a "
      "placement's time only what its evaluations say.\n\n"
      "| problem | ops | `human` | `auto` | the best simple answer | | `hsdag` as a black box, untrained | `hsdag` as a "
      "black box | `hsdag`, untrained | **hsdag** | above the best simple answer "
      "|\n|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|\n",
      evaluations, Counted(seeds, "seed"));
  int at_or_below = 0;
  double worst = 0;
  for (const Table& table : tables) {
    const Row* simple = &RowOf(table, "`heft`");
    for (const Row& row : table.rows) {
      if (row.search && Median(Answers(row)) < Median(Answers(*simple))) simple = &row;
    }
    const auto cell = [&](const std::string& title) {
      const Row& row = RowOf(table, title);
      return row.outcome.empty() ? "refuses" : WithInterval(Answers(row), 1e3, 3);
    };
    const double above = Median(Answers(RowOf(table, "**hsdag**"))) / Median(Answers(*simple)) - 1;
    if (above <= 0.0005) ++at_or_below;
    worst = std::max(worst, above);
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:+.1f} % |\n", table.title,
               table.setup->problem->num_ops(), cell("`human`"), cell("`auto`"), WithInterval(Answers(*simple), 1e3, 3),
               simple->title, cell(fmt::format("{}, untrained", kBlackBox)), cell(kBlackBox), cell("hsdag, untrained"),
               cell("**hsdag**"), 100 * above);
  }
  fmt::print("\nAt or below the best simple answer (within 0.05 %) on {} of {}; at most {:.1f} % above it.\n\n",
             at_or_below, tables.size(), 100 * worst);
  for (size_t t = 0; t < tables.size(); ++t) Write(tables[t], fmt::format("hsdag-elsewhere_{}", t + 1), pictures);
}

}  // namespace berth::learned
