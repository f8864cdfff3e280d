// Writes the tables of docs/measured.md to standard output: ./dev measured. Every figure in them is measured here, now.
//   usage: measured [--runs N] [--plans N] [--outputs | --contest SEEDS | --hsdag SEEDS] [MODEL...]
// With --outputs only: whether models that are cut into many parts say the same; minutes. With --contest only: tune
// with 20 plans run beside planners that search by running 200 each. With --hsdag only: HSDAG's table 2, 200 plans run
// per placer and seed. Both take hours for many models.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/learning.h"
#include "cli/machine.h"
#include "cli/measured_run.h"
#include "cli/tuned_model.h"
#include "exec/detect.h"
#include "placement/single_devices.h"
#include "tools/measured/contest.h"
#include "tools/measured/models.h"
#include "tools/measured/outputs.h"
#include "tools/measured/prediction.h"
#include "tools/measured/tiny_parts.h"

namespace berth::measured {
namespace {

constexpr const char* kModels[] = {"two_towers",     "resnet50",     "inception_v3", "googlenet",
                                   "bert_base_s128", "mobilenet_v2", "wavenet_4x9"};
// What a runtime fuses stays together; else plans part what is one kernel.
constexpr const char* kPlanner = "on(group=fusion,planner=local_search)";
constexpr int64_t kEvaluations = 5000;

struct Row {
  std::string model;
  MeasuredRun parallel{}, hetero{};
  // Seconds of the first device alone, predicted from its profile and from the device file.
  double from_profile = 0, from_devices = 0;
  OneDevice alone{};
};

double SecondsOfFirstDevice(const Catalogs& catalogs, ProblemStrings strings, const std::string& evaluator) {
  strings.evaluator = evaluator;
  const Setup setup = MakeSetup(catalogs, strings);
  return setup.problem->ToSeconds(ScoreSingleDevices(*setup.evaluator).times().front()).value;
}

Row Measure(const Catalogs& catalogs, const std::string& model, Models& models, size_t runs) {
  ProblemStrings strings = models.Strings(model);
  Row row{.model = model, .alone = models.Alone(model)};
  row.from_profile = SecondsOfFirstDevice(catalogs, strings, "parts");
  fmt::print(stderr, "{}: plans\n", model);
  row.parallel = TuneModel(catalogs, strings, {.final_runs = runs}, [](const std::string&) {}).run;
  ProblemStrings unprofiled = strings;
  unprofiled.costs.clear();
  row.from_devices = SecondsOfFirstDevice(catalogs, unprofiled, unprofiled.evaluator);
  strings.evaluator = "serial";
  const SavedPlan saved = MakeSaved(catalogs, strings, kPlanner, kEvaluations);
  OpenVino runtime(*saved.setup.problem, ModelFile(model));
  row.hetero = RunMeasured(saved, runtime, "openvino", runs);
  return row;
}

std::string Off(const RunRow& row) {
  if (!row.measured.error.empty() || !row.predicted) return "-";
  return fmt::format("{:+.1f} %", 100 * OffBy(*row.predicted, row.measured.seconds_at_file_pace()));
}

std::string Outputs(const Measurement& measurement) {
  if (!measurement.outputs) return measurement.error.empty() ? "not compared" : "not run";
  return fmt::format("{}, {:.1e}", measurement.outputs->equal ? "equal" : "NOT EQUAL",
                     measurement.outputs->largest_difference);
}

void PrintTables(const std::vector<Row>& rows) {
  fmt::print(
      "\n### Of the plans that were found\n\nThe plans of the tables below; the largest difference, "
      "as a share of the largest value; {:.0e} is allowed.\n\n| model | parts | openvino_parallel | subgraphs | "
      "openvino "
      "|\n|---|---:|---|---:|---|\n",
      rows.front().parallel.plan.measured.outputs ? rows.front().parallel.plan.measured.outputs->tolerance : 1e-4);
  for (const Row& row : rows) {
    const Measurement &parallel = row.parallel.plan.measured, &hetero = row.hetero.plan.measured;
    fmt::print("| {} | {} | {} | {} | {} |\n", row.model, parallel.subgraphs, Outputs(parallel), hetero.subgraphs,
               Outputs(hetero));
  }

  fmt::print(
      "\n## One device, predicted from a profile\n\nMilliseconds on the first device. The prediction is the sum of the "
      "profile's op times and the overhead of one part; the profile is not scaled. Measured: the median of runs of three "
      "compilations, without counters, by another process, right after the profile was made, and its 95 % interval. "
      "The processor's speed changes; small models that run in between tell it. Predictions are at the speed at which "
      "the device file was made, and *off* compares them with the measured time at that speed, which stands before "
      "it; *off, as measured* with the time as it was measured. "
      "Then what the device file alone predicts: micro-benchmarks, and the defaults of docs/costs.md for classes of "
      "ops that these do not measure. When profiled: what the whole model took, without counters, while the profile "
      "was made, at the device file's speed. Later: what it "
      "took in turns with the plans of the tables below, up to half an hour after the profile; the later one is of one "
      "compilation.\n\n"
      "| model | from the profile | measured | at the file's speed | off | off, as measured | from the device file | off | "
      "when profiled | off | later | at the file's speed | off | off, as measured | other programs had the core "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  std::vector<double> profile_off, profile_raw, devices_off, devices_raw, then_off, later_off, later_raw;
  const auto share = [](double predicted, double measured, std::vector<double>& all) {
    const double off = OffBy(predicted, measured);
    all.push_back(std::abs(off));
    return fmt::format("{:+.1f} %", 100 * off);
  };
  for (const Row& row : rows) {
    const Measurement &now = row.alone.measured, &later = row.parallel.others.front().measured;
    const bool ran = now.error.empty(), ran_later = later.error.empty();
    if (ran) share(row.from_devices, Median(now.seconds), devices_raw);
    fmt::print("| {} | {:.2f} | {} | {} | {} | {} | {:.2f} | {} | {:.2f} | {} | {} | {} | {} | {} | {:.0f} % |\n",
               row.model, row.from_profile * 1e3, Cell(now),
               ran ? fmt::format("{:.2f}", now.seconds_at_file_pace() * 1e3) : "-",
               ran ? share(row.from_profile, now.seconds_at_file_pace(), profile_off) : "-",
               ran ? share(row.from_profile, Median(now.seconds), profile_raw) : "-", row.from_devices * 1e3,
               ran ? share(row.from_devices, now.seconds_at_file_pace(), devices_off) : "-",
               row.alone.when_profiled * 1e3, share(row.from_profile, row.alone.when_profiled, then_off), Cell(later),
               ran_later ? fmt::format("{:.2f}", later.seconds_at_file_pace() * 1e3) : "-",
               ran_later ? share(row.from_profile, later.seconds_at_file_pace(), later_off) : "-",
               ran_later ? share(row.from_profile, Median(later.seconds), later_raw) : "-", 100 * now.stolen);
  }
  const auto median = [](const std::vector<double>& off) {
    return off.empty() ? "-" : fmt::format("{:.1f} %", 100 * Median(off));
  };
  fmt::print(
      "\nMedian over the models: off by {} from the profile ({} beside the time when profiled, {} beside the later one), by "
      "{} from the device file. Beside the times as they were measured: {} from the profile ({} beside the later one), "
      "{} from the device file.\n",
      median(profile_off), median(then_off), median(later_off), median(devices_off), median(profile_raw),
      median(later_raw), median(devices_raw));

  fmt::print(
      "\n## Two devices\n\nMilliseconds. For openvino_parallel the plan that `tune` finds with at most 20 plans run; "
      "for openvino (HETERO) that of `{}` with {} evaluations under `serial`, on the profile's times. HETERO's plans "
      "run in turns of their own. Predictions for openvino_parallel are by the prices that `tune` ended with, and are "
      "compared at the device file's speed. Beside them what a "
      "user would compare with: OpenVINO's own threads on the same cores. The last column but one is what the speed-up "
      "would be if all cores had had that speed all the time.\n\n"
      "| model | one device | openvino_parallel | predicted is off | openvino | predicted is off | OpenVINO's own "
      "threads | speed-up | at one speed | other programs had the cores "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      kPlanner, kEvaluations);
  for (const Row& row : rows) {
    const RunRow *best = nullptr, *threads = nullptr;
    double least_at_speed = std::numeric_limits<double>::infinity();
    for (const RunRow& other : row.parallel.others) {
      if (!other.measured.error.empty()) continue;
      if (!other.one_device) {
        threads = &other;
        continue;
      }
      if (best == nullptr || Median(other.measured.seconds) < Median(best->measured.seconds)) best = &other;
      least_at_speed = std::min(least_at_speed, other.measured.seconds_at_file_pace());
    }
    const Measurement& plan = row.parallel.plan.measured;
    const bool both = best != nullptr && plan.error.empty();
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0f} % |\n", row.model,
               best ? Cell(best->measured) : "-", Cell(plan), Off(row.parallel.plan), Cell(row.hetero.plan.measured),
               Off(row.hetero.plan), threads ? Cell(threads->measured) : "-",
               both ? fmt::format("{:.2f}x", Median(best->measured.seconds) / Median(plan.seconds)) : "-",
               both ? fmt::format("{:.2f}x", least_at_speed / plan.seconds_at_file_pace()) : "-", 100 * plan.stolen);
  }
}

int Main(int argc, const char* const* argv) {
  size_t runs = 15, plans = 40;
  uint64_t contests = 0, seeds = 0;
  bool outputs = false;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--runs" && i + 1 < argc) {
      runs = ParseCount("--runs", argv[++i], 1);
    } else if (std::string_view(argv[i]) == "--plans" && i + 1 < argc) {
      plans = ParseCount("--plans", argv[++i], 3);
    } else if (std::string_view(argv[i]) == "--outputs") {
      outputs = true;
    } else if (std::string_view(argv[i]) == "--contest" && i + 1 < argc) {
      contests = ParseCount("--contest", argv[++i], 1);
    } else if (std::string_view(argv[i]) == "--hsdag" && i + 1 < argc) {
      seeds = ParseCount("--hsdag", argv[++i], 1);
    } else if (std::string_view(argv[i]).starts_with("--")) {
      throw Error("{}: takes --runs N, --plans N, --outputs, --contest SEEDS, --hsdag SEEDS and models", argv[i]);
    } else {
      models.emplace_back(argv[i]);
    }
  }
  if (models.empty()) models.assign(std::begin(kModels), std::end(kModels));
  std::vector<int> cores = CoresFor(2).cores;
  const size_t split = std::min<size_t>(2, cores.size());
  cores.resize(split);
  const Cluster cluster = DetectMachine({.cores = cores, .split = split, .memory = MemoryBytes(), .seconds = 10});
  std::vector<std::string> speed;
  for (const DeviceId id : cluster.ids()) {
    speed.push_back(fmt::format("{:.0f}", cluster.device(id).peak.at("f32").value / 1e9));
  }
  fmt::print("Devices: {} of one core each of: {}, which compute {} GFLOP/s by `detect`. {} runs of each.\n\n", split,
             ProcessorName(), fmt::join(speed, " and "), runs);
  const Catalogs catalogs;
  const auto devices = std::make_shared<const Cluster>(cluster);
  if (outputs) return PrintOutputs(catalogs, devices, models) ? 0 : 1;
  Models measured(catalogs, devices, runs);
  if (seeds > 0 && !kCanLearn) throw Error("--hsdag: learned planners are not in this build");
  PrintTinyParts(catalogs, cluster);
  const size_t fitted_parts = Calibrate(catalogs, measured);
  if (contests > 0) {
    for (const std::string& model : models) {
      for (uint64_t seed = 1; seed <= contests; ++seed) Contest(catalogs, model, measured, runs, seed);
    }
    return 0;
  }
  if (seeds > 0) {
    for (const std::string& model : models) HsdagTable(catalogs, model, measured, runs, seeds);
    return 0;
  }
  std::vector<Row> rows;
  PredictPlans(catalogs, measured, fitted_parts, plans);
  for (const std::string& model : models) rows.push_back(Measure(catalogs, model, measured, runs));
  const bool equal_by_turns = PrintOutputs(catalogs, devices, models);
  PrintTables(rows);
  const bool equal = equal_by_turns && std::ranges::all_of(rows, [](const Row& row) {
                       const auto fine = [](const Measurement& measurement) {
                         return measurement.outputs && measurement.outputs->equal;
                       };
                       return fine(row.parallel.plan.measured) && fine(row.hetero.plan.measured);
                     });
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace berth::measured

int main(int argc, char** argv) {
  try {
    return berth::measured::Main(argc, argv);
  } catch (const berth::Error& error) {
    fmt::print(stderr, "measured: {}\n", error.what());
    return 2;
  }
}
