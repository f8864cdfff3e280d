// Why is this op there, and what would the alternatives cost?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/plan_report.h"

namespace berth {

// One other device for one op.
struct Alternative {
  DeviceId device{};
  bool can_run = false;  // also false where a pin or a forbid says so
  bool allowed = false;  // by all constraints, with the other ops where they are
  Score score{};         // of the plan with only this op, or the kernel that it is of, moved there, allowed or not
};

struct OpExplanation {
  OpId op{};
  std::vector<Alternative> alternatives;  // every other device, in order
};

struct Explanation {
  std::vector<OpExplanation> ops;
  bool without_sequence = false;  // moved ops break a strict order: their scores follow the first-come rule instead
};

// Scores every move of the `ops`, one by one: ops x (devices - 1) evaluations. `progress` is told how many ops are
// done.
Explanation Explain(const Evaluator& evaluator, const Plan& plan, const std::vector<OpId>& ops,
                    const std::function<void(size_t)>& progress = {});

// The summary per device, what fills their memory, and the critical path.
std::string ExplanationHead(const Evaluator& evaluator, const PlanReport& report);
// A line per op.
std::string ExplanationTable(const Evaluator& evaluator, const PlanReport& report, const Explanation& explanation);

}  // namespace berth
