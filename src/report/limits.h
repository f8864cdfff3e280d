// Limits that a plan must keep, and whether it does: what `check` answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/json.h"
#include "report/plan_report.h"

namespace berth {

// What somebody demands of a plan. Absent: nothing.
struct Limits {
  struct Memory {
    std::string device;  // a name or number; empty: each device
    int64_t bytes;
  };
  std::optional<double> seconds{};  // of the score
  std::vector<Memory> memory{};     // peaks, by the evaluator's memory rule
  std::optional<int64_t> transfers{};
  std::optional<double> joules{};
  std::optional<double> gap{};  // how far the objective is above its lower bound, as a share of that bound
};

// "gpu0=4GiB" or "4GiB". Throws Error with an example.
Limits::Memory ParseMemoryLimit(std::string_view text);

// How a plan stands to one limit.
struct LimitResult {
  // "latency", "memory", "transfers", "energy", "gap", and without numbers "fits" and "constraints": what the problem
  // itself demands
  std::string limit;
  std::string device;  // of memory only
  double value = 0;    // seconds, bytes, transfers, joules, a share
  double most = 0;
  bool held = true;
  std::string text;    // "3.21 ms, 1.79 ms (36 %) below 5.00 ms"
  std::string reason;  // why it is missed; empty where it is held
};

// First whether the plan fits at all, then one result per limit, and per device of memory limits; of a plan that could
// not be scored nothing else is known. Throws Error for a
// device that there is not, and for a limit on what the evaluator or the devices do not tell.
std::vector<LimitResult> CheckLimits(const Evaluator& evaluator, const PlanReport& report, const Limits& limits);

bool AllHeld(const std::vector<LimitResult>& results);

// A line per limit, with its reason below it where it is missed.
std::string LimitLines(const std::vector<LimitResult>& results);
Json LimitsJson(const std::vector<LimitResult>& results);
// PlanJson with "passed" and "limits".
Json CheckJson(const Evaluator& evaluator, const PlanReport& report, const std::vector<LimitResult>& results);

}  // namespace berth
