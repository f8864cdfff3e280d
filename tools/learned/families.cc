// Policies on graphs that they have never seen (Addanki et al. 2019, section 4.3): trained on a family, asked about
// others of it, and set beside policies that were trained on those very graphs.
#include "tools/learned/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "base/chart.h"
#include "base/file.h"
#include "exec/statistics.h"
#include "placement/grouping.h"
#include "tools/learned/rows.h"

namespace berth::learned {
std::vector<Case> MakeCases(const Catalogs& catalogs, const Family& family, const std::string& split, size_t most) {
  std::vector<Case> cases;
  for (const std::string& model :
       ExpandModels(fmt::format("family(name={},split={})", family.name, split), catalogs.families)) {
    if (cases.size() == most) break;
    ProblemStrings strings;
    strings.model = model;
    strings.cluster = "placeto(devices=2)";
    strings.costs = "roofline(fusion=none)";  // as published, op by op
    strings.evaluator = "placeto";
    cases.emplace_back(model, MakeSetup(catalogs, strings), family.group);
  }
  return cases;
}

std::vector<TrainingCase> Lessons(const std::vector<const Case*>& cases) {
  std::vector<TrainingCase> lessons;
  for (const Case* each : cases) lessons.push_back(each->training());
  return lessons;
}

std::vector<const Case*> Pointers(const std::vector<Case>& cases) {
  std::vector<const Case*> list;
  for (const Case& each : cases) list.push_back(&each);
  return list;
}

namespace {

// Times of one method on test graphs over the time of one device, all seeds together, by graph.
struct Answers {
  std::string method{}, colour{};
  std::map<std::string, std::vector<double>> of{};

  std::vector<double> All() const {
    std::vector<double> all;
    for (const auto& [graph, values] : of) all.insert(all.end(), values.begin(), values.end());
    return all;
  }
};

std::string RowOf(const Answers& answers, const Answers& own) {
  const std::vector<double> all = answers.All();
  std::vector<double> ratios;
  for (const auto& [graph, values] : own.of) {
    for (const double value : answers.of.at(graph)) ratios.push_back(value / Median(values));
  }
  return fmt::format("| {} | {} | {:.3f} | {:.3f} | {:.3f} to {:.3f} | {} |\n", answers.method, answers.of.size(),
                     Median(all), Mean(all), std::ranges::min(all), std::ranges::max(all),
                     fmt::format("{:+.1f} %", (Median(ratios) - 1) * 100));
}

std::string Distribution(const std::string& title, const std::vector<Answers>& list) {
  Chart chart{.title = title, .x_title = "time over that of one device", .left_title = "share of graphs and seeds"};
  double least = 1, most = 1;
  for (const Answers& answers : list) {
    std::vector<double> all = answers.All();
    std::ranges::sort(all);
    Chart::Line line{.colour = answers.colour, .name = answers.method, .width = 2};
    std::erase(line.name, '*');  // the table's mark for ours
    for (size_t i = 0; i < all.size(); ++i) {
      const auto count = static_cast<double>(all.size());
      line.points.emplace_back(all[i], static_cast<double>(i) / count);
      line.points.emplace_back(all[i], static_cast<double>(i + 1) / count);
      least = std::min(least, all[i]);
      most = std::max(most, std::min(all[i], 1.5));
    }
    chart.lines.push_back(std::move(line));
  }
  chart.x = {least, most};
  // What lies beyond would be drawn outside of the picture.
  for (Chart::Line& line : chart.lines) {
    for (auto& [time, share] : line.points) time = std::min(time, most);
  }
  std::erase_if(chart.lines, [](const Chart::Line& line) { return line.points.empty(); });
  return chart.ToSvg();
}

struct Effort {
  int seeds;
  size_t train, tests, own;  // graphs
  int64_t updates, mix_updates, own_updates;
};

}  // namespace

void WriteFamilies(const Catalogs& catalogs, bool quick, const std::string& pictures) {
  const Effort effort = quick ? Effort{1, 2, 1, 1, 2, 2, 2} : Effort{3, 24, 8, 4, 150, 100, 25};
  const std::vector<std::pair<std::string, std::string>> policies = {
      {"**placeto**", "placeto"}, {"placeto, tuned published form", fmt::format("placeto({})", kTuned)}};
  // Of the published form, which is there for comparison, one.
  const auto seeds_of = [&](size_t p) { return p == 0 ? static_cast<size_t>(effort.seeds) : 1; };

  std::vector<std::vector<Case>> train, tests;
  std::vector<const Case*> mix, mix_tests;
  for (const Family& family : kFamilies) {
    train.push_back(MakeCases(catalogs, family, "train", effort.train));
    tests.push_back(MakeCases(catalogs, family, "test", effort.tests));
  }
  // In turn, so that an update sees different families.
  for (size_t i = 0; i < effort.train; ++i) {
    for (const auto& cases : train) mix.push_back(&cases[i]);
  }
  for (const auto& cases : tests) {
    for (const Case& each : cases) mix_tests.push_back(&each);
  }

  // By policy: [family][seed] trained on the family, [seed] on the mix, [family][graph][seed] on the graph itself.
  struct Runs {
    std::vector<std::vector<TrainingResult>> family;
    std::vector<TrainingResult> mix;
    std::vector<std::vector<std::vector<TrainingResult>>> own;
  };
  std::vector<Runs> runs(policies.size());
  Jobs jobs;
  // Of trainings that are alike the first says what each of them will take.
  struct Kind {
    size_t of = 0;
    double seconds = 0;  // of each
  };
  std::deque<Kind> kinds;
  Jobs probes;
  for (size_t p = 0; p < policies.size(); ++p) {
    const auto add = [&](Kind*& alike, TrainingResult& to, std::vector<const Case*> on, std::vector<const Case*> test,
                         int64_t updates, size_t seed, const std::string& name) {
      const auto run = [&catalogs, &planner = policies[p].second, on = std::move(on), test = std::move(test), seed,
                        name = fmt::format("{}-{}-{}", p, name, seed)](int64_t so_many) {
        return TrainOn(catalogs, planner, Lessons(on), Lessons(test), so_many, seed + 1, Scratch(name));
      };
      if (alike == nullptr) {
        alike = &kinds.emplace_back();
        probes.Add([run, updates, kind = alike] { kind->seconds = ForeseeTraining(run, updates); });
      }
      ++alike->of;
      jobs.Add([&to, run, updates] { to = run(updates); });
    };
    // The published form plays two episodes per update where ours plays eight.
    const int64_t times = p == 0 ? 1 : 4;
    runs[p].family.resize(std::size(kFamilies));
    runs[p].own.resize(std::size(kFamilies));
    runs[p].mix.resize(seeds_of(p));
    Kind* on_mix = nullptr;
    // The published form, whose rewards we tuned, only for comparison on each family.
    for (size_t seed = 0; seed < seeds_of(p) && p == 0; ++seed) {
      add(on_mix, runs[p].mix[seed], mix, mix_tests, times * effort.mix_updates, seed, "mix");
    }
    for (size_t f = 0; f < std::size(kFamilies); ++f) {
      runs[p].family[f].resize(seeds_of(p));
      runs[p].own[f].assign(effort.own, std::vector<TrainingResult>(seeds_of(p)));
      Kind *on_family = nullptr, *on_graph = nullptr;
      for (size_t seed = 0; seed < seeds_of(p); ++seed) {
        add(on_family, runs[p].family[f][seed], Pointers(train[f]), Pointers(tests[f]), times * effort.updates, seed,
            kFamilies[f].name);
        for (size_t g = 0; g < effort.own; ++g) {
          add(on_graph, runs[p].own[f][g][seed], {&tests[f][g]}, {}, times * effort.own_updates, seed,
              fmt::format("{}-{}", kFamilies[f].name, g));
        }
      }
    }
  }
  probes.Run();
  double planned = 0;
  size_t trainings = 0;
  for (const Kind& kind : kinds) {
    planned += kind.seconds * static_cast<double>(kind.of);
    trainings += kind.of;
  }
  SayPlan("families", planned, fmt::format("{} trainings", trainings));
  jobs.Run();

  fmt::print(
      "## Graphs never seen\n\nFamilies of 32 (`family(name=...)`): a policy is trained on {} of them, {} updates of "
      "eight episodes, and then answers {} others with one episode of its likeliest devices, which takes one "
      "evaluation. *On the graph itself*: the likeliest placement after {} episodes on one of {} of these graphs. "
      "*Best sample* is the fastest placement that was scored in that training. {} seeds, of the published form one; "
      "all three at once for {} updates. Simulator and machine are Placeto's (`placeto(devices=2)`), costs by "
      "`roofline(fusion=none)`; all place the groups of `colocation` (enas_conv) or of `merge(size=64,balance=2)`. "
      "Times are over the time of one device; the last column is the median ratio to what **placeto** reaches on the "
      "graph itself, over the {} graphs that it was trained on.\n\n",
      effort.train, effort.updates, effort.tests, effort.own_updates * 8, effort.own, effort.seeds, effort.mix_updates,
      effort.own);
  for (size_t f = 0; f < std::size(kFamilies); ++f) {
    const auto one_device = [&](const Case& each) { return Play(catalogs, each.setup, "single", 1, 1).found; };
    std::map<std::string, double> single;
    for (const Case& each : tests[f]) single[each.name] = one_device(each);
    std::vector<Answers> list;
    for (size_t p = 0; p < policies.size(); ++p) {
      const auto& [title, planner] = policies[p];
      const bool is_ours = p == 0;
      Answers family{title + ", trained on the family", is_ours ? "#1f5fa8" : "#7aa6d8"},
          both{title + ", trained on all three", is_ours ? "#2f8f4e" : "#9ccfae"},
          own{title + ", on the graph itself", is_ours ? "#b8651b" : "#e0b184"},
          sample{title + ", best sample on the graph itself", is_ours ? "#7a3e0a" : "#c9a98a"};
      for (size_t seed = 0; seed < seeds_of(p); ++seed) {
        for (size_t g = 0; g < tests[f].size(); ++g) {
          const std::string& name = tests[f][g].name;
          family.of[name].push_back(runs[p].family[f][seed].tests[g].greedy_cost / single[name]);
          if (is_ours)
            both.of[name].push_back(runs[p].mix[seed].tests[f * effort.tests + g].greedy_cost / single[name]);
          if (g >= effort.own) continue;
          const TrainedCase& trained = runs[p].own[f][g][seed].cases[0];
          own.of[name].push_back(trained.greedy_cost / single[name]);
          sample.of[name].push_back(SecondsOf(*tests[f][g].setup.problem, trained.best.score) / single[name]);
        }
      }
      for (Answers* each : {&family, &both, &own, &sample}) {
        if (!each->of.empty()) list.push_back(std::move(*each));
      }
    }
    // Controls with as many evaluations as a whole greedy episode may ask for, and as the training on the graph did.
    struct Control {
      std::string title, planner;
      bool as_training;
      const char* colour;
    };
    const std::vector<Control> controls = {
        {"random, 1 evaluation", "random", false, "#999999"},
        {"random, as many as the training on the graph itself", "random", true, "#555555"},
        {"hill climbing, as many as that", "local_search", true, "#a02050"},
    };
    for (const Control& control : controls) {
      Answers answers{control.title, control.colour};
      for (size_t seed = 0; seed < seeds_of(0); ++seed) {
        for (size_t g = 0; g < effort.own; ++g) {
          const Case& each = tests[f][g];
          const int64_t evaluations = control.as_training ? runs[0].own[f][g][seed].evaluations : 1;
          answers.of[each.name].push_back(
              Play(catalogs, each.setup, fmt::format("on(group={},planner={})", kFamilies[f].group, control.planner),
                   evaluations, seed + 1)
                  .found /
              single[each.name]);
        }
      }
      list.push_back(std::move(answers));
    }
    for (const std::string& rule : RulesAndAuto()) {
      Answers answers{fmt::format("`{}`, each op by itself", rule), ""};
      for (size_t g = 0; g < effort.own; ++g) {
        const Case& each = tests[f][g];
        const double found = Play(catalogs, each.setup, rule, 1000, 1).found;
        if (std::isfinite(found)) answers.of[each.name].push_back(found / single[each.name]);
      }
      if (answers.of.size() == effort.own) list.push_back(std::move(answers));
    }
    fmt::print(
        "### {}\n\n| method | graphs | median | mean | least to most | above our policy on the graph itself "
        "|\n|---|---:|---:|---:|---:|---:|\n",
        kFamilies[f].name);
    const Answers own = list[2];
    for (const Answers& answers : list) fmt::print("{}", RowOf(answers, own));
    if (pictures.empty()) {
      fmt::print("\n");
    } else {
      const std::string file = fmt::format("families_{}.svg", kFamilies[f].name);
      std::vector<Answers> drawn = {list[0], list[1], list[2], list[4], list[7], list[8], list[9]};
      WriteFile(pictures + "/" + file, Distribution(fmt::format("{}: graphs never seen", kFamilies[f].name), drawn));
      fmt::print("\n![Distribution of times on {}]({})\n\n", kFamilies[f].name, file);
    }
  }
}

}  // namespace berth::learned
