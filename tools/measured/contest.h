// Planners that search by running plans, side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/catalogs.h"
#include "tools/measured/models.h"

namespace berth::measured {

// `tune` with 20 plans run, its twin that corrects nothing, and planners that run 200 plans each; the plans that they
// end with are compiled again nine times and run `runs` times each, in turns.
void Contest(const Catalogs& catalogs, const std::string& model, Models& models, size_t runs, uint64_t seed);

// HSDAG's table 2 (Duan et al. 2024) with this machine's devices in place of a CPU and a GPU: each device alone, what
// OpenVINO does by itself, and placers that learn from runs, a row each; the plans of all seeds are run again, as
// those of a contest.
void HsdagTable(const Catalogs& catalogs, const std::string& model, Models& models, size_t runs, uint64_t seeds);

}  // namespace berth::measured
