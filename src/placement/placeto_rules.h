// What Verify and LowerBound know of the `placeto` execution model; they call these.
#pragma once

#include <string>
#include <vector>

#include "placement/bound.h"
#include "placement/evaluator.h"

namespace berth {

std::vector<std::string> VerifyPlaceto(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline);
Bound PlacetoBound(const Evaluator& evaluator);

}  // namespace berth
