// Bytes that cannot lie anywhere: necessary conditions on memory that hold for every plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "placement/constraint_subset.h"

namespace berth {

// More bytes than the devices hold on which they must lie.
struct MemoryGap {
  std::vector<DeviceId> devices{};
  std::vector<OpId> ops{};
  int64_t needed = 0, available = 0;
  bool one_unit = false;     // the ops share a device and fit on none; `devices` holds those that they may be on
  bool working_set = false;  // with what one of them reads and writes
};

// Nothing when nothing shows that memory cannot hold the ops. `memory_rule` as MemoryRule calls it: under "berth" and
// "msr" each parameter lies on some device that can run one of its ops, and under "berth" an op's inputs, outputs and
// workspace lie beside the parameters of its unit; other rules count no parameters, and nothing is said of them.
std::optional<MemoryGap> FindMemoryGap(const ConstrainedModel& model, const ConstraintSubset& subset,
                                       std::string_view memory_rule);

}  // namespace berth
