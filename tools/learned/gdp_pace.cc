// How soon GDP is as good as HDP (Zhou et al. 2019 claim a fifteenth of its search).
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "exec/statistics.h"
#include "tools/learned/gdp_lessons.h"

namespace berth::learned {
namespace {

// Where a search is first as good as `target`; infinite where it never is.
Improvement Reaches(const Outcome& outcome, double target) {
  for (const Improvement& each : outcome.improvements) {
    if (each.found <= target * (1 + 1e-9)) return each;
  }
  return {.evaluations = -1, .found = kInfinity, .processor = kInfinity};
}

std::string Times(double factor) { return std::isfinite(factor) ? fmt::format("{:.1f}", factor) : "never"; }

// How soon gdp is as good as hdp ends in the median, per graph: hdp's evaluations and seconds until it was so good, and
// those of its whole search, over gdp's; medians over seeds, of which some may never be.
void PrintPace(std::span<const Table> tables, const std::vector<std::string>& opponents) {
  fmt::print(
      "| graph | hdp | it ends at, ms | it has that after, evaluations | seconds | whole search, seconds | gdp has it "
      "after, evaluations | seconds | evaluations, factor | seconds, factor | whole search, factor in evaluations | in "
      "seconds "
      "|\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  std::vector<double> evaluations, seconds, whole_asked, whole;
  size_t never = 0;
  for (const Table& table : tables) {
    const Row* best = nullptr;
    for (const std::string& title : opponents) {
      const Row& row = Find(table, title);
      // Of those that end level, the one that takes fewer seconds.
      const auto rank = [](const Row& of) { return std::pair(Median(Found(of)), of.processor()); };
      if (best == nullptr || rank(row) < rank(*best)) best = &row;
    }
    const double target = Median(Found(*best));
    const auto reach = [target](const Row& row) {
      std::vector<double> asked, took;
      for (const Outcome& outcome : row.outcome) {
        const Improvement at = Reaches(outcome, target);
        asked.push_back(at.evaluations < 0 ? kInfinity : static_cast<double>(at.evaluations));
        took.push_back(at.processor);
      }
      return std::pair(Median(asked), Median(took));
    };
    const auto [own_asked, own_took] = reach(*best);
    const auto [asked, took] = reach(Find(table, kOne));
    const bool reached = std::isfinite(asked);
    if (reached) {
      evaluations.push_back(own_asked / asked);
      seconds.push_back(own_took / took);
      whole_asked.push_back(static_cast<double>(best->evaluations) / asked);
      whole.push_back(best->processor() / took);
    } else {
      ++never;
    }
    fmt::print("| {} | {} | {:.2f} | {:.0f} | {:.1f} | {:.1f} | {} | {} | {} | {} | {} | {} |\n", table.title,
               best->title, target * 1e3, own_asked, own_took, best->processor(),
               reached ? fmt::format("{:.0f}", asked) : "never", reached ? fmt::format("{:.1f}", took) : "",
               reached ? Times(own_asked / asked) : "", reached ? Times(own_took / took) : "",
               reached ? Times(static_cast<double>(best->evaluations) / asked) : "",
               reached ? Times(best->processor() / took) : "");
  }
  if (evaluations.empty()) {
    fmt::print("| geometric mean |  |  |  |  |  |  |  | never reached |  |  |  |\n\n");
    return;
  }
  fmt::print("| geometric mean{} |  |  |  |  |  |  |  | {} | {} | {} | {} |\n\n",
             never == 0 ? "" : fmt::format(" over the {} that it reaches", evaluations.size()),
             Times(GeometricMean(evaluations)), Times(GeometricMean(seconds)), Times(GeometricMean(whole_asked)),
             Times(GeometricMean(whole)));
}

}  // namespace

void WriteGdpPace(const Catalogs& catalogs, bool quick, const std::string&) {
  const Effort effort = Of(quick, kMostTwo, 3);
  std::vector<Table> tables = MakeTwo(catalogs, quick, effort);
  const int64_t evaluations = Evaluations(effort.updates);
  const std::vector<std::string> published = {"hdp as in the code, 128 wide", "hdp as in the paper, 128 wide"};
  for (Table& table : tables) {
    AddSearches(table, effort.seeds, evaluations, kOne);
    AddLearned(table, published[0], "hdp(mode=code,hidden=128)", effort.seeds, evaluations);
    AddLearned(table, published[1], "hdp(mode=paper,hidden=128)", effort.seeds, evaluations);
    AddLearned(table, "hdp", "hdp", effort.seeds, evaluations);
    AddLearned(table, kOne, "gdp", effort.seeds, evaluations);
  }
  Measure(catalogs, "gdp-pace", tables);
  fmt::print(
      "## How soon GDP is as good as HDP\n\nOne training step with `sgd` of {} on two GPUs (`p100x2`) under "
      "`parallel(contention=ports)`, {} evaluations, {}. Times in ms, of a learned planner of the best placement that "
      "it scored; ratios are geometric means over the graphs. Evaluations count up to and with a placement, seconds to "
      "the end of its batch.\n\n",
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
  for (const std::string& row : {published[0], published[1], std::string("hdp")}) {
    for (const std::string& each : {row + ", untrained", row}) lines.push_back(LineOf(each, tables, each, Found));
  }
  lines.push_back(LineOf("gdp, untrained", tables, "gdp, untrained", Found));
  lines.push_back(one);
  lines.push_back(LineOf("its policy's likeliest", tables, kOne, [](const Row& row) { return row.Likeliest(); }));
  Print(lines, {{"gdp", one}, {"`human`", human}}, Titles(tables));
  fmt::print("### Against the better of the two published sets of constants\n\n");
  PrintPace(tables, published);
  fmt::print("### Against our own form of `hdp`\n\n");
  PrintPace(tables, {"hdp"});
}

}  // namespace berth::learned
