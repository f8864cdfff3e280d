// The placement of Inception-V3 on four GPUs that Mirhoseini et al. 2017 found (ColocRL), on our graph of it.
#pragma once

#include <string>

#include "placement/plan.h"
#include "placement/problem.h"

namespace berth::seeds {

// The data set's file.
inline constexpr const char* kPublishedPlacement = BERTH_SHARED_DIR "/data/placeto/colocrl_inception_v3_placement.json";

// `problem` is one of `inception_v3` on four devices, of training or inference; gradients and updates follow the op
// that they belong to. Throws Error where it is not, and where `path` is not such a file.
Plan ReadPublishedPlacement(const std::string& path, const Problem& problem);

}  // namespace berth::seeds
