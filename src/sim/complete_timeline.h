// What the simulators' traces share: transfers in order, memory over time, and what fills it.
#pragma once

#include "placement/evaluator.h"

namespace berth {

// Completes a timeline whose ops and transfers are there: sorts the transfers, and where `evaluator` tracks memory and
// the run has an end, adds the memory over time and why it lacks, if it does. Outputs stay until `finish`. O(n log n)
// in ops, tensors and transfers.
void CompleteTimeline(const Evaluator& evaluator, double finish, Timeline& timeline);

}  // namespace berth
