// The recurrent placers on training steps, beside their untrained twins, people's rules and simple search.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {

void WriteHdp(const Catalogs& catalogs, bool quick, const std::string&) {
  const int seeds = quick ? 1 : 3;
  const int64_t evaluations = quick ? 33 : 1001;
  std::vector<std::pair<std::string, std::string>> problems = {{"rnnlm(layers=2)", "p100x2"}};
  if (!quick) problems.insert(problems.end(), {{"gnmt(layers=2,steps=10)", "p100x2"}, {"inception_v3", "k80x2"}});
  fmt::print(
      "## The recurrent placers on training steps\n\nOne step with `sgd` under `parallel(contention=ports)`, {} "
      "evaluations, medians of {} seeds, in ms. A learned planner's *best drawn* is the best placement that its policy "
      "drew while it trained, without its own answer at the end. Untrained: the same with `learning_rate=0`.\n\n"
      "| network, cluster | ops | method | best drawn, or found | policy's likeliest |\n"
      "|---|---:|---|---:|---:|\n",
      evaluations, seeds);
  constexpr const char* kFiner = "nodes=paper,baseline=elite,entropy=0.1,grouper_entropy=0.1";
  for (const auto& [model, cluster] : problems) {
    std::vector<Row> rows;
    for (const char* rule : {"human", "heft", "metis", "auto"}) {
      rows.push_back({fmt::format("`{}`", rule), rule, 1, evaluations});
    }
    rows.push_back({"hill climbing", "local_search", seeds, evaluations});
    rows.push_back({"hill climbing on layers", "on(group=layers,planner=local_search)", seeds, evaluations});
    const auto add = [&](const std::string& title, const std::string& form, const std::string& parameters) {
      for (const bool trained : {false, true}) {
        const std::string rate = trained ? "" : parameters.empty() ? "learning_rate=0" : ",learning_rate=0";
        rows.push_back({trained ? "**" + title + "**" : title + ", untrained",
                        fmt::format(fmt::runtime(form), parameters + rate), seeds, evaluations});
      }
    };
    add("rnn on layers", "on(group=layers,planner=rnn({}))", "");
    add("hdp", "hdp({})", "");
    add("hdp on co-location groups", "hdp({})", kFiner);
    add("hdp as in the code, 128 wide", "hdp({})", "mode=code,hidden=128");
    rows.push_back({"rnn as HSDAG ran it, on layers", "on(group=layers,planner=rnn(mode=hsdag))", seeds, evaluations});
    rows.push_back({"the same with the sign put right", "on(group=layers,planner=rnn(mode=hsdag,reward=square_root))",
                    seeds, evaluations});
    std::vector<Comparison> table;
    table.push_back(
        {fmt::format("{}, {}", model, cluster), MakePorts(catalogs, model, cluster, true), std::move(rows)});
    Run(catalogs, table);
    for (const Row& row : table[0].rows) {
      const double policy = row.Policy();
      fmt::print("| {} | {} | {} | {:.2f} | {} |\n", table[0].title, table[0].setup->problem->num_ops(), row.title,
                 (std::isnan(policy) ? row.Best() : row.Drawn()) * 1e3, Cell(policy * 1e3, 2));
    }
    std::fflush(stdout);
  }
  fmt::print("\n");
}

}  // namespace berth::learned
