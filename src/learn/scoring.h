// What a placement costs, as learned placers count it.
#pragma once

#include <cstdint>
#include <memory>

#include "placement/evaluator.h"

namespace berth {

struct ScoringOptions {
  // Each placement is scored `runs` times, and the last `kept` of these are averaged: 10 and 5 as published, for HSDAG
  // (section 3.1) and Placeto's measurements; 1 and 1 where scores repeat.
  int64_t runs = 1;
  int64_t kept = 1;
  // Added per GB (1e9 bytes) over the memory limits, in seconds, so that a policy learns to fit (Placeto: 2). Infinite:
  // a placement that does not fit is one that fails.
  double memory_penalty = 2;
  // A placement that the same worker has scored before is not scored again; where scores are noisy, that it has scored
  // before in the same update. It still counts as an evaluation.
  bool cache = false;
  // Placements on a single device are not scored and fail, as in HSDAG's released code. They count as evaluations.
  bool reject_single_device = false;
};

// `evaluator`, which must outlive it, as these options say. A score that is no finite number is a failure.
std::unique_ptr<const Evaluator> ForLearning(const Evaluator& evaluator, const ScoringOptions& options);

// In time units, penalty included; infinity where it failed.
double CostOf(const Problem& problem, const Score& score, double memory_penalty);

}  // namespace berth
