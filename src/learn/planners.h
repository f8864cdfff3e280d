// The learned planners, one Register function each. No torch in it.
#pragma once

#include "placement/planner.h"

namespace berth {

void RegisterHsdag(PlannerCatalog& catalog);    // Duan et al. 2024
void RegisterPlaceto(PlannerCatalog& catalog);  // Addanki et al. 2019

}  // namespace berth
