// A policy's answer to a graph that it has not seen, as the start of hill climbing, beside the start that people's
// rules give, in equal seconds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "base/units.h"
#include "exec/statistics.h"
#include "placement/search.h"
#include "tools/learned/families.h"
#include "tools/learned/gdp_lessons.h"

namespace berth::learned {
namespace {

// Of as good as nothing that is left to find, nobody can win 3 %.
constexpr double kRoom = 0.03;
// Keeps the order of the ops that ranks give, where the simulator minds it.
constexpr const char* kClimbing = "local_search(order=rank)";

struct FirstCaseEffort {
  std::vector<double> times;  // seconds
  double room;                // of the search that says how much is left to find
  int seeds;
  size_t lessons, tests;  // of a family
  int64_t updates, large_updates;
  std::vector<const char*> large;
};

// Wall time, since an answer was asked for.
struct Found {
  double seconds = 0, time = 0;
};

// One start and the climbing after it.
struct Climb {
  double first = 0;          // what the start takes, in seconds
  double ready = 0;          // when it was there
  std::vector<Found> found;  // each better than all before it

  double After(double seconds) const {
    double best = kInfinity;
    for (const Found& each : found) {
      if (each.seconds <= seconds) best = each.time;
    }
    return best;
  }
};

// The better of what the planners answer, then climbing for the rest of the seconds.
Climb ClimbFrom(const Catalogs& catalogs, const Setup& setup, const std::vector<std::string>& planners, double seconds,
                uint64_t seed) {
  const double unit = setup.problem->seconds_per_unit();
  const Stopwatch watch;
  PlanResult start;
  for (const std::string& planner : planners) {
    PlanResult result = catalogs.planners.MakePlanner(planner)->MakePlan(
        {.evaluator = *setup.evaluator, .budget = {}, .random = Random(seed), .threads = 1, .causes = false});
    if (start.plan.device.empty() || Better(result.score, start.score)) start = std::move(result);
  }
  Climb climb{.first = start.score.value() * unit, .ready = watch.seconds(), .found = {}};
  climb.found.push_back({.seconds = climb.ready, .time = climb.first});
  catalogs.planners.MakePlanner(kClimbing)->MakePlan({.evaluator = *setup.evaluator,
                                                      .budget = {.seconds = seconds - climb.ready},
                                                      .random = Random(seed),
                                                      .progress =
                                                          [&](const Progress& progress) {
                                                            const double time = progress.best.value() * unit;
                                                            if (time < climb.found.back().time)
                                                              climb.found.push_back({watch.seconds(), time});
                                                          },
                                                      .start = &start.plan,
                                                      .threads = 1,
                                                      .causes = false});
  return climb;
}

// A graph that no policy here was trained on, and all that is measured on it.
struct Trial {
  std::string name{};
  const Setup* setup = nullptr;
  size_t policy = 0;
  double best_known = kInfinity;
  std::vector<Climb> rules{}, learned{}, untrained{};  // by seed
};

// What was trained, on what, and its answer as a planner.
struct Policy {
  std::string name{};  // for readers
  std::function<Lesson(bool untrained)> learn{};
  std::string form{};  // how its answer is asked for: "on(group=...,planner={})"
  Lesson trained{}, twin{};

  std::string Answer(const Lesson& lesson) const { return fmt::format(fmt::runtime(form), lesson.result.answer); }
};

Lesson LearnFamily(const Catalogs& catalogs, const std::vector<Case>& lessons, int64_t updates, bool untrained,
                   const std::string& name) {
  Lesson lesson{.folder = std::make_shared<Scratch>(name)};
  std::vector<TrainingCase> cases;
  for (const Case& each : lessons) cases.push_back(each.training());
  const double before = ProcessorSeconds();
  lesson.result =
      TrainOn(catalogs, untrained ? Untrained("placeto") : "placeto", cases, {}, updates, 1, *lesson.folder);
  lesson.seconds = ProcessorSeconds() - before;
  return lesson;
}

std::vector<double> After(const std::vector<Climb>& climbs, double seconds) {
  std::vector<double> values;
  for (const Climb& climb : climbs) values.push_back(climb.After(seconds));
  return values;
}

std::vector<double> Over(std::vector<double> values, double reference) {
  for (double& value : values) value /= reference;
  return values;
}

std::string Ratio(const std::vector<double>& values) {
  return std::ranges::count(values, kInfinity) > 0 ? "no answer yet" : WithInterval(values, 1, 3);
}

// Rows of those trials and seconds where as much is left to find, or where it is not.
void WriteTrials(const std::deque<Trial>& trials, const FirstCaseEffort& effort, bool with_room) {
  const auto belongs = [&](const Trial& trial, double seconds) {
    return (1 - trial.best_known / Median(After(trial.rules, seconds)) >= kRoom) == with_room;
  };
  const bool has_any = std::ranges::any_of(effort.times, [&](double seconds) {
    return std::ranges::any_of(trials, [&](const Trial& trial) { return belongs(trial, seconds); });
  });
  if (!has_any) return fmt::print("None.\n\n");
  fmt::print(
      "| graph | ops | seconds | left to find | climbing from the rules, ms | from the policy, over that | from the "
      "untrained policy, over that |\n|---|---:|---:|---:|---:|---:|---:|\n");
  for (const double seconds : effort.times) {
    std::vector<double> learned_means, untrained_means;
    for (const Trial& trial : trials) {
      const std::vector<double> rules = After(trial.rules, seconds);
      const double reference = Median(rules), room = 1 - trial.best_known / reference;
      if (!belongs(trial, seconds)) continue;
      const std::vector<double> learned = Over(After(trial.learned, seconds), reference),
                                untrained = Over(After(trial.untrained, seconds), reference);
      learned_means.push_back(Median(learned));
      untrained_means.push_back(Median(untrained));
      fmt::print("| {} | {} | {:g} | {:.1f} % | {} | {} | {} |\n", trial.name, trial.setup->problem->num_ops(), seconds,
                 room * 100, WithInterval(rules, 1e3, 2), Ratio(learned), Ratio(untrained));
    }
    if (learned_means.empty() || std::ranges::count(learned_means, kInfinity) > 0) continue;
    fmt::print("| geometric mean |  | {:g} |  |  | {:.3f} | {:.3f} |\n", seconds, GeometricMean(learned_means),
               GeometricMean(untrained_means));
  }
  fmt::print("\n");
}

}  // namespace

void WriteFirstCase(const Catalogs& catalogs, bool quick, const std::string&) {
  const FirstCaseEffort effort = quick
                                     ? FirstCaseEffort{.times = {0.2, 0.5},
                                                       .room = 1,
                                                       .seeds = 1,
                                                       .lessons = 3,
                                                       .tests = 1,
                                                       .updates = 3,
                                                       .large_updates = 2,
                                                       .large = {"gnmt(layers=8,steps=2)"}}
                                     : FirstCaseEffort{.times = {1, 10, 60},
                                                       .room = 600,
                                                       .seeds = 3,
                                                       .lessons = 24,
                                                       .tests = 1,
                                                       .updates = 150,
                                                       .large_updates = 63,
                                                       .large = {"gnmt(layers=8,steps=8)", "gnmt(layers=8,steps=80)"}};
  std::deque<std::vector<Case>> lessons, tests;
  std::deque<Table> eight, large;
  std::deque<Policy> policies;
  std::deque<Trial> trials;
  for (const Family& family : kFamilies) {
    const std::vector<Case>& train = lessons.emplace_back(MakeCases(catalogs, family, "train", effort.lessons));
    policies.push_back({.name = fmt::format("`placeto`, trained on {} graphs of `{}`", effort.lessons, family.name),
                        .learn =
                            [&, name = family.name](bool untrained) {
                              return LearnFamily(catalogs, train, untrained ? 1 : effort.updates, untrained,
                                                 fmt::format("first-{}-{}", name, untrained));
                            },
                        .form = fmt::format("on(group={},planner={{}})", family.group)});
    for (const Case& test : tests.emplace_back(MakeCases(catalogs, family, "test", effort.tests))) {
      trials.push_back({.name = fmt::format("`{}`", test.name), .setup = &test.setup, .policy = policies.size() - 1});
    }
  }
  for (const char* model : kEight) {
    eight.push_back({.title = model, .setup = MakePorts(catalogs, model, "p100x8", true)});
  }
  std::vector<const Table*> on_eight;
  for (const Table& table : eight) on_eight.push_back(&table);
  policies.push_back({.name = fmt::format("`gdp`, trained on {} training steps without GNMT", eight.size()),
                      .learn =
                          [&](bool untrained) {
                            return Learn(catalogs, untrained ? Untrained("gdp") : "gdp", on_eight,
                                         untrained ? 1 : effort.large_updates, 1,
                                         fmt::format("first-gdp-{}", untrained));
                          },
                      .form = "{}"});
  for (const char* model : effort.large) {
    const Table& table = large.emplace_back(Table{.title = model, .setup = MakePorts(catalogs, model, "p100x8", true)});
    trials.push_back({.name = fmt::format("`{}`", model), .setup = table.setup.get(), .policy = policies.size() - 1});
  }

  Jobs jobs;
  for (Policy& policy : policies) {
    jobs.Add([&policy] { policy.trained = policy.learn(false); });
    jobs.Add([&policy] { policy.twin = policy.learn(true); });
  }
  jobs.Run();
  for (Trial& trial : trials) {
    const Policy& policy = policies[trial.policy];
    jobs.Add([&] {
      const PlanResult result = catalogs.planners.MakePlanner("auto")->MakePlan({.evaluator = *trial.setup->evaluator,
                                                                                 .budget = {.seconds = effort.room},
                                                                                 .random = Random(1),
                                                                                 .threads = 1,
                                                                                 .causes = false});
      trial.best_known = std::min(trial.best_known, result.score.value() * trial.setup->problem->seconds_per_unit());
    });
    const auto add = [&](std::vector<Climb>& to, int seeds, std::vector<std::string> planners) {
      to.resize(static_cast<size_t>(seeds));
      for (int seed = 0; seed < seeds; ++seed) {
        jobs.Add([&catalogs, &trial, &effort, &climb = to[static_cast<size_t>(seed)], planners, seed] {
          climb = ClimbFrom(catalogs, *trial.setup, planners, effort.times.back(), static_cast<uint64_t>(seed) + 1);
        });
      }
    };
    add(trial.rules, effort.seeds, {"single", "heft"});
    add(trial.learned, effort.seeds, {policy.Answer(policy.trained)});
    add(trial.untrained, 1, {policy.Answer(policy.twin)});
  }
  jobs.Run();
  for (Trial& trial : trials) {
    for (const auto* climbs : {&trial.rules, &trial.learned, &trial.untrained}) {
      for (const Climb& climb : *climbs) trial.best_known = std::min(trial.best_known, climb.found.back().time);
    }
  }

  fmt::print(
      "## A policy's answer as the start of hill climbing\n\n`{}` on one processor, from the better of `single` and "
      "`heft`, or from the answer of a policy to a graph that it was not trained on; *seconds* are of the clock, the "
      "start included, two runs at a time. *Left to find*: the share by which the best known plan is "
      "shorter than that of the climbing from the rules; the best known plan is that of `auto` in {:g} seconds on one "
      "processor, or of any of these climbs. {}; the untrained policy with one. Families on Placeto's simulator (`placeto(devices=2)`), the others as training steps on eight "
      "GPUs (`p100x8`, `parallel(contention=ports)`).\n\n",
      kClimbing, effort.room, Counted(effort.seeds, "seed"));
  fmt::print(
      "| graph | policy | pretraining, seconds | its answer after, seconds | its answer, ms | untrained, ms | the "
      "rules, ms | best known, ms |\n|---|---|---:|---:|---:|---:|---:|---:|\n");
  for (const Trial& trial : trials) {
    const Policy& policy = policies[trial.policy];
    fmt::print("| {} | {} | {:.0f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", trial.name, policy.name,
               policy.trained.seconds, trial.learned[0].ready, trial.learned[0].first * 1e3,
               trial.untrained[0].first * 1e3, trial.rules[0].first * 1e3, trial.best_known * 1e3);
  }
  fmt::print("\n### Where at least {:g} % are left to find\n\n", kRoom * 100);
  WriteTrials(trials, effort, true);
  fmt::print("### Where less is left\n\n");
  WriteTrials(trials, effort, false);
}

}  // namespace berth::learned
