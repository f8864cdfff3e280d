#include "cli/profiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "exec/statistics.h"
#include "placement/single_devices.h"

namespace berth {
namespace {

double Spread(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return (most - least) / Median(values);
}

OpTimeTable::Column ColumnOf(const Problem& problem, DeviceId device, const OpMeasurement& measurement) {
  OpTimeTable::Column column{.device = problem.cluster().device(device).name,
                             .rows = {},
                             .whole = {Median(measurement.seconds)},
                             .spread = Spread(measurement.seconds),
                             .kernels = {Median(measurement.totals)}};
  for (const OpId op : problem.graph().ops()) {
    const std::string& kind = measurement.kind[Index(op)];
    if (kind == "absent") continue;  // for a cost model to predict
    column.rows.push_back({std::string(problem.graph().op_name(op)), Seconds{measurement.op_seconds[Index(op)]}, kind});
  }
  for (const std::vector<OpId>& kernel : measurement.kernels) {
    std::vector<std::string>& names = column.fused.emplace_back();
    for (const OpId op : kernel) names.emplace_back(problem.graph().op_name(op));
  }
  return column;
}

}  // namespace

DeviceProfiles ProfileDevices(Runtime& runtime, size_t runs, const StopCheck& stop) {
  const Setup& setup = *runtime.setup;
  const Problem& problem = *setup.problem;
  DeviceProfiles profiles;
  profiles.table = {.model = setup.strings.model,
                    .cluster = problem.cluster().name(),
                    .runtime = fmt::format("OpenVINO {}", runtime.openvino.opened().version),
                    .machine = ProcessorName(),
                    .runs = static_cast<int64_t>(runs)};
  ProgressLine progress;
  const std::vector<DeviceId> devices(problem.cluster().ids().begin(), problem.cluster().ids().end());
  progress.Show(fmt::format("measuring {}", Counted(std::ssize(devices), "device")));
  double round = 0;  // seconds, with counters and without
  for (const double alone : ScoreSingleDevices(*setup.evaluator).times()) {
    if (alone < kCannotRun) round += 2 * problem.ToSeconds(alone).value;
  }
  const double limit = LimitFor(static_cast<double>(runs) * round);
  profiles.measurements = runtime.openvino.Profile(devices, {.rounds = runs, .limit = limit, .stop = stop});
  for (const DeviceId device : devices) {
    const OpMeasurement& measurement = profiles.measurements[Index(device)];
    if (!measurement.error.empty()) {
      throw Error("{} on {}: {}", setup.strings.model, problem.cluster().device(device).name, measurement.error);
    }
    profiles.table.columns.push_back(ColumnOf(problem, device, measurement));
  }
  return profiles;
}

std::string ProfileToFile(Runtime& runtime, size_t runs, const std::string& path, const StopCheck& stop) {
  WriteFile(path, WriteProfile(ProfileDevices(runtime, runs, stop).table));
  return ProfileCosts(path);
}

std::string ProfileCosts(const std::string& path) {
  const bool plain = path.find_first_of(",()[]= \t") == std::string::npos;
  return plain ? fmt::format("profile(file={})", path) : fmt::format("profile(file=\"{}\")", path);
}

}  // namespace berth
