#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/machine.h"
#include "cli/problem_factory.h"
#include "exec/openvino.h"
#include "exec/statistics.h"
#include "import/profile.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr uint64_t kMostRuns = 100'000;

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
  return column;
}

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

std::string ProfilePage(const Problem& problem, const OpTimeTable& table,
                        const std::vector<OpMeasurement>& measurements) {
  using enum Table::Align;
  Table devices({{"device"},
                 {"whole model", kRight},
                 {"95 % interval", kRight, 1},
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
  return text;
}

}  // namespace

int MakeProfile(const ProfileArguments& arguments, const Catalogs& catalogs) {
  CheckWritable(arguments.output);
  const uint64_t runs = ParseCount("--runs", arguments.runs, 1);
  if (runs > kMostRuns) throw Error("--runs {}: at most {}", arguments.runs, kMostRuns);
  const ModelArguments& model = arguments.model;
  ProblemStrings strings = {.model = model.model,
                            .shapes = model.shapes,
                            .batch = model.batch,
                            .format = model.format,
                            .cluster = arguments.cluster,
                            .mode = model.mode,
                            .optimizer = model.optimizer};
  if (arguments.cluster.empty()) {
    strings.cluster = "here";
    strings.stored_cluster = std::make_shared<const Cluster>(WholeProcessor());
  }
  const Setup setup = MakeSetup(catalogs, strings);
  const Problem& problem = *setup.problem;
  OpenVino runtime(problem, ModelFile(strings.model));
  OpTimeTable table{.model = strings.model,
                    .cluster = problem.cluster().name(),
                    .runtime = fmt::format("OpenVINO {}", runtime.opened().version),
                    .machine = ProcessorName(),
                    .runs = static_cast<int64_t>(runs)};
  std::vector<OpMeasurement> measurements;
  ProgressLine progress;
  for (const DeviceId device : problem.cluster().ids()) {
    progress.Show(fmt::format("measuring {}", problem.cluster().device(device).name));
    measurements.push_back(runtime.Profile(device, {.rounds = static_cast<size_t>(runs), .limit = 3600}));
    if (!measurements.back().error.empty()) {
      throw Error("{} on {}: {}", strings.model, problem.cluster().device(device).name, measurements.back().error);
    }
    table.columns.push_back(ColumnOf(problem, device, measurements.back()));
  }
  progress.Show("");
  if (!arguments.output.empty()) WriteFile(arguments.output, WriteProfile(table));
  if (!arguments.json) {
    std::string text = ProfilePage(problem, table, measurements);
    if (!arguments.output.empty()) {
      text += "\n" + Line(fmt::format("Written to {0}: berth plan {1} --cluster ... --costs 'profile(file={0})'",
                                      Printable(arguments.output), ShellWord(strings.model)));
    }
    Print(text);
    return 0;
  }
  Json json = {{"model", table.model}, {"cluster", table.cluster}, {"machine", table.machine}, {"runs", table.runs}};
  json["devices"] = Json::array();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const OpTimeTable::Column& column = table.columns[i];
    Json ops = Json::array();
    for (const OpTimeTable::Row& row : column.rows) {
      ops.push_back({{"name", row.op}, {"seconds", row.time.value}, {"kind", row.kind}});
    }
    const Interval interval = MedianInterval(measurements[i].seconds);
    json["devices"].push_back({{"device", column.device},
                               {"measured_seconds", column.whole.value},
                               {"measured_interval", {interval.low, interval.high}},
                               {"kernel_seconds", column.kernels.value},
                               {"unassigned_share", measurements[i].unassigned},
                               {"ops", ops}});
  }
  Print(DumpJson(json));
  return 0;
}

}  // namespace berth
