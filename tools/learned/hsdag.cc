// HSDAG on its three benchmark graphs, what makes its published form learn, and what each part of it does there.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

struct Benchmark {
  std::string model, title;
  double cpu_ms, gpu_ms, published_ms;
};

const std::vector<Benchmark> kBenchmarks = {
    {"ir_inception_v3", "Inception-V3 (728 ops, 764 edges)", 12.8, 12.0, 10.5},
    {"ir_resnet50", "ResNet-50 (396 ops, 411 edges)", 16.0, 7.81, 7.66},
    {"ir_bert_base", "BERT-base", 6.38, 2.77, 2.67},
};

constexpr const char* kBlackBox = "hsdag(critic=blank,costs=false)";

Table MakeScenario(const Catalogs& catalogs, const Benchmark& benchmark, const std::string& cluster) {
  ProblemStrings strings;
  strings.model = benchmark.model;
  strings.cluster = cluster;
  strings.costs = fmt::format("calibrated(totals={}ms/{}ms)", benchmark.cpu_ms, benchmark.gpu_ms);
  strings.evaluator = "serial(io=everywhere)";
  Table table{.title = fmt::format("{}, {}", benchmark.title, cluster),
              .setup = std::make_unique<Setup>(MakeSetup(catalogs, strings)),
              .reference_name = "optimum",
              .digits = 3};
  table.reference = Play(catalogs, *table.setup, "mincut", 1, 1).found;
  table.sentence = fmt::format(
      "CPU alone {} ms, GPU alone {} ms, exact optimum {:.3f} ms (`mincut`); published for HSDAG on the real machine: "
      "{} ms, by which it is {:.1f} % below its CPU alone.",
      benchmark.cpu_ms, benchmark.gpu_ms, table.reference * 1e3, benchmark.published_ms,
      (1 - benchmark.published_ms / benchmark.cpu_ms) * 100);
  return table;
}

// What does not learn; the best of the searches once more, in the seconds of the row `as_long_as`.
void AddControls(Table& table, int seeds, int64_t evaluations, const std::string& as_long_as = "**hsdag**") {
  table.Add({.title = "GPU alone", .planner = "single(device=gpu)", .evaluations = evaluations});
  table.Add({.title = "best single cut", .planner = "one_cut", .evaluations = evaluations});
  AddRules(table, seeds, evaluations);
  AddSearches(table, seeds, evaluations, as_long_as);
}

void MeasureAndWrite(const Catalogs& catalogs, const std::string& part, std::vector<Table>& tables,
                     const std::string& pictures) {
  Measure(catalogs, part, tables);
  for (size_t t = 0; t < tables.size(); ++t) Write(tables[t], fmt::format("{}_{}", part, t + 1), pictures);
}

constexpr const char* kHow =
    "Costs: `calibrated(totals=...)` to the published times of either device, evaluator `serial(io=everywhere)`. No "
    "learned row sees a placement of another planner; our forms also read the problem's op and transfer times, as "
    "features, and `hsdag` as its critic's first guess.";

}  // namespace

void WriteHsdag(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 10;
  const int64_t evaluations = quick ? 100 : 2000;
  std::vector<Table> tables;
  for (const char* cluster : {"hsdag_20us", "hsdag_5us"}) {
    Table& table = tables.emplace_back(MakeScenario(catalogs, kBenchmarks[0], cluster));
    AddControls(table, seeds, evaluations);
    AddLearned(table, "hsdag, as in the paper", "hsdag(mode=paper)", seeds, evaluations, kPaper, kPaperPale);
    AddLearned(table, "hsdag without a critic",
               "hsdag(critic=none,reward=log,normalise=true,entropy=0.01,entropy_end=0.0001)", seeds, evaluations);
    AddLearned(table, "hsdag, critic from scratch", "hsdag(critic=blank)", seeds, evaluations);
    AddLearned(table, "hsdag as a black box", kBlackBox, seeds, evaluations);
    AddLearned(table, "**hsdag**", "hsdag", seeds, evaluations, kOurs, kOursPale);
    if (quick) break;
  }
  fmt::print(
      "## HSDAG on Inception-V3\n\n{} evaluations as published. {} *As a black box* it reads neither, and knows of a "
      "placement's time only what its evaluations say.\n\n",
      evaluations, kHow);
  MeasureAndWrite(catalogs, "hsdag", tables, pictures);
}

void WriteHsdagOthers(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 3;
  const int64_t evaluations = quick ? 100 : 2000;
  std::vector<Table> tables;
  for (const Benchmark& benchmark : kBenchmarks) {
    for (const char* cluster : {"hsdag_20us", "hsdag_5us", "hsdag_50us"}) {
      if (&benchmark == &kBenchmarks[0] && cluster != std::string("hsdag_50us")) continue;  // WriteHsdag has these
      if (quick && !tables.empty()) continue;
      Table& table = tables.emplace_back(MakeScenario(catalogs, benchmark, cluster));
      AddControls(table, seeds, evaluations);
      AddLearned(table, "hsdag, as in the paper", "hsdag(mode=paper)", seeds, evaluations, kPaper, kPaperPale);
      AddLearned(table, "hsdag, free episodes alone", "hsdag(hold=0,imagined=10)", seeds, evaluations);
      AddLearned(table, "**hsdag**", "hsdag", seeds, evaluations, kOurs, kOursPale);
    }
  }
  fmt::print("## HSDAG on its other benchmarks\n\n{} evaluations as published. {}\n\n", evaluations, kHow);
  MeasureAndWrite(catalogs, "hsdag-others", tables, pictures);
}

// Which change makes the published form learn: what is drawn costs less at the end of training than at its beginning,
// and than what the untrained twin draws.
void WriteHsdagLearning(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 10;
  const int64_t evaluations = quick ? 20 : 2000;
  std::vector<Table> tables;
  Table& table = tables.emplace_back(MakeScenario(catalogs, kBenchmarks[0], "hsdag_20us"));
  constexpr const char* kUnchanged = "as in the paper: a rate of 1e-4, one gradient step per episode";
  AddControls(table, seeds, evaluations, kUnchanged);
  const auto add = [&](const std::string& title, const std::string& parameters, const char* colour = "") {
    table.Add({.title = title,
               .planner = fmt::format("hsdag(mode=paper{}{})", parameters.empty() ? "" : ",", parameters),
               .seeds = seeds,
               .evaluations = evaluations,
               .colour = colour});
  };
  constexpr const char* kBoth = "baseline=batch,normalise=true";
  add("untrained: a rate of 0", "learning_rate=0", kPaperPale);
  add(kUnchanged, "", kPaper);
  add("4 steps (`epochs=4`)", "epochs=4");
  add("a rate of 1e-3", "learning_rate=0.001");
  add("a rate of 1e-2", "learning_rate=0.01");
  add("a rate of 1e-3, 4 steps", "learning_rate=0.001,epochs=4");
  add("a baseline (`baseline=batch`)", "baseline=batch");
  add("normalised rewards (`normalise=true`)", "normalise=true");
  add("both", kBoth);
  add("both, a rate of 1e-3", fmt::format("{},learning_rate=0.001", kBoth), kOurs);
  add("both, a rate of 1e-2", fmt::format("{},learning_rate=0.01", kBoth));
  add("both, a rate of 1e-3, 4 steps", fmt::format("{},learning_rate=0.001,epochs=4", kBoth));
  add("coarser groups (`levels=2`), untrained", "levels=2,learning_rate=0");
  add("coarser groups", "levels=2");
  add("coarser groups, a rate of 1e-3", "levels=2,learning_rate=0.001");
  add("coarser groups, both", fmt::format("levels=2,{}", kBoth));
  add("coarser groups, both, a rate of 1e-3", fmt::format("levels=2,{},learning_rate=0.001", kBoth), "#2f8f4e");
  add("coarser groups, both, a rate of 1e-3, 4 steps", fmt::format("levels=2,{},learning_rate=0.001,epochs=4", kBoth));
  Measure(catalogs, "hsdag-learning", tables);
  fmt::print(
      "## Which change makes the paper's form learn\n\nInception-V3, hsdag_20us, {} evaluations, {} seeds, in ms. The "
      "mean cost of what the policy draws, in the first and in the last tenth of its episodes; medians over seeds. GPU "
      "alone takes {} ms, CPU alone {}, the optimum {:.3f}. Changes of the rate, the steps, the baseline and the "
      "reward have one untrained twin: without learning they draw the same. Of rows that do not learn, what they find is "
      "the best drawn.\n\n"
      "| the paper's form with | drawn at first, mean | drawn at the end, mean | best drawn | policy's likeliest | "
      "seconds |\n|---|---:|---:|---:|---:|---:|\n",
      evaluations, seeds, kBenchmarks[0].gpu_ms, kBenchmarks[0].cpu_ms, table.reference * 1e3);
  for (const Row& row : table.rows) {
    if (!row.refused.empty()) {
      fmt::print("| {} |  |  | does not place it |  |  |\n", row.title);
      continue;
    }
    const std::string title =
        row.as_long_as.empty() ? row.title : "the best of these searches, as many seconds as in the paper's form";
    fmt::print("| {} | {} | {} | {} | {} | {:.1f} |\n", title, WithInterval(row.MeanCost(true), 1e3, 2),
               WithInterval(row.MeanCost(false), 1e3, 2), WithInterval(row.Drawn(), 1e3, 2),
               WithInterval(row.Likeliest(), 1e3, 2), row.processor());
  }
  fmt::print("\n");
  WritePicture(table, "hsdag-learning", pictures);
}

void WriteHsdagAblations(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 3;
  const int64_t evaluations = quick ? 20 : 2000;
  // The seconds of the searches are those of the first of the rows.
  const auto make = [&](const char* title, const std::vector<std::pair<std::string, std::string>>& rows) {
    Table table = MakeScenario(catalogs, kBenchmarks[0], "hsdag_20us");
    table.title = title;
    table.sentence.clear();
    AddControls(table, seeds, evaluations, rows[0].first);
    for (const auto& [row, planner] : rows) AddLearned(table, row, planner, seeds, evaluations);
    return table;
  };
  std::vector<Table> tables;
  tables.push_back(make("The paper's form",
                        {
                            {"as in the paper", "hsdag(mode=paper)"},
                            {"without output shape", "hsdag(mode=paper,shape=false)"},
                            {"without node ID", "hsdag(mode=paper,position=0)"},
                            {"without structure (degrees, fractal)", "hsdag(mode=paper,degrees=false,fractal=false)"},
                            {"GAT", "hsdag(mode=paper,encoder=gat)"},
                            {"GIN", "hsdag(mode=paper,encoder=gin)"},
                            {"no learned groups (levels 0)", "hsdag(mode=paper,levels=0)"},
                            {"levels 2", "hsdag(mode=paper,levels=2)"},
                            {"no co-location", "hsdag(mode=paper,colocation=none)"},
                            {"co-location of the code", "hsdag(mode=paper,colocation=code)"},
                            {"no state update", "hsdag(mode=paper,state=false)"},
                            {"directed messages", "hsdag(mode=paper,directed=true)"},
                            {"PPO", "hsdag(mode=paper,ppo=0.2,epochs=4,baseline=batch,normalise=true)"},
                            {"incremental reward", "hsdag(mode=paper,reward=log,credit=incremental,baseline=batch)"},
                            {"mode=code, one level", "hsdag(mode=code)"},
                        }));
  tables.push_back(make("Ours", {
                                    {"**hsdag**", "hsdag"},
                                    {"no steps on the critic alone", "hsdag(imagined=0)"},
                                    {"critic from scratch", "hsdag(critic=blank)"},
                                    {"no cost features", "hsdag(costs=false)"},
                                    {"learned groups (levels 1)", "hsdag(levels=1)"},
                                    {"GAT", "hsdag(encoder=gat)"},
                                    {"GIN", "hsdag(encoder=gin)"},
                                    {"no co-location", "hsdag(colocation=none)"},
                                    {"free episodes alone (hold 0)", "hsdag(hold=0)"},
                                    {"dropout 0.2", "hsdag(dropout=0.2,imagined=3)"},
                                    {"state update", "hsdag(state=true,imagined=2)"},
                                    {"directed messages", "hsdag(directed=true)"},
                                }));
  fmt::print(
      "## What each part does\n\nInception-V3, hsdag_20us, {} evaluations. First from the paper's form, then "
      "from ours; in each table the rules and simple searches of the benchmark come first.\n\n",
      evaluations);
  MeasureAndWrite(catalogs, "hsdag-ablations", tables, pictures);
}

}  // namespace berth::learned
