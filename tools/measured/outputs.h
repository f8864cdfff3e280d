// Whether a model that is cut into many parts still says the same.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cli/catalogs.h"
#include "cluster/cluster.h"

namespace berth::measured {

// Runs each model with its kernels dealt out to the devices by turns, under both executors, and writes what came of it
// as a table. False where an output differs by more than is allowed, or a plan does not run.
bool PrintOutputs(const Catalogs& catalogs, const std::shared_ptr<const Cluster>& cluster,
                  std::span<const std::string> models);

}  // namespace berth::measured
