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
  // With the orders up to `last`: a planner has moves for those.
  static std::vector<Parameter> Parameters(SearchOrder last);

  bool searches_order() const { return order == SearchOrder::kSearch || order == SearchOrder::kSequence; }
  // What the plans of such a planner may carry.
  PlannerFacts::Space space() const;
};

// Priorities that keep a plan's order, as far as those of an evaluator can; empty where it has none.
std::vector<double> PrioritiesOf(const Plan& plan);

// Evaluates and returns the plan to begin with: with start=fastest that with each op on its fastest device; else the
// placement that the request brings; else with start=simple the best of everything on one device (interchangeable
// devices once), with start=random one drawn evenly. With order=search and order=sequence the request's order is tried
// beside the ranks.
Plan StartPlan(Search& search, const Units& units, const Plan* given, const StartOptions& options);

}  // namespace berth
