// GDP: what its likeliest placement is worth where the optimum is known, on training steps beside people's rules, and
// how its updates grow with the graph.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/system_limits.h"
#include "base/units.h"
#include "exec/statistics.h"
#include "placement/bound.h"
#include "tools/common/intervals.h"
#include "tools/learned/common.h"
#include "tools/learned/gdp_lessons.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

// Of a straight line through the points, by least squares.
double Slope(const std::vector<double>& x, const std::vector<double>& y) {
  const double mean_x = Mean(x), mean_y = Mean(y);
  double across = 0, along = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    across += (x[i] - mean_x) * (y[i] - mean_y);
    along += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return across / along;
}

// Rows over all graphs, which have the same rows. Of several seeds on a graph the geometric mean counts, so that an
// interval says how graphs differ.
void PrintOverGraphs(std::span<const Table> tables) {
  fmt::print(
      "| method | seeds | likeliest is the optimum | likeliest over the optimum | best drawn, or found, over the "
      "optimum | seconds |\n|---|---:|---:|---:|---:|---:|\n");
  for (size_t r = 1; r < tables[0].rows.size(); ++r) {
    const Row& first = tables[0].rows[r];
    int hits = 0, answers = 0;
    std::vector<double> likeliest, drawn, seconds;
    for (const Table& table : tables) {
      const Row& row = table.rows[r];
      const double optimum = table.rows[0].outcome[0].found;
      const auto add = [optimum](std::vector<double> of_seeds, std::vector<double>& to) {
        for (double& each : of_seeds) each /= optimum;
        if (!of_seeds.empty()) to.push_back(GeometricMean(of_seeds));
      };
      for (const double each : row.Likeliest()) {
        ++answers;
        if (each / optimum < 1 + 1e-9) ++hits;
      }
      add(row.Likeliest(), likeliest);
      add(row.Drawn(), drawn);
      seconds.push_back(row.processor());
    }
    if (drawn.size() < tables.size()) continue;  // ratios are compared over the same graphs alone
    const std::string title = first.as_long_as.empty() ? first.title : "the best of these, as many seconds as gdp";
    fmt::print("| {} | {} | {} | {} | {} | {:.1f} |\n", title, first.outcome.size(),
               likeliest.empty() ? "" : fmt::format("{} of {}", hits, answers),
               likeliest.empty() ? "" : MeanWithInterval(likeliest), MeanWithInterval(drawn), Median(seconds));
  }
  fmt::print("\n");
}

// All graphs as one, with each time over the graph's optimum.
Table OverOptimum(std::span<const Table> tables, const std::string& title) {
  Table all{.title = title, .unit = "times the optimum", .per_second = 1, .over = "graphs and seeds"};
  for (const Table& table : tables) {
    const double optimum = table.rows[0].outcome[0].found;
    for (size_t r = 0; r < table.rows.size(); ++r) {
      if (all.rows.size() == r) {
        const Row& like = table.rows[r];
        all.Add({.title = like.title, .evaluations = like.evaluations, .colour = like.colour});
      }
      for (const Outcome& outcome : table.rows[r].outcome) {
        Outcome& over = all.rows[r].outcome.emplace_back(outcome);
        for (Improvement& each : over.improvements) each.found /= optimum;
        if (over.learned) {
          for (Learned::Update& update : over.learned->updates) update.drawn /= optimum;
        }
      }
    }
  }
  return all;
}

}  // namespace

void WriteGdp(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int graphs = quick ? 2 : 10, seeds = quick ? 1 : 5;
  const int64_t evaluations = quick ? 161 : 8001;
  std::vector<Table> tables = MakeSmall(catalogs, 1, graphs), others = MakeSmall(catalogs, 301, graphs);
  for (Table& table : tables) {
    AddRules(table, 1, evaluations);
    AddSearches(table, 1, evaluations, "**gdp**");
    AddLearned(table, "as in the papers: `mode=paper`", "gdp(mode=paper)", 1, evaluations, kPaper, kPaperPale);
    const auto add = [&](const char* title, const char* planner, int of) {
      table.Add({.title = title, .planner = planner, .seeds = of, .evaluations = evaluations});
    };
    add("no attention: `layers=0`", "gdp(layers=0)", seeds);
    add("no order: `order=shuffled`", "gdp(order=shuffled)", seeds);
    add("superposition: `superposition=true`", "gdp(superposition=true)", seeds);
    add("no memory: `memory=0`", "gdp(memory=0)", 1);
    add("may draw again: `distinct=false`", "gdp(distinct=false)", 1);
    add("one round: `restart_every=0`", "gdp(restart_every=0)", 1);
    add("none of the three", "gdp(memory=0,distinct=false,restart_every=0)", 1);
    add("from the odds alone: `near=0`", "gdp(near=0)", 1);
    add("each op by itself: `coupled=false`", "gdp(coupled=false)", 1);
    add("any names: `symmetric=false`", "gdp(symmetric=false)", 1);
    AddLearned(table, "**gdp**", "gdp", seeds, evaluations, kOurs, kOursPale);
  }
  for (Table& table : others) {
    AddRules(table, 1, evaluations);
    AddSearches(table, 1, evaluations, "**gdp**");
    AddLearned(table, "from the odds alone: `near=0`", "gdp(near=0)", 1, evaluations);
    AddLearned(table, "**gdp**", "gdp", 1, evaluations, kOurs, kOursPale);
  }
  Measure(catalogs, "gdp", tables);
  Measure(catalogs, "gdp", others);
  fmt::print(
      "## GDP where the optimum is known\n\n{} random layered graphs of 20 ops on two GPUs (`k80x2`, "
      "`parallel(contention=ports)`), {} evaluations. Ratios to the optimum among placements whose "
      "ops run first come, first served (`exhaustive`): geometric means over the graphs, of several seeds of their "
      "geometric mean on the graph, with 95 % intervals by bootstrap over the graphs. `auto` orders ops too, and may "
      "end below it. The rows that change one thing (*no attention* and those after it) have no twin of their own: "
      "compare them with *gdp, untrained*, which has no model of costs either, since it does not learn. (`near=0` makes "
      "no moves either: its twin is in the second table.)\n\n",
      graphs, evaluations);
  PrintOverGraphs(tables);
  WritePicture(OverOptimum(tables, "graphs of 20 ops"), "gdp_1", pictures);
  fmt::print(
      "### On ten other graphs\n\nThe same with seeds 301 to {} of the graphs, on which nothing of `gdp` was "
      "designed.\n\n",
      300 + graphs);
  PrintOverGraphs(others);
  WritePicture(OverOptimum(others, "ten other graphs of 20 ops"), "gdp_2", pictures);
}

void WriteGdpTraining(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int64_t evaluations = quick ? 33 : 2001;
  const int seeds = quick ? 1 : 5;
  std::vector<std::pair<std::string, std::string>> problems = {{"rnnlm(layers=2)", "p100x2"}};
  if (!quick) {
    problems.insert(problems.end(), {{"gnmt(layers=2,steps=10)", "p100x2"},
                                     {"inception_v3", "k80x2"},
                                     {"two_towers", "k80x2"},
                                     {"lstm_grid(layers=4,steps=20)", "p100x4"}});
  }
  std::vector<Table> tables;
  for (const auto& [model, cluster] : problems) {
    Table& table =
        tables.emplace_back(Table{.title = model + ", " + cluster, .setup = MakePorts(catalogs, model, cluster, true)});
    table.sentence =
        fmt::format("{} ops; no placement takes less than {:.2f} ms, by the bound of `berth plan`.",
                    table.setup->problem->num_ops(),
                    LowerBound(*table.setup->evaluator).value() * table.setup->problem->seconds_per_unit() * 1e3);
    AddRules(table, seeds, evaluations);
    AddSearches(table, seeds, evaluations, "**gdp**");
    AddLearned(table, "gdp, as in the papers", "gdp(mode=paper)", seeds, evaluations, kPaper, kPaperPale);
    AddLearned(table, "gdp, no attention: `layers=0`", "gdp(layers=0)", seeds, evaluations);
    AddLearned(table, "gdp, no order: `order=shuffled`", "gdp(order=shuffled)", seeds, evaluations);
    AddLearned(table, "gdp, from the odds alone", "gdp(near=0)", seeds, evaluations);
    AddLearned(table, "gdp, from the odds alone, no attention", "gdp(near=0,layers=0)", seeds, evaluations);
    AddLearned(table, "gdp, from the odds alone, no order", "gdp(near=0,order=shuffled)", seeds, evaluations);
    AddLearned(table, "gdp, list schedule", "gdp(features=scheduled)", seeds, evaluations);
    AddLearned(table, "**gdp**", "gdp", seeds, evaluations, kOurs, kOursPale);
  }
  Measure(catalogs, "gdp-training", tables);
  fmt::print(
      "## GDP on training steps\n\nOne step with `sgd` under `parallel(contention=ports)`, {} evaluations, "
      "{}.\n\n",
      evaluations, Counted(seeds, "seed"));
  for (size_t t = 0; t < tables.size(); ++t) Write(tables[t], fmt::format("gdp-training_{}", t + 1), pictures);
}

void WriteGdpScale(const Catalogs& catalogs, bool quick, const std::string&) {
  const int runs = quick ? 1 : 5;
  const std::vector<int64_t> steps =
      quick ? std::vector<int64_t>{100, 400} : std::vector<int64_t>{625, 1250, 2500, 5000, 10000};
  const auto planner = [](const char* coupled) {
    return fmt::format("gdp(hidden=128,sage=3,layers=3,heads=8,inner=512,segment=256,epochs=1,rollouts=16,coupled={})",
                       coupled);
  };
  std::vector<std::unique_ptr<Setup>> setup;
  for (const int64_t each : steps) {
    setup.push_back(MakePorts(catalogs, fmt::format("lstm_grid(layers=8,steps={})", each), "p100x8", false));
  }
  const auto wall = [&](size_t s, const char* coupled, int64_t evaluations, uint64_t seed) {
    return Play(catalogs, *setup[s], planner(coupled), evaluations, seed, 0).wall;
  };
  // All of it takes as many times what the smallest graph takes as there are ops more.
  wall(0, "false", 1, 1);  // loads the library
  const double of_smallest =
      wall(0, "false", 1, 1) + wall(0, "true", kAnswer, 1) + wall(0, "false", 33, 1) + wall(0, "false", 17, 1);
  double times = 0;
  for (const auto& each : setup) {
    times += static_cast<double>(each->problem->num_ops()) / static_cast<double>(setup[0]->problem->num_ops());
  }
  SayPlan("gdp-scale", of_smallest * times * runs * static_cast<double>(UsableThreads()),
          fmt::format("{} of {} sizes, one after another on all processors", Counted(runs, "run"), steps.size()));
  std::vector<std::vector<double>> update(steps.size()), one(steps.size()), ten(steps.size());
  std::vector<double> slope;
  // In turns, so that a change of the machine's speed falls on all sizes.
  for (int run = 0; run < runs; ++run) {
    std::vector<double> size, time;
    for (size_t s = 0; s < steps.size(); ++s) {
      const auto seed = static_cast<uint64_t>(run) + 1;
      one[s].push_back(wall(s, "false", 1, seed));
      ten[s].push_back(wall(s, "true", kAnswer, seed));
      update[s].push_back(wall(s, "false", 33, seed) - wall(s, "false", 17, seed));
      size.push_back(std::log(static_cast<double>(setup[s]->problem->num_ops())));
      time.push_back(std::log(update[s].back()));
    }
    slope.push_back(Slope(size, time));
  }
  fmt::print(
      "## GDP on large graphs\n\n`lstm_grid` on eight GPUs (`p100x8`): one update, the second, which is 16 placements, "
      "drawn or made of the best one by moves, and scored, and one epoch of PPO, with hidden=128, 3 layers of messages, "
      "3 of attention with 8 heads, inner=512, segment=256, coupled=false; and what a trained policy needs to answer, "
      "features included: with one placement, the likeliest device of each op, which is its answer with coupled=false, "
      "and with the best of ten, as by default. {} of all sizes, one after another: medians, and in brackets the least "
      "and the most.\n\n"
      "| ops | one update, s | an answer of one placement, s | of ten, s |\n|---:|---:|---:|---:|\n",
      Counted(runs, "run"));
  for (size_t s = 0; s < steps.size(); ++s) {
    fmt::print("| {} | {} | {} | {} |\n", setup[s]->problem->num_ops(), WithInterval(update[s], 1, 2),
               WithInterval(one[s], 1, 2), WithInterval(ten[s], 1, 2));
  }
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  fmt::print(
      "\nSlope of the logarithm of an update's time over that of the ops: {}. The process, with the problems of all "
      "sizes, never held more than {:.1f} GiB.\n\n",
      WithInterval(slope, 1, 2), static_cast<double>(used.ru_maxrss) / (1 << 20));
}

}  // namespace berth::learned
