#include "tools/measured/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "cli/profiling.h"
#include "cli/runtime.h"
#include "exec/statistics.h"
#include "placement/bound.h"
#include "report/table.h"

namespace berth::measured {
namespace {

// Compiled as often as what a profile keeps.
Measurement RunAlone(const Problem& problem, const std::string& model, DeviceId on, size_t runs) {
  OpenVino runtime(problem, ModelFile(model));
  Measurement all;
  for (size_t time = 0; time < kProfileCompilations && all.error.empty(); ++time) {
    const Measurement one = runtime.Run({{.how = "alone", .on = on}}, {.rounds = runs, .limit = 1800}).front();
    all.error = one.error;
    all.seconds.insert(all.seconds.end(), one.seconds.begin(), one.seconds.end());
    all.slowdown.insert(all.slowdown.end(), one.slowdown.begin(), one.slowdown.end());
    all.stolen = std::max(all.stolen, one.stolen);
  }
  return all;
}

}  // namespace

ProblemStrings Models::Unprofiled(const std::string& model) const {
  return {.model = model, .cluster = "here", .stored_cluster = cluster_};
}

const Models::Profile& Models::Profiled(const std::string& model) {
  if (const auto known = profiles_.find(model); known != profiles_.end()) return known->second;
  fmt::print(stderr, "{}: op times\n", model);
  const std::shared_ptr<Runtime> runtime = OpenRuntime(catalogs_, Unprofiled(model));
  const OpTimeTable table = ProfileDevices(*runtime, runs_).table;
  // At once: minutes later the speed of the machine may be another.
  OneDevice alone{.when_profiled = table.columns.front().whole.value,
                  .measured = RunAlone(*runtime->setup->problem, model, DeviceId{0}, runs_)};
  const std::string file = folder_.Path(std::filesystem::path(model).filename().string() + ".json");
  return profiles_[model] = {.costs = StoreProfile(table, file), .alone = std::move(alone)};
}

ProblemStrings Models::Strings(const std::string& model) {
  ProblemStrings strings = Unprofiled(model);
  strings.costs = Profiled(model).costs;
  return strings;
}

SavedPlan MakeSaved(const Catalogs& catalogs, const ProblemStrings& strings, const char* planner, int64_t evaluations) {
  Setup setup = MakeSetup(catalogs, strings);
  PlanResult result = catalogs.planners.MakePlanner(planner)->MakePlan(
      {.evaluator = *setup.evaluator, .budget = {.evaluations = evaluations}, .random = Random(1)});
  PlanReport report = MakePlanReport(*setup.evaluator, planner, std::move(result), LowerBound(*setup.evaluator));
  return {.setup = std::move(setup), .report = std::move(report)};
}

std::string Cell(const Measurement& measurement) {
  if (!measurement.error.empty()) return "failed: " + Legible(measurement.error);
  const Interval interval = MedianInterval(measurement.seconds);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", Median(measurement.seconds) * 1e3, interval.low * 1e3,
                     interval.high * 1e3);
}

}  // namespace berth::measured
