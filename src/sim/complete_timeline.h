// What the simulators' traces share: transfers in order, memory over time, and what fills it.
#pragma once

#include "placement/evaluator.h"

namespace berth {

// Completes a timeline whose ops and transfers are there: sorts the transfers, and where `evaluator` tracks memory and
// the run has an end, adds the memory over time and why it lacks, if it does. Outputs stay until `finish`. O(n log n)
// in ops, tensors and transfers.
void CompleteTimeline(const Evaluator& evaluator, double finish, Timeline& timeline);

// "op conv1 cannot run on npu": of the first such op of the plan; empty when there is none.
std::string WhyItCannotRun(const Problem& problem, const PlanView& plan);

}  // namespace berth
