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

ProblemStrings Models::Strings(const std::string& model) {
  ProblemStrings strings = {.model = model, .cluster = "here", .stored_cluster = cluster_};
  const std::string file = folder_.Path(std::filesystem::path(model).filename().string() + ".json");
  if (!costs_.contains(model)) {
    fmt::print(stderr, "{}: op times\n", model);
    costs_[model] = ProfileToFile(*OpenRuntime(catalogs_, strings), runs_, file);
  }
  strings.costs = costs_.at(model);
  return strings;
}

std::string Cell(const Measurement& measurement) {
  if (!measurement.error.empty()) return "failed: " + Legible(measurement.error);
  const Interval interval = MedianInterval(measurement.seconds);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", Median(measurement.seconds) * 1e3, interval.low * 1e3,
                     interval.high * 1e3);
}

}  // namespace berth::measured
