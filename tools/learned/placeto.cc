// Placeto on its own simulator: intermediate against terminal rewards, what simple searches find, and what each part
// does.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "placement/bound.h"
#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

struct Table {
  std::string graph;
  Setup setup;
  std::vector<Row> rows{};

  void Add(std::string title, std::string planner, int seeds, int64_t most) {
    rows.push_back({std::move(title), std::move(planner), seeds, most});
  }
};

std::unique_ptr<Table> MakeTable(const Catalogs& catalogs, const std::string& graph, int devices) {
  ProblemStrings strings;
  strings.model = fmt::format("{}/data/placeto/graphs/{}.json", BERTH_SHARED_DIR, graph);
  strings.cluster = fmt::format("placeto(devices={})", devices);
  strings.evaluator = "placeto";
  return std::make_unique<Table>(Table{fmt::format("{}, {}", graph, devices), MakeSetup(catalogs, strings)});
}

void Print(const Catalogs& catalogs, std::vector<std::unique_ptr<Table>>& tables) {
  Jobs jobs;
  for (const auto& table : tables) Fill(jobs, catalogs, table->setup, table->rows);
  jobs.Run();
  fmt::print(
      "| graph, devices | lower bound | method | evaluations | best sample | policy's likeliest | time of a run |\n"
      "|---|---:|---|---:|---:|---:|---:|\n");
  for (const auto& table : tables) {
    const double bound = LowerBound(*table->setup.evaluator).time * table->setup.problem->seconds_per_unit();
    for (const Row& row : table->rows) {
      fmt::print("| {} | {:.1f} | {} | {} | {:.1f} | {} | {:.1f} s |\n", table->graph, bound * 1e6, row.title,
                 row.evaluations, row.Best() * 1e6, Cell(row.Policy() * 1e6, 1), row.Wall());
    }
  }
  fmt::print("\n");
}

std::string Tuned(const std::string& more) {
  return fmt::format("placeto({}{})", kTuned, more.empty() ? "" : "," + more);
}

}  // namespace

void WritePlaceto(const Catalogs& catalogs, bool quick, const std::string&) {
  const int seeds = quick ? 1 : 5;
  const int64_t episodes = quick ? 20 : 200;
  std::vector<std::unique_ptr<Table>> tables;
  for (const auto& [graph, devices] :
       std::vector<std::pair<std::string, int>>{{"chain_N10_d2_cheapcomm", 2}, {"crown_N4_d2", 2}, {"layered_30", 2}}) {
    Table& table = *tables.emplace_back(MakeTable(catalogs, graph, devices));
    const int64_t whole = episodes * (static_cast<int64_t>(table.setup.problem->num_ops()) + 1) + 1;
    table.Add("as in the paper, intermediate rewards", "placeto(mode=paper)", seeds, whole);
    table.Add("tuned, intermediate rewards", Tuned(""), seeds, whole);
    table.Add("tuned, terminal reward, as many episodes", Tuned("credit=terminal"), seeds, episodes + 1);
    table.Add("tuned, terminal reward, as many evaluations", Tuned("credit=terminal"), seeds, whole);
    table.Add("tuned, best future point", Tuned("credit=best_future"), seeds, whole);
    table.Add("**placeto**", "placeto", seeds, whole);
    table.Add("random", "random", seeds, whole);
    table.Add("hill climbing", "local_search", seeds, whole);
  }
  fmt::print(
      "## Placeto on its simulator\n\n{} episodes; medians of {} seeds, in microseconds. Tuned: the published form "
      "with "
      "logarithmic, normalised rewards and an entropy bonus of 0.01 that ends at 0.\n\n",
      episodes, seeds);
  Print(catalogs, tables);
}

void WritePlacetoAblations(const Catalogs& catalogs, bool quick, const std::string&) {
  const int seeds = quick ? 1 : 3;
  const int64_t episodes = quick ? 20 : 200;
  std::vector<std::unique_ptr<Table>> tables;
  Table& table = *tables.emplace_back(MakeTable(catalogs, "layered_30", 2));
  const int64_t whole = episodes * (static_cast<int64_t>(table.setup.problem->num_ops()) + 1) + 1;
  const auto tuned = [&](std::string title, const std::string& more) {
    table.Add(std::move(title), Tuned(more), seeds, whole);
  };
  tuned("tuned", "");
  tuned("nodes in a shuffled order", "order=shuffled");
  tuned("simple aggregator: the sum over all nodes", "aggregator=all");
  tuned("no messages beyond neighbours (1 round)", "rounds=1");
  tuned("full sweep", "rounds=0");
  tuned("means instead of sums", "pooling=mean");
  table.Add("reward in seconds",
            "placeto(mode=paper,normalise=true,entropy=0.01,entropy_end=0,learning_rate=0.003,"
            "learning_rate_end=0.0003)",
            seeds, whole);
  tuned("a random start per episode", "start=varying");
  tuned("start on the first device", "start=first");
  tuned("start times as a feature, as in the released code", "start_times=true");
  const auto ours = [&](std::string title, const std::string& parameters) {
    table.Add(std::move(title), parameters.empty() ? "placeto" : fmt::format("placeto({})", parameters), seeds, whole);
  };
  ours("**placeto**", "");
  ours("an output per device", "head=devices");
  ours("times as shares of the largest", "scale=largest");
  ours("undiscounted", "gamma=1");
  ours("a random start, always the same", "start=random");
  ours("REINFORCE, one step per update", "ppo=0,epochs=1");
  ours("nodes in a shuffled order", "order=shuffled");
  ours("simple aggregator", "aggregator=all");
  fmt::print(
      "## What each part of Placeto does\n\n{} episodes on a layered graph of 30 ops; medians of {} seeds, in "
      "microseconds. First from the tuned published form, then from ours.\n\n",
      episodes, seeds);
  Print(catalogs, tables);
}

}  // namespace berth::learned
