// Tables with a row per planner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/learned/common.h"

namespace berth::learned {

struct Row {
  std::string title, planner;
  int seeds;
  std::vector<Outcome> outcome{};  // by seed
};

// Adds a job for each seed of each row. What they refer to must stay until the jobs have run.
inline void Fill(Jobs& jobs, const Catalogs& catalogs, const Setup& setup, std::vector<Row>& rows, int64_t evaluations,
                 double near = 0) {
  for (Row& row : rows) {
    row.outcome.resize(static_cast<size_t>(row.seeds));
    for (int seed = 0; seed < row.seeds; ++seed) {
      jobs.Add([&catalogs, &setup, &row, seed, evaluations, near] {
        row.outcome[static_cast<size_t>(seed)] =
            Play(catalogs, setup, row.planner, evaluations, static_cast<uint64_t>(seed) + 1, near);
      });
    }
  }
}

}  // namespace berth::learned
