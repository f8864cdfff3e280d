// Joules of a run.
#pragma once

#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

// Per device: busy watts while an op runs, idle watts for the rest of the makespan. Transfers cost nothing of their own. A
// device without watts counts zero.
double Joules(const Problem& problem, const Timeline& timeline);

}  // namespace berth
