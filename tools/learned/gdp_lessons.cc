#include "tools/learned/gdp_lessons.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "exec/statistics.h"

namespace berth::learned {
namespace {

struct Network {
  const char *name, *model;  // a family each
  std::array<const char*, 2> other_sizes;
};
constexpr Network kTwo[] = {
    {"RNNLM", "rnnlm(layers=2,steps=10)", {"rnnlm(layers=1,steps=8)", "rnnlm(layers=4,steps=4)"}},
    {"GNMT", "gnmt(layers=2,steps=4)", {"gnmt(layers=2,steps=2)", "gnmt(layers=3,steps=3)"}},
    {"Transformer-XL", "transformer_xl(layers=2)", {"transformer_xl(layers=1)", "transformer_xl(layers=4)"}},
    {"Inception-V3", "inception_v3(batch=32)", {"inception_v3(batch=8)", "inception_v3(batch=64)"}},
    {"AmoebaNet", "amoebanet(batch=32,cells=2)", {"amoebanet(batch=16,cells=1)", "amoebanet(batch=32,cells=3)"}},
    {"WaveNet", "wavenet(stacks=2)", {"wavenet(stacks=1)", "wavenet(stacks=3)"}}};
static_assert(std::size(kTwo) == kMostTwo);

// Where something is gained by splitting each of them (on p100x2, by `auto`: 1.07 to 2 times as fast as one GPU).
constexpr const char* kOtherFamilies[] = {"two_towers",
                                          "fork_join",
                                          "squeezenet1_1",
                                          "dlrm(tables=12)",
                                          "lstm_grid(layers=4,steps=12)",
                                          "bert(layers=2,batch=16)",
                                          "mixture(layers=2)",
                                          "deeplabv3_resnet50",
                                          "efficientnet_b0",
                                          "layered(ops=300)",
                                          "enas_conv",
                                          "enas_rnn",
                                          "densenet121"};

// The short form takes small ones.
const Network& NetworkOf(size_t i, bool quick) { return kTwo[quick ? std::size(kTwo) - 1 - i : i]; }

// Of the flattest of the first draws of a policy that was trained on other graphs: nearly even odds.
constexpr const char* kTemperature = "1000";

// The policy as a planner that answers, and as one that trains it on.
std::string Answers(const Catalogs& catalogs, const Transfer& transfer) {
  return catalogs.planners.NameWith(transfer.before.result.answer, "workers", "");
}
std::string TrainsOn(const Catalogs& catalogs, const Transfer& transfer) {
  return catalogs.planners.NameWith(Answers(catalogs, transfer), "train", "true");
}

}  // namespace

std::string MeanWithInterval(const std::vector<double>& ratio) {
  Random random(1);
  std::vector<double> means;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> drawn;
    for (size_t k = 0; k < ratio.size(); ++k) drawn.push_back(ratio[random.Below(ratio.size())]);
    means.push_back(GeometricMean(drawn));
  }
  std::ranges::sort(means);
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", GeometricMean(ratio), means[means.size() / 40],
                     means[means.size() - 1 - means.size() / 40]);
}

std::vector<Table> MakeSmall(const Catalogs& catalogs, int first, int graphs) {
  std::vector<Table> tables;
  for (int g = first; g < first + graphs; ++g) {
    const std::string model = fmt::format("layered(ops=20,width=4,spread=3,bytes=6000000,seed={})", g);
    Table& table = tables.emplace_back(Table{.title = model, .setup = MakePorts(catalogs, model, "k80x2", false)});
    table.Add({.title = "optimum", .planner = "exhaustive", .evaluations = 4'000'000});
  }
  return tables;
}

Effort Of(bool quick, size_t graphs, int seeds) {
  return quick ? Effort{.graphs = 2, .seeds = 1, .updates = 3, .tuned_updates = 2}
               : Effort{.graphs = graphs, .seeds = seeds, .updates = 63, .tuned_updates = 12};
}

bool HasGates(const std::string& planner) { return planner.find("superposition=true") != std::string::npos; }

const Row& Find(const Table& table, const std::string& title) {
  return *std::ranges::find(table.rows, title, &Row::title);
}

std::vector<double> Found(const Row& row) {
  std::vector<double> values;
  for (const Outcome& outcome : row.outcome) values.push_back(outcome.found);
  return values;
}

Lesson Learn(const Catalogs& catalogs, const std::string& planner, const std::vector<const Table*>& graphs,
             int64_t updates, uint64_t seed, const std::string& name, const std::vector<const Table*>& validation,
             const std::vector<const Table*>& tests) {
  const auto cases = [](const std::vector<const Table*>& tables) {
    std::vector<TrainingCase> list;
    for (const Table* table : tables) list.push_back({.name = table->title, .evaluator = *table->setup->evaluator});
    return list;
  };
  Lesson lesson{.folder = std::make_shared<Scratch>(name)};
  const std::string on_all = catalogs.planners.NameWith(planner, "workers", fmt::format("{}", graphs.size()));
  const double before = ProcessorSeconds();
  lesson.result =
      TrainOn(catalogs, on_all, cases(graphs), cases(tests), updates, seed, *lesson.folder, cases(validation));
  lesson.seconds = ProcessorSeconds() - before;
  return lesson;
}

std::vector<const Table*> Without(std::span<const Table> tables, size_t left_out) {
  std::vector<const Table*> list;
  for (size_t g = 0; g < tables.size(); ++g) {
    if (g != left_out) list.push_back(&tables[g]);
  }
  return list;
}

std::string Wide(const Catalogs& catalogs, const std::string& planner) {
  return catalogs.planners.NameWith(planner, "rollouts", fmt::format("{}", kWideRollouts));
}

void TuneWide(const Catalogs& catalogs, const Table& table, int64_t updates, uint64_t seed, Transfer& transfer) {
  const std::string wide = Wide(catalogs, TrainsOn(catalogs, transfer));
  transfer.wide = Play(catalogs, *table.setup, wide, WideEvaluations(updates), seed);
  transfer.wide_drawn = Play(catalogs, *table.setup, Untrained(wide), WideEvaluations(updates), seed);
}

void Tune(const Catalogs& catalogs, const Table& table, int64_t updates, uint64_t seed, Transfer& transfer) {
  const auto play = [&](const std::string& planner, int64_t evaluations) {
    return Play(catalogs, *table.setup, planner, evaluations, seed);
  };
  transfer.answer = play(Answers(catalogs, transfer), kAnswer);
  transfer.zero_shot = transfer.answer.found;
  const std::string trains = TrainsOn(catalogs, transfer);
  const std::string flatter = catalogs.planners.NameWith(trains, "temperature", kTemperature);
  transfer.tuned = play(flatter, Evaluations(updates));
  transfer.flat = play(Untrained(flatter), Evaluations(updates));
  if (HasGates(trains)) {
    transfer.gates = play(catalogs.planners.NameWith(flatter, "learns", "superposition"), Evaluations(updates));
  }
  transfer.sure = play(trains, Evaluations(updates));
  transfer.drawn = play(Untrained(trains), Evaluations(updates));
}

std::vector<Table> MakeTwo(const Catalogs& catalogs, bool quick, const Effort& effort) {
  std::vector<Table> tables;
  for (size_t i = 0; i < effort.graphs; ++i) {
    const auto& [name, model, _] = NetworkOf(i, quick);
    Table& table = tables.emplace_back(Table{.title = name, .setup = MakePorts(catalogs, model, "p100x2", true)});
    table.sentence = fmt::format("`{}` ({} ops)", model, table.setup->problem->num_ops());
    AddRules(table, effort.seeds, Evaluations(effort.updates));
  }
  return tables;
}

std::vector<std::deque<Table>> MakeOtherSizes(const Catalogs& catalogs, bool quick, const Effort& effort) {
  std::vector<std::deque<Table>> sizes(effort.graphs);
  for (size_t i = 0; i < effort.graphs; ++i) {
    for (const char* model : NetworkOf(i, quick).other_sizes) {
      sizes[i].push_back(Table{.title = model, .setup = MakePorts(catalogs, model, "p100x2", true)});
    }
  }
  return sizes;
}

std::deque<Table> MakeOtherFamilies(const Catalogs& catalogs, bool quick) {
  std::deque<Table> families;
  for (const char* model : std::span(kOtherFamilies).first(quick ? 2 : std::size(kOtherFamilies))) {
    families.push_back(Table{.title = model, .setup = MakePorts(catalogs, model, "p100x2", true)});
  }
  return families;
}

std::string Sentences(std::span<const Table> tables) {
  std::vector<std::string> list;
  for (const Table& table : tables) list.push_back(table.sentence);
  return fmt::format("{}", fmt::join(list, ", "));
}

std::vector<Line> RuleLines(std::span<const Table> tables) {
  std::vector<Line> lines;
  for (const std::string& rule : RulesAndAuto()) {
    const std::string title = fmt::format("`{}`", rule);
    lines.push_back(LineOf(title, tables, title, Found));
    lines.back().evaluations = 0;
  }
  return lines;
}

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

std::vector<std::string> Titles(std::span<const Table> tables) {
  std::vector<std::string> titles;
  for (const Table& table : tables) titles.push_back(table.title);
  return titles;
}

void Print(const std::vector<Line>& lines, const std::vector<Reference>& references,
           const std::vector<std::string>& graphs) {
  const bool timed = std::ranges::any_of(lines, [](const Line& line) { return !line.processor.empty(); });
  std::string head = "| method | evaluations |", rule = "|---|---:|";
  const auto column = [&](const std::string& name) {
    head += fmt::format(" {} |", name);
    rule += "---:|";
  };
  for (const std::string& graph : graphs) column(graph);
  for (const Reference& reference : references) column(fmt::format("over {}", reference.name));
  if (timed) column("seconds per graph");
  fmt::print("{}\n{}\n", head, rule);
  for (const Line& line : lines) {
    fmt::print("| {} | {} |", line.title, line.evaluations == 0 ? "" : fmt::format("{}", line.evaluations));
    for (const auto& values : line.reached) {
      fmt::print(" {} |", values.empty() ? "does not place it" : WithInterval(values, 1e3, 2));
    }
    for (const Reference& reference : references) {
      fmt::print(" {} |", WithInterval(Ratios(line, reference.line), 1, 3));
    }
    if (timed) fmt::print(" {} |", line.processor.empty() ? "" : fmt::format("{:.1f}", Mean(line.processor)));
    fmt::print("\n");
  }
  fmt::print("\n");
}

}  // namespace berth::learned
