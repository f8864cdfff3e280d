// Why is this op there? Read off a finished placement.
#pragma once

#include "placement/plan.h"
#include "placement/planner.h"
#include "placement/problem.h"

namespace berth {

// Gives each op the strongest of the reasons that hold for its device: no other can run it; it must be with or apart
// from others; it is fastest there; it is with its neighbours and saves transfers; else `otherwise`. O(edges x
// devices).
void GiveCauses(const Problem& problem, Plan& plan, const std::string& otherwise);
// To a request's answer, if it asks for them.
void GiveCauses(const PlanRequest& request, PlanResult& result, const std::string& otherwise);

}  // namespace berth
