// Placements as pictures.
#pragma once

#include <string>

#include "placement/plan.h"
#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

// Ops up to which every op gets a box of its own.
inline constexpr size_t kPictureOps = 300;

// The graph in the DOT language, a colour per device, with a legend. Up to kPictureOps ops there is a box per op,
// inside an outline per group: ops of one device that are joined by tensors without a detour over another device (the
// phases of `serial`). Above that a box is a whole group, and where even those are too many, all groups of a device in
// one stretch of the graph. Tensors that change the device are drawn heavier, with their bytes.
std::string PictureDot(const Problem& problem, const Plan& plan, const Timeline& timeline);

}  // namespace berth
