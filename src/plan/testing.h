// Problems for tests of planners, and planners that answer them.
#pragma once

#include <string>
#include <string_view>

#include "placement/planner.h"
#include "placement/problem.h"

namespace berth::testing {

// A model made by a formula on a cluster of those that ship, with predicted times: one step of training with plain
// gradient descent, or inference.
Problem ModelProblem(const std::string& model, const std::string& cluster, bool training);

// What one of the planners answers under parallel(io=everywhere) with this contention.
PlanResult AnswerOf(const PlannerCatalog& planners, std::string_view planner, const Problem& problem,
                    const std::string& contention, const Budget& budget = {});

}  // namespace berth::testing
