// The recurrent placers on training steps, beside their untrained twins, people's rules and simple search.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {

void WriteHdp(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 3;
  const int64_t evaluations = quick ? 33 : 1001;
  std::vector<std::pair<std::string, std::string>> problems = {{"rnnlm(layers=2)", "p100x2"}};
  if (!quick) problems.insert(problems.end(), {{"gnmt(layers=2,steps=10)", "p100x2"}, {"inception_v3", "k80x2"}});
  std::vector<Table> tables;
  for (const auto& [model, cluster] : problems) {
    Table& table =
        tables.emplace_back(Table{.title = model + ", " + cluster, .setup = MakePorts(catalogs, model, cluster, true)});
    table.sentence = fmt::format("{} ops.", table.setup->problem->num_ops());
    AddRules(table, seeds, evaluations);
    AddSearches(table, seeds, evaluations, "**hdp**");
    table.Add({.title = "hill climbing on layers",
               .planner = "on(group=layers,planner=local_search)",
               .seeds = seeds,
               .evaluations = evaluations,
               .search = true});
    const auto add = [&](const char* title, const char* planner, const char* colour = "", const char* pale = "") {
      AddLearned(table, title, planner, seeds, evaluations, colour, pale);
    };
    add("**rnn on layers**", "on(group=layers,planner=rnn)", "#b8651b", "#e3c19c");
    add("**hdp**", "hdp", "#1f5fa8", "#9db9dc");
    add("**hdp on co-location groups**", "hdp(nodes=paper,baseline=elite,entropy=0.1,grouper_entropy=0.1)");
    add("hdp as in the code, 128 wide", "hdp(mode=code,hidden=128)");
    add("rnn as in its paper, on layers", "on(group=layers,planner=rnn(mode=paper))");
    add("rnn as HSDAG ran it, on layers", "on(group=layers,planner=rnn(mode=hsdag))");
    add("the same with the sign put right", "on(group=layers,planner=rnn(mode=hsdag,reward=square_root))");
  }
  Measure(catalogs, "hdp", tables);
  fmt::print(
      "## The recurrent placers on training steps\n\nOne step with `sgd` under `parallel(contention=ports)`, {} "
      "evaluations.\n\n",
      evaluations);
  for (size_t t = 0; t < tables.size(); ++t) Write(tables[t], fmt::format("hdp_{}", t + 1), pictures);
}

}  // namespace berth::learned
