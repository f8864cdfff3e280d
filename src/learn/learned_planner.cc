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
    // What is too large for all threads is done on fewer (MakePlan).
    return WhyTooLarge(method_, *policy, tasks, {.threads = 1, .left = MemoryLeft()});
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    PlanRequest bounded = request;
    if (request.budget.endless()) bounded.budget.evaluations = method_.default_evaluations;
    Search search(bounded);
    Learned learned;
    if (method_.seeded) {
      ScoreSingles(search);
      Lower(learned.starts, CostOf(request.problem(), search.best_score(), method_.scoring.memory_penalty) *
                                request.problem().seconds_per_unit());
    }

    Learner learner(method_, {&search}, request.random);
    // What an update costs is known only by the policy; the schedules run over what fits into the budget, of which the
    // last evaluations are for the policy's own answer.
    const int64_t own = learner.own_evaluations();
    learner.set_planned_updates(bounded.budget.evaluations == std::numeric_limits<int64_t>::max()
                                    ? method_.default_evaluations / learner.evaluations_per_update()
                                    : learner.UpdatesWithin(search.evaluations_left() - own));
    if (!method_.checkpoint.empty()) learner.Load(method_.checkpoint, true);

    std::string note;
    CurvePoint last;
    std::vector<CurvePoint> curve;
    const auto stop = [&search] { return search.Interrupted(); };
    int64_t threads = ThreadsFor(request.evaluator, request.threads);
    while (threads > 1 && method_.train && learner.WhyTooLarge(threads, MemoryLeft())) --threads;
    // The clock leaves time for the policy's own answer, which is taken to last as long as so many draws of an update.
    // No update begins that would not end: nothing would be learned from it.
    const double own_share = static_cast<double>(own) / static_cast<double>(learner.evaluations_per_update());
    double longest = 0;
    while (method_.train && !search.Done() && search.evaluations_left() > own) {
      if (longest > 0 && search.seconds_left() < (1 + own_share) * longest) {
        search.CutShort(SearchEnd::kClock);
        break;
      }
      const Stopwatch watch;
      std::optional<CurvePoint> point;
      try {
        point = learner.Update(search.evaluations_left() - own, threads, stop);
      } catch (const Error& error) {
        // What was scored before is an answer all the same.
        if (!search.has_best() || search.best_score().failed()) throw;
        learner.AdoptDropped();
        note = fmt::format("training ended: {}; ", error.what());
        break;
      }
      if (!point) {
        search.CutShort(SearchEnd::kClock);
        learner.AdoptDropped();
        break;
      }
      longest = std::max(longest, watch.seconds());
      last = *point;
      curve.push_back(last);
      Lower(learned.starts, last.start_cost);
      const double before =
          learned.updates.empty() ? std::numeric_limits<double>::infinity() : learned.updates.back().drawn;
      learned.updates.push_back(
          {.evaluations = search.evaluations(), .drawn = std::min(before, last.best_cost), .mean = last.mean_cost});
      if (last.diverged) {
        note = fmt::format("training diverged in update {}: a smaller learning_rate may help; ", last.update);
        break;
      }
    }
    if (last.update > 0) {
      note += fmt::format("{} update{}, entropy {:.2g} and {:.3g} decision{} per step at the end", last.update,
                          last.update == 1 ? "" : "s", last.entropy, last.groups, last.groups == 1 ? "" : "s");
    }
    if (const std::string collapse = DescribeCollapse(curve, learner.planned_updates()); !collapse.empty()) {
      note += "; " + collapse;
    }
    if (!search.Done()) {
      // Without a plan it must not be stopped.
      const Learner::Answer answer =
          learner.Greedy(0, threads, search.evaluations_left(), search.has_best() ? stop : StopCheck());
      const Score& score = answer.result.score;
      const Objective& objective = request.evaluator.facts().objective;
      const std::string failure = answer.result.failure.empty() ? "it was stopped" : answer.result.failure;
      if (!answer.result.plan.device.empty()) {
        learned.likeliest = score.fits() ? ObjectiveNumber(request.problem(), objective, score.value())
                                         : std::numeric_limits<double>::infinity();
      }
      note += fmt::format("{}the policy's likeliest placement {}", note.empty() ? "" : "; ",
                          !learned.likeliest ? "has no score: " + failure
                          : score.fits()     ? (objective.is_time() ? "takes " : "has ") +
                                                   ObjectiveText(request.problem(), objective, score.value())
                                             : "does not fit");
      if (!search.has_best()) throw Error("{}: the policy's likeliest placement has no score: {}", name(), failure);
    }
    if (!search.has_best()) {
      throw Error("{}: none of {} placements could be scored: {}", name(), search.evaluations(),
                  search.failures() > 0 ? search.last_failure() : "the time was over before the first");
    }
    PlanResult result = search.Finish(false, note);
    result.learned = std::move(learned);
    return result;
  }

 private:
  static void Lower(std::optional<double>& least, double cost) {
    if (std::isfinite(cost)) least = std::min(least.value_or(cost), cost);
  }

  // Each device alone, ops that it cannot run where they are fastest.
  static void ScoreSingles(Search& search) {
    const Units units(search.problem());
    for (const DeviceId device : search.problem().cluster().ids()) {
      if (search.Done()) return;
      search.Evaluate({.device = units.AllOn(device)}, "a single device");
    }
  }

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
