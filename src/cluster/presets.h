// Machines that ship with Berth, and the one door through which clusters come in.
#pragma once

#include <string>
#include <string_view>

#include "base/catalog.h"
#include "cluster/cluster.h"

namespace berth {

using ClusterCatalog = Catalog<Cluster()>;
void RegisterClusterPresets(ClusterCatalog& catalog);
void RegisterPlacetoCluster(ClusterCatalog& catalog);  // placeto(devices=4)

// `cluster` is a device file (an existing path, or anything that ends in .yaml or .yml) or a catalog name. Throws Error
// when it is neither, naming what there is.
Cluster ReadCluster(std::string_view cluster, const ClusterCatalog& catalog);

}  // namespace berth
