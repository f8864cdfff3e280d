#include "cli/profiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

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

// Adds what another compilation of the same model took to the mean of so many before it.
void Add(const OpMeasurement& other, size_t before, OpMeasurement& mean) {
  if (!mean.error.empty()) return;
  if (!other.error.empty() || other.op_seconds.size() != mean.op_seconds.size()) {
    mean.error = other.error.empty() ? "it has other ops each time that it is compiled" : other.error;
    return;
  }
  const auto count = static_cast<double>(before);
  for (size_t op = 0; op < mean.op_seconds.size(); ++op) {
    mean.op_seconds[op] = (mean.op_seconds[op] * count + other.op_seconds[op]) / (count + 1);
  }
  mean.unassigned = (mean.unassigned * count + other.unassigned) / (count + 1);
  mean.stolen = (mean.stolen * count + other.stolen) / (count + 1);
  std::ranges::copy(other.totals, std::back_inserter(mean.totals));
  std::ranges::copy(other.seconds, std::back_inserter(mean.seconds));
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
  profiles.table.runs = static_cast<int64_t>(times * rounds);
  const double limit = LimitFor(static_cast<double>(rounds) * round);
  const auto failed = [](const OpMeasurement& measurement) { return !measurement.error.empty(); };
  for (size_t time = 0; time < times && std::ranges::none_of(profiles.measurements, failed); ++time) {
    std::vector<OpMeasurement> measured =
        runtime.openvino.Profile(devices, {.rounds = rounds, .limit = limit, .stop = stop});
    if (time == 0) {
      profiles.measurements = std::move(measured);
    } else {
      for (size_t i = 0; i < measured.size(); ++i) Add(measured[i], time, profiles.measurements[i]);
    }
  }
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
