// GDP on a large graph that it has not seen (Zhou et al. 2019).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "exec/statistics.h"
#include "tools/learned/gdp_lessons.h"

namespace berth::learned {
namespace {

// One of about 5,000 ops, and one of at least 50,000.
constexpr const char* kLarge[] = {"gnmt(layers=8,steps=8)", "gnmt(layers=8,steps=80)"};
constexpr const char* kClimbing = "best_of(single,heft,local_search(order=rank))";

// A policy of a form by seed, then what it is worth on a graph.
using Held = std::vector<std::vector<Transfer>>;

// By large graph.
std::vector<Held> TrainAll(const Catalogs& catalogs, std::span<const Table> lessons, std::span<const Table> large,
                           const Effort& effort) {
  const auto seeds = static_cast<size_t>(effort.seeds);
  std::vector<Held> held(large.size(), Held(std::size(kForms), std::vector<Transfer>(seeds)));
  Jobs jobs;
  for (size_t f = 0; f < std::size(kForms); ++f) {
    for (size_t seed = 0; seed < seeds; ++seed) {
      jobs.Add([&, f, seed] {
        const Lesson before = Learn(catalogs, kForms[f].planner, Without(lessons, lessons.size()), effort.updates,
                                    seed + 1, fmt::format("large-{}-{}", f, seed));
        for (size_t g = 0; g < large.size(); ++g) {
          held[g][f][seed].before = before;
          Tune(catalogs, large[g], effort.tuned_updates, seed + 1, held[g][f][seed]);
        }
      });
    }
  }
  jobs.Run();
  return held;
}

void WriteLarge(const Table& large, const Held& held, const Effort& effort) {
  fmt::print(
      "### {}\n\n{} ops.\n\n| method | evaluations | ms | over `human` | seconds | pretraining, seconds "
      "|\n|---|---:|---:|---:|---:|---:|\n",
      large.title, large.setup->problem->num_ops());
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
    const auto flat = [](const Transfer& t) -> const Outcome& { return t.flat; };
    const auto sure = [](const Transfer& t) -> const Outcome& { return t.sure; };
    const auto drawn = [](const Transfer& t) -> const Outcome& { return t.drawn; };
    put(fmt::format("**zero_shot{}**", suffix), answer, [](const Transfer& t) { return t.zero_shot; });
    put(fmt::format("**finetune{}**, {} updates", suffix, effort.tuned_updates), tuned,
        [](const Transfer& t) { return t.tuned.found; });
    put("its policy's likeliest", tuned,
        [](const Transfer& t) { return t.tuned.learned->likeliest.value_or(kInfinity); });
    put("its untrained twin: as many draws, nothing learned", flat, [](const Transfer& t) { return t.flat.found; });
    if (HasGates(kForms[f].planner)) {
      put(
          "only the layers of superposition learn: `learns=superposition`",
          [](const Transfer& t) -> const Outcome& { return t.gates; }, [](const Transfer& t) { return t.gates.found; });
    }
    put("finetune, odds as they are: `temperature=1`", sure, [](const Transfer& t) { return t.sure.found; });
    put("its untrained twin: as many draws, nothing learned", drawn, [](const Transfer& t) { return t.drawn.found; });
  }
  fmt::print("\n");
}

}  // namespace

void WriteGdpLarge(const Catalogs& catalogs, bool quick, const std::string&) {
  const Effort effort = Of(quick, std::size(kEight), 3);
  std::vector<Table> tables;
  for (size_t i = 0; i < effort.graphs; ++i) {
    const char* model = kEight[quick ? std::size(kEight) - 1 - i : i];
    Table& table = tables.emplace_back(Table{.title = model, .setup = MakePorts(catalogs, model, "p100x8", true)});
    table.Add({.planner = "gdp",
               .seeds = 0,
               .evaluations = Evaluations(effort.updates),
               .later = static_cast<int>(std::size(kForms)) * effort.seeds});
  }
  const int64_t few = Evaluations(effort.tuned_updates), many = Evaluations(effort.updates);
  const std::vector<const char*> models =
      quick ? std::vector<const char*>{"gnmt(layers=8,steps=2)"} : std::vector<const char*>(kLarge, std::end(kLarge));
  for (const char* model : models) {
    const bool smallest = model == models.front();
    Table& large = tables.emplace_back(Table{.title = model, .setup = MakePorts(catalogs, model, "p100x8", true)});
    AddRules(large, 1, few);
    AddSearches(large, effort.seeds, few, "gdp, from scratch");
    large.Add({.title = fmt::format("`{}`", kClimbing),
               .planner = kClimbing,
               .seeds = effort.seeds,
               .evaluations = few,
               .search = true});
    AddLearned(large, "hdp", "hdp", effort.seeds, few);
    for (const Form& form : kForms) {
      AddLearned(large, fmt::format("gdp, from scratch{}", form.suffix), form.planner, effort.seeds, few);
      large.rows.back().later = (HasGates(form.planner) ? 3 : 2) * effort.seeds;
      // What fine-tuning is to reach with fewer updates: on the smaller graph alone, since it takes minutes there.
      if (smallest) {
        large.Add({.title = fmt::format("**gdp, one{}**, {} updates", form.suffix, effort.updates),
                   .planner = form.planner,
                   .seeds = effort.seeds,
                   .evaluations = many});
      }
    }
  }
  Measure(catalogs, "gdp-large", tables);
  const auto lessons = std::span<const Table>(tables).first(effort.graphs);
  const auto large = std::span<const Table>(tables).subspan(effort.graphs);
  std::vector<std::string> names;
  for (const Table& table : lessons) names.push_back(fmt::format("`{}`", table.title));
  fmt::print(
      "## GDP on large graphs that it has not seen\n\nOne training step with `sgd` on eight GPUs (`p100x8`) under "
      "`parallel(contention=ports)`, for a policy that was trained on {} there with {} updates: no GNMT among "
      "them.\n\n",
      fmt::join(names, ", "), effort.updates);
  const std::vector<Held> held = TrainAll(catalogs, lessons, large, effort);
  for (size_t g = 0; g < large.size(); ++g) WriteLarge(large[g], held[g], effort);
}

}  // namespace berth::learned
