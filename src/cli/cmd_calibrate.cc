#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/measured_run.h"
#include "cli/plan_runs.h"
#include "cli/profiling.h"
#include "cli/scratch_folder.h"
#include "exec/efficiency_fit.h"
#include "exec/statistics.h"
#include "placement/single_devices.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr uint64_t kMostSamples = 1000, kMostRunsOfSample = 10'000;
constexpr size_t kHeldOut = 3;  // a third of the plans
constexpr double kClearlyWorse = 0.01;

struct CalibratedModel {
  std::string name;
  std::vector<PlanRun> runs{};  // as predicted before
  std::vector<bool> is_held_out{};
  // Of those that were held out: predicted before and after the fit, how many parts they have, and measured.
  std::vector<double> before{}, after{}, parts{}, measured{};
};

// A whole model on one device: seconds as measured without counters, and as predicted from the device file alone.
struct ModelAlone {
  std::string model;
  DeviceId device{};
  double measured = 0, before = 0, after = 0;
  std::optional<double> left_out{};  // with the numbers that the other models give; none where there is no other
};

// Of all of these: by before, after and left_out.
struct AloneErrors {
  PredictionError before, after, left_out;
};
AloneErrors ErrorsOf(const std::vector<ModelAlone>& alone) {
  std::vector<double> before, after, left_out, measured;
  for (const ModelAlone& one : alone) {
    before.push_back(one.before);
    after.push_back(one.after);
    if (one.left_out) left_out.push_back(*one.left_out);
    measured.push_back(one.measured);
  }
  return {
      .before = ErrorOf(before, measured), .after = ErrorOf(after, measured), .left_out = ErrorOf(left_out, measured)};
}

std::string Order(const PredictionError& error) {
  return error.rank_correlation ? fmt::format("{:.2f}", *error.rank_correlation) : "-";
}

std::string Off(const PredictionError& error) {
  if (!error.median) return "-";
  return fmt::format("{}, {}, {}", Percent(*error.median), Percent(*error.ninetieth), Order(error));
}

// Without the order: that of different models is plain.
std::string OffAlone(const PredictionError& error) {
  return error.median ? fmt::format("{}, {}", Percent(*error.median), Percent(*error.ninetieth)) : "-";
}

Json ErrorJson(const PredictionError& error) {
  return {{"median", OrNull(error.median)},
          {"ninetieth", OrNull(error.ninetieth)},
          {"rank_correlation", OrNull(error.rank_correlation)}};
}

// Which of so many plans are not fitted to, drawn at random: those in turn could all be of one kind.
std::vector<bool> DrawHeldOut(size_t plans, uint64_t seed) {
  std::vector<size_t> order(plans);
  std::iota(order.begin(), order.end(), size_t{0});
  Random(seed).Shuffle(std::span(order));
  std::vector<bool> held_out(plans, false);
  for (const size_t plan : std::span(order).first(plans / kHeldOut)) held_out[plan] = true;
  return held_out;
}

// Every model's op times first, then its plans; fits what is not held out.
class Calibration {
 public:
  Calibration(const Catalogs& catalogs, const CalibrateArguments& arguments)
      : catalogs_(catalogs),
        plans_(ParseCount("--plans", arguments.plans, 3, kMostSamples)),
        runs_(ParseCount("--runs", arguments.runs, 1, kMostRunsOfSample)),
        seed_(ParseCount("--seed", arguments.seed, 0)),
        limit_(ParseLimit(arguments.limit)) {}

  // Throws Error where nothing could be fitted to this model, so that nobody waits for the others first.
  void Read(const std::string& model, const std::string& cluster) {
    const auto is_same = [&](const auto& setup) { return setup->strings.model == model; };
    if (std::ranges::any_of(setups_, is_same)) throw Error("{}: is given twice; give each model once", model);
    auto setup = std::make_shared<const Setup>(MakeSetup(catalogs_, {.model = model, .cluster = cluster}));
    CheckHasTwoDevices(setup->problem->cluster());
    ModelQuestion(setup->problem->graph(), ModelFile(model));
    setups_.push_back(std::move(setup));
  }

  // Each model that was read.
  void Measure() {
    for (const std::shared_ptr<const Setup>& setup : setups_) Measure(setup);
  }

  // The cluster with what was found.
  Cluster Finish() {
    if (fit_.num_parts() == 0) throw Error("none of the plans could be run: {}", WhyNone());
    const std::string source = fmt::format("{} parts of runs by openvino_parallel", fit_.num_parts());
    costs_ = fit_.Fit();
    for (size_t m = 0; m < models_.size(); ++m) {
      CalibratedModel& one = models_[m];
      runners_[m]->SetCosts(costs_, source);
      for (size_t k = 0; k < one.runs.size(); ++k) {
        if (!one.is_held_out[k] || !one.runs[k].ran()) continue;
        one.before.push_back(one.runs[k].predicted);
        one.after.push_back(runners_[m]->Predict(one.runs[k].device));
        one.parts.push_back(static_cast<double>(one.runs[k].measured.subgraphs));
        one.measured.push_back(one.runs[k].seconds());
      }
    }
    const Cluster& cluster = setups_.front()->problem->cluster();
    efficiencies_ = efficiency_fit_.Fit(cluster);
    PredictAlone(cluster);
    return WithCutCosts(WithEfficiencies(cluster, efficiencies_), costs_, source);
  }

  const CutCosts& costs() const { return costs_; }
  const std::vector<FittedEfficiency>& efficiencies() const { return efficiencies_; }
  const std::vector<ModelAlone>& alone() const { return alone_; }
  size_t num_profiled() const { return efficiency_fit_.num_models(); }
  const std::vector<CalibratedModel>& models() const { return models_; }
  size_t num_parts() const { return fit_.num_parts(); }
  bool stopped() const { return stop_(); }
  // How many plans failed, and why the first of them did.
  std::pair<size_t, std::string> failures() const {
    std::pair<size_t, std::string> failed{0, ""};
    for (const CalibratedModel& one : models_) {
      for (const PlanRun& run : one.runs) {
        if (!run.ran() && failed.first++ == 0) failed.second = run.measured.error;
      }
    }
    return failed;
  }
  double stolen() const {
    double most = 0;
    for (const CalibratedModel& one : models_) {
      for (const PlanRun& run : one.runs) most = std::max(most, run.measured.stolen);
    }
    return most;
  }
  // Of the machine while the plans of one model were run, the largest of all models, a factor.
  double speed_change() const {
    double most = 1;
    for (const CalibratedModel& one : models_) {
      SpeedChange change;
      for (const PlanRun& run : one.runs) change.Add(run);
      most = std::max(most, change.factor());
    }
    return most;
  }

 private:
  void Measure(const std::shared_ptr<const Setup>& setup) {
    if (stop_()) return;
    ProblemStrings strings = {.model = setup->strings.model, .cluster = setup->strings.cluster};
    const std::string file = folder_.Path(fmt::format("{}.json", runners_.size()));
    progress_.Show(fmt::format("{}: measuring its ops", strings.model));
    auto runtime = std::make_shared<Runtime>(setup);
    runtime->openvino.set_most_seconds(limit_);
    try {
      const DeviceProfiles profiles = ProfileDevices(*runtime, kProfileRuns, stop_);
      strings.costs = StoreProfile(profiles.table, file);
      for (const std::string& text : FailureTexts(*setup->problem, profiles)) Warn(text);
      profiled_.emplace_back(setup, ByDevice(*setup->problem, profiles));
      efficiency_fit_.Add(*setup->problem, profiled_.back().second);
    } catch (const Error&) {
      if (stop_()) return;
      throw;
    }
    auto runner = std::make_unique<PlanRunner>(catalogs_, strings, std::move(runtime));
    const std::vector<std::vector<DeviceId>> plans = runner->VariedPlans(plans_, seed_);
    const auto progress = [&](size_t done) {
      progress_.Show(fmt::format("{}: plan {} of {}", strings.model, done, plans.size()));
    };
    CalibratedModel one{.name = strings.model, .runs = runner->Run(plans, runs_, stop_, progress)};
    one.is_held_out = DrawHeldOut(one.runs.size(), seed_);
    for (size_t k = 0; k < one.runs.size(); ++k) {
      if (!one.is_held_out[k]) fit_.Add(runner->problem(), one.runs[k].measured, one.runs[k].speed);
    }
    models_.push_back(std::move(one));
    runner->EndRuntime();
    runners_.push_back(std::move(runner));
  }

  // By device, in seconds; infinite where the model does not fit.
  static std::vector<double> SecondsAlone(const Setup& setup) {
    std::vector<double> seconds = ScoreSingleDevices(*setup.evaluator).times();
    for (double& one : seconds) one = setup.problem->ToSeconds(one).value;
    return seconds;
  }

  // By the costs that a plan has where nobody names others, on the same devices with these efficiencies.
  std::vector<double> SecondsAlone(const Setup& setup, const Cluster& cluster,
                                   const std::vector<FittedEfficiency>& fitted) const {
    ProblemStrings strings = setup.strings;
    strings.stored_cluster = std::make_shared<const Cluster>(WithEfficiencies(cluster, fitted));
    return SecondsAlone(MakeSetup(catalogs_, strings, setup.instance));
  }

  // What the device file says of each profiled model before and after, and without what this model told.
  void PredictAlone(const Cluster& cluster) {
    for (size_t m = 0; m < profiled_.size(); ++m) {
      const auto& [setup, profiles] = profiled_[m];
      const std::vector<double> before = SecondsAlone(*setup), after = SecondsAlone(*setup, cluster, efficiencies_);
      std::vector<double> left_out;
      if (profiled_.size() > 1) left_out = SecondsAlone(*setup, cluster, efficiency_fit_.Fit(cluster, m));
      for (const DeviceId device : cluster.ids()) {
        const size_t d = Index(device);
        if (!std::isfinite(before[d]) || profiles[d].seconds.empty()) continue;
        ModelAlone& one = alone_.emplace_back(
            ModelAlone{.model = setup->strings.model, .device = device, .measured = Median(profiles[d].seconds)});
        one.before = before[d];
        one.after = after[d];
        if (!left_out.empty()) one.left_out = left_out[d];
      }
    }
  }

  std::string WhyNone() const {
    if (const auto [count, reason] = failures(); count > 0) return reason;
    return stop_() ? "stopped before that" : "they have no parts";
  }

  const Catalogs& catalogs_;
  // After Ctrl-C what has been run so far is fitted to.
  const StopCheck stop_ = [cancelled = CatchInterrupts()] { return cancelled->load(); };
  size_t plans_, runs_;
  uint64_t seed_;
  double limit_;  // seconds
  ScratchFolder folder_{"berth_calibrate"};
  ProgressLine progress_;
  CutFit fit_;
  CutCosts costs_;
  EfficiencyFit efficiency_fit_;
  std::vector<FittedEfficiency> efficiencies_;
  std::vector<std::pair<std::shared_ptr<const Setup>, std::vector<OpMeasurement>>> profiled_;  // as they were added
  std::vector<ModelAlone> alone_;
  std::vector<std::shared_ptr<const Setup>> setups_;
  std::vector<CalibratedModel> models_;
  std::vector<std::unique_ptr<PlanRunner>> runners_;
};

std::string RateOf(double seconds_per_byte, bool guessed) {
  const std::string rate = seconds_per_byte > 0 ? WithPrefix(1 / seconds_per_byte, "B/s") : "free";
  return rate + (guessed ? " (guess: as the others)" : "");
}

std::string NameOf(OpClass op_class) { return std::string(kOpClassNames[static_cast<size_t>(op_class)]); }

// What device files call an efficiency: a share of the peak.
std::string EfficiencyTable(const Cluster& cluster, const std::vector<FittedEfficiency>& efficiencies) {
  using enum Table::Align;
  Table table({{"device"},
               {"class of op"},
               {"before", kRight},
               {"fitted", kRight},
               {"kernels", kRight},
               {"of its time", kRight},
               {"off before", kRight},
               {"off after", kRight}});
  for (const FittedEfficiency& one : efficiencies) {
    table.Add({Legible(cluster.device(one.device).name), NameOf(one.op_class), fmt::format("{:.4g}", one.before),
               fmt::format("{:.4g}{}", one.efficiency, one.capped ? " (the most)" : ""),
               Count(static_cast<int64_t>(one.kernels)), Percent(one.share), Percent(one.off_before),
               Percent(one.off_after)});
  }
  return table.ToString();
}

std::string AloneTable(const Cluster& cluster, const std::vector<ModelAlone>& alone) {
  using enum Table::Align;
  Table table(
      {{"model"}, {"device"}, {"measured", kRight}, {"before", kRight}, {"after", kRight}, {"left out", kRight}});
  for (const ModelAlone& one : alone) {
    const auto off = [&](double predicted) { return fmt::format("{:+.0f} %", 100 * OffBy(predicted, one.measured)); };
    table.Add({Shorten(one.model, 32), Legible(cluster.device(one.device).name), ToString(Seconds{one.measured}),
               off(one.before), off(one.after), one.left_out ? off(*one.left_out) : "-"});
  }
  if (alone.size() > 1) {
    const AloneErrors errors = ErrorsOf(alone);
    table.Add({"median, 90th percentile", "", "", OffAlone(errors.before), OffAlone(errors.after),
               OffAlone(errors.left_out)});
  }
  return table.ToString();
}

Json EfficienciesJson(const Cluster& cluster, const std::vector<FittedEfficiency>& efficiencies) {
  Json json = Json::array();
  for (const FittedEfficiency& one : efficiencies) {
    json.push_back({{"device", cluster.device(one.device).name},
                    {"op_class", NameOf(one.op_class)},
                    {"before", one.before},
                    {"efficiency", one.efficiency},
                    {"capped", one.capped},
                    {"kernels", one.kernels},
                    {"models", one.models},
                    {"time_share", one.share},
                    {"error_before", one.off_before},
                    {"error_after", one.off_after}});
  }
  return json;
}

Json AloneJson(const Cluster& cluster, const std::vector<ModelAlone>& alone) {
  const AloneErrors errors = ErrorsOf(alone);
  Json json = {{"before", ErrorJson(errors.before)},
               {"after", ErrorJson(errors.after)},
               {"left_out", ErrorJson(errors.left_out)},
               {"models", Json::array()}};
  for (const ModelAlone& one : alone) {
    json["models"].push_back({{"model", one.model},
                              {"device", cluster.device(one.device).name},
                              {"measured_seconds", one.measured},
                              {"before_seconds", one.before},
                              {"after_seconds", one.after},
                              {"left_out_seconds", OrNull(one.left_out)}});
  }
  return json;
}

}  // namespace

int Calibrate(const CalibrateArguments& arguments, const Catalogs& catalogs) {
  CheckWritable(arguments.output, arguments.models);  // a device file may well be renewed
  Calibration calibration(catalogs, arguments);
  for (const std::string& model : arguments.models) calibration.Read(model, arguments.cluster);
  calibration.Measure();
  const Cluster cluster = calibration.Finish();
  if (!arguments.output.empty()) WriteFile(arguments.output, WriteCluster(cluster));

  const CutCosts& costs = calibration.costs();
  if (arguments.json) {
    Json json = {{"part_overhead_seconds", costs.part_overhead}, {"parts", calibration.num_parts()}};
    for (size_t op_class = 0; op_class < kOpClasses; ++op_class) {
      const std::string name(kOpClassNames[op_class]);
      json["read_seconds_per_byte"][name] = costs.read[op_class];
      json["write_seconds_per_byte"][name] = costs.write[op_class];
    }
    json["stopped"] = calibration.stopped();
    json["failed_plans"] = calibration.failures().first;
    json["stolen_share"] = calibration.stolen();
    json["speed_change"] = calibration.speed_change();
    json["held_out"] = Json::array();
    for (const CalibratedModel& one : calibration.models()) {
      json["held_out"].push_back(
          {{"model", one.name},
           {"before", ErrorJson(ErrorOf(one.before, one.measured))},
           {"after", ErrorJson(ErrorOf(one.after, one.measured))},
           {"parts_alone_rank_correlation", OrNull(ErrorOf(one.parts, one.measured).rank_correlation)},
           {"predicted_seconds", one.after},
           {"measured_seconds", one.measured}});
    }
    json["efficiencies"] = EfficienciesJson(cluster, calibration.efficiencies());
    json["whole_models"] = AloneJson(cluster, calibration.alone());
    json["cluster"] = ClusterJson(cluster);
    Print(DumpJson(json));
    return 0;
  }
  using enum Table::Align;
  std::string text = Line(fmt::format("What cuts cost on {}, from {} parts that were run", Legible(cluster.name()),
                                      calibration.num_parts())) +
                     "\n" + Field("per part", ToString(Seconds{costs.part_overhead}));
  Table rates({{"class of op"}, {"reads at", kRight}, {"writes at", kRight}});
  for (size_t op_class = 0; op_class < kOpClasses; ++op_class) {
    rates.Add({std::string(kOpClassNames[op_class]), RateOf(costs.read[op_class], costs.read_guessed[op_class]),
               RateOf(costs.write[op_class], costs.write_guessed[op_class])});
  }
  text += "\n" + rates.ToString() + "\n" +
          Wrap(
              "Plans that were run but not fitted to: by how much the prediction is off (median, 90th percentile), "
              "and how well it orders them (rank correlation, 1 is perfect); beside it the order by the number of "
              "parts alone.") +
          "\n";
  Table errors({{"model"}, {"plans", kRight}, {"before", kRight}, {"after", kRight}, {"parts alone", kRight}});
  for (const CalibratedModel& one : calibration.models()) {
    errors.Add({Shorten(one.name, 32), Count(static_cast<int64_t>(one.measured.size())),
                Off(ErrorOf(one.before, one.measured)), Off(ErrorOf(one.after, one.measured)),
                Order(ErrorOf(one.parts, one.measured))});
  }
  text += errors.ToString() + "\n";
  if (!calibration.efficiencies().empty()) {
    text += Line(fmt::format("What share of its peak each device reaches, from profiles of {}",
                             Counted(static_cast<int64_t>(calibration.num_profiled()), "model"))) +
            "\n" + EfficiencyTable(cluster, calibration.efficiencies()) + "\n";
  }
  text +=
      Wrap(fmt::format(
          "The share of its peak that a device reaches stays as in the device file for classes of op with fewer than {} "
          "kernels that their bytes alone do not explain, or with less than {:.0f} % of the time.",
          EfficiencyFit::kLeastKernels, 100 * EfficiencyFit::kLeastShare)) +
      "\n" +
      Wrap(
          "Whole models on one device, predicted from the device file alone: by how much that is off before, after, "
          "and where the model itself is left out of the fit.") +
      "\n" + AloneTable(cluster, calibration.alone());
  std::string notes;
  if (calibration.num_parts() < CutFit::kLeastParts) {
    notes +=
        Item(fmt::format("So few parts say little of what cuts cost: at least {} are needed, so give more models or "
                         "more --plans.",
                         CutFit::kLeastParts));
  }
  if (const AloneErrors alone = ErrorsOf(calibration.alone());
      alone.before.median && alone.after.median && *alone.after.median > *alone.before.median + kClearlyWorse) {
    notes += Item(
        "Whole models are predicted worse with the fitted numbers than with those of the device file that was given: "
        "calibrate again on a machine at rest and with more models.");
  }
  if (calibration.stopped()) {
    notes += Item(fmt::format("Stopped: {} of {} were run, the last perhaps in part.", calibration.models().size(),
                              Counted(std::ssize(arguments.models), "model")));
  }
  if (const auto [count, reason] = calibration.failures(); count > 0) {
    notes += Item(fmt::format("{} failed and were left out; the first: {}",
                              Counted(static_cast<int64_t>(count), "plan"), Legible(reason)));
  }
  if (!notes.empty()) text += "\n" + notes;
  const std::string disturbed =
      DisturbedLine(calibration.stolen(), "of a plan's time, at most") + UnsteadyLine(calibration.speed_change());
  if (!disturbed.empty()) text += "\n" + disturbed;
  if (!arguments.output.empty()) {
    text +=
        "\n" + Line(fmt::format("Written to {0}: berth plan MODEL --cluster {0} --evaluator parts, or berth tune MODEL "
                                "--cluster {0}",
                                ShellWord(Printable(arguments.output))));
  }
  Print(text);
  return 0;
}

}  // namespace berth
