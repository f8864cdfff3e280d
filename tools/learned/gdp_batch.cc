// GDP's `batch`: one policy for many graphs, where the optimum is known.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exec/statistics.h"
#include "tools/learned/common.h"
#include "tools/learned/gdp_lessons.h"
#include "tools/learned/rows.h"

namespace berth::learned {

void WriteGdpBatch(const Catalogs& catalogs, bool quick, const std::string&) {
  const int graphs = quick ? 2 : 10;
  const size_t seeds = quick ? 1 : 5;
  const int64_t updates = quick ? 10 : 500;
  std::vector<Table> tables = MakeSmall(catalogs, 1, graphs), others = MakeSmall(catalogs, 301, graphs);
  for (std::vector<Table>* each : {&tables, &others}) {
    for (Table& table : *each) table.Add({.title = "`heft`", .planner = "heft", .evaluations = updates});
    Measure(catalogs, "gdp-batch", *each);
  }
  const std::vector<Table> more = MakeSmall(catalogs, 1 + graphs, 3 * graphs);
  struct Batch {
    std::string title, planner;
    bool learns_more = false;       // on the graphs of `more` too
    std::vector<Lesson> lessons{};  // by seed
  };
  std::vector<Batch> batches = {{.title = "no attention: `layers=0`", .planner = "gdp(layers=0)"},
                                {.title = "no order: `order=shuffled`", .planner = "gdp(order=shuffled)"}};
  for (const auto& [title, planner] :
       {std::pair("superposition: `superposition=true`", "gdp(superposition=true)"),
        std::pair("list schedule: `features=scheduled`", "gdp(features=scheduled)"), std::pair("**gdp**", "gdp")}) {
    batches.push_back({.title = fmt::format("{}, untrained", title), .planner = Untrained(planner)});
    batches.push_back({.title = title, .planner = planner});
  }
  batches.push_back({.title = fmt::format("**gdp**, {} graphs", 4 * graphs), .planner = "gdp", .learns_more = true});
  const auto train = [&](const Batch& batch, int64_t so_many, size_t seed) {
    std::vector<const Table*> learned = Without(tables, tables.size());
    if (batch.learns_more) {
      for (const Table& table : more) learned.push_back(&table);
    }
    return Learn(catalogs, batch.planner, learned, so_many, seed + 1,
                 fmt::format("gdp-batch-{}-{}", &batch - batches.data(), seed), {}, Without(others, others.size()));
  };
  double planned = 0;
  size_t trainings = 0;
  for (Batch& batch : batches) {
    batch.lessons.resize(batch.learns_more ? std::min<size_t>(seeds, 3) : seeds);
    trainings += batch.lessons.size();
    planned += static_cast<double>(batch.lessons.size()) *
               ForeseeTraining([&](int64_t so_many) { train(batch, so_many, 0); }, updates);
  }
  SayPlan("gdp-batch", planned, fmt::format("{} trainings on {} or {} graphs at once", trainings, graphs, 4 * graphs));
  Jobs jobs;
  for (Batch& batch : batches) {
    for (size_t seed = 0; seed < batch.lessons.size(); ++seed) {
      jobs.Add([&, seed] { batch.lessons[seed] = train(batch, updates, seed); });
    }
  }
  jobs.Run();

  fmt::print(
      "## One policy of GDP for many graphs, where the optimum is known\n\nThe graphs of the part `gdp`: one policy "
      "learns on the first {0} at once, {1} updates of {2} placements on each, and then answers for them and for the {0} "
      "others, which it has not seen; in the last row it learns on {3} more random graphs besides. Of five checkpoints "
      "the one answers whose answers for the graphs that it learned on are the best. *Batch* of the papers; their "
      "superposition (features of the whole graph scale the network's layers) is for this. Columns and intervals as "
      "there; for `heft` its plan counts as the answer.\n\n"
      "| policy | seeds | likeliest is the optimum | likeliest over the optimum | best drawn, or found, over the "
      "optimum | not seen: likeliest is the optimum | not seen: likeliest over the optimum | seconds for each graph "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
      graphs, updates, kRollouts, 3 * graphs);
  // Of what `seconds_of` gives for a graph, one for each seed: how many are optima, and by graph the mean.
  const auto over = [](std::span<const Table> of, const auto& seconds_of) {
    std::pair<int, std::vector<double>> found{};
    for (size_t g = 0; g < of.size(); ++g) {
      std::vector<double> ratio = seconds_of(g);
      for (double& each : ratio) {
        each /= of[g].rows[0].outcome[0].found;
        if (each < 1 + 1e-9) ++found.first;
      }
      found.second.push_back(GeometricMean(ratio));
    }
    return found;
  };
  const auto heft = over(tables, [&](size_t g) { return Found(tables[g].rows[1]); });
  const auto heft_unseen = over(others, [&](size_t g) { return Found(others[g].rows[1]); });
  fmt::print("| `heft` | 1 | {} of {} | {} | | {} of {} | {} | |\n", heft.first, graphs, MeanWithInterval(heft.second),
             heft_unseen.first, graphs, MeanWithInterval(heft_unseen.second));
  for (const Batch& batch : batches) {
    const auto of_lessons = [&](const auto& seconds_of) {
      return [&batch, seconds_of](size_t g) {
        return Each(batch.lessons, [&](const Lesson& lesson) { return seconds_of(lesson.result, g); });
      };
    };
    const auto likeliest =
        over(tables, of_lessons([](const TrainingResult& of, size_t g) { return of.cases[g].greedy_cost; }));
    const auto unseen =
        over(others, of_lessons([](const TrainingResult& of, size_t g) { return of.tests[g].greedy_cost; }));
    const auto best = over(tables, of_lessons([&](const TrainingResult& of, size_t g) {
                             return SecondsOf(*tables[g].setup->problem, of.cases[g].best.score);
                           }));
    const size_t answers = batch.lessons.size() * tables.size();
    fmt::print("| {} | {} | {} of {} | {} | {} | {} of {} | {} | {:.1f} |\n", batch.title, batch.lessons.size(),
               likeliest.first, answers, MeanWithInterval(likeliest.second), MeanWithInterval(best.second),
               unseen.first, answers, MeanWithInterval(unseen.second),
               Median(Each(batch.lessons, [](const Lesson& of) { return of.seconds; })) /
                   (batch.learns_more ? 4 * graphs : graphs));
  }
  fmt::print("\n");
}

}  // namespace berth::learned
