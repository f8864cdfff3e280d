// Verify's rules for the models of Tarnawski et al. 2020; called by Verify alone.
#pragma once

#include <string>
#include <vector>

#include "placement/evaluator.h"

namespace berth {

std::vector<std::string> VerifyPipeline(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline);
std::vector<std::string> VerifyPieces(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline);

}  // namespace berth
