#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/system_limits.h"
#include "learn/learner.h"
#include "learn/scoring.h"
#include "learn/update_memory.h"
#include "placement/objective_text.h"
#include "placement/search.h"
#include "placement/units.h"

namespace berth {
namespace {

void Lower(std::optional<double>& least, double cost) {
  if (std::isfinite(cost)) least = std::min(least.value_or(cost), cost);
}

// One request: single devices, the training, the policy's own answer.
class Planning {
 public:
  Planning(const Method& method, const PlanRequest& request)
      : method_(method), request_(Bounded(method, request)), search_(request_) {
    if (method.seeded) {
      ScoreSingles();
      Lower(learned_.starts, CostOf(request.problem(), search_.best_score(), method.scoring.memory_penalty) *
                                 request.problem().seconds_per_unit());
    }
    learner_.emplace(method, std::vector<Search*>{&search_}, request.random);
    own_ = learner_->own_evaluations();
    // What an update costs is known only by the policy; the schedules run over what fits into the budget, of which the
    // last evaluations are for the policy's own answer.
    learner_->set_planned_updates(request_.budget.evaluations == std::numeric_limits<int64_t>::max()
                                      ? method.default_evaluations / learner_->evaluations_per_update()
                                      : learner_->UpdatesWithin(search_.evaluations_left() - own_));
    if (!method.checkpoint.empty()) learner_->Load(method.checkpoint, true);
    threads_ = ThreadsFor(request.evaluator, request.threads);
    while (threads_ > 1 && method.train && learner_->WhyTooLarge(threads_, MemoryLeft())) --threads_;
  }

  void Train() {
    // The clock leaves time for the policy's own answer, which is taken to last as long as so many draws of an update.
    // No update begins that would not end: nothing would be learned from it.
    const double own_share = static_cast<double>(own_) / static_cast<double>(learner_->evaluations_per_update());
    double longest = 0;
    std::vector<CurvePoint> curve;
    while (!search_.Done() && search_.evaluations_left() > own_) {
      if (longest > 0 && search_.seconds_left() < (1 + own_share) * longest) {
        search_.CutShort(SearchEnd::kClock);
        break;
      }
      const Stopwatch watch;
      const std::optional<CurvePoint> point = Update();
      if (!point) break;
      longest = std::max(longest, watch.seconds());
      curve.push_back(*point);
      Record(*point);
      if (point->diverged) {
        note_ = fmt::format("training diverged in update {}: a smaller learning_rate may help; ", point->update);
        break;
      }
    }
    if (!curve.empty()) {
      const CurvePoint& last = curve.back();
      note_ += fmt::format("{} update{}, entropy {:.2g} and {:.3g} decision{} per step at the end", last.update,
                           last.update == 1 ? "" : "s", last.entropy, last.groups, last.groups == 1 ? "" : "s");
    }
    if (const std::string collapse = DescribeCollapse(curve, learner_->planned_updates()); !collapse.empty()) {
      note_ += "; " + collapse;
    }
  }

  // Scores the policy's likeliest placement with what is left of the budget.
  void Answer() {
    if (search_.Done()) return;
    // Without a plan it must not be stopped.
    const Learner::Answer answer =
        learner_->Greedy(0, threads_, search_.evaluations_left(), search_.has_best() ? Stop() : StopCheck());
    const Score& score = answer.result.score;
    const Objective& objective = request_.evaluator.facts().objective;
    const std::string failure = answer.result.failure.empty() ? "it was stopped" : answer.result.failure;
    if (!answer.result.plan.device.empty()) {
      learned_.likeliest = score.fits() ? ObjectiveNumber(request_.problem(), objective, score.value())
                                        : std::numeric_limits<double>::infinity();
    }
    note_ += fmt::format("{}the policy's likeliest placement {}", note_.empty() ? "" : "; ",
                         !learned_.likeliest ? "has no score: " + failure
                         : score.fits()      ? (objective.is_time() ? "takes " : "has ") +
                                                   ObjectiveText(request_.problem(), objective, score.value())
                                             : "does not fit");
    if (!search_.has_best()) {
      throw Error("{}: the policy's likeliest placement has no score: {}", method_.name, failure);
    }
  }

  PlanResult Finish() {
    if (!search_.has_best()) {
      throw Error("{}: none of {} placements could be scored: {}", method_.name, search_.evaluations(),
                  search_.failures() > 0 ? search_.last_failure() : "the time was over before the first");
    }
    PlanResult result = search_.Finish(false, note_);
    result.learned = std::move(learned_);
    return result;
  }

  PlanResult Asked() {
    learner_->AdoptDropped();
    return search_.Found();
  }

 private:
  static PlanRequest Bounded(const Method& method, PlanRequest request) {
    if (request.budget.endless()) request.budget.evaluations = method.default_evaluations;
    return request;
  }

  StopCheck Stop() {
    return [this] { return search_.Interrupted(); };
  }

  // Each device alone, ops that it cannot run where they are fastest.
  void ScoreSingles() {
    const Units units(search_.problem());
    for (const DeviceId device : search_.problem().cluster().ids()) {
      if (search_.Done()) return;
      search_.Evaluate({.device = units.AllOn(device)}, "a single device");
    }
  }

  // None where the training is over: it was stopped, or broke off after something had a score.
  std::optional<CurvePoint> Update() {
    std::optional<CurvePoint> point;
    try {
      point = learner_->Update(search_.evaluations_left() - own_, threads_, Stop());
    } catch (const Error& error) {
      // What was scored before is an answer all the same.
      if (!search_.has_best() || search_.best_score().failed()) throw;
      learner_->AdoptDropped();
      note_ = fmt::format("training ended: {}; ", error.what());
      return std::nullopt;
    }
    if (!point) {
      search_.CutShort(SearchEnd::kClock);
      learner_->AdoptDropped();
    }
    return point;
  }

  void Record(const CurvePoint& point) {
    Lower(learned_.starts, point.start_cost);
    const double before =
        learned_.updates.empty() ? std::numeric_limits<double>::infinity() : learned_.updates.back().drawn;
    learned_.updates.push_back(
        {.evaluations = search_.evaluations(), .drawn = std::min(before, point.best_cost), .mean = point.mean_cost});
  }

  const Method& method_;
  const PlanRequest request_;
  Search search_;
  std::optional<Learner> learner_;
  int64_t own_ = 0;  // evaluations of the policy's own answer
  int64_t threads_ = 1;
  Learned learned_;
  std::string note_;
};

class LearnedPlanner : public Planner {
 public:
  explicit LearnedPlanner(Method method) : method_(std::move(method)) {}

  const std::string& name() const override { return method_.name; }

  PlannerFacts facts() const override {
    return {.space = method_.gives_priorities ? PlannerFacts::Space::kPriorities : PlannerFacts::Space::kPlacement,
            .learned = true};
  }

  std::optional<std::string> Refuses(const Problem& problem, const Evaluator& evaluator) const override {
    if (auto reason = WhyNot(method_, problem, evaluator)) return reason;
    if (!method_.train) return std::nullopt;
    const std::shared_ptr<Policy> policy = method_.make_policy(problem, Random(0));
    const std::unique_ptr<Task> task = policy->Prepare(problem);
    const Task* const tasks[] = {task.get()};
    // What is too large for all threads is done on fewer (Planning).
    return WhyTooLarge(method_, *policy, tasks, {.threads = 1, .left = MemoryLeft()});
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    Planning planning(method_, request);
    try {
      if (method_.train) planning.Train();
      planning.Answer();
      return planning.Finish();
    } catch (const Error& error) {
      throw FailedSearch(error, planning.Asked());
    }
  }

 private:
  Method method_;
};

}  // namespace

std::optional<std::string> WhyNot(const Method& method, const Problem& problem, const Evaluator& evaluator) {
  if (problem.num_devices() < 2) return "it chooses between devices, and there is only one";
  if (problem.num_ops() == 0) return "there is no op to place";
  if (method.gives_priorities && !evaluator.facts().uses_priorities) {
    return fmt::format("it gives priorities, which {} does not follow; set priorities=0", evaluator.name());
  }
  if (method.refuses) {
    if (auto reason = method.refuses(problem)) return reason;
  }
  return Units(problem).contradiction();
}

std::unique_ptr<Planner> MakeLearnedPlanner(Method method) {
  return std::make_unique<LearnedPlanner>(std::move(method));
}

}  // namespace berth
