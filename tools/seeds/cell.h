// A cell of the benchmark of the field: what one method found on one problem with one seed, and under which limits.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/problem_strings.h"

namespace berth::seeds {

// Both hold: whichever is reached first ends the search.
struct Limits {
  int64_t evaluations = 10'000;
  double seconds = 60;  // by the wall's clock; one thread searches
  bool operator==(const Limits&) const = default;
};

// What is asked.
struct Question {
  std::string graph{}, machine{};  // a model and a cluster, by their catalogs' names
  std::string mode{}, costs{}, evaluator{};
  std::string planner{};  // or kPublished
  int seed = 1;
  Limits limits{};
  bool operator==(const Question&) const = default;

  // Two cells with the same key are the same cell.
  std::string Key() const;
  ProblemStrings Strings() const;
};

// Instead of a planner: the placement of Inception-V3 on four GPUs that Mirhoseini et al. 2017 published.
inline constexpr std::string_view kPublished = "published placement";

enum class Found : uint8_t {
  kPlan,
  kTooBig,   // out of memory: the best plan needs more than some device has
  kRefuses,  // the method does not answer this problem
  kFails,    // an error, no plan at all, or a process that died or did not end
};

struct Improvement {
  int64_t evaluations = 0;  // of the search, up to and with this one
  double seconds = 0;       // since the search began
  double time = 0;          // of the best so far, in seconds
};

struct Cell {
  Question question{};
  Found found = Found::kFails;
  std::string why{};              // of what refuses or fails: one line
  double time = 0;                // of the best plan, in seconds; of kPlan alone
  double bound = 0;               // no plan takes less; 0 where none is known
  int64_t ops = 0;                // of the graph
  int64_t memory = 0;             // bytes, the peak of the device that needs most
  int64_t evaluations = 0;        // scores that were asked for
  double seconds = 0;             // of search
  std::string ended{};            // kSearchEndNames
  std::vector<Improvement> on{};  // the way there, each but the last at least a thousandth below the one before
  std::string from{};             // commit and machine

  // (t - b) / b.
  double gap() const { return time / bound - 1; }
};

// What kFormat stands for grows when a result of before means something else.
inline constexpr int kFormat = 2;

nlohmann::ordered_json ToJson(const Cell& cell);
// Throws Error; `path` names the file in it.
Cell CellOf(const nlohmann::json& json, const std::string& path);

}  // namespace berth::seeds
