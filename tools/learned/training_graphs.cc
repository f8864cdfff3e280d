// The table of Placeto's paper (Addanki et al. 2019, table 1): training steps of large networks on two and four GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tools/learned/common.h"
#include "tools/learned/pace.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

std::unique_ptr<Setup> MakeTraining(const Catalogs& catalogs, const std::string& model, const std::string& cluster) {
  ProblemStrings strings;
  strings.model = model;
  strings.mode = "training";
  strings.optimizer = "sgd";
  strings.cluster = cluster;
  strings.evaluator = "parallel(contention=egress,io=everywhere)";
  return std::make_unique<Setup>(MakeSetup(catalogs, strings));
}

// As an expert would: the ops in order, cut into as many parts of equal work as there are devices.
Outcome ContiguousSplit(const Setup& setup) {
  const Problem& problem = *setup.problem;
  double whole = 0, done = 0;
  for (const OpId op : problem.graph().ops()) whole += problem.op_time(op, DeviceId{0});
  std::vector<DeviceId> device;
  for (const OpId op : problem.graph().ops()) {
    const double share = (done + problem.op_time(op, DeviceId{0}) / 2) / whole;
    done += problem.op_time(op, DeviceId{0});
    device.push_back(MakeId<DeviceId>(
        std::min(static_cast<size_t>(share * static_cast<double>(problem.num_devices())), problem.num_devices() - 1)));
  }
  const Score score = setup.evaluator->ScorePlan({.device = device}, *setup.evaluator->NewWorkspace());
  return {.found = SecondsOf(problem, score), .evaluations = 1};
}

}  // namespace

void WriteTrainingGraphs(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const int seeds = quick ? 1 : 3;
  // On a processor without AVX-512 an evaluation takes `rnn` 0.008 to 0.04 s of a processor, its paper's form 0.006 to
  // 0.02, and `placeto` 0.0002 to 0.006 in its forms and twins. With 100 episodes, which are 12,903 evaluations, three
  // seeds on six problems take 4.5 hours of a processor.
  const int64_t episodes = quick ? 2 : 100;
  constexpr const char* kGroups = "on(group=merge(size=128,balance=2),planner={})";
  const int64_t evaluations = episodes * 129 + 3;
  const auto on = [&](const std::string& planner) { return fmt::format(fmt::runtime(kGroups), planner); };
  std::vector<Table> tables;
  for (const char* model : {"inception_v3", "nasnet", "nmt"}) {
    const double cpu = Play(catalogs, *MakeTraining(catalogs, model, "p2_host"), "single", 1, 1).found;
    for (const char* cluster : {"k80x2", "k80x4"}) {
      Table& table = tables.emplace_back(
          Table{.title = fmt::format("{}, {}", model, cluster), .setup = MakeTraining(catalogs, model, cluster)});
      table.sentence = fmt::format("{} ops. CPU alone takes {:.1f} ms.", table.setup->problem->num_ops(), cpu * 1e3);
      table.Add({.title = "one GPU", .planner = "single", .evaluations = evaluations});
      table.Add({.title = "contiguous split", .outcome = {ContiguousSplit(*table.setup)}});
      AddRules(table, seeds, evaluations);
      AddSearches(table, seeds, evaluations, "**placeto**", kGroups);
      AddLearned(table, "rnn, as in its paper", on("rnn(mode=paper)"), seeds, evaluations);
      AddLearned(table, "rnn", on("rnn"), seeds, evaluations, "#2f8f4e", "#9ccfae");
      AddLearned(table, "placeto, as in the paper", on("placeto(mode=paper)"), seeds, evaluations, kPaper, kPaperPale);
      AddLearned(table, "placeto, tuned", on(fmt::format("placeto({})", kTuned)), seeds, evaluations);
      AddLearned(table, "placeto, episodes that begin anywhere", on("placeto(start=varying)"), seeds, evaluations);
      AddLearned(table, "**placeto**", on("placeto"), seeds, evaluations, kOurs, kOursPale);
      if (quick) break;
    }
    if (quick) break;
  }
  Measure(catalogs, "training-graphs", tables);
  fmt::print(
      "## Placeto's own table: training on two and four GPUs\n\nOne training step (forward, backward, `sgd`) of our "
      "formulas of the networks, under `parallel(contention=egress,io=everywhere)` with roofline costs. Searches, "
      "`rnn` and `placeto` place the same groups of `merge(size=128,balance=2)` with {} evaluations, which are {} "
      "episodes of `placeto`; "
      "`human`, `heft`, `metis`, `scotch`, `first_fit` and `auto` place single ops. CPU alone is `p2_host`, the machine's "
      "processor. The contiguous split cuts the ops in order into parts of equal work.\n\n",
      evaluations, episodes);
  for (size_t t = 0; t < tables.size(); ++t) Write(tables[t], fmt::format("training-graphs_{}", t + 1), pictures);
  fmt::print(
      "### How soon `placeto` is as good as `rnn` ends\n\nThe paper's claim is that `placeto` needs fewer evaluations. "
      "For each planner the best placement scored so far counts, single devices included. Every column is a median over "
      "the seeds by itself, in which a seed that never gets there counts as infinite; so the time until a placement can "
      "exceed that of the whole search. *Never*: at least half of the seeds do not get there. *Evaluations, factor*: "
      "those that `rnn` needs until it has the placement that it ends with, over those that `placeto` needs until it has "
      "one as good; above 1 `placeto` needs fewer. *Whole search, factor*: all evaluations (or seconds) of `rnn`, over "
      "the same of `placeto`.\n\n");
  const Racer placeto{.name = "placeto", .rows = {"**placeto**"}};
  PrintPace(tables, placeto, {.name = "rnn", .rows = {"rnn"}});
  fmt::print("The same beside `rnn` as in its paper:\n\n");
  PrintPace(tables, placeto, {.name = "rnn", .rows = {"rnn, as in its paper"}});
}

}  // namespace berth::learned
