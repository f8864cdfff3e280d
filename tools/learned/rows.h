// Tables with a row per planner.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/statistics.h"
#include "tools/learned/common.h"

namespace berth::learned {

struct Row {
  std::string title, planner;
  int seeds;
  int64_t evaluations;
  std::vector<Outcome> outcome{};  // by seed

  // The medians over the seeds; NaN where no run has such a thing.
  double Best() const {
    return MedianOf([](const Outcome& each) { return std::optional(each.seconds); });
  }
  double Policy() const {
    return MedianOf([](const Outcome& each) { return each.policy; });
  }
  double Drawn() const {
    return MedianOf([](const Outcome& each) { return each.drawn; });
  }
  double Decisions() const {
    return MedianOf([](const Outcome& each) { return each.decisions; });
  }
  double Wall() const {
    return MedianOf([](const Outcome& each) { return std::optional(each.wall); });
  }

 private:
  template <typename Member>
  double MedianOf(const Member& member) const {
    std::vector<double> values;
    for (const Outcome& each : outcome) {
      if (const std::optional<double> value = member(each)) values.push_back(*value);
    }
    return values.empty() ? std::numeric_limits<double>::quiet_NaN() : Median(values);
  }
};

// A number for a cell of a table; nothing where it is not there.
inline std::string Cell(double value, int digits) {
  return std::isnan(value) ? "" : fmt::format("{:.{}f}", value, digits);
}

// Adds a job for each seed of each row. What they refer to must stay until the jobs have run.
inline void Fill(Jobs& jobs, const Catalogs& catalogs, const Setup& setup, std::vector<Row>& rows, double near = 0) {
  for (Row& row : rows) {
    row.outcome.resize(static_cast<size_t>(row.seeds));
    for (int seed = 0; seed < row.seeds; ++seed) {
      jobs.Add([&catalogs, &setup, &row, seed, near] {
        row.outcome[static_cast<size_t>(seed)] =
            Play(catalogs, setup, row.planner, row.evaluations, static_cast<uint64_t>(seed) + 1, near);
      });
    }
  }
}

// A problem, and the rows that are measured on it.
struct Comparison {
  std::string title;
  std::unique_ptr<Setup> setup;
  std::vector<Row> rows;
};

// Runs all of them, on all processors.
inline void Run(const Catalogs& catalogs, std::vector<Comparison>& tables) {
  Jobs jobs;
  for (Comparison& table : tables) Fill(jobs, catalogs, *table.setup, table.rows);
  jobs.Run();
}

// One step, of training with `sgd` or of inference, under `parallel(contention=ports)`.
inline std::unique_ptr<Setup> MakePorts(const Catalogs& catalogs, const std::string& model, const std::string& cluster,
                                        bool training) {
  ProblemStrings strings;
  strings.model = model;
  strings.cluster = cluster;
  strings.costs = "roofline(fusion=none)";  // as published, op by op
  strings.evaluator = "parallel(contention=ports)";
  if (training) strings.mode = "training";
  return std::make_unique<Setup>(MakeSetup(catalogs, strings));
}

}  // namespace berth::learned
