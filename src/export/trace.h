// Timelines for Perfetto (ui.perfetto.dev) and chrome://tracing.
#pragma once

#include <string>

#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

// The Trace Event Format as JSON: one track per device, one per link that is used (several where transfers overlap on
// it), and a memory counter per device. Times are rounded to nanoseconds, both ends alike, so that neighbours stay
// neighbours.
std::string WriteTrace(const Problem& problem, const Timeline& timeline);

}  // namespace berth
