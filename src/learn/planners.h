// The learned planners. No torch in it.
#pragma once

#include "placement/planner.h"

namespace berth {

// Enters each of methods.cc.
void RegisterLearned(PlannerCatalog& catalog);

}  // namespace berth
