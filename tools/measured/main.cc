// Writes the tables of docs/measured.md to standard output: ./dev measured. Every figure in them is measured here, now.
//   usage: measured [--runs N] [--plans N] [--contest | --hsdag SEEDS] [MODEL...]
// With --contest only: tune with 20 plans run beside planners that search by running 200 each. With --hsdag only:
// HSDAG's table 2, 200 plans run per placer and seed. Both take hours for many models.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "cli/learning.h"
#include "cli/machine.h"
#include "cli/measured_run.h"
#include "cli/plan_runs.h"
#include "cli/profiling.h"
#include "cli/scratch_folder.h"
#include "cli/tuned_model.h"
#include "exec/detect.h"
#include "placement/bound.h"
#include "placement/single_devices.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr const char* kModels[] = {"two_towers",     "resnet50",     "inception_v3", "googlenet",
                                   "bert_base_s128", "mobilenet_v2", "wavenet_4x9"};
// What cuts cost is fitted to plans of these, and the prediction is held against plans of those.
constexpr const char* kFitted[] = {"googlenet", "resnet50", "squeezenet1_1"};
constexpr const char* kUnseen[] = {"inception_v3", "densenet121", "mobilenet_v2"};
constexpr size_t kFittedPlans = 12, kPlanRuns = 7;
// A plan counts that is within this of the best: how far worse ones are off decides nothing.
constexpr double kNearTheBest = 1.5;
// What a runtime fuses stays together; else plans part what is one kernel.
constexpr const char* kPlanner = "on(group=fusion,planner=local_search)";
constexpr int64_t kEvaluations = 5000;

struct Row {
  std::string model;
  MeasuredRun parallel{}, hetero{};
  double from_devices = 0;  // seconds of the first device alone, predicted from the device file
};

// A model on these devices, its op times measured when it is first asked for.
class Models {
 public:
  Models(const Catalogs& catalogs, std::shared_ptr<const Cluster> cluster, size_t runs)
      : catalogs_(catalogs), cluster_(std::move(cluster)), runs_(runs) {}

  ProblemStrings Strings(const std::string& model) {
    ProblemStrings strings = {.model = model, .cluster = "here", .stored_cluster = cluster_};
    const std::string file = folder_.Path(std::filesystem::path(model).filename().string() + ".json");
    if (!costs_.contains(model)) {
      fmt::print(stderr, "{}: op times\n", model);
      costs_[model] = ProfileToFile(*OpenRuntime(catalogs_, strings), runs_, file);
    }
    strings.costs = costs_.at(model);
    return strings;
  }
  void SetCluster(Cluster cluster) { cluster_ = std::make_shared<const Cluster>(std::move(cluster)); }
  const Cluster& cluster() const { return *cluster_; }

 private:
  const Catalogs& catalogs_;
  std::shared_ptr<const Cluster> cluster_;
  size_t runs_;
  ScratchFolder folder_{"berth_measured"};
  std::map<std::string, std::string> costs_;
};

Row Measure(const Catalogs& catalogs, const std::string& model, Models& models, size_t runs) {
  ProblemStrings strings = models.Strings(model);
  Row row{.model = model};
  fmt::print(stderr, "{}: plans\n", model);
  row.parallel = TuneModel(catalogs, strings, {}, [](const std::string&) {}).run;
  ProblemStrings unprofiled = strings;
  unprofiled.costs.clear();
  const Setup predicted = MakeSetup(catalogs, unprofiled);
  row.from_devices = predicted.problem->ToSeconds(ScoreSingleDevices(*predicted.evaluator).times().front()).value;
  strings.evaluator = "serial";
  Setup setup = MakeSetup(catalogs, strings);
  PlanResult result = catalogs.planners.MakePlanner(kPlanner)->MakePlan(
      {.evaluator = *setup.evaluator, .budget = {.evaluations = kEvaluations}, .random = Random(1)});
  PlanReport report = MakePlanReport(*setup.evaluator, kPlanner, std::move(result), LowerBound(*setup.evaluator));
  const SavedPlan saved{.setup = std::move(setup), .report = std::move(report)};
  OpenVino runtime(*saved.setup.problem, ModelFile(model));
  row.hetero = RunMeasured(saved, runtime, "openvino", runs);
  return row;
}

// Fits what cuts cost on this machine, and prints how well plans of other models are predicted with it.
void Calibrate(const Catalogs& catalogs, Models& models, size_t plans) {
  CutFit fit;
  for (const char* model : kFitted) {
    PlanRunner runner(catalogs, models.Strings(model));
    fmt::print(stderr, "{}: plans to fit to\n", model);
    AddTo(fit, runner.problem(), runner.Run(runner.VariedPlans(kFittedPlans, 1), kPlanRuns, {}, [](size_t) {}));
  }
  const CutCosts costs = fit.Fit();
  models.SetCluster(WithCutCosts(models.cluster(), costs, "runs of plans"));
  fmt::print("What one part costs above its ops' times and the bytes that it shares: {:.0f} us.\n",
             costs.part_overhead * 1e6);
  fmt::print(
      "\n## Plans, predicted\n\n`parts`, with what {} parts of plans of {} cost (`berth calibrate`), held against "
      "plans "
      "of models that the fit has not seen, within {:.1f} times of the best of them, searched and random; {} runs of "
      "each. Op times are from each model's profile. The order of the plans: rank correlation, beside that of the "
      "number of parts alone.\n\n| model | plans | off, median | off, 90th percentile | order | order by parts alone | "
      "before the fit: median | 90th percentile | order |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      fit.num_parts(), fmt::join(kFitted, ", "), kNearTheBest, kPlanRuns);
  for (const char* model : kUnseen) {
    PlanRunner runner(catalogs, models.Strings(model));
    fmt::print(stderr, "{}: plans to predict\n", model);
    const std::vector<PlanRun> runs = runner.Run(runner.VariedPlans(plans, 2), kPlanRuns, {}, [](size_t) {});
    runner.SetCosts({}, "nothing");
    std::vector<double> predicted, measured, cuts, before;
    double best = std::numeric_limits<double>::infinity();
    for (const PlanRun& run : runs) {
      if (run.ran()) best = std::min(best, run.seconds());
    }
    for (const PlanRun& run : runs) {
      if (!run.ran() || run.seconds() > kNearTheBest * best) continue;
      predicted.push_back(run.predicted);
      measured.push_back(run.seconds());
      cuts.push_back(static_cast<double>(run.measured.subgraphs));
      before.push_back(runner.Predict(run.device));
    }
    const PredictionError error = ErrorOf(predicted, measured), raw = ErrorOf(before, measured);
    fmt::print("| {} | {} of {} | {:.1f} % | {:.1f} % | {:.2f} | {:.2f} | {:.1f} % | {:.1f} % | {:.2f} |\n", model,
               measured.size(), runs.size(), 100 * error.median, 100 * error.ninetieth, error.rank_correlation,
               ErrorOf(cuts, measured).rank_correlation, 100 * raw.median, 100 * raw.ninetieth, raw.rank_correlation);
  }
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
      "\n## Are the outputs the same?\n\nBeside those of the model on the first device alone: the largest difference, "
      "as "
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
      "the median of runs without counters in another process, and its 95 % interval. The profile is not scaled. "
      "Beside it "
      "what the device file alone predicts, whose numbers come from micro-benchmarks and from none of these models.\n\n"
      "| model | from the profile | measured | off | from the device file | off | other programs had the core "
      "|\n|---|---:|---:|---:|---:|---:|---:|\n");
  std::vector<double> off, unprofiled_off;
  for (const Row& row : rows) {
    const RunRow& alone = row.parallel.others.front();
    const RunRow unprofiled{.name = alone.name, .predicted = row.from_devices, .measured = alone.measured};
    fmt::print("| {} | {:.2f} | {} | {} | {:.2f} | {} | {:.0f} % |\n", row.model, alone.predicted.value_or(0) * 1e3,
               Cell(alone.measured), Off(alone), row.from_devices * 1e3, Off(unprofiled), 100 * alone.measured.stolen);
    if (alone.predicted && alone.measured.error.empty()) {
      off.push_back(std::abs(OffBy(*alone.predicted, Median(alone.measured.seconds))));
      unprofiled_off.push_back(std::abs(OffBy(row.from_devices, Median(alone.measured.seconds))));
    }
  }
  if (!off.empty()) {
    fmt::print("\nMedian over the models: off by {:.1f} % from the profile, by {:.1f} % from the device file.\n",
               100 * Median(off), 100 * Median(unprofiled_off));
  }

  fmt::print(
      "\n## Two devices\n\nMilliseconds. For openvino_parallel the plan that `tune` finds with 20 plans run; for "
      "openvino "
      "(HETERO) that of `{}` with {} evaluations under `serial`, on the profile's times. Beside them what a user would "
      "compare with: OpenVINO's "
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

// A plan that somebody found by running plans.
struct Found {
  std::string name;
  std::vector<DeviceId> device;
  int64_t plans = 0;  // that were run
  double seconds = 0;
};

Found FindByTuning(const Catalogs& catalogs, const ProblemStrings& strings, bool correct, uint64_t seed) {
  constexpr size_t kTuned = 20;
  PlanRunner runner(catalogs, strings);
  const Stopwatch watch;
  const Tuning tuning =
      TunePlans(runner, {.plans = kTuned, .seed = seed, .correct = correct}, [](const std::string&) {});
  Found found{.name = correct ? "tune" : "tune, nothing corrected", .device = {}};
  if (!tuning.finalists.empty()) found.device = tuning.winner().device;
  found.plans = static_cast<int64_t>(tuning.plans.size());
  found.seconds = watch.seconds();
  return found;
}

Found FindByRunning(const Catalogs& catalogs, ProblemStrings strings, const std::string& executor,
                    const std::string& planner, uint64_t seed) {
  constexpr int64_t kSearched = 200;
  strings.evaluator = executor;
  const Setup setup = MakeSetup(catalogs, strings);
  const Stopwatch watch;
  PlanResult result = catalogs.planners.MakePlanner(planner)->MakePlan(
      {.evaluator = *setup.evaluator, .budget = {.evaluations = kSearched}, .random = Random(seed)});
  return {.name = planner,
          .device = std::move(result.plan.device),
          .plans = result.evaluations,
          .seconds = watch.seconds()};
}

// All of these, each device alone, and what `others` says, in turns.
std::vector<Measurement> RunAgain(const Setup& setup, const std::string& model, const std::string& how,
                                  const std::vector<Found>& found, size_t runs,
                                  const std::vector<RunWay>& others = {}) {
  OpenVino runtime(*setup.problem, ModelFile(model));
  std::vector<RunWay> ways;
  for (const Found& one : found) ways.push_back({.how = how, .device = one.device});
  for (const DeviceId on : setup.problem->cluster().ids()) ways.push_back({.how = "alone", .on = on});
  ways.insert(ways.end(), others.begin(), others.end());
  return runtime.Run(ways, {.rounds = runs, .limit = 1800});
}

// `tune` beside what searches by running each plan; all winners are run once more, in turns.
void Contest(const Catalogs& catalogs, const std::string& model, Models& models, size_t runs) {
  const ProblemStrings strings = models.Strings(model);
  std::vector<Found> found;
  const auto keep = [&](Found one) {
    fmt::print(stderr, "{}: {}\n", model, one.name);
    if (!one.device.empty()) found.push_back(std::move(one));
  };
  for (const bool correct : {true, false}) keep(FindByTuning(catalogs, strings, correct, 1));
  std::vector<std::string> planners = {"on(group=fusion,planner=local_search)", "on(group=fusion,planner=random)"};
  if (kCanLearn) planners.emplace_back("on(group=fusion,planner=\"hsdag(critic=blank)\")");
  for (const std::string& planner : planners) keep(FindByRunning(catalogs, strings, "openvino_parallel", planner, 1));
  const Setup setup = MakeSetup(catalogs, strings);
  const std::vector<Measurement> measured = RunAgain(setup, model, "parallel", found, runs);
  fmt::print("\n### {}\n\n| planner | plans run | seconds | the winner, run again |\n|---|---:|---:|---:|\n", model);
  for (size_t i = 0; i < found.size(); ++i) {
    fmt::print("| {} | {} | {:.0f} | {} |\n", found[i].name, found[i].plans, found[i].seconds, Cell(measured[i]));
  }
  for (const DeviceId on : setup.problem->cluster().ids()) {
    fmt::print("| {} alone | - | - | {} |\n", setup.problem->cluster().device(on).name,
               Cell(measured[found.size() + Index(on)]));
  }
}

// HSDAG's table 2 (Duan et al. 2024) with this machine's devices in place of a CPU and a GPU: each device alone, what
// OpenVINO does by itself, and placers that learn from runs, a row each; the plans of all seeds are run again, in
// turns.
void HsdagTable(const Catalogs& catalogs, const std::string& model, Models& models, size_t runs, uint64_t seeds) {
  const ProblemStrings strings = models.Strings(model);
  const Setup setup = MakeSetup(catalogs, strings);
  for (const std::string executor : {"openvino", "openvino_parallel"}) {
    std::vector<Found> found;
    for (const std::string planner : {"hsdag(mode=paper)", "hsdag(critic=blank)", "hsdag", "tune"}) {
      // What is tuned is a plan for devices that overlap.
      if (planner == "tune" && executor != "openvino_parallel") continue;
      for (uint64_t seed = 1; seed <= seeds; ++seed) {
        fmt::print(stderr, "{}, {}: {}, seed {}\n", model, executor, planner, seed);
        Found one = planner == "tune" ? FindByTuning(catalogs, strings, true, seed)
                                      : FindByRunning(catalogs, strings, executor, planner, seed);
        one.name = planner;
        if (!one.device.empty()) found.push_back(std::move(one));
      }
    }
    const std::vector<Measurement> measured =
        RunAgain(setup, model, executor == "openvino" ? "hetero" : "parallel", found, runs,
                 {{.how = "default"}, {.how = "auto", .first = "CPU"}});
    const std::vector<Measurement> others(measured.begin() + static_cast<ptrdiff_t>(found.size()), measured.end());
    const double alone = others.front().error.empty() ? Median(others.front().seconds) : 0;
    const auto row = [&](const std::string& name, const std::string& plans, const std::string& time, double seconds) {
      fmt::print("| {} | {} | {} | {} |\n", name, plans, time,
                 alone > 0 ? fmt::format("{:+.1f} %", 100 * (1 - seconds / alone)) : "-");
    };
    const size_t devices = setup.problem->num_devices();
    fmt::print("\n### {}, {}\n\n| method | plans run | ms | faster than {} alone |\n|---|---:|---:|---:|\n", model,
               executor, setup.problem->cluster().device(DeviceId{}).name);
    for (size_t i = 0; i < others.size(); ++i) {
      const std::string name = i < devices    ? setup.problem->cluster().device(MakeId<DeviceId>(i)).name + " alone"
                               : i == devices ? "OpenVINO's HETERO by itself"
                                              : "OpenVINO's AUTO, the CPU first";
      if (others[i].error.empty()) row(name, "-", Cell(others[i]), Median(others[i].seconds));
    }
    for (size_t begin = 0; begin < found.size();) {
      std::vector<double> seconds;
      int64_t plans = 0;
      size_t end = begin;
      for (; end < found.size() && found[end].name == found[begin].name; ++end) {
        if (measured[end].error.empty()) seconds.push_back(Median(measured[end].seconds));
        plans = std::max(plans, found[end].plans);
      }
      if (!seconds.empty()) {
        const auto [least, most] = std::ranges::minmax(seconds);
        row(fmt::format("`{}`, {} seeds", found[begin].name, seconds.size()), std::to_string(plans),
            fmt::format("{:.2f} ({:.2f} to {:.2f})", Median(seconds) * 1e3, least * 1e3, most * 1e3), Median(seconds));
      }
      begin = end;
    }
  }
}

int Main(int argc, const char* const* argv) {
  size_t runs = 15, plans = 40;
  bool contest = false;
  uint64_t seeds = 0;
  std::vector<std::string> models;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--runs" && i + 1 < argc) {
      runs = ParseCount("--runs", argv[++i], 1);
    } else if (std::string_view(argv[i]) == "--plans" && i + 1 < argc) {
      plans = ParseCount("--plans", argv[++i], 3);
    } else if (std::string_view(argv[i]) == "--contest") {
      contest = true;
    } else if (std::string_view(argv[i]) == "--hsdag" && i + 1 < argc) {
      seeds = ParseCount("--hsdag", argv[++i], 1);
    } else {
      models.emplace_back(argv[i]);
    }
  }
  if (models.empty()) models.assign(std::begin(kModels), std::end(kModels));
  std::vector<int> cores = CoresFor(2).cores;
  const size_t split = std::min<size_t>(2, cores.size());
  cores.resize(split);
  const Cluster cluster = DetectMachine({.cores = cores, .split = split, .memory = MemoryBytes(), .seconds = 10});
  fmt::print("Devices: {} of one core each of: {}. {} runs of each.\n\n", split, ProcessorName(), runs);
  const Catalogs catalogs;
  Models measured(catalogs, std::make_shared<const Cluster>(cluster), runs);
  if (contest) {
    for (const std::string& model : models) Contest(catalogs, model, measured, runs);
    return 0;
  }
  if (seeds > 0) {
    if (!kCanLearn) throw Error("--hsdag: learned planners are not in this build");
    for (const std::string& model : models) HsdagTable(catalogs, model, measured, runs, seeds);
    return 0;
  }
  std::vector<Row> rows;
  Calibrate(catalogs, measured, plans);
  for (const std::string& model : models) rows.push_back(Measure(catalogs, model, measured, runs));
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
