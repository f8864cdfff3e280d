// Placeto on its own simulator: intermediate against terminal rewards, what simple searches find, and what each part
// does.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "placement/bound.h"
#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

Table MakeTable(const Catalogs& catalogs, const std::string& graph, int devices) {
  ProblemStrings strings;
  strings.model = fmt::format("{}/{}.json", kPlacetoGraphs, graph);
  strings.cluster = fmt::format("placeto(devices={})", devices);
  strings.evaluator = "placeto";
  Table table{.title = fmt::format("{}, {} devices", graph, devices),
              .setup = std::make_unique<Setup>(MakeSetup(catalogs, strings)),
              .reference_name = "bound",
              .unit = "us",
              .per_second = 1e6,
              .digits = 1};
  table.reference = LowerBound(*table.setup->evaluator).time * table.setup->problem->seconds_per_unit();
  table.sentence = fmt::format("No placement takes less than {:.1f} us.", table.reference * 1e6);
  return table;
}

// What whole episodes with a score after each step ask for, and the policy's answer.
int64_t Whole(const Table& table, int64_t episodes) {
  return episodes * (static_cast<int64_t>(table.setup->problem->num_ops()) + 1) + 1;
}

std::string Tuned(const std::string& more) {
  return fmt::format("placeto({}{})", kTuned, more.empty() ? "" : "," + more);
}

}  // namespace

void WritePlaceto(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 5;
  const int64_t episodes = quick ? 3 : 200;
  std::vector<Table> tables;
  for (const char* graph : {"chain_N10_d2_cheapcomm", "crown_N4_d2", "layered_30"}) {
    Table& table = tables.emplace_back(MakeTable(catalogs, graph, 2));
    const int64_t whole = Whole(table, episodes);
    AddRules(table, seeds, whole);
    AddSearches(table, seeds, whole, "**placeto**");
    const auto add = [&](const char* title, const std::string& planner, int64_t evaluations, const char* colour = "",
                         const char* pale = "") {
      AddLearned(table, title, planner, seeds, evaluations, colour, pale);
    };
    add("as in the paper, intermediate rewards", "placeto(mode=paper)", whole, "#b8651b", "#e3c19c");
    add("tuned, intermediate rewards", Tuned(""), whole);
    add("tuned, terminal reward, as many episodes", Tuned("credit=terminal"), episodes + 1);
    add("tuned, terminal reward, as many evaluations", Tuned("credit=terminal"), whole);
    add("tuned, best future point", Tuned("credit=best_future"), whole);
    add("**placeto**", "placeto", whole, "#1f5fa8", "#9db9dc");
  }
  Measure(catalogs, "placeto", tables);
  fmt::print(
      "## Placeto on its simulator\n\n{} episodes. Tuned: the published form with logarithmic, normalised rewards, "
      "an entropy bonus of 0.01 that ends at 0, and a learning rate of 0.003 that ends at 0.0003 in place of 0.001 and "
      "0.0001.\n\n",
      episodes);
  for (size_t t = 0; t < tables.size(); ++t) Write(tables[t], fmt::format("placeto_{}", t + 1), pictures);
}

void WritePlacetoAblations(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 3;
  const int64_t episodes = quick ? 3 : 200;
  std::vector<Table> tables;
  // The seconds of the searches are those of the first of the rows.
  const auto make = [&](const char* title, const std::vector<std::pair<std::string, std::string>>& rows) {
    Table& table = tables.emplace_back(MakeTable(catalogs, "layered_30", 2));
    table.title = title;
    AddRules(table, seeds, Whole(table, episodes));
    AddSearches(table, seeds, Whole(table, episodes), rows[0].first);
    for (const auto& [row, planner] : rows) AddLearned(table, row, planner, seeds, Whole(table, episodes));
  };
  make("The tuned published form", {{"tuned", Tuned("")},
                                    {"nodes in a shuffled order", Tuned("order=shuffled")},
                                    {"simple aggregator: the sum over all nodes", Tuned("aggregator=all")},
                                    {"no messages beyond neighbours (1 round)", Tuned("rounds=1")},
                                    {"full sweep", Tuned("rounds=0")},
                                    {"means instead of sums", Tuned("pooling=mean")},
                                    {"reward in seconds",
                                     "placeto(mode=paper,normalise=true,entropy=0.01,entropy_end=0,learning_rate=0.003,"
                                     "learning_rate_end=0.0003)"},
                                    {"a random start per episode", Tuned("start=varying")},
                                    {"start on the first device", Tuned("start=first")},
                                    {"start times as a feature, as in the released code", Tuned("start_times=true")}});
  make("Ours", {{"**placeto**", "placeto"},
                {"an output per device", "placeto(head=devices)"},
                {"times as shares of the largest", "placeto(scale=largest)"},
                {"undiscounted", "placeto(gamma=1)"},
                {"a random start, always the same", "placeto(start=random)"},
                {"REINFORCE, one step per update", "placeto(ppo=0,epochs=1)"},
                {"nodes in a shuffled order", "placeto(order=shuffled)"},
                {"simple aggregator", "placeto(aggregator=all)"}});
  Measure(catalogs, "placeto-ablations", tables);
  fmt::print(
      "## What each part of Placeto does\n\n{} episodes on a layered graph of 30 ops (`layered_30`). First from the "
      "tuned published form, then from ours; in each table rules and simple searches come first.\n\n",
      episodes);
  for (size_t t = 0; t < tables.size(); ++t) Write(tables[t], fmt::format("placeto-ablations_{}", t + 1), pictures);
}

}  // namespace berth::learned
