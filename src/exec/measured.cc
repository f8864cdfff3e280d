#include "exec/measured.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/parameters.h"
#include "exec/openvino.h"
#include "exec/statistics.h"

namespace berth {
namespace {

struct RunParameters {
  std::string how, first;
  size_t runs = 10, keep = 5;
  double limit = 120;
};

// The mean of the last runs of a plan, each plan compiled anew; whatever the runtime does with it, a plan that does not
// compile or run is a score that failed.
class RuntimeEvaluator : public Evaluator {
 public:
  RuntimeEvaluator(const EvaluatorContext& context, std::string name, RunParameters parameters)
      : Evaluator(context.problem),
        name_(std::move(name)),
        parameters_(std::move(parameters)),
        facts_{.model = MeasuredFacts{.in_turns = parameters_.how == "hetero"},
               .deterministic = false,
               .exclusive = true,
               .stops = true,
               .tracks_memory = false,
               .uses_priorities = false},
        runtime_(context.problem, context.model) {}

  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<Workspace>(); }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    const std::lock_guard lock(mutex_);
    const Measurement measurement = Measure(plan, workspace.stop);
    if (!measurement.error.empty()) {
      workspace.failure = measurement.error;
      return Score::Failed();
    }
    if (!starts.empty()) {
      const Timeline timeline = Drawn(plan, measurement, workspace.stop);
      std::ranges::transform(timeline.ops, starts.begin(), &OpRun::start);
    }
    return ScoreOf(measurement);
  }

  Timeline Trace(const PlanView& plan) const override {
    const std::lock_guard lock(mutex_);
    const Measurement measurement = Measure(plan, {});
    if (measurement.error.empty()) {
      Timeline timeline = Drawn(plan, measurement, {});
      timeline.score = ScoreOf(measurement);
      return timeline;
    }
    Timeline timeline;
    for (const DeviceId device : plan.device) timeline.ops.push_back({.device = device});
    timeline.score = Score::Failed();
    timeline.infeasible_because = measurement.error;
    return timeline;
  }

  Disturbance disturbance() const override {
    const std::lock_guard lock(mutex_);
    return disturbance_;
  }

 private:
  Measurement Measure(const PlanView& plan, const StopCheck& stop) const {
    RunWay way{.how = parameters_.how, .first = parameters_.first};
    if (UsesPlan()) way.device.assign(plan.device.begin(), plan.device.end());
    Measurement measurement =
        runtime_.Run({way}, {.rounds = parameters_.runs, .limit = parameters_.limit, .stop = stop}).front();
    if (measurement.error.empty()) Remember(measurement);
    return measurement;
  }

  void Remember(const Measurement& measurement) const {
    disturbance_.stolen = std::max(disturbance_.stolen, measurement.stolen);
    if (measurement.slowdown.empty()) return;
    const double slowdown = measurement.typical_slowdown();
    disturbance_.slowest = knows_pace_ ? std::max(disturbance_.slowest, slowdown) : slowdown;
    disturbance_.fastest = knows_pace_ ? std::min(disturbance_.fastest, slowdown) : slowdown;
    knows_pace_ = true;
  }

  bool UsesPlan() const { return parameters_.how == "hetero" || parameters_.how == "parallel"; }

  Timeline Drawn(const PlanView& plan, const Measurement& measurement, const StopCheck& stop) const {
    if (parameters_.how != "hetero") {
      Timeline timeline = MakeMeasuredTimeline(problem(), plan.device, measurement);
      if (!UsesPlan()) timeline.untold_because = "OpenVINO chose the devices, and tells no times of ops";
      return timeline;
    }
    const OpMeasurement ops =
        runtime_.ProfileHetero(plan.device, {.rounds = parameters_.keep, .limit = parameters_.limit, .stop = stop});
    return MakeMeasuredTimeline(problem(), plan.device, measurement, ops.op_seconds);
  }

  Score ScoreOf(const Measurement& measurement) const {
    const std::span kept = std::span(measurement.seconds).last(parameters_.keep);
    const auto [least, most] = std::ranges::minmax(kept);
    const double unit = problem().seconds_per_unit();
    return {.time = Mean(kept) / unit, .runs = static_cast<int32_t>(kept.size()), .spread = (most - least) / unit};
  }

  std::string name_;
  RunParameters parameters_;
  EvaluatorFacts facts_;
  mutable std::mutex mutex_;
  mutable OpenVino runtime_;
  mutable Disturbance disturbance_;
  mutable bool knows_pace_ = false;
};

std::vector<Parameter> CommonParameters() {
  return {Whole("runs", "10", "how often each plan is run, after one run that warms up", 1, 1e6),
          Whole("keep", "5", "how many of these, the last ones, are averaged", 1, 1e6),
          Time("limit", "120", "a plan fails that takes longer to compile and run, in seconds", 0.1, 1e6)};
}

void Add(EvaluatorCatalog& catalog, EntryInfo info, std::string how) {
  std::vector<Parameter> common = CommonParameters();
  info.parameters.insert(info.parameters.end(), common.begin(), common.end());
  catalog.Add(std::move(info),
              [how](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
                const RunParameters parameters{.how = how,
                                               .first = how == "auto" ? params.Text("first") : "",
                                               .runs = static_cast<size_t>(params.Int("runs")),
                                               .keep = static_cast<size_t>(params.Int("keep")),
                                               .limit = params.Time("limit")};
                if (parameters.keep > parameters.runs) {
                  throw Error("{}: keep is {}; of {} runs it can be 1 to {}", params.canonical(), parameters.keep,
                              parameters.runs, parameters.runs);
                }
                return std::make_unique<RuntimeEvaluator>(context, params.canonical(), parameters);
              });
}

}  // namespace

void RegisterMeasured(EvaluatorCatalog& catalog) {
  Add(catalog,
      {.name = "openvino",
       .sentence = "measured: OpenVINO's HETERO with each op's device as its affinity, one subgraph after another",
       .source = "HSDAG, section 3.1"},
      "hetero");
  Add(catalog,
      {.name = "openvino_parallel",
       .sentence = "measured: parts on all devices at once, a thread per device, each part a model of OpenVINO's",
       .source = "-"},
      "parallel");
  Add(catalog,
      {.name = "openvino_default",
       .sentence = "measured: whatever the plan, OpenVINO's HETERO with devices of its own choice",
       .source = "HSDAG, table 2"},
      "default");
  Add(catalog,
      {.name = "openvino_auto",
       .sentence = "measured: whatever the plan, OpenVINO's AUTO",
       .source = "HSDAG, table 2",
       .parameters = {Choice("first", {"CPU", "GPU", "NPU"}, "the device that it is to prefer")}},
      "auto");
}

}  // namespace berth
