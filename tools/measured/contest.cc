#include "tools/measured/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "cli/learning.h"
#include "cli/plan_runs.h"
#include "cli/tuning.h"
#include "exec/statistics.h"

namespace berth::measured {
namespace {

constexpr int kTimesCompiled = 9;

// A plan that somebody found by running plans.
struct Found {
  std::string name;
  std::vector<DeviceId> device;
  int64_t plans = 0;  // that were run
  double seconds = 0;
};

Found FindByTuning(const Catalogs& catalogs, const ProblemStrings& strings, bool correct, uint64_t seed) {
  constexpr size_t kTuned = 20;
  PlanRunner runner(catalogs, strings);
  const Stopwatch watch;
  const Tuning tuning =
      TunePlans(runner, {.plans = kTuned, .seed = seed, .correct = correct}, [](const std::string&) {});
  Found found{.name = correct ? "tune" : "tune, nothing corrected", .device = {}};
  if (!tuning.finals.finalists.empty()) found.device = tuning.finals.winner().device();
  found.plans = static_cast<int64_t>(tuning.plans.size());
  found.seconds = watch.seconds();
  return found;
}

Found FindByRunning(const Catalogs& catalogs, ProblemStrings strings, const std::string& executor,
                    const std::string& planner, uint64_t seed) {
  constexpr int64_t kSearched = 200;
  strings.evaluator = executor;
  const Setup setup = MakeSetup(catalogs, strings);
  const Stopwatch watch;
  PlanResult result = catalogs.planners.MakePlanner(planner)->MakePlan(
      {.evaluator = *setup.evaluator, .budget = {.evaluations = kSearched}, .random = Random(seed)});
  return {.name = planner,
          .device = std::move(result.plan.device),
          .plans = result.evaluations,
          .seconds = watch.seconds()};
}

// All of these, each device alone, and what `others` says, in turns; compiled anew several times, since a plan that is
// compiled again is a few percent faster or slower. Of each compilation the median of its runs.
std::vector<Measurement> RunAgain(const Setup& setup, const std::string& model, const std::string& how,
                                  const std::vector<Found>& found, size_t runs,
                                  const std::vector<RunWay>& others = {}) {
  OpenVino runtime(*setup.problem, ModelFile(model));
  std::vector<RunWay> ways;
  for (const Found& one : found) ways.push_back({.how = how, .device = one.device});
  for (const DeviceId on : setup.problem->cluster().ids()) ways.push_back({.how = "alone", .on = on});
  ways.insert(ways.end(), others.begin(), others.end());
  std::vector<Measurement> all(ways.size());
  for (int time = 0; time < kTimesCompiled; ++time) {
    const std::vector<Measurement> measured = runtime.Run(ways, {.rounds = runs, .limit = 1800});
    for (size_t way = 0; way < ways.size(); ++way) {
      if (!measured[way].error.empty()) all[way].error = measured[way].error;
      if (!measured[way].seconds.empty()) all[way].seconds.push_back(Median(measured[way].seconds));
    }
  }
  return all;
}

}  // namespace

void Contest(const Catalogs& catalogs, const std::string& model, Models& models, size_t runs, uint64_t seed) {
  const ProblemStrings strings = models.Strings(model);
  std::vector<Found> found;
  const auto keep = [&](Found one) {
    fmt::print(stderr, "{}: {}\n", model, one.name);
    if (!one.device.empty()) found.push_back(std::move(one));
  };
  for (const bool correct : {true, false}) keep(FindByTuning(catalogs, strings, correct, seed));
  std::vector<std::string> planners = {"on(group=fusion,planner=local_search)", "on(group=fusion,planner=random)"};
  if (kCanLearn) planners.emplace_back("on(group=fusion,planner=\"hsdag(critic=blank)\")");
  for (const std::string& planner : planners)
    keep(FindByRunning(catalogs, strings, "openvino_parallel", planner, seed));
  const Setup setup = MakeSetup(catalogs, strings);
  const std::vector<Measurement> measured = RunAgain(setup, model, "parallel", found, runs);
  fmt::print("\n### {}, seed {}\n\n| planner | plans run | seconds | the winner, run again |\n|---|---:|---:|---:|\n",
             model, seed);
  for (size_t i = 0; i < found.size(); ++i) {
    fmt::print("| {} | {} | {:.0f} | {} |\n", found[i].name, found[i].plans, found[i].seconds, Cell(measured[i]));
  }
  for (const DeviceId on : setup.problem->cluster().ids()) {
    fmt::print("| {} alone | - | - | {} |\n", setup.problem->cluster().device(on).name,
               Cell(measured[found.size() + Index(on)]));
  }
}

void HsdagTable(const Catalogs& catalogs, const std::string& model, Models& models, size_t runs, uint64_t seeds) {
  const ProblemStrings strings = models.Strings(model);
  const Setup setup = MakeSetup(catalogs, strings);
  for (const std::string executor : {"openvino", "openvino_parallel"}) {
    std::vector<Found> found;
    for (const std::string planner : {"hsdag(mode=paper)", "hsdag(critic=blank)", "hsdag", "tune"}) {
      // What is tuned is a plan for devices that overlap.
      if (planner == "tune" && executor != "openvino_parallel") continue;
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        fmt::print(stderr, "{}, {}: {}, seed {}\n", model, executor, planner, seed);
        Found one = planner == "tune" ? FindByTuning(catalogs, strings, true, seed)
                                      : FindByRunning(catalogs, strings, executor, planner, seed);
        one.name = planner;
        if (!one.device.empty()) found.push_back(std::move(one));
      }
    }
    const std::vector<Measurement> measured =
        RunAgain(setup, model, executor == "openvino" ? "hetero" : "parallel", found, runs,
                 {{.how = "default"}, {.how = "auto", .first = "CPU"}});
    const std::vector<Measurement> others(measured.begin() + static_cast<ptrdiff_t>(found.size()), measured.end());
    const double alone = others.front().error.empty() ? Median(others.front().seconds) : 0;
    const auto row = [&](const std::string& name, const std::string& plans, const std::string& time, double seconds) {
      fmt::print("| {} | {} | {} | {} |\n", name, plans, time,
                 alone > 0 && seconds > 0 ? fmt::format("{:+.1f} %", 100 * (1 - seconds / alone)) : "-");
    };
    const size_t devices = setup.problem->num_devices();
    fmt::print("\n### {}, {}\n\n| method | plans run | ms | faster than {} alone |\n|---|---:|---:|---:|\n", model,
               executor, setup.problem->cluster().device(DeviceId{}).name);
    for (size_t i = 0; i < others.size(); ++i) {
      const std::string name = i < devices    ? setup.problem->cluster().device(MakeId<DeviceId>(i)).name + " alone"
                               : i == devices ? "OpenVINO's HETERO by itself"
                                              : "OpenVINO's AUTO, the CPU first";
      row(name, "-", Cell(others[i]), others[i].error.empty() ? Median(others[i].seconds) : 0);
    }
    for (size_t begin = 0; begin < found.size();) {
      std::vector<double> seconds;
      int64_t plans = 0;
      size_t end = begin;
      for (; end < found.size() && found[end].name == found[begin].name; ++end) {
        if (measured[end].error.empty()) seconds.push_back(Median(measured[end].seconds));
        plans = std::max(plans, found[end].plans);
      }
      if (seconds.empty()) {
        row(fmt::format("`{}`", found[begin].name), std::to_string(plans), Cell(measured[begin]), 0);
      } else {
        const auto [least, most] = std::ranges::minmax(seconds);
        row(fmt::format("`{}`, {} seeds", found[begin].name, seconds.size()), std::to_string(plans),
            fmt::format("{:.2f} ({:.2f} to {:.2f})", Median(seconds) * 1e3, least * 1e3, most * 1e3), Median(seconds));
      }
      begin = end;
    }
  }
}

}  // namespace berth::measured
