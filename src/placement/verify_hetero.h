// The subgraphs that OpenVINO's HETERO makes, counted slowly.
#pragma once

#include <cstddef>
#include <span>

#include "placement/problem.h"

namespace berth {

// By sets of what each op is reached from, as docs/semantics.md says it: shares nothing with the simulator's count.
size_t CountHeteroSubgraphs(const Graph& graph, std::span<const DeviceId> device);

}  // namespace berth
