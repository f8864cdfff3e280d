// What a part costs that has next to nothing to compute.
#pragma once

#include "cli/catalogs.h"
#include "cluster/cluster.h"

namespace berth::measured {

// Prints what a part takes in chains of 40 small ops, each a part of its own, on the first two devices by turns: the
// call, what brings tensors into the layout that an op wants, and what one device waits for the other. Throws Error
// where a chain cannot be run.
void PrintTinyParts(const Catalogs& catalogs, const Cluster& cluster);

}  // namespace berth::measured
