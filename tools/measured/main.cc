// Writes the tables of docs/measured.md to standard output: ./dev measured. Every figure in them is measured here, now.
//   usage: measured [--runs N] [MODEL...]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/machine.h"
#include "cli/measured_run.h"
#include "cli/profiling.h"
#include "exec/detect.h"
#include "placement/bound.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr const char* kModels[] = {"two_towers",     "resnet50",     "inception_v3", "googlenet",
                                   "bert_base_s128", "mobilenet_v2", "wavenet_4x9"};
// What a runtime fuses stays together; else plans part what is one kernel.
constexpr const char* kPlanner = "on(group=fusion,planner=local_search)";
constexpr int64_t kEvaluations = 5000;

struct Row {
  std::string model;
  MeasuredRun parallel{}, hetero{};
};

Row Measure(const Catalogs& catalogs, const std::string& model, std::shared_ptr<const Cluster> cluster, size_t runs,
            const std::string& folder) {
  ProblemStrings strings = {.model = model, .cluster = "here", .stored_cluster = std::move(cluster)};
  Row row{.model = model};
  const std::string file = fmt::format("{}/{}.json", folder, model);
  WriteFile(file, WriteProfile(ProfileDevices(MakeSetup(catalogs, strings), runs).table));
  strings.costs = fmt::format("profile(file={})", file);
  for (const char* executor : {"openvino_parallel", "openvino"}) {
    const bool hetero = std::string_view(executor) == "openvino";
    strings.evaluator = hetero ? "serial" : "parallel(contention=ports)";
    Setup setup = MakeSetup(catalogs, strings);
    const auto planner = catalogs.planners.MakePlanner(kPlanner);
    PlanResult result = planner->MakePlan(
        {.evaluator = *setup.evaluator, .budget = {.evaluations = kEvaluations}, .random = Random(1)});
    PlanReport report = MakePlanReport(*setup.evaluator, kPlanner, std::move(result), LowerBound(*setup.evaluator));
    const SavedPlan saved{.setup = std::move(setup), .report = std::move(report)};
    (hetero ? row.hetero : row.parallel) = RunMeasured(saved, ModelFile(model), executor, runs);
  }
  return row;
}

std::string Cell(const Measurement& measurement) {
  if (!measurement.error.empty()) return "failed: " + Legible(measurement.error);
  const Interval interval = MedianInterval(measurement.seconds);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", Median(measurement.seconds) * 1e3, interval.low * 1e3,
                     interval.high * 1e3);
}

std::string Off(const RunRow& row) {
  if (!row.measured.error.empty() || !row.predicted) return "-";
  return fmt::format("{:+.1f} %", 100 * OffBy(*row.predicted, Median(row.measured.seconds)));
}

std::string Outputs(const Measurement& measurement) {
  if (!measurement.outputs) return "not run";
  return fmt::format("{}, {:.1e}", measurement.outputs->equal ? "equal" : "NOT EQUAL",
                     measurement.outputs->largest_difference);
}

void PrintTables(const std::vector<Row>& rows) {
  fmt::print(
      "## Are the outputs the same?\n\nBeside those of the model on the first device alone: the largest difference, as "
      "a share of "
      "the largest value; {:.0e} is allowed.\n\n| model | parts | openvino_parallel | subgraphs | openvino "
      "|\n|---|---:|---|---:|---|\n",
      rows.front().parallel.plan.measured.outputs ? rows.front().parallel.plan.measured.outputs->tolerance : 1e-4);
  for (const Row& row : rows) {
    const Measurement &parallel = row.parallel.plan.measured, &hetero = row.hetero.plan.measured;
    fmt::print("| {} | {} | {} | {} | {} |\n", row.model, parallel.subgraphs, Outputs(parallel), hetero.subgraphs,
               Outputs(hetero));
  }

  fmt::print(
      "\n## One device, predicted from a profile\n\nMilliseconds on the first device: the sum of the profile's op "
      "times, beside "
      "the median of runs without counters in another process, and its 95 % interval. The profile is not scaled.\n\n"
      "| model | predicted | measured | off | other programs had the core |\n|---|---:|---:|---:|---:|\n");
  std::vector<double> off;
  for (const Row& row : rows) {
    const RunRow& alone = row.parallel.others.front();
    fmt::print("| {} | {:.2f} | {} | {} | {:.0f} % |\n", row.model, alone.predicted.value_or(0) * 1e3,
               Cell(alone.measured), Off(alone), 100 * alone.measured.stolen);
    if (alone.predicted && alone.measured.error.empty()) {
      off.push_back(std::abs(OffBy(*alone.predicted, Median(alone.measured.seconds))));
    }
  }
  if (!off.empty()) fmt::print("\nMedian over the models: off by {:.1f} %.\n", 100 * Median(off));

  fmt::print(
      "\n## Two devices\n\nMilliseconds. Plans of `{}` with {} evaluations, under `parallel` for openvino_parallel and "
      "under "
      "`serial` for openvino (HETERO), on the profile's times. Beside them what a user would compare with: OpenVINO's "
      "own "
      "threads on the same cores.\n\n| model | one device | openvino_parallel | predicted is off | openvino | "
      "predicted is "
      "off | OpenVINO's own threads | speed-up | other programs had the cores "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      kPlanner, kEvaluations);
  for (const Row& row : rows) {
    const RunRow *best = nullptr, *threads = nullptr;
    for (const RunRow& other : row.parallel.others) {
      if (!other.measured.error.empty()) continue;
      if (!other.predicted) {
        threads = &other;
      } else if (best == nullptr || Median(other.measured.seconds) < Median(best->measured.seconds)) {
        best = &other;
      }
    }
    const Measurement& plan = row.parallel.plan.measured;
    const bool both = best != nullptr && plan.error.empty();
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {:.0f} % |\n", row.model, best ? Cell(best->measured) : "-",
               Cell(plan), Off(row.parallel.plan), Cell(row.hetero.plan.measured), Off(row.hetero.plan),
               threads ? Cell(threads->measured) : "-",
               both ? fmt::format("{:.2f}x", Median(best->measured.seconds) / Median(plan.seconds)) : "-",
               100 * plan.stolen);
  }
}

int Main(int argc, const char* const* argv) {
  size_t runs = 15;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--runs" && i + 1 < argc) {
      runs = ParseCount("--runs", argv[++i], 1);
    } else {
      models.emplace_back(argv[i]);
    }
  }
  if (models.empty()) models.assign(std::begin(kModels), std::end(kModels));
  std::vector<int> cores = UsableCores();
  const size_t split = std::min<size_t>(2, cores.size());
  cores.resize(split);
  const Cluster cluster = DetectMachine({.cores = cores, .split = split, .memory = MemoryBytes(), .seconds = 10});
  fmt::print("Devices: {} of one core each of: {}. {} runs of each.\n\n", split, ProcessorName(), runs);
  const Catalogs catalogs;
  std::string folder = (std::filesystem::temp_directory_path() / "berth_measured_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw Error("{}: cannot be made", folder);
  std::vector<Row> rows;
  for (const std::string& model : models) {
    fmt::print(stderr, "{}\n", model);
    rows.push_back(Measure(catalogs, model, std::make_shared<const Cluster>(cluster), runs, folder));
  }
  std::filesystem::remove_all(folder);
  PrintTables(rows);
  const bool equal = std::ranges::all_of(rows, [](const Row& row) {
    const auto fine = [](const Measurement& measurement) { return measurement.outputs && measurement.outputs->equal; };
    return fine(row.parallel.plan.measured) && fine(row.hetero.plan.measured);
  });
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  try {
    return berth::Main(argc, argv);
  } catch (const berth::Error& error) {
    fmt::print(stderr, "measured: {}\n", error.what());
    return 2;
  }
}
