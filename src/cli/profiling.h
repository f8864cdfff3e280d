// Op times, measured on the devices of a problem.
#pragma once

#include <vector>

#include "cli/problem_factory.h"
#include "exec/openvino.h"
#include "import/profile.h"

namespace berth {

struct DeviceProfiles {
  OpTimeTable table;
  std::vector<OpMeasurement> measurements;  // by device
};

// Each device runs the whole model so often. Throws Error where one cannot.
DeviceProfiles ProfileDevices(const Setup& setup, size_t runs);

}  // namespace berth
