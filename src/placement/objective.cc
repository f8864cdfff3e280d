#include "placement/objective.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "placement/energy.h"
#include "placement/evaluator.h"
#include "placement/single_devices.h"
#include "placement/wrapper.h"

namespace berth {
namespace {

// Sets what the evaluators leave open.
class Rating {
 public:
  Rating(const Problem& problem, const Objective& objective) : problem_(problem), objective_(objective) {}

  void Rate(std::span<const DeviceId> device, std::span<double> busy, Score& score) const {
    score.objective = score.time;  // a run that never ends has no energy either
    if (!std::isfinite(score.time)) return;
    double value = objective_.per_second * problem_.ToSeconds(score.time).value;
    if (objective_.per_joule > 0) value += objective_.per_joule * Joules(problem_, device, score.time, busy);
    score.objective = value;
  }

 private:
  const Problem& problem_;
  const Objective& objective_;
};

struct RatingWorkspace : WrapperWorkspace {
  RatingWorkspace(std::unique_ptr<Workspace> wrapped, size_t devices)
      : WrapperWorkspace(std::move(wrapped)), busy(devices) {}
  std::vector<double> busy;
};

class RatingSession : public Session {
 public:
  RatingSession(Rating rating, const Evaluator& evaluator, const PlanView& start, WrapperWorkspace& workspace)
      : rating_(rating),
        workspace_(workspace),
        inner_(evaluator.NewSession(start, workspace.Told())),
        device_(inner_->device().begin(), inner_->device().end()),
        busy_(evaluator.problem().num_devices()) {
    score_ = workspace_.Heard(inner_->score());
    rating_.Rate(device_, busy_, score_);
  }

  Score TryChange(const PlanChange& change) override {
    tried_.assign(change.moves.begin(), change.moves.end());
    workspace_.Told();
    tried_score_ = workspace_.Heard(inner_->TryChange(change));
    undo_.clear();
    for (const auto& [op, device] : tried_) undo_.emplace_back(op, std::exchange(device_[Index(op)], device));
    rating_.Rate(device_, busy_, tried_score_);
    // Backwards, since an op may be moved twice.
    for (auto move = undo_.rbegin(); move != undo_.rend(); ++move) device_[Index(move->first)] = move->second;
    return tried_score_;
  }

  void Commit() override {
    inner_->Commit();
    for (const auto& [op, device] : tried_) device_[Index(op)] = device;
    score_ = tried_score_;
  }

  const Score& score() const override { return score_; }
  std::span<const DeviceId> device() const override { return device_; }

 private:
  Rating rating_;
  WrapperWorkspace& workspace_;
  std::unique_ptr<Session> inner_;
  std::vector<DeviceId> device_;  // as committed
  std::vector<double> busy_;
  Score score_, tried_score_;
  std::vector<std::pair<OpId, DeviceId>> tried_, undo_;
};

class RatingEvaluator : public Wrapper {
 public:
  RatingEvaluator(const std::shared_ptr<const Evaluator>& inner, Objective objective)
      : Wrapper(inner->name(), inner), rating_(problem(), facts_.objective) {
    facts_.objective = std::move(objective);
  }

  std::unique_ptr<Workspace> NewWorkspace() const override {
    return std::make_unique<RatingWorkspace>(inner_->NewWorkspace(), problem().num_devices());
  }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    auto& work = static_cast<RatingWorkspace&>(workspace);
    Score score = AskInner(plan, work, starts);
    rating_.Rate(plan.device, work.busy, score);
    return score;
  }

  Timeline Trace(const PlanView& plan) const override {
    Timeline timeline = inner_->Trace(plan);
    std::vector<double> busy(problem().num_devices());
    rating_.Rate(plan.device, busy, timeline.score);
    return timeline;
  }

  std::unique_ptr<Session> NewSession(const PlanView& start, Workspace& workspace) const override {
    return std::make_unique<RatingSession>(rating_, *inner_, start, static_cast<RatingWorkspace&>(workspace));
  }

 private:
  Rating rating_;
};

// What weighted objectives are relative to: the least seconds and the least joules of everything on one device or,
// where no device can run everything alone, of every op on its fastest device, one after another, and nothing sent.
struct References {
  double seconds = kCannotRun, joules = kCannotRun;
  int64_t evaluations = 0;
};
References FindReferences(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  References found;
  std::vector<double> busy(problem.num_devices());
  const auto consider = [&](std::span<const DeviceId> device, double time) {
    found.seconds = std::min(found.seconds, problem.ToSeconds(time).value);
    found.joules = std::min(found.joules, Joules(problem, device, time, busy));
  };
  std::vector<DeviceId> device(problem.num_ops());
  const SingleDevices singles = ScoreSingleDevices(evaluator);
  found.evaluations = singles.evaluations();
  for (const DeviceId one : problem.cluster().ids()) {
    const std::optional<Score>& score = singles.score[Index(one)];
    if (!score || !score->fits()) continue;
    std::ranges::fill(device, one);
    consider(device, score->time);
  }
  if (found.seconds == kCannotRun) {
    double time = 0;
    for (const OpId op : problem.graph().ops()) {
      const auto times = problem.op_times(op);
      const auto least = std::ranges::min_element(times);
      device[Index(op)] = MakeId<DeviceId>(static_cast<size_t>(least - times.begin()));
      time += *least;
    }
    consider(device, time);
  }
  // Of a problem without work every value is 0.
  if (!(found.seconds > 0)) found.seconds = 1;
  if (!(found.joules > 0)) found.joules = 1;
  return found;
}

}  // namespace

std::unique_ptr<const Evaluator> WithObjective(std::unique_ptr<const Evaluator> evaluator,
                                               const ObjectiveRequest& request) {
  const bool steady = evaluator->facts().objective.name == "throughput";
  if (steady && request.latency > 0) {
    throw Error(
        "objective {}: {} gives the time per sample of a full pipeline and no latency; ask for throughput instead, or "
        "name another evaluator",
        request.name, evaluator->name());
  }
  if (!steady && request.throughput > 0) {
    throw Error(
        "objective {}: {} runs one sample at a time and gives no throughput; ask for latency instead, or name the "
        "evaluator pipeline",
        request.name, evaluator->name());
  }
  if (request.energy == 0 && !request.weighted) return evaluator;
  if (request.energy > 0) RequireWatts(evaluator->problem().cluster());
  Objective objective{.name = request.name, .unit = Objective::Unit::kJoules, .per_second = 0, .per_joule = 1};
  if (request.weighted) {
    const References references = FindReferences(*evaluator);
    objective.set_up = references.evaluations;
    objective.unit = Objective::Unit::kShare;
    const double time = request.latency + request.throughput;
    const double weights = time + request.energy;
    objective.per_second = time / weights / references.seconds;
    objective.per_joule = request.energy / weights / references.joules;
  }
  return std::make_unique<const RatingEvaluator>(std::move(evaluator), std::move(objective));
}

ObjectiveRates RatesOf(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const Objective& objective = evaluator.facts().objective;
  if (objective.is_time()) return {.computing = std::vector<double>(problem.num_devices(), 0), .whole = 1};
  ObjectiveRates rates;
  double idle_watts = 0;
  for (const DeviceId id : problem.cluster().ids()) {
    const Device& device = problem.cluster().device(id);
    idle_watts += device.watts_idle.value;
    const double watts = objective.per_joule > 0 ? device.watts_busy.value - device.watts_idle.value : 0;
    rates.computing.push_back(objective.per_joule * watts * problem.seconds_per_unit());
  }
  rates.whole = (objective.per_second + objective.per_joule * idle_watts) * problem.seconds_per_unit();
  return rates;
}

void RegisterObjectives(ObjectiveCatalog& catalog) {
  catalog.Add({.name = "latency", .sentence = "the seconds from the start to the end of one run", .source = "-"},
              [](const Params& params) { return ObjectiveRequest{.name = params.canonical(), .latency = 1}; });
  catalog.Add({.name = "throughput",
               .sentence = "the seconds per sample of a full pipeline (evaluator pipeline): one over the throughput",
               .source = "Tarnawski et al. 2020, section 4"},
              [](const Params& params) { return ObjectiveRequest{.name = params.canonical(), .throughput = 1}; });
  catalog.Add(
      {.name = "energy",
       .sentence = "the joules of one run: busy watts while a device computes, idle watts else, until all are done",
       .source = "-"},
      [](const Params& params) { return ObjectiveRequest{.name = params.canonical(), .energy = 1}; });
  const auto weight = [](std::string name, std::string of) {
    return Parameter{.name = std::move(name),
                     .type = ParameterType::kReal,
                     .default_value = "0",
                     .sentence = "the weight of " + of,
                     .least = 0,
                     .most = 1e9};
  };
  catalog.Add(
      {.name = "weighted",
       .sentence = "the weighted mean of seconds and joules, each as a share of the best single device's: 1 is as good "
                   "as that, less is better",
       .source = "-",
       .parameters = {weight("latency", "latency"), weight("throughput", "the seconds per sample of a full pipeline"),
                      weight("energy", "energy")}},
      [](const Params& params) {
        ObjectiveRequest request{.name = params.canonical(),
                                 .latency = params.Real("latency"),
                                 .throughput = params.Real("throughput"),
                                 .energy = params.Real("energy"),
                                 .weighted = true};
        if (request.latency + request.throughput + request.energy == 0) {
          throw Error("objective weighted: all weights are 0; write weighted(latency=1,energy=0.2)");
        }
        return request;
      });
}

}  // namespace berth
