// Verify's rules for `parts`; called by Verify alone.
#pragma once

#include <string>
#include <vector>

#include "placement/evaluator.h"

namespace berth {

std::vector<std::string> VerifyParts(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline);

}  // namespace berth
