// Problems for tests of planners.
#pragma once

#include <string>

#include "placement/problem.h"

namespace berth::testing {

// A model made by a formula on a cluster of those that ship, with predicted times: one step of training with plain
// gradient descent, or inference.
Problem ModelProblem(const std::string& model, const std::string& cluster, bool training);

}  // namespace berth::testing
