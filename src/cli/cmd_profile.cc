#include <algorithm>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/measured_run.h"
#include "cli/planning.h"
#include "cli/profiling.h"
#include "exec/statistics.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr uint64_t kMostProfileRuns = 100'000;

// The share of the time, or of the ops, whose times were found in this way.
double Share(const OpTimeTable::Column& column, std::string_view kind, bool of_time) {
  double all = 0, some = 0;
  for (const OpTimeTable::Row& row : column.rows) {
    const double weight = of_time ? row.time.value : 1;
    all += weight;
    if (row.kind == kind) some += weight;
  }
  return all > 0 ? some / all : 0;
}

// Where no three compilations agree; else empty.
std::string DisagreementLine(const DeviceProfiles& profiles) {
  if (profiles.steady || profiles.compilations < kProfileCompilations) return "";
  return Item(fmt::format(
      "Of {} compilations no three took the same on every device, within {}: the speed of the machine changes. The "
      "times here are of the three in the middle; profile again later.",
      profiles.compilations, Percent(kSameButCompiled)));
}

std::string ProfilePage(const Problem& problem, const DeviceProfiles& profiles) {
  const OpTimeTable& table = profiles.table;
  const std::vector<OpMeasurement>& measurements = profiles.measurements;
  using enum Table::Align;
  const auto enough = std::ranges::all_of(
      measurements, [](const OpMeasurement& one) { return one.seconds.size() >= kLeastForInterval; });
  Table devices({{"device"},
                 {"whole model", kRight},
                 {IntervalHeading(enough), kRight, 1},
                 {"all kernels", kRight},
                 {"ops measured", kRight},
                 {"own kernel", kRight},
                 {"share of one", kRight},
                 {"joined to one", kRight, 2}});
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const OpTimeTable::Column& column = table.columns[i];
    const Interval interval = MedianInterval(measurements[i].seconds);
    devices.Add({column.device, ToString(column.whole),
                 fmt::format("{} to {}", ToString(Seconds{interval.low}), ToString(Seconds{interval.high})),
                 ToString(column.kernels), fmt::format("{} of {}", column.rows.size(), problem.num_ops()),
                 Percent(Share(column, "own", true)), Percent(Share(column, "shared", true)),
                 Percent(Share(column, "joined", true))});
  }
  std::string text = Line(fmt::format("{}: how long each op takes, by {}", problem.graph().name(), table.runtime)) +
                     "\n" + devices.ToString();
  text += "\n" +
          Wrap(
              "The last columns are shares of the time. A runtime runs several ops as one kernel: its time is divided "
              "among them by their FLOPs. Kernels are timed with counters, the whole model without.");
  const double stolen = std::ranges::max(measurements, {}, &OpMeasurement::stolen).stolen;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    text +=
        PaceLine(measurements[i].slowdown.value_or(1), fmt::format("While {} was profiled", table.columns[i].device),
                 "times here are at that file's speed");
  }
  for (const std::string& failure : FailureTexts(problem, profiles)) text += Item(failure + ".");
  return text + DisagreementLine(profiles) + DisturbedLine(stolen, "of a device's time, at most");
}

}  // namespace

int MakeProfile(const ProfileArguments& arguments, const Catalogs& catalogs) {
  CheckWritable(arguments.output, arguments.problem.Files());
  const uint64_t runs = ParseCount("--runs", arguments.runs, 1, kMostProfileRuns);
  const double limit = ParseLimit(arguments.limit);
  ProblemStrings strings = arguments.problem;
  if (strings.cluster.empty()) {
    strings.cluster = "here";
    strings.stored_cluster = std::make_shared<const Cluster>(WholeProcessor());
  }
  const std::shared_ptr<Runtime> runtime = OpenRuntime(catalogs, strings);
  runtime->openvino.set_most_seconds(limit);
  const Problem& problem = *runtime->setup->problem;
  const DeviceProfiles profiles = ProfileDevices(*runtime, static_cast<size_t>(runs));
  const auto& [table, measurements, compilations, steady, failed] = profiles;
  if (!arguments.output.empty()) WriteFile(arguments.output, WriteProfile(table));
  if (!arguments.json) {
    std::string text = ProfilePage(problem, profiles);
    if (!arguments.output.empty()) {
      text +=
          "\n" + Line(fmt::format("Written to {}: berth plan {} --cluster {} --costs {}", Printable(arguments.output),
                                  ShellWord(strings.model), strings.stored_cluster ? "..." : ShellWord(strings.cluster),
                                  ShellWord(ProfileCosts(Printable(arguments.output)))));
    }
    Print(text);
    return 0;
  }
  Json json = {{"model", table.model}, {"cluster", table.cluster}, {"machine", table.machine}, {"runs", table.runs}};
  json["compilations"] = compilations;
  json["steady"] = steady;
  json["devices"] = Json::array();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const OpTimeTable::Column& column = table.columns[i];
    Json ops = Json::array();
    for (const OpTimeTable::Row& row : column.rows) {
      ops.push_back({{"name", row.op}, {"seconds", row.time.value}, {"kind", row.kind}});
    }
    json["devices"].push_back({{"device", column.device},
                               {"measured_seconds", column.whole.value},
                               {"measured_interval", IntervalJson(measurements[i].seconds)},
                               {"kernel_seconds", column.kernels.value},
                               {"unassigned_share", measurements[i].unassigned},
                               {"stolen_share", measurements[i].stolen},
                               {"slowdown", OrNull(measurements[i].slowdown)},
                               {"fused", column.fused},
                               {"ops", ops}});
  }
  json["failed"] = Json::array();
  for (const auto& [device, error] : failed) {
    json["failed"].push_back({{"device", problem.cluster().device(device).name}, {"failed_because", error}});
  }
  Print(DumpJson(json));
  return 0;
}

}  // namespace berth
