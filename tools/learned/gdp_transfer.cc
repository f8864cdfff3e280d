// GDP's own claims (Zhou et al. 2019) about many graphs: how soon it is as good as HDP, one policy for all of a set,
// graphs that a policy has never seen, and a large one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "exec/statistics.h"
#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Network {
  const char *name, *model;  // a family each
};
// GDP's, two layers each on two devices; three of them smaller than their defaults.
constexpr Network kTwo[] = {{"RNNLM", "rnnlm(layers=2,steps=10)"},          {"GNMT", "gnmt(layers=2,steps=4)"},
                            {"Transformer-XL", "transformer_xl(layers=2)"}, {"Inception-V3", "inception_v3(batch=32)"},
                            {"AmoebaNet", "amoebanet(batch=32,cells=2)"},   {"WaveNet", "wavenet(stacks=2)"}};
// The same on eight, without GNMT.
constexpr Network kEight[] = {{"RNNLM", "rnnlm(layers=8,steps=5)"},
                              {"Transformer-XL", "transformer_xl(layers=8)"},
                              {"Inception-V3", "inception_v3(batch=32)"},
                              {"AmoebaNet", "amoebanet(batch=32,cells=2)"},
                              {"WaveNet", "wavenet"}};
// Of at least 50,000 ops.
constexpr const char* kLarge = "gnmt(layers=8,steps=80)";

constexpr const char* kOne = "**gdp**";

// Of the first draws of a policy that was trained on other graphs.
constexpr const char* kTemperature = "8";

// The policy without and with gates made from the whole graph.
struct Form {
  const char *suffix, *planner;
};
constexpr Form kForms[] = {{"", "gdp"}, {", superposition", "gdp(superposition=true)"}};

struct Effort {
  size_t graphs;  // of kTwo or kEight
  int seeds;
  int64_t updates;        // on each graph, from nothing or before it is seen
  int64_t tuned_updates;  // of a policy that was trained on others
};

Effort Of(bool quick, size_t graphs) {
  return quick ? Effort{.graphs = 3, .seeds = 1, .updates = 3, .tuned_updates = 2}
               : Effort{.graphs = graphs, .seeds = 1, .updates = 63, .tuned_updates = 12};
}

// What an update of gdp asks for, and its own answer at the end.
constexpr int64_t kRollouts = 16, kAnswer = 3;
int64_t Evaluations(int64_t updates) { return updates * kRollouts + kAnswer; }

const Row& Find(const Table& table, const std::string& title) {
  return *std::ranges::find(table.rows, title, &Row::title);
}

std::vector<double> Found(const Row& row) {
  std::vector<double> values;
  for (const Outcome& outcome : row.outcome) values.push_back(outcome.found);
  return values;
}

// One policy trained on several graphs.
struct Lesson {
  std::shared_ptr<const Scratch> folder{};
  TrainingResult result{};
  double seconds = 0;  // of a processor
};

// Each update has a play on every graph, and follows the sum of their gradients.
Lesson Learn(const Catalogs& catalogs, const std::string& planner, const std::vector<const Table*>& graphs,
             int64_t updates, uint64_t seed, const std::string& name) {
  const auto cases = [](const std::vector<const Table*>& tables) {
    std::vector<TrainingCase> list;
    for (const Table* table : tables) list.push_back({.name = table->title, .evaluator = *table->setup->evaluator});
    return list;
  };
  Lesson lesson{.folder = std::make_shared<Scratch>(name)};
  const std::string on_all = catalogs.planners.NameWith(planner, "workers", fmt::format("{}", graphs.size()));
  const double before = ProcessorSeconds();
  lesson.result = TrainOn(catalogs, on_all, cases(graphs), {}, updates, seed, *lesson.folder);
  lesson.seconds = ProcessorSeconds() - before;
  return lesson;
}

// A policy that was trained elsewhere, on a graph that it has not seen.
struct Transfer {
  Lesson before{};
  double zero_shot = 0;  // seconds, of its likeliest placement
  Outcome answer{};      // for what that takes
  Outcome tuned{};       // the policy trained on
  Outcome sure{};        // the same from odds as they are
  Outcome drawn{};       // as many draws of it, with nothing learned from them
};

void Tune(const Catalogs& catalogs, const Table& table, int64_t updates, uint64_t seed, Transfer& transfer) {
  const std::string answer = catalogs.planners.NameWith(transfer.before.result.answer, "workers", "");
  const auto play = [&](const std::string& planner, int64_t evaluations) {
    return Play(catalogs, *table.setup, planner, evaluations, seed);
  };
  transfer.answer = play(answer, kAnswer);
  transfer.zero_shot = transfer.answer.found;
  const std::string trains = catalogs.planners.NameWith(answer, "train", "true");
  transfer.tuned = play(catalogs.planners.NameWith(trains, "temperature", kTemperature), Evaluations(updates));
  transfer.sure = play(trains, Evaluations(updates));
  transfer.drawn = play(Untrained(trains), Evaluations(updates));
}

// A line of the large table: what a method reaches on each graph, in seconds, by seed.
struct Line {
  std::string title{};
  int64_t evaluations = 0;                     // on the graph; 0: it differs
  std::vector<std::vector<double>> reached{};  // by graph; empty where the method refuses
  std::vector<double> processor{};             // by graph, seconds
};

template <typename Reached>
Line LineOf(const std::string& title, std::span<const Table> tables, const std::string& row, const Reached& reached) {
  Line line{.title = title};
  for (const Table& table : tables) {
    const Row& of = Find(table, row);
    line.reached.push_back(reached(of));
    line.processor.push_back(of.processor());
    line.evaluations = of.evaluations;
  }
  return line;
}

// Over the graphs, the geometric mean of what was reached over `reference`; one value per seed. Empty where a graph is
// missing.
std::vector<double> Ratios(const Line& line, const Line& reference) {
  size_t seeds = std::numeric_limits<size_t>::max();
  for (const auto& values : line.reached) seeds = std::min(seeds, values.size());
  std::vector<double> ratios;
  for (size_t seed = 0; seed < seeds; ++seed) {
    std::vector<double> of;
    for (size_t g = 0; g < line.reached.size(); ++g) {
      of.push_back(line.reached[g][seed] / Median(reference.reached[g]));
    }
    ratios.push_back(GeometricMean(of));
  }
  return ratios;
}

void Print(const std::vector<Line>& lines, const Line& one, const Line& human, std::span<const Table> tables) {
  std::vector<std::string> names, columns;
  for (const Table& table : tables) {
    names.push_back(table.title);
    columns.emplace_back("---:|");
  }
  fmt::print(
      "| method | evaluations | {} | over gdp | over `human` | seconds per graph |\n|---|---:|{}---:|---:|---:|\n",
      fmt::join(names, " | "), fmt::join(columns, ""));
  for (const Line& line : lines) {
    fmt::print("| {} | {} |", line.title, line.evaluations == 0 ? "" : fmt::format("{}", line.evaluations));
    for (const auto& values : line.reached) {
      fmt::print(" {} |", values.empty() ? "does not place it" : WithInterval(values, 1e3, 2));
    }
    fmt::print(" {} | {} | {:.1f} |\n", WithInterval(Ratios(line, one), 1, 3), WithInterval(Ratios(line, human), 1, 3),
               Mean(line.processor));
  }
  fmt::print("\n");
}

// Where a search is first as good as `target`; infinite where it never is.
Improvement Reaches(const Outcome& outcome, double target) {
  for (const Improvement& each : outcome.improvements) {
    if (each.found <= target * (1 + 1e-9)) return each;
  }
  return {.evaluations = -1, .found = kInfinity, .processor = kInfinity};
}

std::string Times(double factor) { return std::isfinite(factor) ? fmt::format("{:.1f}", factor) : "never"; }

// How soon gdp is as good as a row of hdp ends, per graph: hdp's evaluations and seconds until it found its last best,
// and of its whole search, over gdp's; medians over seeds.
void PrintPace(std::span<const Table> tables, const std::vector<std::string>& opponents) {
  fmt::print(
      "| graph | hdp | it ends at, ms | it has that after, evaluations | seconds | whole search, seconds | gdp has it "
      "after, evaluations | seconds | evaluations, factor | seconds, factor | whole search, factor "
      "|\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  std::vector<double> evaluations, seconds, whole;
  size_t never = 0;
  for (const Table& table : tables) {
    const Row* best = nullptr;
    for (const std::string& title : opponents) {
      const Row& row = Find(table, title);
      if (best == nullptr || Median(Found(row)) < Median(Found(*best))) best = &row;
    }
    const double target = Median(Found(*best));
    const auto reach = [](const Row& row, const auto& of_seed) {
      std::vector<double> asked, took;
      for (const Outcome& outcome : row.outcome) {
        const Improvement at = Reaches(outcome, of_seed(outcome));
        asked.push_back(at.evaluations < 0 ? kInfinity : static_cast<double>(at.evaluations));
        took.push_back(at.processor);
      }
      return std::pair(Median(asked), Median(took));
    };
    const auto [own_asked, own_took] = reach(*best, [](const Outcome& outcome) { return outcome.found; });
    const auto [asked, took] = reach(Find(table, kOne), [&](const Outcome&) { return target; });
    const bool reached = std::isfinite(asked);
    if (reached) {
      evaluations.push_back(own_asked / asked);
      seconds.push_back(own_took / took);
      whole.push_back(best->processor() / took);
    } else {
      ++never;
    }
    fmt::print("| {} | {} | {:.2f} | {:.0f} | {:.1f} | {:.1f} | {} | {} | {} | {} | {} |\n", table.title, best->title,
               target * 1e3, own_asked, own_took, best->processor(), reached ? fmt::format("{:.0f}", asked) : "never",
               reached ? fmt::format("{:.1f}", took) : "", reached ? Times(own_asked / asked) : "",
               reached ? Times(own_took / took) : "", reached ? Times(best->processor() / took) : "");
  }
  if (evaluations.empty()) {
    fmt::print("| geometric mean |  |  |  |  |  |  |  | never reached |  |  |\n\n");
    return;
  }
  fmt::print("| geometric mean{} |  |  |  |  |  |  |  | {} | {} | {} |\n\n",
             never == 0 ? "" : fmt::format(" over the {} that it reaches", evaluations.size()),
             Times(GeometricMean(evaluations)), Times(GeometricMean(seconds)), Times(GeometricMean(whole)));
}

template <typename Value>
std::vector<double> Each(const std::vector<Transfer>& list, const Value& value) {
  std::vector<double> values;
  for (const Transfer& transfer : list) values.push_back(value(transfer));
  return values;
}

std::vector<const Table*> Without(std::span<const Table> tables, size_t left_out) {
  std::vector<const Table*> list;
  for (size_t g = 0; g < tables.size(); ++g) {
    if (g != left_out) list.push_back(&tables[g]);
  }
  return list;
}

// Those of kTwo, each with what people do without a search.
std::vector<Table> MakeTables(const Catalogs& catalogs, bool quick, const Effort& effort) {
  std::vector<Table> tables;
  for (size_t i = 0; i < effort.graphs; ++i) {
    const auto& [name, model] = kTwo[quick ? std::size(kTwo) - 1 - i : i];  // the short form takes small ones
    Table& table = tables.emplace_back(Table{.title = name, .setup = MakePorts(catalogs, model, "p100x2", true)});
    table.sentence = fmt::format("`{}` ({} ops)", model, table.setup->problem->num_ops());
    AddRules(table, effort.seeds, Evaluations(effort.updates));
  }
  return tables;
}

std::string Sentences(std::span<const Table> tables) {
  std::vector<std::string> list;
  for (const Table& table : tables) list.push_back(table.sentence);
  return fmt::format("{}", fmt::join(list, ", "));
}

std::vector<Line> RuleLines(std::span<const Table> tables) {
  std::vector<Line> lines;
  for (const char* rule : {"`human`", "`heft`", "`metis`", "`first_fit`", "`auto`"}) {
    lines.push_back(LineOf(rule, tables, rule, Found));
    lines.back().evaluations = 0;
  }
  return lines;
}

void WriteMany(const Catalogs& catalogs, std::span<const Table> tables, const Effort& effort) {
  const size_t graphs = tables.size(), none = graphs;
  const auto seeds = static_cast<size_t>(effort.seeds);
  std::vector<std::vector<Lesson>> batch(std::size(kForms), std::vector<Lesson>(seeds));
  std::vector<std::vector<std::vector<Transfer>>> held(std::size(kForms), std::vector<std::vector<Transfer>>(graphs));
  Jobs jobs;
  for (size_t f = 0; f < std::size(kForms); ++f) {
    for (size_t seed = 0; seed < seeds; ++seed) {
      jobs.Add([&, f, seed] {
        batch[f][seed] = Learn(catalogs, kForms[f].planner, Without(tables, none), effort.updates, seed + 1,
                               fmt::format("batch-{}-{}", f, seed));
      });
    }
    for (size_t g = 0; g < graphs; ++g) {
      held[f][g].resize(seeds);
      for (size_t seed = 0; seed < seeds; ++seed) {
        jobs.Add([&, f, g, seed] {
          Transfer& transfer = held[f][g][seed];
          transfer.before = Learn(catalogs, kForms[f].planner, Without(tables, g), effort.updates, seed + 1,
                                  fmt::format("held-{}-{}-{}", f, g, seed));
          Tune(catalogs, tables[g], effort.tuned_updates, seed + 1, transfer);
        });
      }
    }
  }
  jobs.Run();

  std::vector<Line> lines = RuleLines(tables);
  const Line human = lines[0], one = LineOf("**gdp, one**", tables, kOne, Found);
  const auto add = [&](const std::string& title, const std::string& row) {
    lines.push_back(LineOf(title, tables, row, Found));
  };
  lines.push_back(one);
  lines.push_back(LineOf("its policy's likeliest", tables, kOne, [](const Row& row) { return row.Likeliest(); }));
  add("gdp, one, superposition", "gdp, superposition");
  for (size_t f = 0; f < std::size(kForms); ++f) {
    Line found{.title = fmt::format("**batch{}**", kForms[f].suffix), .evaluations = Evaluations(effort.updates)};
    Line likeliest{.title = "its policy's likeliest", .evaluations = found.evaluations};
    for (size_t g = 0; g < graphs; ++g) {
      std::vector<double> best, greedy, took;
      for (const Lesson& lesson : batch[f]) {
        const TrainedCase& trained = lesson.result.cases[g];
        best.push_back(trained.best.score.value() * tables[g].setup->problem->seconds_per_unit());
        greedy.push_back(trained.greedy_cost);
        took.push_back(lesson.seconds / static_cast<double>(graphs));
      }
      found.reached.push_back(best);
      likeliest.reached.push_back(greedy);
      found.processor.push_back(Median(took));
      likeliest.processor.push_back(Median(took));
    }
    lines.push_back(std::move(found));
    lines.push_back(std::move(likeliest));
  }
  lines.push_back(LineOf("an untrained policy's likeliest", tables, "gdp, untrained",
                         [](const Row& row) { return row.Likeliest(); }));
  lines.back().evaluations = kAnswer;
  const std::string from_nothing = fmt::format("from nothing, {} updates", effort.tuned_updates);
  add(from_nothing, "from nothing");
  struct Cost {
    double before, tuned;
  };
  std::vector<Cost> costs;
  for (size_t f = 0; f < std::size(kForms); ++f) {
    const char* suffix = kForms[f].suffix;
    Line zero{.title = fmt::format("**zero_shot{}**", suffix), .evaluations = kAnswer};
    Line tuned{.title = fmt::format("**finetune{}**, {} updates", suffix, effort.tuned_updates),
               .evaluations = Evaluations(effort.tuned_updates)};
    Line likeliest{.title = "its policy's likeliest", .evaluations = tuned.evaluations};
    Line sure{.title = "finetune, odds as they are: `temperature=1`", .evaluations = tuned.evaluations};
    Line drawn{.title = "as many draws of the pretrained policy, nothing learned", .evaluations = tuned.evaluations};
    std::vector<double> before;
    for (size_t g = 0; g < graphs; ++g) {
      const std::vector<Transfer>& of = held[f][g];
      const auto add_to = [&](Line& line, const auto& reached, const auto& took) {
        line.reached.push_back(Each(of, reached));
        line.processor.push_back(Median(Each(of, took)));
      };
      add_to(zero, [](const Transfer& t) { return t.zero_shot; }, [](const Transfer& t) { return t.answer.processor; });
      const auto took = [](const Transfer& t) { return t.tuned.processor; };
      add_to(tuned, [](const Transfer& t) { return t.tuned.found; }, took);
      add_to(likeliest, [](const Transfer& t) { return t.tuned.learned->likeliest.value_or(kInfinity); }, took);
      add_to(sure, [](const Transfer& t) { return t.sure.found; }, [](const Transfer& t) { return t.sure.processor; });
      add_to(
          drawn, [](const Transfer& t) { return t.drawn.found; }, [](const Transfer& t) { return t.drawn.processor; });
      before.push_back(Median(Each(of, [](const Transfer& t) { return t.before.seconds; })));
    }
    costs.push_back({.before = Mean(before), .tuned = Mean(tuned.processor)});
    for (Line* line : {&zero, &tuned, &likeliest, &sure, &drawn}) lines.push_back(std::move(*line));
  }
  Print(lines, one, human, tables);

  fmt::print("### What pretraining costs, and after how many graphs it pays\n\n");
  fmt::print(
      "| form | pretraining, seconds | a graph from nothing (one), seconds | fine-tuned, seconds | pays after, graphs "
      "|\n|---|---:|---:|---:|---:|\n");
  for (size_t f = 0; f < std::size(kForms); ++f) {
    const double saved = Mean(one.processor) - costs[f].tuned;
    fmt::print("| gdp{} | {:.0f} | {:.1f} | {:.1f} | {} |\n", kForms[f].suffix, costs[f].before, Mean(one.processor),
               costs[f].tuned, saved > 0 ? fmt::format("{:.0f}", std::ceil(costs[f].before / saved)) : "never");
  }
  fmt::print("\n");
}

void WriteLarge(const Catalogs& catalogs, std::span<const Table> lessons, const Table& large, const Effort& effort) {
  const auto seeds = static_cast<size_t>(effort.seeds);
  std::vector<std::vector<Transfer>> held(std::size(kForms), std::vector<Transfer>(seeds));
  Jobs jobs;
  for (size_t f = 0; f < std::size(kForms); ++f) {
    for (size_t seed = 0; seed < seeds; ++seed) {
      jobs.Add([&, f, seed] {
        Transfer& transfer = held[f][seed];
        transfer.before = Learn(catalogs, kForms[f].planner, Without(lessons, lessons.size()), effort.updates, seed + 1,
                                fmt::format("large-{}-{}", f, seed));
        Tune(catalogs, large, effort.tuned_updates, seed + 1, transfer);
      });
    }
  }
  jobs.Run();
  std::vector<std::string> names;
  for (const Table& table : lessons) names.push_back(fmt::format("`{}`", table.title));
  fmt::print(
      "## GDP on a large graph that it has not seen\n\nOne training step with `sgd` of `{}`, {} ops, on eight GPUs "
      "(`p100x8`) under `parallel(contention=ports)`, for a policy that was trained on {} there with {} updates: no "
      "GNMT "
      "among them.\n\n"
      "| method | evaluations | ms | over `human` | seconds | pretraining, seconds |\n|---|---:|---:|---:|---:|---:|\n",
      large.title, large.setup->problem->num_ops(), fmt::join(names, ", "), effort.updates);
  const double human = Find(large, "`human`").outcome[0].found;
  const auto print = [&](const std::string& title, const std::vector<double>& evaluations,
                         const std::vector<double>& reached, double processor, const std::string& before) {
    std::vector<double> ratios;
    for (const double each : reached) ratios.push_back(each / human);
    fmt::print("| {} | {:.0f} | {} | {} | {:.1f} | {} |\n", title, Median(evaluations), WithInterval(reached, 1e3, 1),
               WithInterval(ratios, 1, 3), processor, before);
  };
  for (const Row& row : large.rows) {
    if (!row.refused.empty()) {
      fmt::print("| {} |  | does not place it |  |  |  |\n", row.title);
      continue;
    }
    std::vector<double> evaluations;
    for (const Outcome& outcome : row.outcome) evaluations.push_back(static_cast<double>(outcome.evaluations));
    print(row.title, evaluations, Found(row), row.processor(), "");
    if (row.learned()) print("its policy's likeliest", evaluations, row.Likeliest(), row.processor(), "");
  }
  for (size_t f = 0; f < std::size(kForms); ++f) {
    const std::vector<Transfer>& of = held[f];
    const char* suffix = kForms[f].suffix;
    const std::string before =
        fmt::format("{:.0f}", Median(Each(of, [](const Transfer& t) { return t.before.seconds; })));
    const auto put = [&](const std::string& title, const auto& outcome, const auto& reached) {
      print(title, Each(of, [&](const Transfer& t) { return static_cast<double>(outcome(t).evaluations); }),
            Each(of, reached), Median(Each(of, [&](const Transfer& t) { return outcome(t).processor; })), before);
    };
    const auto answer = [](const Transfer& t) -> const Outcome& { return t.answer; };
    const auto tuned = [](const Transfer& t) -> const Outcome& { return t.tuned; };
    const auto sure = [](const Transfer& t) -> const Outcome& { return t.sure; };
    const auto drawn = [](const Transfer& t) -> const Outcome& { return t.drawn; };
    put(fmt::format("**zero_shot{}**", suffix), answer, [](const Transfer& t) { return t.zero_shot; });
    put(fmt::format("**finetune{}**, {} updates", suffix, effort.tuned_updates), tuned,
        [](const Transfer& t) { return t.tuned.found; });
    put("its policy's likeliest", tuned,
        [](const Transfer& t) { return t.tuned.learned->likeliest.value_or(kInfinity); });
    put("finetune, odds as they are: `temperature=1`", sure, [](const Transfer& t) { return t.sure.found; });
    put("as many draws of the pretrained policy, nothing learned", drawn,
        [](const Transfer& t) { return t.drawn.found; });
  }
  fmt::print("\n");
}

}  // namespace

void WriteGdpPace(const Catalogs& catalogs, bool quick, const std::string&) {
  const Effort effort = Of(quick, std::size(kTwo));
  std::vector<Table> tables = MakeTables(catalogs, quick, effort);
  const int64_t evaluations = Evaluations(effort.updates);
  const std::vector<std::string> published = {"hdp as in the code, 128 wide", "hdp as in the paper, 128 wide"};
  for (Table& table : tables) {
    AddSearches(table, effort.seeds, evaluations, kOne);
    const auto add = [&](const std::string& title, const std::string& planner) {
      table.Add({.title = title, .planner = planner, .seeds = effort.seeds, .evaluations = evaluations});
    };
    add(published[0], "hdp(mode=code,hidden=128)");
    add(published[1], "hdp(mode=paper,hidden=128)");
    add("hdp", "hdp");
    AddLearned(table, kOne, "gdp", effort.seeds, evaluations);
  }
  Measure(catalogs, "gdp-pace", tables);
  fmt::print(
      "## How soon GDP is as good as HDP\n\nOne training step with `sgd` of {} on two GPUs (`p100x2`) under "
      "`parallel(contention=ports)`, {} evaluations, {}. Times in ms, of a learned planner of the best placement that "
      "it "
      "scored; ratios are geometric means over the graphs.\n\n",
      Sentences(tables), evaluations, Counted(effort.seeds, "seed"));
  std::vector<Line> lines = RuleLines(tables);
  const Line human = lines[0], one = LineOf(kOne, tables, kOne, Found);
  Line simple{.title = "the best simple search", .evaluations = evaluations};
  Line as_long{.title = "the same, as many seconds as gdp"};
  for (const Table& table : tables) {
    const Row* best = nullptr;
    for (const Row& row : table.rows) {
      if (row.search && (best == nullptr || Median(Found(row)) < Median(Found(*best)))) best = &row;
      if (row.as_long_as.empty()) continue;
      as_long.reached.push_back(Found(row));
      as_long.processor.push_back(row.processor());
    }
    simple.reached.push_back(Found(*best));
    simple.processor.push_back(best->processor());
  }
  lines.push_back(std::move(simple));
  lines.push_back(std::move(as_long));
  for (const std::string& row : {published[0], published[1], std::string("hdp"), std::string("gdp, untrained")}) {
    lines.push_back(LineOf(row, tables, row, Found));
  }
  lines.push_back(one);
  lines.push_back(LineOf("its policy's likeliest", tables, kOne, [](const Row& row) { return row.Likeliest(); }));
  Print(lines, one, human, tables);
  fmt::print("### Against the better of the two published sets of constants\n\n");
  PrintPace(tables, published);
  fmt::print("### Against our own form of `hdp`\n\n");
  PrintPace(tables, {"hdp"});
}

void WriteGdpTransfer(const Catalogs& catalogs, bool quick, const std::string&) {
  const Effort effort = Of(quick, std::size(kTwo));
  std::vector<Table> tables = MakeTables(catalogs, quick, effort);
  const int64_t evaluations = Evaluations(effort.updates);
  for (Table& table : tables) {
    const auto add = [&](const char* title, const std::string& planner, int64_t asks, int later = 0) {
      table.Add({.title = title, .planner = planner, .seeds = effort.seeds, .evaluations = asks, .later = later});
    };
    add("gdp, untrained", Untrained("gdp"), evaluations);
    // Each graph is in a batch of all, and in all but one of those that leave one out.
    const int later = static_cast<int>(effort.graphs) * effort.seeds;
    add(kOne, kForms[0].planner, evaluations, later);
    add("gdp, superposition", kForms[1].planner, evaluations, later);
    add("from nothing", "gdp", Evaluations(effort.tuned_updates),
        2 * static_cast<int>(std::size(kForms)) * effort.seeds);
  }
  Measure(catalogs, "gdp-transfer", tables);
  fmt::print(
      "## GDP on graphs never seen\n\nOne training step with `sgd` of {} on two GPUs (`p100x2`) under "
      "`parallel(contention=ports)`, {}; times in ms. *One*: gdp on the graph alone, {} updates. *Batch*: one policy "
      "on all "
      "{} graphs, each in each of {} updates. *zero_shot*: the answer of a policy that was trained so on the other {}, "
      "*finetune*: the same policy after {} updates on the graph ({} gradient steps), of what it scored the best.\n\n",
      Sentences(tables), Counted(effort.seeds, "seed"), effort.updates, effort.graphs, effort.updates,
      effort.graphs - 1, effort.tuned_updates, 4 * effort.tuned_updates);
  WriteMany(catalogs, tables, effort);
}

void WriteGdpLarge(const Catalogs& catalogs, bool quick, const std::string&) {
  const Effort effort = Of(quick, std::size(kEight));
  const char* const model_of_large = quick ? "gnmt(layers=8,steps=2)" : kLarge;
  std::vector<Table> tables;
  for (size_t i = 0; i < effort.graphs; ++i) {
    const char* model = kEight[quick ? std::size(kEight) - 1 - i : i].model;
    Table& table = tables.emplace_back(Table{.title = model, .setup = MakePorts(catalogs, model, "p100x8", true)});
    table.Add({.planner = "gdp",
               .seeds = 0,
               .evaluations = Evaluations(effort.updates),
               .later = static_cast<int>(std::size(kForms)) * effort.seeds});
  }
  Table& large =
      tables.emplace_back(Table{.title = model_of_large, .setup = MakePorts(catalogs, model_of_large, "p100x8", true)});
  const int64_t few = Evaluations(effort.tuned_updates);
  AddRules(large, 1, few);
  AddLearned(large, "hdp", "hdp", effort.seeds, few);
  AddLearned(large, "gdp, from nothing", "gdp", effort.seeds, few);
  large.rows.back().later = 2 * static_cast<int>(std::size(kForms)) * effort.seeds;
  Measure(catalogs, "gdp-large", tables);
  WriteLarge(catalogs, std::span<const Table>(tables).first(effort.graphs), large, effort);
}

}  // namespace berth::learned
