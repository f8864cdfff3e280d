// Memory over time of a finished run, with what fills it.
#pragma once

#include <string>
#include <vector>

#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

// Per device, of the ops and transfers in `timeline`. `finish` is when outputs go; with `io_on_host` device 0 holds the
// graph's inputs, and gets its outputs. O(n log n) in ops, tensors and transfers.
std::vector<DeviceMemory> MemoryOverTime(const Problem& problem, const Timeline& timeline, double finish,
                                         bool io_on_host);

// One line about the device that lacks most memory: its peak, its limit, the moment and what fills it. Empty when all
// fits.
std::string WhyMemoryLacks(const Problem& problem, const std::vector<DeviceMemory>& memory);

}  // namespace berth
