// Op times, measured on the devices of a problem.
#pragma once

#include <string>
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

// The same, into a file; returns the costs that read it.
std::string ProfileToFile(const Catalogs& catalogs, const ProblemStrings& strings, size_t runs,
                          const std::string& path);

}  // namespace berth
