// Constraints in a file. Format: docs/constraints.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement/constraints.h"

namespace berth {

// Throws Error with file and line; what the constraints mean is read later.
std::vector<ConstraintText> ParseConstraintFile(std::string_view yaml, const std::string& path);
std::vector<ConstraintText> ReadConstraintFile(const std::string& path);

}  // namespace berth
