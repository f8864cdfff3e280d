// LowerBound's parts for the models of Tarnawski et al. 2020; called by LowerBound alone.
#pragma once

#include "placement/bound.h"

namespace berth {

// No pipeline is faster than its work, spread over the devices as if ops (groups that share a device) could be divided,
// nor than its largest group on the device that is fastest at it. Exact up to rounding where there are at most two
// kinds of devices. O(ops x devices).
Bound PipelineBound(const Evaluator& evaluator);

// The longest path, each op on its fastest device, nothing moved. O(edges).
Bound PiecesBound(const Evaluator& evaluator);

}  // namespace berth
