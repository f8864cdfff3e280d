#include <fmt/format.h>

#include <numeric>
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
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr uint64_t kMostSamples = 1000, kMostRunsOfSample = 10'000;
constexpr size_t kHeldOut = 3;  // a third of the plans

struct CalibratedModel {
  std::string name;
  std::vector<PlanRun> runs{};  // as predicted before
  std::vector<bool> is_held_out{};
  // Of those that were held out: predicted before and after the fit, how many parts they have, and measured.
  std::vector<double> before{}, after{}, parts{}, measured{};
};

std::string Order(const PredictionError& error) {
  return error.rank_correlation ? fmt::format("{:.2f}", *error.rank_correlation) : "-";
}

std::string Off(const PredictionError& error) {
  if (!error.median) return "-";
  return fmt::format("{}, {}, {}", Percent(*error.median), Percent(*error.ninetieth), Order(error));
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
        seed_(ParseCount("--seed", arguments.seed, 0)) {}

  // Throws Error where nothing could be fitted to this model, so that nobody waits for the others first.
  void Read(const std::string& model, const std::string& cluster) {
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
    return WithCutCosts(runners_.front()->problem().cluster(), costs_, source);
  }

  const CutCosts& costs() const { return costs_; }
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
    try {
      strings.costs = ProfileToFile(*runtime, kProfileRuns, file, stop_);
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

  std::string WhyNone() const {
    if (const auto [count, reason] = failures(); count > 0) return reason;
    return stop_() ? "stopped before that" : "they have no parts";
  }

  const Catalogs& catalogs_;
  // After Ctrl-C what has been run so far is fitted to.
  const StopCheck stop_ = [cancelled = CatchInterrupts()] { return cancelled->load(); };
  size_t plans_, runs_;
  uint64_t seed_;
  ScratchFolder folder_{"berth_calibrate"};
  ProgressLine progress_;
  CutFit fit_;
  CutCosts costs_;
  std::vector<std::shared_ptr<const Setup>> setups_;
  std::vector<CalibratedModel> models_;
  std::vector<std::unique_ptr<PlanRunner>> runners_;
};

std::string RateOf(double seconds_per_byte) {
  return seconds_per_byte > 0 ? WithPrefix(1 / seconds_per_byte, "B/s") : "free";
}

}  // namespace

int Calibrate(const CalibrateArguments& arguments, const Catalogs& catalogs) {
  CheckWritable(arguments.output);
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
    rates.Add({std::string(kOpClassNames[op_class]), RateOf(costs.read[op_class]), RateOf(costs.write[op_class])});
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
  text += errors.ToString();
  std::string notes;
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
