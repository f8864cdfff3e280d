#include "cli/profiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "exec/equal_devices.h"
#include "exec/statistics.h"
#include "placement/single_devices.h"
#include "report/table.h"

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
    column.flops += problem.graph().work(op).flops;
  }
  for (const std::vector<OpId>& kernel : measurement.kernels) {
    std::vector<std::string>& names = column.fused.emplace_back();
    for (const OpId op : kernel) names.emplace_back(problem.graph().op_name(op));
  }
  return column;
}

bool HasFailed(const OpMeasurement& measurement) { return !measurement.error.empty(); }

// What ended the process they have in common, whichever device it was.
bool FailedTogether(const std::vector<OpMeasurement>& measured) {
  return measured.size() > 1 &&
         std::ranges::all_of(measured, [&](const OpMeasurement& one) { return one.error == measured.front().error; });
}

// The devices on which the model does not run, each with the reason; they are taken from `devices`, of which
// `measured` is. Where all failed by the same error, each is tried by itself; where each runs by itself, none is taken.
std::vector<std::pair<DeviceId, std::string>> LeaveOutWhatFails(OpenVino& openvino, OpenVino::Options options,
                                                                std::vector<OpMeasurement> measured,
                                                                std::vector<DeviceId>& devices) {
  if (FailedTogether(measured)) {
    options.rounds = 1;
    options.limit /= static_cast<double>(devices.size());
    for (size_t i = 0; i < devices.size() && !(options.stop && options.stop()); ++i)
      measured[i] = openvino.Profile(std::span(&devices[i], 1), options).front();
  }
  std::vector<std::pair<DeviceId, std::string>> failed;
  std::vector<DeviceId> able;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (HasFailed(measured[i])) {
      failed.emplace_back(devices[i], measured[i].error);
    } else {
      able.push_back(devices[i]);
    }
  }
  devices = std::move(able);
  return failed;
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
  std::vector<DeviceId> devices(problem.cluster().ids().begin(), problem.cluster().ids().end());
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
  const OpenVino::Options options{
      .rounds = rounds, .limit = LimitFor(static_cast<double>(rounds) * round), .stop = stop};
  const auto stopped = [&] { return stop && stop(); };
  std::vector<std::vector<OpMeasurement>> compilations;
  Agreement agreement;
  do {
    std::vector<OpMeasurement> measured = runtime.openvino.Profile(devices, options);
    if (compilations.empty() && std::ranges::any_of(measured, HasFailed) && !stopped()) {
      profiles.failed = LeaveOutWhatFails(runtime.openvino, options, measured, devices);
      if (!profiles.failed.empty() && !devices.empty()) measured = runtime.openvino.Profile(devices, options);
    }
    if (devices.empty() || std::ranges::any_of(measured, HasFailed)) {
      // Enough of them ran before, or it is told why this one did not.
      if (compilations.size() < times || stopped()) {
        compilations = {std::move(measured)};
        agreement.which = {0};
      }
      break;
    }
    compilations.push_back(std::move(measured));
    agreement = Agreeing(compilations);
  } while (compilations.size() < times || (!agreement.steady && compilations.size() < most));
  if (stopped() && (compilations.empty() || std::ranges::any_of(compilations.front(), HasFailed))) {
    throw Error("{}: stopped before its op times were measured; nothing is written", setup.strings.model);
  }
  const auto failure = [&](DeviceId device, const std::string& error, bool of_all) {
    return Error("{}{}: {}", setup.strings.model,
                 of_all ? "" : fmt::format(" on {}", problem.cluster().device(device).name), error);
  };
  if (devices.empty()) {
    const auto& [device, error] = profiles.failed.front();
    const auto is_the_same = [&](const auto& one) { return one.second == error; };
    throw failure(device, error, profiles.failed.size() > 1 && std::ranges::all_of(profiles.failed, is_the_same));
  }
  profiles.measurements = MeanOf(compilations, agreement.which);
  profiles.compilations = compilations.size();
  profiles.steady = agreement.steady;
  profiles.table.runs = static_cast<int64_t>(agreement.which.size() * rounds);
  const std::vector<OpMeasurement>& all = profiles.measurements;
  if (const auto first = std::ranges::find_if(all, HasFailed); first != all.end()) {
    const bool together = FailedTogether(all);
    std::string error = first->error;
    if (together && !stopped()) {
      error += fmt::format("; each of the {} devices runs it by itself, and together they are too much: describe fewer",
                           devices.size());
    }
    throw failure(devices[static_cast<size_t>(first - all.begin())], error, together);
  }
  ShareMeans(profiles.measurements);
  for (size_t i = 0; i < devices.size(); ++i) {
    profiles.table.columns.push_back(ColumnOf(problem, devices[i], profiles.measurements[i]));
  }
  return profiles;
}

std::vector<OpMeasurement> ByDevice(const Problem& problem, const DeviceProfiles& profiles) {
  std::vector<OpMeasurement> by_device;
  auto measured = profiles.measurements.begin();
  for (const DeviceId id : problem.cluster().ids()) {
    const auto failed = std::ranges::find(profiles.failed, id, &std::pair<DeviceId, std::string>::first);
    by_device.push_back(failed == profiles.failed.end() ? *measured++ : OpMeasurement{.error = failed->second});
  }
  return by_device;
}

std::vector<std::string> FailureTexts(const Problem& problem, const DeviceProfiles& profiles) {
  std::vector<std::string> texts;
  for (const auto& [device, error] : profiles.failed) {
    texts.push_back(fmt::format("{} does not run the whole model, so that the times of its ops are predicted: {}",
                                LegibleName(problem.cluster(), device), Legible(error)));
  }
  return texts;
}

std::string StoreProfile(const OpTimeTable& table, const std::string& path) {
  WriteFile(path, WriteProfile(table));
  return ProfileCosts(path);
}

std::string ProfileToFile(Runtime& runtime, size_t runs, const std::string& path, const StopCheck& stop) {
  const DeviceProfiles profiles = ProfileDevices(runtime, runs, stop);
  for (const std::string& text : FailureTexts(*runtime.setup->problem, profiles)) Warn(text);
  return StoreProfile(profiles.table, path);
}

std::string ProfileCosts(const std::string& path) {
  const bool plain = path.find_first_of(",()[]= \t") == std::string::npos;
  return plain ? fmt::format("profile(file={})", path) : fmt::format("profile(file=\"{}\")", path);
}

}  // namespace berth
