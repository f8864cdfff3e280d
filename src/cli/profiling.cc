#include "cli/profiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "exec/equal_devices.h"
#include "exec/statistics.h"
#include "placement/single_devices.h"

namespace berth {
namespace {

constexpr double kLeastProfiled = 0.5;  // seconds that each device runs for with counters

double Spread(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return (most - least) / Median(values);
}

OpTimeTable::Column ColumnOf(const Problem& problem, DeviceId device, const OpMeasurement& measurement) {
  OpTimeTable::Column column{.device = problem.cluster().device(device).name,
                             .rows = {},
                             .whole = {Median(measurement.seconds)},
                             .spread = Spread(measurement.seconds),
                             .kernels = {Median(measurement.totals)},
                             .pace = {measurement.slowdown ? problem.cluster().device(device).pace : 0}};
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
                    .machine = ProcessorName()};
  ProgressLine progress;
  const std::vector<DeviceId> devices(problem.cluster().ids().begin(), problem.cluster().ids().end());
  progress.Show(fmt::format("measuring {}", Counted(std::ssize(devices), "device")));
  double round = 0;  // seconds, with counters and without
  size_t predicted = 0;
  for (const std::optional<Score>& alone : ScoreSingleDevices(*setup.evaluator).score) {
    if (!alone || alone->failed()) continue;
    // Also where the device file says that it lacks the memory: it is tried.
    round += 2 * problem.ToSeconds(alone->time).value;
    ++predicted;
  }
  if (predicted > 0) runs = RoundsFor(runs, round / static_cast<double>(2 * predicted), kLeastProfiled);
  const size_t times = std::min(kProfileCompilations, runs), rounds = (runs + times - 1) / times;
  const size_t most = times < kProfileCompilations ? times : kMostProfileCompilations;
  const double limit = LimitFor(static_cast<double>(rounds) * round);
  const auto failed = [](const OpMeasurement& measurement) { return !measurement.error.empty(); };
  std::vector<std::vector<OpMeasurement>> compilations;
  Agreement agreement;
  do {
    std::vector<OpMeasurement> measured =
        runtime.openvino.Profile(devices, {.rounds = rounds, .limit = limit, .stop = stop});
    if (std::ranges::any_of(measured, failed)) {
      // Enough of them ran before, or it is told why this one did not.
      if (compilations.size() < times || (stop && stop())) {
        compilations = {std::move(measured)};
        agreement.which = {0};
      }
      break;
    }
    compilations.push_back(std::move(measured));
    agreement = Agreeing(compilations);
  } while (compilations.size() < times || (!agreement.steady && compilations.size() < most));
  profiles.measurements = MeanOf(compilations, agreement.which);
  profiles.compilations = compilations.size();
  profiles.steady = agreement.steady;
  profiles.table.runs = static_cast<int64_t>(agreement.which.size() * rounds);
  if (const auto first = std::ranges::find_if(profiles.measurements, failed); first != profiles.measurements.end()) {
    // What ended the process they have in common, whichever device it was.
    const bool common = devices.size() > 1 && std::ranges::all_of(profiles.measurements, [&](const OpMeasurement& one) {
                          return one.error == first->error;
                        });
    const DeviceId device = devices[static_cast<size_t>(first - profiles.measurements.begin())];
    throw Error("{}{}: {}", setup.strings.model,
                common ? "" : fmt::format(" on {}", problem.cluster().device(device).name), first->error);
  }
  ShareMeans(profiles.measurements);
  for (const DeviceId device : devices) {
    profiles.table.columns.push_back(ColumnOf(problem, device, profiles.measurements[Index(device)]));
  }
  return profiles;
}

std::string StoreProfile(const OpTimeTable& table, const std::string& path) {
  WriteFile(path, WriteProfile(table));
  return ProfileCosts(path);
}

std::string ProfileToFile(Runtime& runtime, size_t runs, const std::string& path, const StopCheck& stop) {
  return StoreProfile(ProfileDevices(runtime, runs, stop).table, path);
}

std::string ProfileCosts(const std::string& path) {
  const bool plain = path.find_first_of(",()[]= \t") == std::string::npos;
  return plain ? fmt::format("profile(file={})", path) : fmt::format("profile(file=\"{}\")", path);
}

}  // namespace berth
