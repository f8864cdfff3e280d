// Which devices the nodes of a graph may be given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/coarse_graph.h"
#include "learn/libtorch.h"

namespace berth {

// To be added to logits, nodes of `order` x devices: -infinity where a device cannot run all of a node that another one
// can. (Where none can, each of its ops goes where it can: NodePlacer.)
at::Tensor DeviceMask(const CoarseGraph& graph, std::span<const int32_t> order);

// Renames devices that may be swapped, so that the placement is as likely as exchanges of two of them can make it: of
// the many names that one placement has, a policy always learns the same. `class_of`: per device the smallest one that
// it may be swapped with, or empty: none may. `log_probability`: nodes x devices; `device`: by node. O(nodes devices +
// devices^3).
void NameLikeliest(std::span<const DeviceId> class_of, std::span<const float> log_probability,
                   std::span<int64_t> device);
// What NameLikeliest takes in place of odds to name devices as in a placement: nodes x devices, 1 where the node is.
std::vector<float> NamesOf(std::span<const int64_t> device, size_t devices);

}  // namespace berth
