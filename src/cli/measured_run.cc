#include "cli/measured_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/system_limits.h"
#include "placement/single_devices.h"
#include "report/table.h"

namespace berth {
namespace {

// Above this share of stolen time the numbers say more of the other programs than of the plan.
constexpr double kDisturbed = 0.05;

constexpr size_t kShownParts = 12;

double Longest(const Measurement& measurement) {
  const auto [least, most] = std::ranges::minmax(measurement.seconds);
  return most - least;
}

std::string Signed(double share) { return fmt::format("{}{}", share < 0 ? "-" : "+", Percent(std::abs(share))); }

std::string TimeOf(double seconds) { return ToString(Seconds{seconds}); }

// "78.9 ms", "77.2 ms to 80.3 ms".
std::vector<std::string> MeasuredCells(const Measurement& measurement) {
  if (!measurement.error.empty()) return {"failed", ""};
  const Interval interval = MedianInterval(measurement.seconds);
  return {TimeOf(Median(measurement.seconds)), fmt::format("{} to {}", TimeOf(interval.low), TimeOf(interval.high))};
}

// `at_file_pace`: with a column of times at the device file's speed, which the prediction is compared with.
void AddRow(const RunRow& row, bool at_file_pace, Table& table) {
  std::vector<std::string> cells = {row.name, row.predicted ? TimeOf(*row.predicted) : "-"};
  std::ranges::move(MeasuredCells(row.measured), std::back_inserter(cells));
  const bool ran = row.measured.error.empty();
  const double seconds = !ran ? 0 : at_file_pace ? row.measured.seconds_at_file_pace() : Median(row.measured.seconds);
  if (at_file_pace) cells.push_back(!ran ? "" : row.measured.slowdown.empty() ? "-" : TimeOf(seconds));
  cells.push_back(ran && row.predicted ? Signed(OffBy(*row.predicted, seconds)) : "");
  table.Add(std::move(cells));
}

bool IsOtherPace(double slowdown) {
  constexpr double kSamePace = 0.03;
  return std::abs(slowdown - 1) > kSamePace;
}

// The row whose devices were furthest from the pace of the device file.
const RunRow& WithOddestPace(const MeasuredRun& run) {
  const auto oddness = [](const RunRow& row) {
    return row.measured.error.empty() ? std::abs(std::log(row.measured.typical_slowdown())) : 0;
  };
  const RunRow* oddest = &run.plan;
  for (const RunRow& row : run.others) {
    if (oddness(row) > oddness(*oddest)) oddest = &row;
  }
  return *oddest;
}

// The sum of what the plan's problem says of the part's ops; what the part itself and its cuts cost is not in it.
double OpsOfPart(const Problem& problem, const MeasuredPart& part) {
  double sum = 0;
  for (const OpId op : part.ops) sum += problem.op_time(op, part.device);
  return problem.ToSeconds(sum).value;
}

std::string PartTable(const SavedPlan& saved, const std::vector<MeasuredPart>& parts) {
  const Problem& problem = *saved.setup.problem;
  std::vector<const MeasuredPart*> longest;
  for (const MeasuredPart& part : parts) longest.push_back(&part);
  std::ranges::stable_sort(longest, std::greater<>(), [](const MeasuredPart* part) { return part->end - part->begin; });
  longest.resize(std::min(longest.size(), kShownParts));
  std::ranges::sort(longest, {}, [](const MeasuredPart* part) { return part->begin; });
  using enum Table::Align;
  Table table({{"part"},
               {"ops", kRight},
               {"first op"},
               {"begins", kRight, 1},
               {"predicted", kRight},
               {"measured", kRight},
               {"off", kRight}});
  for (const MeasuredPart* part : longest) {
    const double measured = part->seconds, predicted = OpsOfPart(problem, *part);
    table.Add({problem.cluster().device(part->device).name, Count(static_cast<int64_t>(part->ops.size())),
               part->ops.empty() ? "-" : Shorten(problem.graph().op_name(part->ops.front()), 32), TimeOf(part->begin),
               TimeOf(predicted), TimeOf(measured), measured > 0 ? Signed(OffBy(predicted, measured)) : ""});
  }
  const std::string which = longest.size() < parts.size()
                                ? fmt::format("The {} longest of {} parts", longest.size(), parts.size())
                                : "The parts";
  return "\n" + Wrap(which + ", predicted by their ops alone, without what a part and its cuts cost:") + "\n" +
         table.ToString();
}

// What ops were measured to take, by the runtime's counters, where it tells no parts: by device, and the longest of
// them.
std::string OpTables(const SavedPlan& saved, const std::vector<double>& op_seconds) {
  const Problem& problem = *saved.setup.problem;
  const std::vector<DeviceId>& device = saved.report.result.plan.device;
  if (op_seconds.empty()) return "";
  const auto predicted_of = [&](OpId op) {
    const double time = problem.op_time(op, device[Index(op)]);
    return time < kCannotRun ? problem.ToSeconds(time).value : 0;
  };
  const auto measured_of = [&](OpId op) { return op_seconds[Index(op)]; };
  const auto off = [](double predicted, double seconds) {
    return seconds > 0 ? Signed(OffBy(predicted, seconds)) : std::string();
  };
  using enum Table::Align;
  Table devices({{"device"}, {"ops", kRight}, {"predicted", kRight}, {"measured", kRight}, {"off", kRight}});
  for (const DeviceId id : problem.cluster().ids()) {
    double predicted = 0, seconds = 0;
    int64_t ops = 0;
    for (const OpId op : problem.graph().ops()) {
      if (device[Index(op)] != id) continue;
      ++ops;
      predicted += predicted_of(op);
      seconds += measured_of(op);
    }
    if (ops == 0) continue;
    devices.Add(
        {problem.cluster().device(id).name, Count(ops), TimeOf(predicted), TimeOf(seconds), off(predicted, seconds)});
  }
  std::vector<OpId> longest(problem.graph().ops().begin(), problem.graph().ops().end());
  std::ranges::stable_sort(longest, std::greater<>(), measured_of);
  longest.resize(std::min(longest.size(), kShownParts));
  Table ops({{"op"}, {"device"}, {"predicted", kRight}, {"measured", kRight}, {"off", kRight}});
  for (const OpId op : longest) {
    ops.Add({Shorten(problem.graph().op_name(op), 40), problem.cluster().device(device[Index(op)]).name,
             TimeOf(predicted_of(op)), TimeOf(measured_of(op)), off(predicted_of(op), measured_of(op))});
  }
  return "\n" + Wrap("The ops of each device by the runtime's counters, without what cuts cost:") + "\n" +
         devices.ToString() + "\n" + Wrap(fmt::format("The {} longest ops:", longest.size())) + "\n" + ops.ToString();
}

std::string TransferLine(const SavedPlan& saved, const Measurement& measured) {
  const RunSummary& summary = saved.report.summary;
  double predicted = 0;
  for (const TransferRun& run : saved.report.timeline.transfers) predicted += run.end - run.start;
  if (measured.parts.empty()) {
    return fmt::format("predicted {} ({}) of {} in all; HETERO does not tell its own", summary.transfers,
                       ToString(Bytes{summary.transfer_bytes}), ToString(saved.setup.problem->ToSeconds(predicted)));
  }
  if (summary.transfers == 0 && measured.transfers.empty()) return "none, predicted or measured";
  double waited = 0;
  int64_t bytes = 0;
  for (const MeasuredTransfer& transfer : measured.transfers) {
    waited += transfer.end - transfer.begin;
    bytes += transfer.bytes;
  }
  return fmt::format(
      "predicted {} ({}) of {} in all; measured {} ({}), after which their readers began {} later in all",
      summary.transfers, ToString(Bytes{summary.transfer_bytes}), ToString(saved.setup.problem->ToSeconds(predicted)),
      measured.transfers.size(), ToString(Bytes{bytes}), TimeOf(waited));
}

std::string OutputLine(const Measurement& measured) {
  if (!measured.outputs) {
    return fmt::format("not compared: the first device alone does not run the whole model: {}",
                       Legible(measured.no_reference));
  }
  const OutputComparison& outputs = *measured.outputs;
  if (!(outputs.finite > 0)) {
    return "NOT compared: none of the values are finite, so that nothing can be said; weights of the model's own help";
  }
  const bool in_f32 = measured.precision == "f32";
  std::string text = fmt::format("{} those of the first device alone{}", outputs.equal ? "equal to" : "NOT equal to",
                                 in_f32 ? "" : " in f32");
  if (outputs.equal && outputs.largest_difference == 0) {
    text += outputs.finite < 1 ? ": every finite value is the same" : ": every value is the same";
  } else {
    text += fmt::format(": they differ by {:.1e} of the largest value, {:.0e} is allowed{}", outputs.largest_difference,
                        outputs.tolerance,
                        in_f32 ? "" : fmt::format(" where something is computed in {}", measured.precision));
  }
  if (outputs.finite < 1) text += fmt::format("; {} of the values are not finite", Percent(1 - outputs.finite));
  return text;
}

// "; OpenVINO's own 2 threads take 0.66x the plan's time": what a user would take instead.
std::string BesideOwnThreads(const MeasuredRun& run) {
  for (const RunRow& row : run.others) {
    if (!row.own_threads || !row.measured.error.empty() || row.measured.seconds.empty()) continue;
    return fmt::format("; {} take {:.2f}x the plan's time", row.name,
                       Median(row.measured.seconds) / Median(run.plan.measured.seconds));
  }
  return "";
}

// How the plan compares with the fastest device alone, and whether that is more than noise.
std::string Verdict(const MeasuredRun& run) {
  const RunRow* best = nullptr;
  for (const RunRow& row : run.others) {
    if (!row.one_device || !row.measured.error.empty()) continue;
    if (best == nullptr || Median(row.measured.seconds) < Median(best->measured.seconds)) best = &row;
  }
  if (best == nullptr) return "";
  if (run.alone_row) {
    // The two differ by noise alone.
    const RunRow& own = run.others[*run.alone_row];
    const bool told = own.measured.error.empty() && best->measured.seconds.size() >= kLeastForInterval &&
                      MedianInterval(best->measured.seconds).high < MedianInterval(own.measured.seconds).low;
    const std::string faster = told ? fmt::format("; {} is {:.2f}x as fast", best->name,
                                                  Median(own.measured.seconds) / Median(best->measured.seconds))
                                    : "";
    return fmt::format("none: this plan is {}{}{}", own.name, faster, BesideOwnThreads(run));
  }
  const Interval plan = MedianInterval(run.plan.measured.seconds), other = MedianInterval(best->measured.seconds);
  const double factor = Median(best->measured.seconds) / Median(run.plan.measured.seconds);
  if (run.plan.measured.seconds.size() < kLeastForInterval) {
    return fmt::format("{:.2f}x {} {}, which may be noise: --runs {} or more tell{}", factor >= 1 ? factor : 1 / factor,
                       factor >= 1 ? "over" : "slower than", best->name, kLeastForInterval, BesideOwnThreads(run));
  }
  if (plan.low <= other.high && other.low <= plan.high) {
    return fmt::format("none that can be told: beside {} ({:.2f}x) the difference is within the noise{}", best->name,
                       factor, BesideOwnThreads(run));
  }
  return fmt::format("{:.2f}x {} {}, the fastest single device{}", factor > 1 ? factor : 1 / factor,
                     factor > 1 ? "over" : "slower than", best->name, BesideOwnThreads(run));
}

}  // namespace

std::string DefaultExecutor(const Evaluator& evaluator) {
  return evaluator.facts().Is<SerialFacts>() ? "openvino" : "openvino_parallel";
}

void CheckExecutor(const std::string& executor) {
  if (executor == "openvino" || executor == "openvino_parallel") return;
  ThrowUnknownName("way to run a plan", executor, {"openvino", "openvino_parallel"});
}

MeasuredRun RunMeasured(const SavedPlan& saved, OpenVino& runtime, const std::string& executor, size_t runs,
                        const StopCheck& stop, bool runtime_choices) {
  const Problem& problem = *saved.setup.problem;
  const std::vector<DeviceId>& device = saved.report.result.plan.device;
  const bool hetero = executor == "openvino";
  MeasuredRun run{.executor = executor};
  run.opened = runtime.opened();

  std::vector<RunWay> ways = {{.how = hetero ? "hetero" : "parallel", .device = device}};
  // Of a pipeline the time per sample, or of one run.
  const double of_plan = problem.ToSeconds(saved.report.timeline.score.time).value;
  run.plan.name = "this plan";
  if (!device.empty() && OnOneDevice(device) && !hetero) run.alone_row = Index(device.front());
  const bool fits = std::isfinite(of_plan);
  if (fits && !saved.setup.evaluator->facts().Is<PipelineFacts>()) run.plan.predicted = of_plan;
  const std::vector<double> singles = ScoreSingleDevices(*saved.setup.evaluator).times();
  double round = fits ? of_plan : 0;  // seconds
  size_t cores = 0, processors = 0;
  for (const DeviceId id : problem.cluster().ids()) {
    const Device& one = problem.cluster().device(id);
    if (RunsOn(one) == "CPU") cores += one.cores.size(), ++processors;
    ways.push_back({.how = "alone", .on = id});
    run.others.push_back({.name = fmt::format("{} alone", one.name), .one_device = true});
    const double single = singles[Index(id)];
    if (!(single < kCannotRun)) continue;
    run.others.back().predicted = problem.ToSeconds(single).value;
    round += *run.others.back().predicted;
  }
  if (processors > 1 && cores >= processors) {
    ways.push_back({.how = "threads"});
    run.others.push_back({.name = fmt::format("OpenVINO's own {} threads", cores), .own_threads = true});
  }
  if (runtime_choices && hetero && problem.num_devices() > 1) {
    ways.push_back({.how = "default"});
    run.others.push_back({.name = "OpenVINO's HETERO by itself"});
    ways.push_back({.how = "auto"});
    run.others.push_back({.name = "OpenVINO's AUTO by itself"});
  }
  const double limit = LimitFor(static_cast<double>(runs) * round);
  std::vector<Measurement> measured =
      runtime.Run(ways, {.rounds = runs, .compare = true, .limit = limit, .stop = stop});
  run.plan.measured = std::move(measured.front());
  for (size_t i = 0; i < run.others.size(); ++i) {
    RunRow& row = run.others[i];
    row.measured = std::move(measured[i + 1]);
    if (row.measured.error.empty() && row.measured.precision != "f32") row.name += " in " + row.measured.precision;
  }
  if (!run.plan.measured.error.empty()) return run;
  OpMeasurement ops;
  if (hetero) ops = runtime.ProfileHetero(device, {.rounds = 5, .limit = limit});
  run.ops_predicted_because = ops.error;
  run.op_seconds = ops.op_seconds;
  run.timeline = MakeMeasuredTimeline(problem, device, run.plan.measured, ops.op_seconds);
  return run;
}

std::string IntervalHeading(bool enough) { return enough ? "95 % interval" : "least to most"; }

Json IntervalJson(const std::vector<double>& seconds) {
  if (seconds.size() < kLeastForInterval) return Json();
  const Interval interval = MedianInterval(seconds);
  return {interval.low, interval.high};
}

std::string DisturbedLine(double stolen, const std::string& of_what) {
  if (stolen <= kDisturbed) return "";
  const size_t cores = UsableCores().size();
  if (const std::optional<double> allowed = ProcessorLimitBelow(cores)) {
    return Item(fmt::format(
        "The cores were taken away for {} {}: this process may use {:.3g} of {} cores' time (its control group's "
        "cpu.max), or other programs had them.",
        Percent(stolen), of_what, *allowed, cores));
  }
  return Item(fmt::format("Other programs had the cores for {} {}: measure again on a machine at rest.",
                          Percent(stolen), of_what));
}

std::string UnsteadyLine(double factor, const std::string& times) {
  constexpr double kUnsteady = 1.1;
  if (factor <= kUnsteady) return "";
  return Item(
      fmt::format("The machine was {} slower at one time than at another while plans were run (its clock changed, or "
                  "others shared the processor); {}.",
                  Percent(factor - 1), times));
}

std::string PaceLine(double slowdown, const std::string& when, const std::string& then) {
  if (!IsOtherPace(slowdown)) return "";
  return Item(fmt::format(
      "{}, the same work took {} {} than when the device file was measured (small models that run in between tell that); {}.",
      when, Percent(std::abs(slowdown - 1)), slowdown < 1 ? "less time" : "longer", then));
}

double SpeedChangeOf(const MeasuredRun& run) {
  std::vector<const std::vector<double>*> rows;
  const auto add = [&](const RunRow& row) {
    if (row.measured.error.empty() && !row.measured.slowdown.empty()) rows.push_back(&row.measured.slowdown);
  };
  add(run.plan);
  for (const RunRow& row : run.others) add(row);
  if (rows.empty()) return 1;
  std::vector<double> rounds;
  for (size_t round = 0; round < rows.front()->size(); ++round) {
    std::vector<double> slowdown;
    for (const std::vector<double>* row : rows) {
      if (round < row->size()) slowdown.push_back((*row)[round]);
    }
    rounds.push_back(Median(slowdown));
  }
  // One odd round, in which something else ran for a moment, is no change of the machine's speed.
  std::ranges::sort(rounds);
  const size_t odd = rounds.size() / 10;
  return rounds[rounds.size() - 1 - odd] / rounds[odd];
}

std::string RunPage(const SavedPlan& saved, const MeasuredRun& run) {
  const Problem& problem = *saved.setup.problem;
  const Measurement& measured = run.plan.measured;
  std::string text = Line(fmt::format("{}; run by {}", DescribeProblem(problem), run.executor)) + "\n";
  if (!measured.error.empty()) {
    return text + Field("failed", Legible(measured.error)) +
           (run.plan.predicted ? Field("predicted", TimeOf(*run.plan.predicted)) : "");
  }
  using enum Table::Align;
  const bool enough = measured.seconds.size() >= kLeastForInterval;
  const RunRow& oddest = WithOddestPace(run);
  const bool other_pace = IsOtherPace(oddest.measured.typical_slowdown());
  std::vector<Table::Column> columns = {
      {""}, {"predicted", kRight}, {"measured", kRight}, {IntervalHeading(enough), kRight, 1}};
  if (other_pace) columns.push_back({"at one speed", kRight, 2});
  columns.push_back({"predicted is off", kRight});
  Table table(std::move(columns));
  AddRow(run.plan, other_pace, table);
  for (const RunRow& row : run.others) AddRow(row, other_pace, table);
  text += table.ToString() + "\n";
  for (const RunRow& row : run.others) {
    if (!row.measured.error.empty()) text += Field("failed", row.name + ": " + Legible(row.measured.error));
  }
  if (const std::string verdict = Verdict(run); !verdict.empty()) text += Field("speed-up", verdict);
  text += Field("outputs", OutputLine(measured));
  text += Field("subgraphs", fmt::format("{} measured{}", measured.subgraphs,
                                         saved.report.timeline.subgraphs > 0
                                             ? fmt::format(", {} predicted", saved.report.timeline.subgraphs)
                                             : ""));
  text += Field("transfers", TransferLine(saved, measured));
  if (!run.ops_predicted_because.empty()) {
    text += Field("ops", "drawn by their predicted times, since their own could not be measured: " +
                             Legible(run.ops_predicted_because));
  }
  text += Field("runs", fmt::format("{}, in turns; medians; predicted by {} with {}", measured.seconds.size(),
                                    saved.setup.evaluator->name(), problem.cost_source()));
  if (!measured.parts.empty()) text += PartTable(saved, measured.parts);
  if (measured.parts.empty() && run.ops_predicted_because.empty()) text += OpTables(saved, run.op_seconds);
  text += "\n";
  text += DisturbedLine(measured.stolen, "of the time");
  text += PaceLine(oddest.measured.typical_slowdown(), fmt::format("While {} ran", oddest.name),
                   "predictions are compared with the times at one speed, the file's");
  if (saved.setup.evaluator->facts().Is<PipelineFacts>()) {
    text += Item(
        "pipeline predicts the time per sample while many are under way, not of one run: --evaluator parts "
        "predicts that.");
  }
  if (run.opened.weights_filled > 0) {
    const auto filled = static_cast<int64_t>(run.opened.weights_filled);
    text +=
        Item(fmt::format("{} one value throughout, as where a file lacks its weights: for the runs {} filled with "
                         "random numbers.",
                         filled == 1 ? "1 constant holds" : fmt::format("{} constants hold", Count(filled)),
                         filled == 1 ? "it was" : "they were"));
  }
  if (run.opened.ops_found < run.opened.ops) {
    text += Item(
        fmt::format("{} of the {} ops are not in OpenVINO's reading of the model, like {}: where they are "
                    "placed changes nothing.",
                    run.opened.ops - run.opened.ops_found, run.opened.ops, Legible(run.opened.ops_missing.front())));
  }
  return text;
}

Json RunJson(const SavedPlan& saved, const MeasuredRun& run) {
  const Problem& problem = *saved.setup.problem;
  const auto row_json = [](const RunRow& row) {
    Json json;
    json["predicted_seconds"] = OrNull(row.predicted);
    const Measurement& measured = row.measured;
    const bool failed = !measured.error.empty();
    json["measured_seconds"] = failed ? Json() : Json(Median(measured.seconds));
    json["measured_spread"] = failed ? Json() : Json(Longest(measured));
    json["measured_interval"] = failed ? Json() : IntervalJson(measured.seconds);
    const bool has_pace = !failed && !measured.slowdown.empty();
    json["slowdown"] = has_pace ? Json(measured.typical_slowdown()) : Json();
    json["measured_seconds_at_file_speed"] = has_pace ? Json(measured.seconds_at_file_pace()) : Json();
    json["failed_because"] = failed ? Json(measured.error) : Json();
    json["precision"] = failed ? Json() : Json(measured.precision);
    return json;
  };
  Json json = {{"model", saved.setup.strings.model},
               {"cluster", problem.cluster().name()},
               {"evaluator", saved.setup.evaluator->name()},
               {"costs", problem.cost_source()},
               {"executor", run.executor}};
  json.update(row_json(run.plan));
  const Measurement& measured = run.plan.measured;
  json["outputs_equal"] = measured.outputs ? Json(measured.outputs->equal) : Json();
  json["output_difference"] = measured.outputs ? Json(measured.outputs->largest_difference) : Json();
  json["output_tolerance"] = measured.outputs ? Json(measured.outputs->tolerance) : Json();
  json["not_compared_because"] = measured.no_reference.empty() ? Json() : Json(measured.no_reference);
  json["finite_share"] = measured.outputs ? Json(measured.outputs->finite) : Json();
  json["run_seconds"] = measured.seconds;
  json["stolen_share"] = measured.stolen;
  json["speed_change"] = SpeedChangeOf(run);
  json["subgraphs"] = measured.subgraphs;
  json["others"] = Json::array();
  for (const RunRow& row : run.others) {
    Json other = {{"name", row.name}};
    other.update(row_json(row));
    json["others"].push_back(other);
  }
  json["parts"] = Json::array();
  for (const MeasuredPart& part : measured.parts) {
    std::vector<std::string> ops;
    for (const OpId op : part.ops) ops.emplace_back(problem.graph().op_name(op));
    json["parts"].push_back({{"device", problem.cluster().device(part.device).name},
                             {"ops", ops},
                             {"start_seconds", part.begin},
                             {"end_seconds", part.end},
                             {"predicted_seconds", OpsOfPart(problem, part)}});
  }
  json["transfers"] = Json::array();
  for (const MeasuredTransfer& transfer : measured.transfers) {
    json["transfers"].push_back(
        {{"tensor", transfer.tensor ? Json(problem.graph().tensor_name(*transfer.tensor)) : Json()},
         {"from", problem.cluster().device(transfer.from).name},
         {"to", problem.cluster().device(transfer.to).name},
         {"bytes", transfer.bytes},
         {"start_seconds", transfer.begin},
         {"end_seconds", transfer.end}});
  }
  json["ops_found"] = run.opened.ops_found;
  json["weights_filled"] = run.opened.weights_filled;
  return json;
}

}  // namespace berth
