// Which ops a plan waits for.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "placement/problem.h"

namespace berth {

// From the op that ends last back to one that waits for nothing: each waits for the one after it, which is the op
// before it on its device where that ended just then, and else the producer whose tensor can come last. Transfers that
// queue are not followed.
struct CriticalPath {
  std::vector<OpId> ops;
  // Of these, those that waited for their device: with each op that ran there since the inputs of the first were there.
  std::vector<std::pair<OpId, OpId>> waits;
};

// `starts`: of all ops, under a placement. O(ops log ops + edges).
CriticalPath FindCriticalPath(const Problem& problem, std::span<const DeviceId> device, std::span<const double> starts);

}  // namespace berth
