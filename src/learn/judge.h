// What a placement costs, as learned placers ask it: of any Evaluator, simulated or measured.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/evaluator.h"
#include "placement/planner.h"

namespace berth {

struct JudgeOptions {
  // Each placement is scored `runs` times, and the last `kept` of these are averaged: 10 and 5 as published, for HSDAG
  // (section 3.1) and Placeto's measurements; 1 and 1 where scores repeat.
  int64_t runs = 1;
  int64_t kept = 1;
  // Added per GB (1e9 bytes) over the memory limits, in seconds, so that a policy learns to fit (Placeto: 2).
  double memory_penalty = 2;
  // A placement that this judge has scored before is not scored again. It still counts as an evaluation.
  bool cache = false;
  // Placements on a single device are not scored and fail, as in HSDAG's released code. They count as evaluations.
  bool reject_single_device = false;
};

struct Verdict {
  Score score{};
  double cost = 0;      // in time units, memory penalty included; infinity when it failed
  bool failed = false;  // the evaluator threw, or gave no finite value
};

// Asks, counts, and remembers the best. For one thread.
class Judge {
 public:
  Judge(const Evaluator& evaluator, JudgeOptions options);

  const Problem& problem() const { return evaluator_.problem(); }

  // Counts `runs` scores as one evaluation. `starts`, when not empty, receives the ops' start times of the last one.
  Verdict Ask(std::span<const DeviceId> device, std::span<double> starts = {});
  // The placement of the last Ask again, which cost `verdict`: counts as an evaluation, but is not run.
  void Repeat(const Verdict& verdict);

  // Since the last Take.
  int64_t evaluations() const { return found_.evaluations; }
  int64_t failures() const { return failures_; }
  // What the evaluator said the last time that it failed.
  const std::string& last_failure() const { return last_failure_; }

  // What was found since the last Take: the best plan, its score, the number of evaluations (none: no plan).
  PlanResult Take();

 private:
  Verdict Measure(const PlanView& plan, std::span<double> starts);

  const Evaluator& evaluator_;
  JudgeOptions options_;
  std::unique_ptr<Workspace> workspace_;
  std::unordered_map<std::string, Verdict> known_;
  PlanResult found_;
  bool has_best_ = false;
  int64_t failures_ = 0;
  std::string last_failure_;
};

}  // namespace berth
