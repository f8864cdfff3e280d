// The same answers for machines. Times in seconds, sizes in bytes.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "report/comparison.h"
#include "report/explanation.h"
#include "report/plan_report.h"

namespace berth {

// Keys stay in the order in which they were added.
using Json = nlohmann::ordered_json;

// What an answer's "format_version" says. It grows when a key goes, or means something else; not when one is added.
inline constexpr int kJsonVersion = 1;

// An answer, which must be an object, after its "format_version": two spaces of indentation and a line break at the
// end; what is not UTF-8 in a name becomes the replacement character.
std::string DumpJson(const Json& json);

// JSON knows no infinity: null instead.
Json FiniteOrNull(double number);
template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json PlanJson(const Evaluator& evaluator, const PlanReport& report);
// PlanJson with ops, transfers and memory.
Json SimulationJson(const Evaluator& evaluator, const PlanReport& report);
// The winner's PlanJson, and under "results" the PlanJson of every planner, fastest first.
Json ComparisonJson(const Evaluator& evaluator, const Comparison& comparison);
// PlanJson with a list of ops: their cause, and the score with only that op moved, per other device.
Json ExplanationJson(const Evaluator& evaluator, const PlanReport& report, const Explanation& explanation);
Json GraphJson(const Graph& graph);
// Seconds by device of everything on it alone: {"cpu": 0.012, "npu": null}; null where it cannot run the whole model.
Json SinglesJson(const Problem& problem, const std::vector<double>& times);
// Seconds by op type and device, the sum over its ops: {"Conv": {"cpu": 0.012, "gpu": null}, ...}; null where a device
// cannot run one of them.
Json TypeTimesJson(const Problem& problem);
// How the gain varies with what is guessed (report/guesses.h).
Json GuessJson(const GuessReport& report);
Json ClusterJson(const Cluster& cluster);

}  // namespace berth
