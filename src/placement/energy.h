// Joules of a run.
#pragma once

#include <span>
#include <vector>

#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

// Per device: busy watts while an op runs, idle watts for the rest of the makespan. Transfers cost nothing of their
// own. A device without watts counts zero: ask WithoutWatts first. On a host whose cores run several ops at once the op
// times may sum to more than the makespan: it is busy all the time then.
double Joules(const Problem& problem, const Timeline& timeline);

// The same of a run that takes `time`, from the op times of its placement; `busy` is scratch memory, one per device.
// O(ops).
double Joules(const Problem& problem, std::span<const DeviceId> device, double time, std::span<double> busy);

// Devices whose watts are not known, so that no sum of joules says what a run takes.
std::vector<DeviceId> WithoutWatts(const Cluster& cluster);

// Throws Error naming a device whose watts are not known, or are less when it computes than when it idles.
void RequireWatts(const Cluster& cluster);

}  // namespace berth
