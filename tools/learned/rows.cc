#include "tools/learned/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "base/catalog.h"
#include "base/chart.h"
#include "base/error.h"
#include "base/file.h"
#include "exec/statistics.h"
#include "tools/common/problems.h"

namespace berth::learned {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename Member>
std::vector<double> Values(const Row& row, const Member& member) {
  std::vector<double> values;
  for (const Outcome& outcome : row.outcome) {
    const std::optional<double> value = member(outcome);
    if (value && !std::isnan(*value)) values.push_back(*value);
  }
  return values;
}

const Row& Find(const Table& table, const std::string& title) {
  const auto found = std::ranges::find(table.rows, title, &Row::title);
  BERTH_CHECK(found != table.rows.end(), "no row {}", title);
  return *found;
}

// Places for what the seeds of a row find, and a job for each.
void AddJobs(Jobs& jobs, const Catalogs& catalogs, const Table& table, Row& row) {
  row.outcome.resize(static_cast<size_t>(row.seeds));
  for (int seed = 0; seed < row.seeds; ++seed) {
    jobs.Add([&catalogs, &table, &row, seed] {
      row.outcome[static_cast<size_t>(seed)] =
          Play(catalogs, *table.setup, row.planner, row.evaluations, static_cast<uint64_t>(seed) + 1);
    });
  }
}

// Processor seconds that a run of each learned row will take, by its planner and its table.
std::map<const Row*, double> ForeseeRows(const Catalogs& catalogs, std::span<Table> tables) {
  struct Probe {
    const Table* table;
    const Row* row;
    double seconds = 0;
  };
  std::vector<Probe> probes;
  for (const Table& table : tables) {
    for (const Row& row : table.rows) {
      if (!row.planner.empty() && row.outcome.empty() && row.refused.empty() &&
          catalogs.planners.MakePlanner(row.planner)->facts().learned) {
        probes.push_back({.table = &table, .row = &row});
      }
    }
  }
  if (probes.empty()) return {};
  const auto play = [&](const Probe& probe, int64_t evaluations) {
    Play(catalogs, *probe.table->setup, probe.row->planner, evaluations, 1);
  };
  play(probes[0], 1);  // loads the library
  Jobs jobs;
  for (Probe& probe : probes) {
    jobs.Add([&] {
      // At least a whole update of the widest, where the row has as many.
      const int64_t all = probe.row->evaluations,
                    few = std::max<int64_t>({all / 100, std::min<int64_t>(all / 3, 17), 1});
      probe.seconds = Foresee([&](int64_t evaluations) { play(probe, evaluations); }, few, 3 * few, all);
    });
  }
  jobs.Run();
  std::map<const Row*, double> seconds;
  for (const Probe& probe : probes) seconds[probe.row] = probe.seconds;
  return seconds;
}

// Makes of the row the best of the table's searches, with as many evaluations as it has in the seconds of another row.
void LetSearch(const Catalogs& catalogs, const Table& table, Row& row) {
  const Row* best = nullptr;
  for (const Row& each : table.rows) {
    if (each.search && (best == nullptr || Median(each.Drawn()) < Median(best->Drawn()))) best = &each;
  }
  BERTH_CHECK(best != nullptr, "no search in {}", table.title);
  std::string as = row.as_long_as;
  std::erase(as, '*');
  row.title = fmt::format("{}, as many seconds as {}", best->title, as);
  row.planner = best->planner;
  const double seconds = Find(table, row.as_long_as).processor();
  // Evaluations that take a tenth of it say how many take all of it.
  const auto play = [&] { return Play(catalogs, *table.setup, row.planner, row.evaluations, 1); };
  row.evaluations = best->evaluations;
  Outcome outcome = play();
  while (outcome.processor < seconds / 10 && outcome.evaluations == row.evaluations) {
    row.evaluations *= 4;
    outcome = play();
  }
  row.evaluations =
      std::max<int64_t>(std::llround(static_cast<double>(row.evaluations) * seconds / outcome.processor), 1);
}

// The best so far after so many evaluations, in seconds: what the policy drew, or a search found.
double After(const Outcome& outcome, double evaluations) {
  double best = kInfinity;
  if (outcome.learned) {
    for (const Learned::Update& update : outcome.learned->updates) {
      if (static_cast<double>(update.evaluations) > evaluations) break;
      best = update.drawn;
    }
  } else {
    for (const Improvement& each : outcome.improvements) {
      if (static_cast<double>(each.evaluations) > evaluations) break;
      best = each.found;
    }
  }
  return best;
}

std::string Picture(const Table& table) {
  constexpr int kPoints = 200;
  double most = 1;
  for (const Row& row : table.rows) {
    if (!row.colour.empty()) most = std::max(most, static_cast<double>(row.evaluations));
  }
  Chart chart{.title = table.title,
              .x_title = "evaluations",
              .left_title = fmt::format("best drawn so far, median over {}, {}", table.over, table.unit),
              .x = {0, most}};
  double least = kInfinity, top = 0;
  for (const Row& row : table.rows) {
    if (row.colour.empty() || row.outcome.empty()) continue;
    Chart::Line line{.colour = row.colour, .name = row.title, .width = 2};
    std::erase_if(line.name, [](char c) { return c == '*' || c == '`'; });
    for (int i = 1; i <= kPoints; ++i) {
      const double at = static_cast<double>(row.evaluations) * i / kPoints;
      std::vector<double> best;
      for (const Outcome& outcome : row.outcome) best.push_back(After(outcome, at) * table.per_second);
      const double median = Median(best);
      if (!std::isfinite(median)) continue;
      line.points.emplace_back(at, median);
      least = std::min(least, median);
      // What comes first is far above, and would flatten the rest.
      if (i >= kPoints / 20) top = std::max(top, median);
    }
    chart.lines.push_back(std::move(line));
  }
  for (Chart::Line& line : chart.lines) {
    for (auto& [at, value] : line.points) value = std::min(value, top);
  }
  chart.left = {least, top};
  return chart.ToSvg();
}

}  // namespace

std::vector<double> Row::Drawn() const {
  return Values(*this, [](const Outcome& run) -> std::optional<double> {
    if (!run.learned) return run.found;
    if (run.learned->updates.empty()) return {};
    return run.learned->updates.back().drawn;
  });
}

std::vector<double> Row::Starts() const {
  return Values(*this, [](const Outcome& run) { return run.learned ? run.learned->starts : std::nullopt; });
}

std::vector<double> Row::Likeliest() const {
  return Values(*this, [](const Outcome& run) { return run.learned ? run.learned->likeliest : std::nullopt; });
}

std::vector<double> Row::MeanCost(bool first) const {
  return Values(*this, [first](const Outcome& run) -> std::optional<double> {
    if (!run.learned || run.learned->updates.empty()) return {};
    const std::span<const Learned::Update> updates = run.learned->updates;
    const size_t tenth = std::max<size_t>(updates.size() / 10, 1);
    double sum = 0;
    for (const Learned::Update& update : first ? updates.first(tenth) : updates.last(tenth)) sum += update.mean;
    return sum / static_cast<double>(tenth);
  });
}

double Row::processor() const {
  std::vector<double> values;
  for (const Outcome& each : outcome) values.push_back(each.processor);
  return values.empty() ? 0 : Median(values);
}

std::string Untrained(const std::string& planner) {
  Spec spec = Spec::Parse(planner);
  const auto inner = std::ranges::find(spec.parameters, "planner", &std::pair<std::string, std::string>::first);
  if (inner != spec.parameters.end()) {
    inner->second = Untrained(inner->second);
  } else {
    std::erase_if(spec.parameters, [](const auto& parameter) { return parameter.first.starts_with("learning_rate"); });
    spec.parameters.emplace_back("learning_rate", "0");
  }
  std::string list;
  for (const auto& [name, value] : spec.parameters) {
    list += fmt::format("{}{}={}", list.empty() ? "" : ",", name, value);
  }
  return fmt::format("{}({})", spec.name, list);
}

void AddLearned(Table& table, const std::string& title, const std::string& planner, int seeds, int64_t evaluations,
                const std::string& colour, const std::string& pale) {
  std::string plain = title;
  std::erase(plain, '*');
  table.Add({.title = plain + ", untrained",
             .planner = Untrained(planner),
             .seeds = seeds,
             .evaluations = evaluations,
             .colour = pale});
  table.Add({.title = title, .planner = planner, .seeds = seeds, .evaluations = evaluations, .colour = colour});
}

std::vector<std::string> Rules() {
  std::vector<std::string> rules = {"human", "heft", "metis"};
#if BERTH_HAS_SCOTCH
  rules.emplace_back("scotch");
#endif
  rules.emplace_back("first_fit");
  return rules;
}

std::vector<std::string> RulesAndAuto() {
  std::vector<std::string> rules = Rules();
  rules.emplace_back("auto");
  return rules;
}

void AddRules(Table& table, int seeds, int64_t evaluations) {
  for (const std::string& rule : Rules()) {
    table.Add({.title = fmt::format("`{}`", rule), .planner = rule, .evaluations = evaluations});
  }
  table.Add({.title = "`auto`", .planner = "auto", .seeds = seeds, .evaluations = evaluations});
}

void AddSearches(Table& table, int seeds, int64_t evaluations, const std::string& as_long_as, const std::string& form) {
  const auto add = [&](const char* title, const char* planner, const char* colour) {
    table.Add({.title = title,
               .planner = fmt::format(fmt::runtime(form), planner),
               .seeds = seeds,
               .evaluations = evaluations,
               .colour = colour,
               .search = true});
  };
  add("random", "random(bias=true)", "");
  add("hill climbing", "local_search", "#555555");
  if (form == "{}") {  // which else has groups already
    add("hill climbing on co-location groups", "on(group=colocation,planner=local_search)", "");
    add("annealing on co-location groups", "on(group=colocation,planner=annealing)", "");
  } else {
    add("annealing", "annealing", "");
  }
  table.Add({.title = "", .planner = "", .seeds = std::min(seeds, 3), .as_long_as = as_long_as});
}

void Measure(const Catalogs& catalogs, std::string_view part, std::span<Table> tables) {
  for (Table& table : tables) {
    for (Row& row : table.rows) {
      if (row.planner.empty()) continue;
      row.refused = catalogs.planners.MakePlanner(row.planner)
                        ->Refuses(*table.setup->problem, *table.setup->evaluator)
                        .value_or("");
    }
  }
  std::map<const Row*, double> foreseen = ForeseeRows(catalogs, tables);
  double planned = 0;
  int runs = 0;
  for (Table& table : tables) {
    for (const Row& row : table.rows) {
      const double seconds = foreseen[row.as_long_as.empty() ? &row : &Find(table, row.as_long_as)];
      planned += seconds * (row.seeds + row.later);
      runs += seconds > 0 ? row.seeds + row.later : 0;
    }
  }
  SayPlan(part, planned, fmt::format("{} runs of learned planners and as long", runs));
  Jobs jobs;
  for (Table& table : tables) {
    for (Row& row : table.rows) {
      if (!row.planner.empty() && row.refused.empty() && row.outcome.empty()) {
        AddJobs(jobs, catalogs, table, row);
      }
    }
  }
  jobs.Run();
  for (Table& table : tables) {
    for (Row& row : table.rows) {
      if (!row.as_long_as.empty()) jobs.Add([&] { LetSearch(catalogs, table, row); });
    }
  }
  jobs.Run();
  for (Table& table : tables) {
    for (Row& row : table.rows) {
      if (!row.as_long_as.empty()) AddJobs(jobs, catalogs, table, row);
    }
  }
  jobs.Run();
}

void WritePicture(const Table& table, const std::string& name, const std::string& pictures) {
  const bool has_lines = std::ranges::any_of(table.rows, [](const Row& row) { return !row.colour.empty(); });
  if (pictures.empty() || !has_lines) return;
  WriteFile(fmt::format("{}/{}.svg", pictures, name), Picture(table));
  fmt::print("![Best drawn so far: {}]({}.svg)\n\n", table.title, name);
}

void Write(const Table& table, const std::string& name, const std::string& pictures) {
  fmt::print("### {}\n\n", table.title);
  if (!table.sentence.empty()) fmt::print("{}\n\n", table.sentence);
  const bool compares = !table.reference_name.empty();
  fmt::print("| method | seeds | evaluations | best drawn, or found, {} | {}starts | policy's likeliest | seconds |\n",
             table.unit, compares ? fmt::format("above the {} | ", table.reference_name) : "");
  fmt::print("|---|---:|---:|---:|{}---:|---:|---:|\n", compares ? "---:|" : "");
  for (const Row& row : table.rows) {
    if (!row.refused.empty()) {
      fmt::print("| {} |  |  | does not place it |{}  |  |  |\n", row.title, compares ? "  |" : "");
      continue;
    }
    const std::vector<double> drawn = row.Drawn();
    std::vector<double> evaluations;
    for (const Outcome& outcome : row.outcome) evaluations.push_back(static_cast<double>(outcome.evaluations));
    const auto cell = [&](const std::vector<double>& values) {
      return WithInterval(values, table.per_second, table.digits);
    };
    fmt::print("| {} | {} | {:.0f} | {} |", row.title, row.outcome.size(), Median(evaluations), cell(drawn));
    if (compares) {
      fmt::print(" {} |", drawn.empty() ? "" : fmt::format("{:+.2f} %", (Median(drawn) / table.reference - 1) * 100));
    }
    fmt::print(" {} | {} | {:.1f} |\n", cell(row.Starts()), cell(row.Likeliest()), row.processor());
  }
  fmt::print("\n");
  WritePicture(table, name, pictures);
  std::fflush(stdout);
}

std::unique_ptr<Setup> MakePorts(const Catalogs& catalogs, const std::string& model, const std::string& cluster,
                                 bool training) {
  return std::make_unique<Setup>(MakeSetup(catalogs, StepOn(model, cluster, training)));
}

}  // namespace berth::learned
