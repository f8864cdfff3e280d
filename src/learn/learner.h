// Training, as the papers' algorithms read: play episodes, weigh their steps, follow the gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/ranks.h"
#include "base/units.h"
#include "learn/curve.h"
#include "learn/gradient.h"
#include "learn/learner_state.h"
#include "learn/method.h"
#include "learn/player.h"

namespace berth {

// The same seed gives the same numbers on any number of threads.
class Learner {
 public:
  // A search for each graph to learn on: it counts the evaluations and keeps the best plan. `ranks` divide the plays of
  // each update; each has a learner that is called alike and that knows the same. All outlive the learner. Throws Error
  // where the policy cannot take one of the graphs, or there is none.
  Learner(const Method& method, const std::vector<Search*>& searches, const Random& random, int64_t planned_updates = 1,
          Ranks* ranks = nullptr);
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // WhyTooLarge (update_memory.h) of its updates on so many threads.
  std::optional<std::string> WhyTooLarge(int64_t threads, std::optional<Bytes> left) const;

  // How many plays an update has, at most.
  int64_t plays() const { return player_.plays(); }
  int64_t evaluations_per_update() const { return player_.evaluations_per_update(); }
  // Over how many updates the schedules run. To be said before the first.
  int64_t planned_updates() const { return planned_updates_; }
  void set_planned_updates(int64_t count) { planned_updates_ = std::max<int64_t>(count, 1); }

  // One update of at most `evaluations`, on so many threads; empty when `stop`, which is asked on any thread, said so
  // on one of the ranks: then nothing was learned, and what was found waits for AdoptDropped. Throws Error when every
  // placement so far has failed.
  std::optional<CurvePoint> Update(int64_t evaluations, int64_t threads, const StopCheck& stop = {});
  // Gives the searches what the last update found before it was stopped. After that, a checkpoint is no longer that of
  // the updates alone.
  void AdoptDropped();

  // The policy's own answer: the likeliest decisions, of each of its ways to play, and the best of these. It takes
  // greedy_evaluations(), or `most`, which then leaves ways out; they count on the case like any episode's. When `stop`
  // says so, it is what was found until then.
  struct Answer {
    double cost = 0;      // in seconds, penalty for memory included; infinity where it failed
    PlanResult result{};  // no plan where it failed
  };
  Answer Greedy(size_t index, int64_t threads, int64_t most = std::numeric_limits<int64_t>::max(),
                const StopCheck& stop = {});
  int64_t greedy_evaluations(size_t index) const { return player_.greedy_evaluations(index); }
  int64_t own_evaluations() const;  // of Greedy on all cases, once each
  // So many evaluations are enough for this many updates, the last perhaps in part; at least 1.
  int64_t UpdatesWithin(int64_t evaluations) const;
  // The geometric mean over the cases of what that answer costs, as CurvePoint::greedy_cost; where another objective
  // than time is given and no update was made yet, of the costs themselves, in time units.
  double GreedyCost(int64_t threads);
  // Its policy becomes that of another learner, whose policy_shape() is the same. Where scores vary from run to run,
  // those of its next answers depend on how many updates the other has made, not on what was answered before, so that a
  // training that is resumed has the scores of an unbroken one. It makes no updates itself.
  void TakePolicy(const Learner& other);

  int64_t updates() const { return state_.updates; }
  int64_t evaluations() const { return state_.evaluations; }
  size_t num_cases() const { return cases_.size(); }
  // What a checkpoint of it and a policy that reads it must agree in (policy.h).
  std::string policy_shape() const { return state_.policy->shape(); }
  // What was found on a case, with the number of evaluations.
  const Search& search(size_t index) const { return *cases_[index].search; }
  // What the first placement that was scored on a case cost, in seconds; NaN without.
  double first_cost(size_t index) const { return state_.reference[index] * cases_[index].problem().seconds_per_unit(); }

  // Everything that training needs to go on as if it had not been interrupted (learner_state.h). By one of the ranks.
  void Save(const std::string& path) const;
  // By all ranks, of the file that rank 0 sees. Throws Error where the checkpoint was made by another version, another
  // method (unless only the policy is wanted), or for other problems. Gives a hash of the file.
  std::string Load(const std::string& path, bool policy_only);

 private:
  // Cost 1 in relative costs, in time units: the work, or, where something else than time is to be small, the first
  // cost.
  double Scale(size_t index) const;
  void CollectCosts(std::span<const Play> plays, CurvePoint& point);
  void Weigh(std::span<Play> plays);
  void AddReplays(std::vector<Play>& plays) const;
  // Gradient steps on an update's episodes, then those on the critics alone. False when `stop` said so.
  bool Descend(std::span<const Play> plays, int64_t threads, Undo& undo, CurvePoint& point, const StopCheck& stop);
  at::Tensor Loss(const Play& play, size_t episode, const Likelihood& likelihood, double share, bool imagined) const;

  Alone alone_;
  Ranks& ranks_;
  const Method method_;
  // Of one graph: a policy for several is wanted for itself.
  Rounds rounds() const { return {cases_.size() == 1 ? method_.learner.restart_every : 0, planned_updates_}; }
  // The policy as it was at first, and nothing remembered of its gradients.
  void BeginAnew();
  void KeepFirst();
  void Adopt(size_t index, const PlanResult& found);
  void KeepNumbers();
  // All ranks have the policy of rank 0. It is theirs already, but for last bits where their processors differ.
  void SharePolicy();

  const Random random_;
  int64_t planned_updates_;
  LearnerState state_;
  std::vector<LearnCase> cases_;
  Player player_;
  std::vector<at::Tensor> first_;                       // the policy's parameters, as each round begins with them
  std::vector<std::pair<size_t, PlanResult>> dropped_;  // case and result, in updates that were stopped
};

}  // namespace berth
