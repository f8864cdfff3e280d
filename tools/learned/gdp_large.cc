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

// Of at least 50,000 ops.
constexpr const char* kLarge = "gnmt(layers=8,steps=80)";

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
      "GNMT among them.\n\n"
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
    const auto flat = [](const Transfer& t) -> const Outcome& { return t.flat; };
    const auto sure = [](const Transfer& t) -> const Outcome& { return t.sure; };
    const auto drawn = [](const Transfer& t) -> const Outcome& { return t.drawn; };
    put(fmt::format("**zero_shot{}**", suffix), answer, [](const Transfer& t) { return t.zero_shot; });
    put(fmt::format("**finetune{}**, {} updates", suffix, effort.tuned_updates), tuned,
        [](const Transfer& t) { return t.tuned.found; });
    put("its policy's likeliest", tuned,
        [](const Transfer& t) { return t.tuned.learned->likeliest.value_or(kInfinity); });
    put("its untrained twin: as many draws, nothing learned", flat, [](const Transfer& t) { return t.flat.found; });
    put("finetune, odds as they are: `temperature=1`", sure, [](const Transfer& t) { return t.sure.found; });
    put("its untrained twin: as many draws, nothing learned", drawn, [](const Transfer& t) { return t.drawn.found; });
  }
  fmt::print("\n");
}

}  // namespace

void WriteGdpLarge(const Catalogs& catalogs, bool quick, const std::string&) {
  const Effort effort = Of(quick, std::size(kEight));
  const char* const model_of_large = quick ? "gnmt(layers=8,steps=2)" : kLarge;
  std::vector<Table> tables;
  for (size_t i = 0; i < effort.graphs; ++i) {
    const char* model = kEight[quick ? std::size(kEight) - 1 - i : i];
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
  for (const Form& form : kForms) {
    AddLearned(large, fmt::format("gdp, from scratch{}", form.suffix), form.planner, effort.seeds, few);
    large.rows.back().later = 2 * effort.seeds;
  }
  Measure(catalogs, "gdp-large", tables);
  WriteLarge(catalogs, std::span<const Table>(tables).first(effort.graphs), large, effort);
}

}  // namespace berth::learned
