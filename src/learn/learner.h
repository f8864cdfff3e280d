// Training, as the papers' algorithms read: play episodes, weigh their steps, follow the gradient.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/catalog.h"
#include "base/random.h"
#include "learn/critic.h"
#include "learn/curve.h"
#include "learn/policy.h"
#include "learn/scoring.h"
#include "learn/update_rule.h"
#include "placement/evaluator.h"
#include "placement/search.h"

namespace berth {

// A critic (critic.h) that stands in for the evaluator between evaluations.
struct CriticOptions {
  enum class Prior : uint8_t { kNone, kBlank, kCosts };
  Prior prior = Prior::kNone;  // kNone: no critic; kBlank: it knows nothing; kCosts: it begins with the problem's costs
  int64_t imagined = 0;        // gradient steps on the critic alone, after each update
};

struct LearnerOptions {
  int64_t workers = 1;   // play side by side, on threads, each on a case of its own where there are several
  int64_t rollouts = 1;  // episodes that a worker plays at once
  double learning_rate = 1e-3, learning_rate_end = 1e-3;  // Adam (Kingma and Ba 2015), linear over the planned updates
  double entropy = 0, entropy_end = 0;  // weight of the entropy bonus, geometric (linear where it ends at 0)
  double clip_norm = 0;                 // of the gradient over all parameters; 0: none
  // A policy with anchors (Policy::anchors) plays in all its ways in each update. Episodes that are held to a device
  // are rewarded for each decision on it, by this share of the first cost, which cools to a thousandth as a constant
  // factor: they come from the device alone and leave it only where that pays, where free ones come from chance and may
  // be caught where many ops would have to move together.
  double hold = 0;
};

// What one learned placer is: a policy and how it is trained.
struct Method {
  std::string name{};  // canonical
  std::function<std::shared_ptr<Policy>(const Problem&, Random)> make_policy{};
  // Why it cannot place this problem; empty when it can.
  std::function<std::optional<std::string>(const Problem&)> refuses{};
  RuleOptions rule{};
  ScoringOptions scoring{};
  LearnerOptions learner{};
  CriticOptions critic{};
  int64_t default_evaluations = 2000;  // where no budget is given
  bool seeded = false;                 // scores every single device first
  std::string checkpoint{};            // a file of Learner::Save to begin with; empty: begin anew
  bool train = true;                   // false: one greedy episode of the policy as it is
};

// Learned placers by name, from which planners and training are made alike.
struct MethodCatalog : Catalog<Method()> {
  MethodCatalog() : Catalog("learned planner") {}
};
void RegisterHsdag(MethodCatalog& catalog);
void RegisterPlaceto(MethodCatalog& catalog);

// Why a method cannot learn on a problem; empty when it can.
std::optional<std::string> WhyNot(const Method& method, const Problem& problem);

// One graph to learn on. All outlive the learner.
struct LearnCase {
  const Problem& problem;
  const Evaluator& evaluator;
  Search* search = nullptr;  // that counts its evaluations and keeps the best plan; null: one of the learner's own
};

// The same seed gives the same numbers on any number of threads.
class Learner {
 public:
  // Throws Error where the policy cannot take a case, or no case is given.
  Learner(const Method& method, std::vector<LearnCase> cases, const Random& random, int64_t planned_updates = 1);
  ~Learner();

  // What one update asks the evaluators for, in the mean over the cases.
  int64_t evaluations_per_update() const;
  // Over how many updates the schedules run. To be said before the first.
  int64_t planned_updates() const { return planned_updates_; }
  void set_planned_updates(int64_t count) { planned_updates_ = std::max<int64_t>(count, 1); }

  // One update of at most `evaluations`, on so many threads; empty when `stop`, which is asked on any thread, said so:
  // then nothing was learned, and what was found waits for AdoptDropped. Throws Error when every placement so far has
  // failed.
  std::optional<CurvePoint> Update(int64_t evaluations, int64_t threads, const StopCheck& stop = {});

  // The search of a case: the best that was found on it, with the number of evaluations.
  Search& search(size_t index) { return *searches_[index]; }
  // Gives the searches what the last update found before it was stopped. After that, a checkpoint is no longer that of
  // the updates alone.
  void AdoptDropped();

  // The policy's own answer: the likeliest decisions, of each of its ways to play, and the best of these. It takes
  // greedy_evaluations(), or `most`, which then leaves ways out; they count on the case like any episode's.
  struct Answer {
    double cost = 0;      // in seconds, penalty for memory included; infinity where it failed
    PlanResult result{};  // no plan where it failed
    std::string failure{};
  };
  Answer Greedy(size_t index, int64_t most = std::numeric_limits<int64_t>::max());
  int64_t greedy_evaluations(size_t index) const;
  // The geometric mean over the cases of what that answer costs, as CurvePoint::greedy_cost.
  double GreedyCost();

  int64_t updates() const { return updates_; }
  int64_t evaluations() const { return evaluations_; }
  // What the first placement that was scored on a case cost, in seconds; NaN without.
  double first_cost(size_t index) const { return reference_[index] * cases_[index].problem.seconds_per_unit(); }
  size_t num_cases() const { return cases_.size(); }

  // Everything that training needs to go on as if it had not been interrupted. The file is written beside and renamed.
  void Save(const std::string& path) const;
  // Throws Error where the checkpoint was made by another version, another method (unless only the policy is wanted),
  // or for other problems.
  void Load(const std::string& path, bool policy_only);

 private:
  struct Worker;
  struct Before;
  enum class Stepped : uint8_t { kDone, kDiverged, kStopped };
  struct Weights {  // of the loss, at a point of the schedules
    double learning_rate, entropy, hold;
  };

  // `share`: of the planned updates, from 0 to 1.
  Weights WeightsAt(double share) const;
  // Cost 1 in relative costs, in time units: the work, or, where something else than time is to be small, the first
  // cost.
  double Scale(size_t index) const;
  std::unique_ptr<Search> MakeSearch(size_t index, int64_t evaluations, Workspace* workspace, const StopCheck& stop);
  std::vector<Worker> MakeWorkers(int64_t evaluations, const StopCheck& stop);
  void CollectCosts(std::span<Worker> workers, CurvePoint& point);
  void WeighSteps(std::span<Worker> workers);
  // One gradient step on the given loss of each worker's episodes.
  Stepped Step(std::span<Worker> workers, int64_t threads, const Weights& weights, bool imagined, CurvePoint& point,
               const StopCheck& stop);
  at::Tensor Loss(const Worker& worker, size_t episode, const Likelihood& likelihood, const Weights& weights,
                  bool imagined) const;

  Method method_;
  std::vector<LearnCase> cases_;
  Random random_;
  int64_t planned_updates_;
  std::shared_ptr<Policy> policy_;
  UpdateRule rule_;
  std::unique_ptr<torch::optim::Adam> adam_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<double> reference_;  // per case, in time units: the first cost that was seen; NaN until then
  std::vector<double> work_;       // per case, in time units: each op on its fastest device, one after another
  std::string cause_;              // of plans
  std::vector<std::unique_ptr<const Evaluator>> scoring_;  // per case
  std::vector<std::unique_ptr<Search>> own_searches_;
  std::vector<Search*> searches_;                                    // per case
  std::vector<std::pair<size_t, PlanResult>> dropped_;               // case and result, in updates that were stopped
  std::vector<std::vector<std::unique_ptr<Workspace>>> workspaces_;  // per worker, per case; null until needed
  std::vector<std::unique_ptr<Critic>> critic_;                      // per case; empty without
  int64_t updates_ = 0, evaluations_ = 0, failures_ = 0;
};

// A planner that trains a method on the problem that it is given, within its budget.
std::unique_ptr<Planner> MakeLearnedPlanner(Method method);

}  // namespace berth
