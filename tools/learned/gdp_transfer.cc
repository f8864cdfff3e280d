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
  bool more_sizes = false;     // of each family, beside the graph of the table
  bool more_families = false;  // beside those of the table
};

void WriteMany(const Catalogs& catalogs, std::span<const Table> tables, std::span<const std::deque<Table>> other_sizes,
               const std::deque<Table>& other_families, const Effort& effort) {
  const size_t graphs = tables.size(), none = graphs;
  const auto seeds = static_cast<size_t>(effort.seeds);
  std::vector<Pretraining> pretrained;
  for (const Form& form : kForms) pretrained.push_back({.form = form, .suffix = form.suffix});
  pretrained.push_back({.form = kForms[0], .suffix = ", three sizes", .more_sizes = true});
  pretrained.push_back({.form = kForms[0], .suffix = ", more families", .more_families = true});
  const auto lessons = [&](const Pretraining& of, size_t left_out) {
    std::vector<const Table*> list = Without(tables, left_out);
    for (size_t g = 0; of.more_sizes && g < graphs; ++g) {
      if (g == left_out) continue;
      for (const Table& table : other_sizes[g]) list.push_back(&table);
    }
    if (of.more_families) {
      for (const Table& table : other_families) list.push_back(&table);
    }
    return list;
  };
  std::vector<std::vector<Lesson>> batch(std::size(kForms), std::vector<Lesson>(seeds));
  std::vector<std::vector<std::vector<Transfer>>> held(pretrained.size(), std::vector<std::vector<Transfer>>(graphs));
  Jobs jobs;
  for (size_t f = 0; f < std::size(kForms); ++f) {
    for (size_t seed = 0; seed < seeds; ++seed) {
      jobs.Add([&, f, seed] {
        batch[f][seed] = Learn(catalogs, kForms[f].planner, Without(tables, none), effort.updates, seed + 1,
                               fmt::format("batch-{}-{}", f, seed));
      });
    }
  }
  for (size_t f = 0; f < pretrained.size(); ++f) {
    for (size_t g = 0; g < graphs; ++g) {
      held[f][g].resize(seeds);
      for (size_t seed = 0; seed < seeds; ++seed) {
        jobs.Add([&, f, g, seed] {
          Transfer& transfer = held[f][g][seed];
          transfer.before = Learn(catalogs, pretrained[f].form.planner, lessons(pretrained[f], g), effort.updates,
                                  seed + 1, fmt::format("held-{}-{}-{}", f, g, seed));
          Tune(catalogs, tables[g], effort.tuned_updates, seed + 1, transfer);
          TuneWide(catalogs, tables[g], effort.tuned_updates, seed + 1, transfer);
        });
      }
    }
  }
  jobs.Run();

  std::vector<Line> lines = RuleLines(tables);
  const auto likeliest_of = [](const Row& row) { return row.Likeliest(); };
  const Line human = lines[0], one = LineOf("", tables, OneTitle(kForms[0]), Found);
  for (const Form& form : kForms) {
    lines.push_back(LineOf(fmt::format("**gdp, one{}**", form.suffix), tables, OneTitle(form), Found));
    lines.push_back(LineOf("its policy's likeliest", tables, OneTitle(form), likeliest_of));
  }
  for (size_t f = 0; f < std::size(kForms); ++f) {
    // With those of its checkpoints.
    const int64_t asked = batch[f].front().result.cases.front().best.evaluations;
    Line found{.title = fmt::format("**batch{}**", kForms[f].suffix), .evaluations = asked};
    Line likeliest{.title = "the likeliest of its best checkpoint", .evaluations = asked};
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
  for (const Form& form : kForms) {
    lines.push_back(LineOf(fmt::format("an untrained policy's likeliest{}", form.suffix), tables, UntrainedTitle(form),
                           likeliest_of));
    lines.back().evaluations = kAnswer;
    lines.back().processor.clear();
    lines.push_back(LineOf(fmt::format("from scratch{}, {} updates", form.suffix, effort.tuned_updates), tables,
                           ShortTitle(form), Found));
    lines.push_back(LineOf(
        fmt::format("from scratch{}, {} updates of {} placements", form.suffix, effort.tuned_updates, kWideRollouts),
        tables, WideTitle(form), Found));
  }
  struct Cost {
    double before, one, tuned;
  };
  std::vector<Cost> costs;  // by pretraining
  for (size_t f = 0; f < pretrained.size(); ++f) {
    const std::string& suffix = pretrained[f].suffix;
    Line zero{.title = fmt::format("**zero_shot{}**", suffix), .evaluations = kAnswer};
    Line tuned{.title = fmt::format("**finetune{}**, {} updates", suffix, effort.tuned_updates),
               .evaluations = Evaluations(effort.tuned_updates)};
    Line likeliest{.title = "its policy's likeliest", .evaluations = tuned.evaluations};
    Line flat{.title = "its untrained twin: as many draws, nothing learned", .evaluations = tuned.evaluations};
    Line sure{.title = "finetune, odds as they are: `temperature=1`", .evaluations = tuned.evaluations};
    Line drawn{.title = "its untrained twin: as many draws, nothing learned", .evaluations = tuned.evaluations};
    Line wide{.title = fmt::format("finetune{}, {} updates of {} placements, `temperature=1`", suffix,
                                   effort.tuned_updates, kWideRollouts),
              .evaluations = WideEvaluations(effort.tuned_updates)};
    Line wide_drawn{.title = drawn.title, .evaluations = wide.evaluations};
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
      const auto add_outcome = [&](Line& line, Outcome Transfer::* outcome) {
        add_to(
            line, [=](const Transfer& t) { return (t.*outcome).found; },
            [=](const Transfer& t) { return (t.*outcome).processor; });
      };
      add_outcome(flat, &Transfer::flat);
      add_outcome(sure, &Transfer::sure);
      add_outcome(drawn, &Transfer::drawn);
      add_outcome(wide, &Transfer::wide);
      add_outcome(wide_drawn, &Transfer::wide_drawn);
      before.push_back(Median(Each(of, [](const Transfer& t) { return t.before.seconds; })));
    }
    costs.push_back({.before = Mean(before),
                     .one = Mean(LineOf("", tables, OneTitle(pretrained[f].form), Found).processor),
                     .tuned = Mean(tuned.processor)});
    for (Line* line : {&zero, &tuned, &likeliest, &flat, &sure, &drawn, &wide, &wide_drawn})
      lines.push_back(std::move(*line));
  }
  Print(lines, one, human, tables);

  fmt::print("### What pretraining costs, and after how many graphs it pays\n\n");
  fmt::print(
      "| form | pretraining, seconds | a graph from scratch (one), seconds | fine-tuned, seconds | pays after, graphs "
      "|\n|---|---:|---:|---:|---:|\n");
  for (size_t f = 0; f < pretrained.size(); ++f) {
    const auto& [before, alone, tuned] = costs[f];
    fmt::print("| gdp{} | {:.0f} | {:.1f} | {:.1f} | {} |\n", pretrained[f].suffix, before, alone, tuned,
               alone > tuned ? fmt::format("{:.0f}", std::ceil(before / (alone - tuned))) : "never");
  }
  fmt::print("\n");
}

}  // namespace

void WriteGdpTransfer(const Catalogs& catalogs, bool quick, const std::string&) {
  const Effort effort = Of(quick, kMostTwo);
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
      // The first form is also trained on three sizes of all graphs but one, and with other families, and then trained
      // on.
      add(UntrainedTitle(form), Untrained(form.planner), evaluations);
      add(OneTitle(form), form.planner, evaluations, f == 0 ? later + sizes + families : later);
      add(ShortTitle(form), form.planner, Evaluations(effort.tuned_updates), (f == 0 ? 6 : 2) * effort.seeds);
      add(WideTitle(form), Wide(catalogs, form.planner), WideEvaluations(effort.tuned_updates),
          (f == 0 ? 3 : 1) * effort.seeds);
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
