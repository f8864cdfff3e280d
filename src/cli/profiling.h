// Op times, measured on the devices of a problem.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/runtime.h"
#include "exec/compilations.h"
#include "import/profile.h"

namespace berth {

// How often a model is compiled at least, where it is run as often: compiled again, it is up to a few percent faster or
// slower.
inline constexpr size_t kProfileCompilations = kAgreeing;
// At most, until three compilations agree.
inline constexpr size_t kMostProfileCompilations = 5;

struct DeviceProfiles {
  OpTimeTable table;
  std::vector<OpMeasurement> measurements;  // by column of the table
  size_t compilations = 0;                  // the table is of three of them, or of all where there are fewer
  bool steady = false;                      // whether those three agree (exec/compilations.h)
  // Devices without a column, on which the model does not run, and why.
  std::vector<std::pair<DeviceId, std::string>> failed;
};

// Each device runs the whole model at least so often, compiled three times (or as often as it is run); more often, up
// to 250 times, where that is predicted to last less than half a second. Where the three do not agree, the model is
// compiled and run again until three do, at most five times in all. Devices that cannot be told apart get the same op
// times (ShareMeans). A device that cannot run the model is left out. Throws Error where none can, and where `stop`
// says so.
DeviceProfiles ProfileDevices(Runtime& runtime, size_t runs, const StopCheck& stop = {});

// The measurements, and the failures of the devices that were left out.
std::vector<OpMeasurement> ByDevice(const Problem& problem, const DeviceProfiles& profiles);

// "npu does not run the whole model, ...", one for each device that was left out.
std::vector<std::string> FailureTexts(const Problem& problem, const DeviceProfiles& profiles);

// How often a command does that which needs a profile on its way.
inline constexpr size_t kProfileRuns = 20;

// Writes a profile into a file; returns the costs that read it.
std::string StoreProfile(const OpTimeTable& table, const std::string& path);

// Both; warns of devices that are left out.
std::string ProfileToFile(Runtime& runtime, size_t runs, const std::string& path, const StopCheck& stop = {});

// The cost model, as --costs takes it, that reads this file.
std::string ProfileCosts(const std::string& path);

}  // namespace berth
