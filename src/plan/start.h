// Where searches begin.
#pragma once

#include <string>
#include <vector>

#include "base/catalog.h"
#include "placement/search.h"
#include "placement/units.h"

namespace berth {

// By which order the placements of a search are run.
enum class SearchOrder : uint8_t {
  kFirstCome,
  kRank,      // by upward rank, where the evaluator minds priorities
  kSearch,    // upward ranks are only where priorities begin
  kSequence,  // an order of all ops, from which each device has its sequence
};

// How planners that improve a placement begin, and by which priorities their placements are run.
struct StartOptions {
  std::string start;  // simple, random or fastest
  SearchOrder order;

  explicit StartOptions(const Params& params);
  // Without order=search and order=sequence for planners that have no moves for it.
  static std::vector<Parameter> Parameters(bool with_search);

  bool searches_order() const { return order == SearchOrder::kSearch || order == SearchOrder::kSequence; }
  // What the plans of such a planner may carry.
  PlannerFacts::Space space() const;
};

// Evaluates and returns the plan to begin with: with start=fastest that with each op on its fastest device; else the
// placement that the request brings; else with start=simple the best of everything on one device (interchangeable
// devices once), with start=random one drawn evenly. With order=search and order=sequence the request's order is tried
// beside the ranks.
Plan StartPlan(Search& search, const Units& units, const Plan* given, const StartOptions& options);

}  // namespace berth
