// Policies asked about networks that are unrolled over other numbers of steps than those that they were trained on.
// Placed in whole layers, these have as many groups of ops, which is what the features of `rnn` are made for.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "exec/statistics.h"
#include "tools/learned/families.h"
#include "tools/learned/gdp_lessons.h"
#include "tools/learned/rows.h"

namespace berth::learned {
namespace {

constexpr const char* kGroup = "layers";
constexpr const char* kCluster = "p100x4";

struct Network {
  const char *name, *model;  // the model wants a number of steps
};
constexpr Network kNetworks[] = {{"GNMT", "gnmt(layers=4,steps={})"}, {"RNNLM", "rnnlm(layers=4,steps={})"}};
constexpr int kLearnt[] = {4, 5, 7, 8}, kAsked[] = {6, 10, 12};

std::vector<Case> MakeGraphs(const Catalogs& catalogs, const Network& network, std::span<const int> steps) {
  std::vector<Case> graphs;
  for (const int each : steps) {
    const std::string model = fmt::format(fmt::runtime(network.model), each);
    graphs.push_back({.name = model, .setup = std::move(*MakePorts(catalogs, model, kCluster, true)), .group = kGroup});
  }
  return graphs;
}

struct Method {
  std::string title, planner;
  int64_t updates = 0;     // on GNMT these score about as many placements with each planner
  bool untrained = false;  // then it answers alike, whatever it is trained on
};

// A network with the graphs that are learnt and those that are asked about.
struct Graphs {
  const Network& network;
  std::vector<Case> learnt, asked;
};

TrainingResult TrainFor(const Catalogs& catalogs, const Method& method, const std::vector<const Case*>& on,
                        const std::vector<const Case*>& asked, int64_t updates, uint64_t seed,
                        const std::string& name) {
  const Scratch folder(name);
  return TrainOn(catalogs, method.planner, Lessons(on), Lessons(asked), updates, seed, folder);
}

// Of the first training of each kind, on the graphs that are learnt or on one that is asked about; the others of its
// kind take as long.
void SayHours(const Catalogs& catalogs, std::span<const Graphs> list, std::span<const Method> methods, size_t seeds) {
  std::vector<std::pair<double, size_t>> kinds(list.size() * methods.size() * 2);  // seconds of each of so many
  Jobs jobs;
  for (size_t n = 0; n < list.size(); ++n) {
    for (size_t m = 0; m < methods.size(); ++m) {
      if (methods[m].untrained) continue;  // an update and an answer
      for (const bool alone : {false, true}) {
        jobs.Add([&, n, m, alone, &kind = kinds[(n * methods.size() + m) * 2 + (alone ? 1 : 0)]] {
          const Graphs& graphs = list[n];
          const std::vector<const Case*> asked = Pointers(graphs.asked);
          const auto train = [&](int64_t updates) {
            TrainFor(catalogs, methods[m], alone ? std::vector{asked[0]} : Pointers(graphs.learnt),
                     alone ? std::vector<const Case*>() : asked, updates, 1,
                     fmt::format("unrolled-plan-{}-{}-{}", n, m, alone));
          };
          kind = {ForeseeTraining(train, methods[m].updates), seeds * (alone ? asked.size() : 1)};
        });
      }
    }
  }
  jobs.Run();
  double seconds = 0;
  size_t trainings = 0;
  for (const auto& [of_each, count] : kinds) {
    seconds += of_each * static_cast<double>(count);
    trainings += count;
  }
  SayPlan("unrolled", seconds, fmt::format("{} trainings", trainings));
}

struct Trained {
  // What it answers on each graph, by seed, in seconds: without having seen the graph, and trained on it alone.
  std::vector<std::vector<double>> answers, alone;
  std::vector<double> on_others{}, on_one{};  // evaluations of each training
};

void WriteNetwork(const Catalogs& catalogs, const Graphs& graphs_of, const std::vector<Method>& methods, size_t seeds) {
  const Network& network = graphs_of.network;
  const std::vector<Case>&learnt = graphs_of.learnt, &asked = graphs_of.asked;
  std::vector<Trained> trained(methods.size());
  Jobs jobs;
  for (size_t m = 0; m < methods.size(); ++m) {
    trained[m].answers.assign(asked.size(), std::vector<double>(seeds));
    trained[m].alone = trained[m].answers;
    trained[m].on_others.resize(seeds);
    trained[m].on_one.resize(seeds * asked.size());
    for (size_t seed = 0; seed < seeds; ++seed) {
      jobs.Add([&, m, seed] {
        const TrainingResult result = TrainFor(catalogs, methods[m], Pointers(learnt), Pointers(asked),
                                               methods[m].updates, seed + 1, fmt::format("unrolled-{}-{}", m, seed));
        for (size_t g = 0; g < asked.size(); ++g) trained[m].answers[g][seed] = result.tests[g].greedy_cost;
        trained[m].on_others[seed] = static_cast<double>(result.evaluations);
      });
      for (size_t g = 0; g < asked.size() && !methods[m].untrained; ++g) {
        jobs.Add([&, m, seed, g] {
          const TrainingResult result = TrainFor(catalogs, methods[m], {&asked[g]}, {}, methods[m].updates, seed + 1,
                                                 fmt::format("unrolled-{}-{}-{}", m, seed, g));
          trained[m].alone[g][seed] = result.cases[0].greedy_cost;
          trained[m].on_one[seed * asked.size() + g] = static_cast<double>(result.evaluations);
        });
      }
    }
  }
  jobs.Run();

  std::vector<std::string> graphs;
  for (const Case& graph : asked) {
    graphs.push_back(fmt::format("{}, {} ops", graph.name, graph.setup.problem->num_ops()));
  }
  const auto found = [&](const std::string& planner) {
    Line line{.title = fmt::format("`{}`", planner)};
    for (const Case& graph : asked) line.reached.push_back({Play(catalogs, graph.setup, planner, 1000, 1).found});
    return line;
  };
  const auto line_of = [](const std::string& title, const std::vector<double>& evaluations,
                          const std::vector<std::vector<double>>& reached) {
    return Line{.title = title, .evaluations = std::llround(Median(evaluations)), .reached = reached};
  };
  const Line human = found("human");
  std::vector<Line> lines{found("single"), human};
  for (const std::string& rule : RulesAndAuto()) {
    if (rule != "human") lines.push_back(found(rule));
  }
  for (size_t m = 0; m < methods.size(); ++m) {
    const auto& [answers, alone, on_others, on_one] = trained[m];
    const std::string& title = methods[m].title;
    if (methods[m].untrained) {
      lines.push_back({.title = title, .reached = answers});
      continue;
    }
    lines.push_back(line_of(fmt::format("{}, not seen", title), on_others, answers));
    lines.push_back(line_of(fmt::format("{}, trained on the graph", title), on_one, alone));
  }
  fmt::print("### {}\n\n", network.name);
  Print(lines, {{"`human`", human}}, graphs);
}

}  // namespace

void WriteUnrolled(const Catalogs& catalogs, bool quick, const std::string&) {
  const int seeds = quick ? 1 : 3;
  // An update of `rnn` scores 16 placements, one of `placeto` about 120 on these graphs.
  const int64_t few = quick ? 1 : 20, many = quick ? 3 : 150;
  std::vector<Method> methods;
  for (const auto& [name, updates] : {std::pair("rnn", many), std::pair("placeto", few)}) {
    const std::string planner = fmt::format("on(group={},planner={})", kGroup, name);
    methods.push_back({fmt::format("{}, untrained", name), Untrained(planner), 1, true});
    methods.push_back({fmt::format("**{}**", name), planner, updates, false});
  }
  std::vector<Graphs> list;
  for (const Network& network : std::span(kNetworks).first(quick ? 1 : std::size(kNetworks))) {
    list.push_back({.network = network,
                    .learnt = MakeGraphs(catalogs, network, kLearnt),
                    .asked = MakeGraphs(catalogs, network, kAsked)});
  }
  SayHours(catalogs, list, methods, static_cast<size_t>(seeds));
  fmt::print(
      "## Networks unrolled over other numbers of steps\n\nOne training step with `sgd` on four GPUs (`{}`) under "
      "`parallel(contention=ports)`, {}; times in ms. A policy is trained on the network with {} steps and answers, "
      "once each, for those of the table (*not seen*), or is trained, in as many updates, on one of these "
      "alone; evaluations are those of the training. Learned planners place whole layers (`on(group={},...)`).\n\n",
      kCluster, Counted(seeds, "seed"), fmt::join(kLearnt, ", "), kGroup);
  for (const Graphs& graphs : list) WriteNetwork(catalogs, graphs, methods, static_cast<size_t>(seeds));
}

}  // namespace berth::learned
