// How soon GDP is as good as HDP (Zhou et al. 2019 claim a fifteenth of its search).
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "exec/statistics.h"
#include "tools/learned/gdp_lessons.h"
#include "tools/learned/pace.h"

namespace berth::learned {

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
  const Racer gdp{.name = "gdp", .rows = {kOne}};
  fmt::print("### Against the better of the two published sets of constants\n\n");
  PrintPace(tables, gdp, {.name = "hdp", .rows = published});
  fmt::print("### Against our own form of `hdp`\n\n");
  PrintPace(tables, gdp, {.name = "hdp", .rows = {"hdp"}});
}

}  // namespace berth::learned
