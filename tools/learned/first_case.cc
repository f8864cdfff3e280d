// A policy's answer to a graph that it has not seen, as the start of hill climbing, beside the start that people's
// rules give, in equal seconds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/system_limits.h"
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
  std::vector<double> times;  // seconds after which climbs are compared; each climb ends with the last
  double room;                // seconds of the search that says how much is left to find
  int climbs, policies;       // seeds of the climbing; of the training, each of which has as many of those
  size_t lessons, tests;      // of a family
  int64_t updates, large_updates;
  std::vector<const char*> shorter, validation, longer;  // GNMTs to train on, to choose by, to answer
};

// Wall time, since an answer was asked for.
struct Found {
  double seconds = 0, time = 0;
};

// One start and the climbing after it.
struct Climb {
  double first = 0;  // what the start takes, in seconds; infinite where it does not fit into memory
  double ready = 0;  // when it was there
  // Plans that fit, each better than all before it; the first is the start, infinite as above.
  std::vector<Found> found;

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
  const Stopwatch watch;
  PlanResult start;
  for (const std::string& planner : planners) {
    PlanResult result = catalogs.planners.MakePlanner(planner)->MakePlan(
        {.evaluator = *setup.evaluator, .budget = {}, .random = Random(seed), .threads = 1, .causes = false});
    if (start.plan.device.empty() || Better(result.score, start.score)) start = std::move(result);
  }
  const auto time_of = [&setup](const Score& score) { return SecondsOf(*setup.problem, score); };
  Climb climb{.first = time_of(start.score), .ready = watch.seconds(), .found = {}};
  climb.found.push_back({.seconds = climb.ready, .time = climb.first});
  catalogs.planners.MakePlanner(kClimbing)->MakePlan({.evaluator = *setup.evaluator,
                                                      .budget = {.seconds = seconds - climb.ready},
                                                      .random = Random(seed),
                                                      .progress =
                                                          [&](const Progress& progress) {
                                                            const double time = time_of(progress.best);
                                                            if (time < climb.found.back().time)
                                                              climb.found.push_back({watch.seconds(), time});
                                                          },
                                                      .start = &start.plan,
                                                      .threads = 1,
                                                      .causes = false});
  return climb;
}

// What was trained, on what, and its answer as a planner.
struct Policy {
  std::string name{};  // for readers
  int64_t updates = 0;
  bool validates = false;  // chooses among its checkpoints by graphs that it does not learn from
  std::function<Lesson(bool untrained, int64_t updates, uint64_t seed)> learn{};
  std::string form{};             // how its answer is asked for: "on(group=...,planner={})"
  std::vector<Lesson> trained{};  // by seed
  Lesson twin{};

  std::string Answer(const Lesson& lesson) const { return fmt::format(fmt::runtime(form), lesson.result.answer); }
};

// Climbing from a policy's answers on one graph.
struct Contender {
  const Policy* policy = nullptr;
  std::vector<Climb> learned{}, untrained{};  // by seed
};

// A graph that no policy here was trained on, and all that is measured on it.
struct Trial {
  std::string name{};
  const Setup* setup = nullptr;
  double best_known = kInfinity;
  std::vector<Climb> rules{};  // by seed
  std::deque<Contender> contenders{};
};

Lesson LearnFamily(const Catalogs& catalogs, const std::vector<Case>& lessons, int64_t updates, bool untrained,
                   uint64_t seed, const std::string& name) {
  Lesson lesson{.folder = std::make_shared<Scratch>(name)};
  std::vector<TrainingCase> cases;
  for (const Case& each : lessons) cases.push_back(each.training());
  const double before = ProcessorSeconds();
  lesson.result =
      TrainOn(catalogs, untrained ? Untrained("placeto") : "placeto", cases, {}, updates, seed, *lesson.folder);
  lesson.seconds = ProcessorSeconds() - before;
  return lesson;
}

// Trainings take as long as the first ones say; climbs and the searches for the best plan end by the clock.
void SayHours(const std::deque<Policy>& policies, const std::deque<Trial>& trials, const FirstCaseEffort& effort) {
  std::vector<double> training(policies.size());
  Jobs jobs;
  for (size_t p = 0; p < policies.size(); ++p) {
    jobs.Add([&policy = policies[p], &seconds = training[p]] {
      seconds = ForeseeTraining([&policy](int64_t updates) { policy.learn(false, updates, 1); }, policy.updates,
                                policy.validates);
    });
  }
  jobs.Run();
  double seconds = 0;
  for (const double each : training) seconds += each * effort.policies;
  int64_t climbs = 0;
  for (const Trial& trial : trials) {
    climbs += effort.climbs + std::ssize(trial.contenders) * (effort.climbs + 1);  // an untrained one each
    seconds += effort.room;
  }
  seconds += static_cast<double>(climbs) * effort.times.back();
  SayPlan("first-case", seconds,
          fmt::format("{} trainings, {} climbs of {:g} seconds and {} searches of {:g}",
                      std::ssize(policies) * effort.policies, climbs, effort.times.back(), trials.size(), effort.room));
}

std::vector<double> After(const std::vector<Climb>& climbs, double seconds) {
  return Each(climbs, [seconds](const Climb& climb) { return climb.After(seconds); });
}

// In units of a `scale`-th; infinite ones count as larger than all others.
std::string Cell(const std::vector<double>& values, double scale, int digits, const char* missing) {
  const bool has_any = std::ranges::any_of(values, [](double value) { return value < kInfinity; });
  return has_any ? WithInterval(values, scale, digits) : missing;
}

std::string Ratio(const std::vector<double>& values) { return Cell(values, 1, 3, "no plan that fits yet"); }
std::string Milliseconds(const std::vector<double>& values) { return Cell(values, 1e3, 2, "no plan that fits yet"); }

constexpr const char* kTooBig = "does not fit";

std::string DescribeStarts(const std::vector<Climb>& climbs) {
  return Cell(Each(climbs, [](const Climb& climb) { return climb.first; }), 1e3, 2, kTooBig);
}

std::vector<double> Ratios(const std::vector<Climb>& climbs, double seconds, double reference) {
  return Each(climbs, [=](const Climb& climb) { return climb.After(seconds) / reference; });
}

// Rows of those trials and seconds where as much is left to find, or where it is not.
void WriteTrials(const std::deque<Trial>& trials, const std::deque<Policy>& policies, const FirstCaseEffort& effort,
                 bool with_room) {
  const auto belongs = [&](const Trial& trial, double seconds) {
    const double rules = Median(After(trial.rules, seconds));
    if (rules == kInfinity) return false;
    return (1 - trial.best_known / rules >= kRoom) == with_room;
  };
  const bool has_any = std::ranges::any_of(effort.times, [&](double seconds) {
    return std::ranges::any_of(trials, [&](const Trial& trial) { return belongs(trial, seconds); });
  });
  if (!has_any) return fmt::print("None.\n\n");
  fmt::print(
      "| graph | ops | seconds | left to find | climbing from the rules, ms | policy | from its answer, over that | "
      "from the untrained one's, over that |\n|---|---:|---:|---:|---:|---|---:|---:|\n");
  for (const double seconds : effort.times) {
    for (const Policy& policy : policies) {
      std::vector<double> learned_means, untrained_means;
      for (const Trial& trial : trials) {
        if (!belongs(trial, seconds)) continue;
        const std::vector<double> rules = After(trial.rules, seconds);
        const double reference = Median(rules), room = 1 - trial.best_known / reference;
        for (const Contender& contender : trial.contenders) {
          if (contender.policy != &policy) continue;
          const std::vector<double> learned = Ratios(contender.learned, seconds, reference),
                                    untrained = Ratios(contender.untrained, seconds, reference);
          learned_means.push_back(Median(learned));
          untrained_means.push_back(Median(untrained));
          fmt::print("| {} | {} | {:g} | {:.1f} % | {} | {} | {} | {} |\n", trial.name, trial.setup->problem->num_ops(),
                     seconds, room * 100, Milliseconds(rules), policy.name, Ratio(learned), Ratio(untrained));
        }
      }
      if (learned_means.size() < 2) continue;
      const auto mean = [](const std::vector<double>& means) {
        return std::ranges::count(means, kInfinity) > 0 ? "" : fmt::format("{:.3f}", GeometricMean(means));
      };
      fmt::print("| geometric mean |  | {:g} |  |  | {} | {} | {} |\n", seconds, policy.name, mean(learned_means),
                 mean(untrained_means));
    }
  }
  fmt::print("\n");
}

// Those trials and seconds where climbing from the rules has no plan that fits in most runs.
void WriteTrialsWithoutRules(const std::deque<Trial>& trials, const FirstCaseEffort& effort) {
  std::string rows;
  for (const double seconds : effort.times) {
    for (const Trial& trial : trials) {
      if (Median(After(trial.rules, seconds)) < kInfinity) continue;
      for (const Contender& contender : trial.contenders) {
        rows += fmt::format("| {} | {} | {:g} | {} | {} | {} |\n", trial.name, trial.setup->problem->num_ops(), seconds,
                            contender.policy->name, Milliseconds(After(contender.learned, seconds)),
                            Milliseconds(After(contender.untrained, seconds)));
      }
    }
  }
  if (rows.empty()) return;
  fmt::print(
      "### Where climbing from the rules has no plan that fits yet\n\n| graph | ops | seconds | policy | from its "
      "answer, ms | from the untrained one's, ms |\n|---|---:|---:|---|---:|---:|\n{}\n",
      rows);
}

}  // namespace

void WriteFirstCase(const Catalogs& catalogs, bool quick, const std::string&) {
  const FirstCaseEffort effort =
      quick
          ? FirstCaseEffort{.times = {0.2, 0.5},
                            .room = 1,
                            .climbs = 1,
                            .policies = 1,
                            .lessons = 3,
                            .tests = 1,
                            .updates = 3,
                            .large_updates = 2,
                            .shorter = {"gnmt(layers=2,steps=2)"},
                            .validation = {"gnmt(layers=2,steps=3)"},
                            .longer = {"gnmt(layers=8,steps=2)"}}
          : FirstCaseEffort{.times = {1, 10, 60},
                            .room = 600,
                            .climbs = 6,
                            .policies = 2,
                            .lessons = 24,
                            .tests = 3,
                            .updates = 150,
                            .large_updates = 63,
                            .shorter = {"gnmt(layers=8,steps=4)", "gnmt(layers=8,steps=12)", "gnmt(layers=8,steps=28)"},
                            .validation = {"gnmt(layers=8,steps=50)", "gnmt(layers=8,steps=100)"},
                            .longer = {"gnmt(layers=8,steps=10)", "gnmt(layers=8,steps=40)", "gnmt(layers=8,steps=80)",
                                       "gnmt(layers=8,steps=110)"}};
  std::deque<std::vector<Case>> lessons, tests;
  std::deque<Table> eight, shorter, between, longer;
  std::deque<Policy> policies;
  std::deque<Trial> trials;
  for (const Family& family : kFamilies) {
    const std::vector<Case>& train = lessons.emplace_back(MakeCases(catalogs, family, "train", effort.lessons));
    policies.push_back({.name = fmt::format("`placeto`, {} graphs of `{}`", effort.lessons, family.name),
                        .updates = effort.updates,
                        .learn =
                            [&, name = family.name](bool untrained, int64_t updates, uint64_t seed) {
                              return LearnFamily(catalogs, train, updates, untrained, seed,
                                                 fmt::format("first-{}-{}-{}", name, untrained, seed));
                            },
                        .form = fmt::format("on(group={},planner={{}})", family.group)});
    for (const Case& test : tests.emplace_back(MakeCases(catalogs, family, "test", effort.tests))) {
      Trial& trial = trials.emplace_back(Trial{.name = fmt::format("`{}`", test.name), .setup = &test.setup});
      trial.contenders.push_back({.policy = &policies.back()});
    }
  }
  const auto make_tables = [&](std::deque<Table>& tables, std::span<const char* const> models) {
    std::vector<const Table*> list;
    for (const char* model : models) {
      list.push_back(&tables.emplace_back(Table{.title = model, .setup = MakePorts(catalogs, model, "p100x8", true)}));
    }
    return list;
  };
  // On `tables`, chosen by `validation`; they live as long as this.
  const auto add_gdp = [&](const std::string& name, const char* planner, const std::vector<const Table*>& tables,
                           const std::vector<const Table*>& validation) {
    return &policies.emplace_back(Policy{
        .name = name,
        .updates = effort.large_updates,
        .validates = !validation.empty(),
        .learn =
            [&, planner, tables, validation, number = policies.size()](bool untrained, int64_t updates, uint64_t seed) {
              return Learn(catalogs, untrained ? Untrained(planner) : planner, tables, updates, seed,
                           fmt::format("first-{}-{}-{}", number, untrained, seed),
                           untrained ? std::vector<const Table*>() : validation);
            },
        .form = "{}"});
  };
  const std::vector<const Table*> others = make_tables(eight, kEight), family = make_tables(shorter, effort.shorter),
                                  chosen_by = make_tables(between, effort.validation);
  const Policy* const strange =
      add_gdp(fmt::format("`gdp`, {} training steps without GNMT", others.size()), "gdp", others, {});
  const Policy* const own = add_gdp("`gdp`, other GNMTs", "gdp", family, chosen_by);
  const Policy* const scheduled =
      add_gdp("`gdp(features=scheduled)`, other GNMTs", "gdp(features=scheduled)", family, chosen_by);
  for (const Table* table : make_tables(longer, effort.longer)) {
    Trial& trial = trials.emplace_back(Trial{.name = fmt::format("`{}`", table->title), .setup = table->setup.get()});
    for (const Policy* policy : {strange, own, scheduled}) trial.contenders.push_back({.policy = policy});
  }

  SayHours(policies, trials, effort);
  Jobs jobs;
  for (Policy& policy : policies) {
    policy.trained.resize(static_cast<size_t>(effort.policies));
    for (size_t seed = 0; seed < policy.trained.size(); ++seed) {
      jobs.Add([&policy, seed] { policy.trained[seed] = policy.learn(false, policy.updates, seed + 1); });
    }
    jobs.Add([&policy] { policy.twin = policy.learn(true, 1, 1); });
  }
  jobs.Run();
  for (Trial& trial : trials) {
    jobs.Add([&] {
      const PlanResult result = catalogs.planners.MakePlanner("auto")->MakePlan({.evaluator = *trial.setup->evaluator,
                                                                                 .budget = {.seconds = effort.room},
                                                                                 .random = Random(1),
                                                                                 .threads = 1,
                                                                                 .causes = false});
      if (!result.score.fits()) throw Error("{}: no plan that fits was found, so times mean nothing", trial.name);
      trial.best_known = std::min(trial.best_known, SecondsOf(*trial.setup->problem, result.score));
    });
    const auto add = [&](std::vector<Climb>& to, size_t seeds, const auto& planners_of) {
      to.resize(seeds);
      for (size_t seed = 0; seed < seeds; ++seed) {
        jobs.Add([&catalogs, &effort, &trial, &climb = to[seed], planners = planners_of(seed), seed] {
          climb = ClimbFrom(catalogs, *trial.setup, planners, effort.times.back(), seed + 1);
        });
      }
    };
    using Names = std::vector<std::string>;
    add(trial.rules, static_cast<size_t>(effort.climbs), [](size_t) { return Names{"single", "heft"}; });
    for (Contender& contender : trial.contenders) {
      const Policy& policy = *contender.policy;
      add(contender.learned, static_cast<size_t>(effort.climbs),
          [&](size_t seed) { return Names{policy.Answer(policy.trained[seed % policy.trained.size()])}; });
      add(contender.untrained, 1, [&](size_t) { return Names{policy.Answer(policy.twin)}; });
    }
  }
  jobs.Run();
  for (Trial& trial : trials) {
    std::vector<const std::vector<Climb>*> all{&trial.rules};
    for (const Contender& contender : trial.contenders) {
      all.insert(all.end(), {&contender.learned, &contender.untrained});
    }
    for (const auto* climbs : all) {
      for (const Climb& climb : *climbs) trial.best_known = std::min(trial.best_known, climb.found.back().time);
    }
  }

  const auto names_of = [](const std::vector<const Table*>& tables) {
    std::vector<std::string> names;
    for (const Table* table : tables) names.push_back(fmt::format("`{}`", table->title));
    return fmt::format("{}", fmt::join(names, ", "));
  };
  fmt::print(
      "## A policy's answer as the start of hill climbing\n\n`{}` on one processor, from the better of `single` and "
      "`heft`, or from the answer of a policy to a graph that it was not trained on. *Seconds* are of the clock, the "
      "start included, and {} at a time. Those of *pretraining* are of a processor, and include the answers by which a "
      "checkpoint is chosen. *Left to find*: "
      "the share by which the best known plan is shorter than that of the climbing from the rules; the best known plan "
      "is that of `auto` in {:g} seconds on one processor, or of any of these climbs. {} "
      "of the climbing, as many for each of {} of the training; the untrained policy with one. Only plans that fit into "
      "memory count; *none* is a run that has none yet. Families on Placeto's simulator (`placeto(devices=2)`), the "
      "others as training steps on eight GPUs (`p100x8`, `parallel(contention=ports)`). *Other GNMTs* are {}; of the "
      "checkpoints of a training on them the one is kept that answers {} best, from which nothing is learned.\n\n",
      kClimbing, Counted(static_cast<int64_t>(UsableThreads()), "run"), effort.room, Counted(effort.climbs, "seed"),
      effort.policies, names_of(family), names_of(chosen_by));
  fmt::print(
      "| graph | ops | policy, trained on | pretraining, seconds | its answer after, seconds | its answer, ms | "
      "untrained, ms | the rules, ms | best known, ms |\n|---|---:|---|---:|---:|---:|---:|---:|---:|\n");
  for (const Trial& trial : trials) {
    for (const Contender& contender : trial.contenders) {
      const Policy& policy = *contender.policy;
      fmt::print("| {} | {} | {} | {:.0f} | {:.2f} | {} | {} | {} | {:.2f} |\n", trial.name,
                 trial.setup->problem->num_ops(), policy.name,
                 Median(Each(policy.trained, [](const Lesson& lesson) { return lesson.seconds; })),
                 Median(Each(contender.learned, [](const Climb& climb) { return climb.ready; })),
                 DescribeStarts(contender.learned), DescribeStarts(contender.untrained),
                 Cell({trial.rules[0].first}, 1e3, 2, kTooBig), trial.best_known * 1e3);
    }
  }
  fmt::print("\n### Where at least {:g} % are left to find\n\n", kRoom * 100);
  WriteTrials(trials, policies, effort, true);
  fmt::print("### Where less is left\n\n");
  WriteTrials(trials, policies, effort, false);
  WriteTrialsWithoutRules(trials, effort);
}

}  // namespace berth::learned
