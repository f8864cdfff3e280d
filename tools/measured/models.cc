#include "tools/measured/models.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "cli/profiling.h"
#include "cli/runtime.h"
#include "exec/statistics.h"
#include "report/table.h"

namespace berth::measured {

ProblemStrings Models::Unprofiled(const std::string& model) const {
  return {.model = model, .cluster = "here", .stored_cluster = cluster_};
}

const Models::Profile& Models::Profiled(const std::string& model) {
  if (const auto known = profiles_.find(model); known != profiles_.end()) return known->second;
  fmt::print(stderr, "{}: op times\n", model);
  const OpTimeTable table = ProfileDevices(*OpenRuntime(catalogs_, Unprofiled(model)), runs_).table;
  const std::string file = folder_.Path(std::filesystem::path(model).filename().string() + ".json");
  return profiles_[model] = {.costs = StoreProfile(table, file), .seconds = table.columns.front().whole.value};
}

ProblemStrings Models::Strings(const std::string& model) {
  ProblemStrings strings = Unprofiled(model);
  strings.costs = Profiled(model).costs;
  return strings;
}

std::string Cell(const Measurement& measurement) {
  if (!measurement.error.empty()) return "failed: " + Legible(measurement.error);
  const Interval interval = MedianInterval(measurement.seconds);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", Median(measurement.seconds) * 1e3, interval.low * 1e3,
                     interval.high * 1e3);
}

}  // namespace berth::measured
