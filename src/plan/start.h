// Where searches begin.
#pragma once

#include <string>
#include <vector>

#include "base/catalog.h"
#include "placement/search.h"
#include "placement/units.h"

namespace berth {

// How planners that improve a placement begin, and by which priorities their placements are run.
struct StartOptions {
  std::string start;    // simple or random
  bool by_rank;         // ops run by upward rank, where the evaluator minds priorities; else first come, first served
  bool searches_order;  // upward ranks are only where priorities begin

  explicit StartOptions(const Params& params);
  // Without order=search for planners that have no moves for it.
  static std::vector<Parameter> Parameters(bool with_search);

  // What the plans of such a planner may carry.
  PlannerFacts::Space space() const {
    return by_rank ? PlannerFacts::Space::kPriorities : PlannerFacts::Space::kPlacement;
  }
};

// Priorities that keep a plan's order, as far as those of an evaluator can; empty where it has none.
std::vector<double> PrioritiesOf(const Plan& plan);

// Evaluates and returns the plan to begin with: the placement that the request brings; else with start=simple the best
// of everything on one device (interchangeable devices once), with start=random one drawn evenly. With order=search the
// request's order is tried beside the ranks.
Plan StartPlan(Search& search, const Units& units, const Plan* given, const StartOptions& options);

}  // namespace berth
