// The split files of the MSR data set (msr-fiddle/dnn-partitioning): which node lies on which accelerator or CPU.
#pragma once

#include <string>
#include <string_view>

#include "import/instance.h"
#include "placement/plan.h"

namespace berth {

bool LooksLikeSplit(std::string_view content);

// The split as a plan for an instance that ReadMsr made. Text before the first '{' is skipped (the upstream programs
// print some); a node that is not listed follows its colour class, as upstream has it for splits of the forward pass
// alone. Throws Error for a node that is unknown, listed twice or nowhere, and for more devices than the instance has.
Plan ReadSplit(std::string_view content, const std::string& path, const Instance& instance);

}  // namespace berth
