// Placements as people hold them: a plain list of devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement/problem.h"

namespace berth {

// "0,1,1,gpu": a device's number or name for each op, in the order of the model's file, separated by commas or white
// space; brackets and quotes are passed over, so that a JSON or Python list will do. Throws Error naming `path` and the
// position that is wrong: too many or too few, or no such device. Whether `problem` allows it is for FindViolation to
// say.
std::vector<DeviceId> ParsePlacementList(std::string_view text, const std::string& path, const Problem& problem);

}  // namespace berth
