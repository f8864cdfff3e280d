// One policy of GDP for many graphs, and on graphs never seen (Zhou et al. 2019).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "exec/statistics.h"
#include "tools/learned/gdp_lessons.h"

namespace berth::learned {
namespace {

// Rows of a form on one graph: trained, untrained, and trained for as many updates as others are fine-tuned.
std::string OneTitle(const Form& form) { return fmt::format("gdp{}", form.suffix); }
std::string UntrainedTitle(const Form& form) { return fmt::format("gdp{}, untrained", form.suffix); }
std::string ShortTitle(const Form& form) { return fmt::format("gdp{}, from scratch", form.suffix); }
std::string WideTitle(const Form& form) { return fmt::format("{}, wide", ShortTitle(form)); }

// How a policy was trained before it sees the graph that was left out.
struct Pretraining {
  const Form& form;
  std::string suffix;
  std::span<const std::deque<Table>> more_sizes{};  // of each graph of the table
  std::span<const Table* const> more_families{};    // beside those of the table
};

std::vector<const Table*> Lessons(const Pretraining& of, std::span<const Table> tables, size_t left_out) {
  std::vector<const Table*> lessons = Without(tables, left_out);
  for (size_t g = 0; g < of.more_sizes.size(); ++g) {
    if (g == left_out) continue;
    for (const Table& table : of.more_sizes[g]) lessons.push_back(&table);
  }
  lessons.insert(lessons.end(), of.more_families.begin(), of.more_families.end());
  return lessons;
}

struct Trained {
  std::vector<std::vector<Lesson>> batch;                // on all graphs; by form, by seed
  std::vector<std::vector<std::vector<Transfer>>> held;  // by pretraining, by the graph left out, by seed
};

Trained TrainAll(const Catalogs& catalogs, std::span<const Table> tables, std::span<const Pretraining> pretrainings,
                 const Effort& effort) {
  const size_t graphs = tables.size(), none = graphs;
  const auto seeds = static_cast<size_t>(effort.seeds);
  Trained trained;
  trained.batch.assign(std::size(kForms), std::vector<Lesson>(seeds));
  trained.held.assign(pretrainings.size(), std::vector(graphs, std::vector<Transfer>(seeds)));
  Jobs jobs;
  for (size_t f = 0; f < std::size(kForms); ++f) {
    for (size_t seed = 0; seed < seeds; ++seed) {
      jobs.Add([&, f, seed] {
        trained.batch[f][seed] = Learn(catalogs, kForms[f].planner, Without(tables, none), effort.updates, seed + 1,
                                       fmt::format("batch-{}-{}", f, seed));
      });
    }
  }
  for (size_t p = 0; p < pretrainings.size(); ++p) {
    for (size_t g = 0; g < graphs; ++g) {
      for (size_t seed = 0; seed < seeds; ++seed) {
        jobs.Add([&, p, g, seed] {
          Transfer& transfer = trained.held[p][g][seed];
          transfer.before = Learn(catalogs, pretrainings[p].form.planner, Lessons(pretrainings[p], tables, g),
                                  effort.updates, seed + 1, fmt::format("held-{}-{}-{}", p, g, seed));
          Tune(catalogs, tables[g], effort.tuned_updates, seed + 1, transfer);
          TuneWide(catalogs, tables[g], effort.tuned_updates, seed + 1, transfer);
        });
      }
    }
  }
  jobs.Run();
  return trained;
}

std::vector<double> LikeliestOf(const Row& row) { return row.Likeliest(); }

// Trained on the graph alone.
void AddAlone(std::span<const Table> tables, std::vector<Line>& lines) {
  for (const Form& form : kForms) {
    lines.push_back(LineOf(fmt::format("**gdp, one{}**", form.suffix), tables, OneTitle(form), Found));
    lines.push_back(LineOf("its policy's likeliest", tables, OneTitle(form), LikeliestOf));
  }
}

// One policy on all graphs, by seed.
void AddBatch(const Form& form, std::span<const Lesson> lessons, std::span<const Table> tables,
              std::vector<Line>& lines) {
  // With those of its checkpoints.
  const int64_t asked = lessons.front().result.cases.front().best.evaluations;
  Line found{.title = fmt::format("**batch{}**", form.suffix), .evaluations = asked};
  Line likeliest{.title = "the likeliest of its best checkpoint", .evaluations = asked};
  for (size_t g = 0; g < tables.size(); ++g) {
    std::vector<double> best, greedy, took;
    for (const Lesson& lesson : lessons) {
      const TrainedCase& trained = lesson.result.cases[g];
      best.push_back(SecondsOf(*tables[g].setup->problem, trained.best.score));
      greedy.push_back(trained.greedy_cost);
      took.push_back(lesson.seconds / static_cast<double>(tables.size()));
    }
    found.reached.push_back(best);
    likeliest.reached.push_back(greedy);
    found.processor.push_back(Median(took));
    likeliest.processor.push_back(Median(took));
  }
  lines.push_back(std::move(found));
  lines.push_back(std::move(likeliest));
}

// What those that were trained elsewhere are compared with: as little time on the graph, and nothing before it.
void AddScratch(std::span<const Table> tables, int64_t updates, std::vector<Line>& lines) {
  for (const Form& form : kForms) {
    lines.push_back(LineOf(fmt::format("an untrained policy's likeliest{}", form.suffix), tables, UntrainedTitle(form),
                           LikeliestOf));
    lines.back().evaluations = kAnswer;
    lines.back().processor.clear();
    const std::string title = fmt::format("from scratch{}, {} updates", form.suffix, updates);
    lines.push_back(LineOf(title, tables, ShortTitle(form), Found));
    lines.push_back(LineOf(fmt::format("{} of {} placements", title, kWideRollouts), tables, WideTitle(form), Found));
  }
}

// A policy that was trained on the other graphs, by the graph left out, by seed.
void AddTransfer(const std::string& suffix, const std::vector<std::vector<Transfer>>& held, int64_t updates,
                 std::vector<Line>& lines) {
  const auto add = [&](const std::string& title, int64_t evaluations, const auto& reached, const auto& processor) {
    Line& line = lines.emplace_back(Line{.title = title, .evaluations = evaluations});
    for (const std::vector<Transfer>& of : held) {
      line.reached.push_back(Each(of, reached));
      line.processor.push_back(Median(Each(of, processor)));
    }
  };
  const auto add_outcome = [&](const std::string& title, int64_t evaluations, Outcome Transfer::* outcome) {
    add(
        title, evaluations, [=](const Transfer& t) { return (t.*outcome).found; },
        [=](const Transfer& t) { return (t.*outcome).processor; });
  };
  const int64_t few = Evaluations(updates), wide = WideEvaluations(updates);
  const std::string twin = "its untrained twin: as many draws, nothing learned";
  add(
      fmt::format("**zero_shot{}**", suffix), kAnswer, [](const Transfer& t) { return t.zero_shot; },
      [](const Transfer& t) { return t.answer.processor; });
  add_outcome(fmt::format("**finetune{}**, {} updates", suffix, updates), few, &Transfer::tuned);
  add(
      "its policy's likeliest", few, [](const Transfer& t) { return t.tuned.learned->likeliest.value_or(kInfinity); },
      [](const Transfer& t) { return t.tuned.processor; });
  add_outcome(twin, few, &Transfer::flat);
  if (held.front().front().gates.evaluations > 0) {
    add_outcome(fmt::format("finetune{}, only these layers learn: `learns=superposition`", suffix), few,
                &Transfer::gates);
  }
  add_outcome("finetune, odds as they are: `temperature=1`", few, &Transfer::sure);
  add_outcome(twin, few, &Transfer::drawn);
  add_outcome(fmt::format("finetune{}, {} updates of {} placements, `temperature=1`", suffix, updates, kWideRollouts),
              wide, &Transfer::wide);
  add_outcome(twin, wide, &Transfer::wide_drawn);
}

void PrintCosts(std::span<const Table> tables, std::span<const Pretraining> pretrainings, const Trained& trained) {
  fmt::print("### What pretraining costs, and after how many graphs it pays\n\n");
  fmt::print(
      "| form | pretraining, seconds | a graph from scratch (one), seconds | fine-tuned, seconds | pays after, graphs "
      "|\n|---|---:|---:|---:|---:|\n");
  for (size_t p = 0; p < pretrainings.size(); ++p) {
    const auto mean = [&](const auto& seconds) {
      std::vector<double> medians;
      for (const std::vector<Transfer>& of : trained.held[p]) medians.push_back(Median(Each(of, seconds)));
      return Mean(medians);
    };
    const double before = mean([](const Transfer& t) { return t.before.seconds; });
    const double tuned = mean([](const Transfer& t) { return t.tuned.processor; });
    const double alone = Mean(LineOf("", tables, OneTitle(pretrainings[p].form), Found).processor);
    fmt::print("| gdp{} | {:.0f} | {:.1f} | {:.1f} | {} |\n", pretrainings[p].suffix, before, alone, tuned,
               alone > tuned ? fmt::format("{:.0f}", std::ceil(before / (alone - tuned))) : "never");
  }
  fmt::print("\n");
}

void WriteMany(const Catalogs& catalogs, std::span<const Table> tables, std::span<const std::deque<Table>> other_sizes,
               const std::deque<Table>& other_families, const Effort& effort) {
  std::vector<const Table*> families;
  for (const Table& table : other_families) families.push_back(&table);
  std::vector<Pretraining> pretrainings;
  for (const Form& form : kForms) pretrainings.push_back({.form = form, .suffix = form.suffix});
  pretrainings.push_back({.form = kForms[0], .suffix = ", three sizes", .more_sizes = other_sizes});
  // Alone and with superposition, which is for many graphs that differ.
  for (const Form& form : std::span(kForms).first(2)) {
    pretrainings.push_back(
        {.form = form, .suffix = fmt::format("{}, more families", form.suffix), .more_families = families});
  }
  const Trained trained = TrainAll(catalogs, tables, pretrainings, effort);

  std::vector<Line> lines = RuleLines(tables);
  const Line human = lines[0], one = LineOf("", tables, OneTitle(kForms[0]), Found);
  AddAlone(tables, lines);
  for (size_t f = 0; f < std::size(kForms); ++f) AddBatch(kForms[f], trained.batch[f], tables, lines);
  AddScratch(tables, effort.tuned_updates, lines);
  for (size_t p = 0; p < pretrainings.size(); ++p) {
    AddTransfer(pretrainings[p].suffix, trained.held[p], effort.tuned_updates, lines);
  }
  Print(lines, {{"gdp", one}, {"`human`", human}}, Titles(tables));
  PrintCosts(tables, pretrainings, trained);
}

}  // namespace

void WriteGdpTransfer(const Catalogs& catalogs, bool quick, const std::string&) {
  const Effort effort = Of(quick, kMostTwo, 5);
  std::vector<Table> tables = MakeTwo(catalogs, quick, effort);
  const std::vector<std::deque<Table>> other_sizes = MakeOtherSizes(catalogs, quick, effort);
  const std::deque<Table> other_families = MakeOtherFamilies(catalogs, quick);
  const int64_t evaluations = Evaluations(effort.updates);
  for (Table& table : tables) {
    const auto add = [&](const std::string& title, const std::string& planner, int64_t asks, int later = 0) {
      table.Add({.title = title, .planner = planner, .seeds = effort.seeds, .evaluations = asks, .later = later});
    };
    // Each graph is in a batch of all, and in all but one of those that leave one out.
    const int later = static_cast<int>(effort.graphs) * effort.seeds, sizes = 3 * (later - effort.seeds);
    const int families = later + static_cast<int>(other_families.size()) * effort.seeds;
    for (size_t f = 0; f < std::size(kForms); ++f) {
      const Form& form = kForms[f];
      // The first two forms are also trained with other families, and the first on three sizes of all graphs but one;
      // then each of these policies is trained on.
      const int policies = f == 0 ? 3 : f == 1 ? 2 : 1;
      add(UntrainedTitle(form), Untrained(form.planner), evaluations);
      add(OneTitle(form), form.planner, evaluations, later + (f == 0 ? sizes : 0) + (f <= 1 ? families : 0));
      const int tuned = policies * (HasGates(form.planner) ? 3 : 2);
      add(ShortTitle(form), form.planner, Evaluations(effort.tuned_updates), tuned * effort.seeds);
      add(WideTitle(form), Wide(catalogs, form.planner), WideEvaluations(effort.tuned_updates),
          policies * effort.seeds);
    }
  }
  Measure(catalogs, "gdp-transfer", tables);
  std::vector<std::string> sizes;
  for (const auto& of_family : other_sizes) {
    for (const Table& table : of_family) sizes.push_back(fmt::format("`{}`", table.title));
  }
  std::vector<std::string> families;
  for (const Table& table : other_families) families.push_back(fmt::format("`{}`", table.title));
  fmt::print(
      "## GDP on graphs never seen\n\nOne training step with `sgd` of {} on two GPUs (`p100x2`) under "
      "`parallel(contention=ports)`, {}; times in ms. *One*: gdp on the graph alone, {} updates. *Batch*: one policy "
      "on all {} graphs, each in each of {} updates, and the best of its checkpoints by their likeliest placements. "
      "*zero_shot*: the answer of a policy that was trained so on the other {}, *finetune*: the same policy after {} "
      "updates on the graph ({} gradient steps), of what it scored the best; an update scores {} placements where nothing "
      "else is said. *Three sizes*: a policy that was also trained on "
      "two other sizes of each of the {} that were not left out, of these: {}. *More families*: a policy that was also "
      "trained on {}.\n\n",
      Sentences(tables), Counted(effort.seeds, "seed"), effort.updates, effort.graphs, effort.updates,
      effort.graphs - 1, effort.tuned_updates, 4 * effort.tuned_updates, kRollouts, effort.graphs - 1,
      fmt::join(sizes, ", "), fmt::join(families, ", "));
  WriteMany(catalogs, tables, other_sizes, other_families, effort);
}

}  // namespace berth::learned
