// Where searches begin.
#pragma once

#include <string>
#include <vector>

#include "base/catalog.h"
#include "placement/planner.h"
#include "plan/units.h"

namespace berth {

// The parameter `start` of planners that improve a placement.
Parameter StartParameter();

// Evaluates and returns the placement to begin with: the one that the request brings; else with `start` = simple the
// best of everything on one device (interchangeable devices once), with random one drawn evenly.
std::vector<DeviceId> StartPlacement(Search& search, const Units& units, const Plan* given, const std::string& start);

}  // namespace berth
