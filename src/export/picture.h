// Placements as pictures.
#pragma once

#include <string>

#include "placement/plan.h"
#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

// Ops up to which every op gets a box of its own, and the most boxes where they do not.
inline constexpr size_t kPictureOps = 300, kFoldedBoxes = 120;

// The graph in the DOT language: a colour per device with a legend, under a title; in columns, so that it has about the
// shape of a screen, and arrows lead down or to a later column. Up to kPictureOps ops there is a box per op; above that
// (and where more arrows than one can follow join fewer) a box is several ops (FoldOps), and says how many, of which
// types, and their time. Tensors that change the device are drawn heavier, with their bytes.
std::string PictureDot(const Problem& problem, const Plan& plan, const Timeline& timeline);

}  // namespace berth
