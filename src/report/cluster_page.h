// A cluster for people: its devices, its links, and where its numbers come from.
#pragma once

#include <string>

#include "cluster/cluster.h"

namespace berth {

std::string ClusterPage(const Cluster& cluster);

}  // namespace berth
