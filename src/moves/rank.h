// How urgent ops are.
#pragma once

#include <span>
#include <vector>

#include "placement/mean_transfer.h"
#include "placement/problem.h"

namespace berth {

// Over the devices that can run the op.
double MeanTime(std::span<const double> times);

// rank_u of HEFT (Topcuoglu, Hariri and Wu 2002, equation 6): the mean length of the longest way from the start of the
// op to the end. O(edges).
std::vector<double> UpwardRank(const Problem& problem);

// The same where each op has its device: its own time there, and transfers only where they are needed. O(edges).
std::vector<double> PlacedRank(const Problem& problem, std::span<const DeviceId> device);

}  // namespace berth
