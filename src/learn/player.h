// Playing: episodes of a policy on the graphs that it learns on, each within its share of the evaluations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/ranks.h"
#include "learn/critic.h"
#include "learn/method.h"
#include "learn/parcel.h"
#include "learn/policy.h"
#include "placement/search.h"

namespace berth {

// One graph to learn on, and what is derived from it once.
struct LearnCase {
  LearnCase(Search& search, const Policy& policy, const ScoringOptions& scoring);

  const Problem& problem() const { return search->problem(); }

  Search* search;                            // counts its evaluations and keeps the best plan; outlives the case
  std::unique_ptr<Task> task;                // of the policy
  std::unique_ptr<const Evaluator> scoring;  // as the method scores
  double work;                               // in time units: each op on its fastest device, one after another
};

// What one worker plays in one update: episodes of one case.
struct Play {
  size_t index;  // of the case
  std::vector<std::unique_ptr<Episode>> episodes{};
  PlanResult found{};                         // the best of them, with what they cost; the case's search adopts it
  std::vector<std::vector<double>> weight{};  // per episode, per step; none where the case has no reference yet
  bool replayed = false;                      // episodes of the memory: they are imitated
};

// Which rank has number `i` of an update: a play, or a part of a gradient.
inline bool IsOf(const Ranks& ranks, size_t i) { return static_cast<int64_t>(i) % ranks.size() == ranks.rank(); }

// Each rank has made those of `count` that are its own; afterwards each has all of them. `pack` fills a parcel with
// number `i`, or reads it. True where one of the ranks, at least, has `stopped`.
bool ShareOut(Ranks& ranks, size_t count, bool stopped, const std::function<void(Parcel&, size_t)>& pack);

// The same generators give the same plays on any number of threads and ranks. Each rank plays its own plays, and then
// has those of all.
class Player {
 public:
  // All outlive the player.
  Player(const Method& method, const Policy& policy, const std::vector<LearnCase>& cases,
         const std::vector<Memory>& memories, const std::vector<std::unique_ptr<Critic>>& critics, Ranks& ranks);

  // How many plays an update has, at most.
  int64_t plays() const { return method_.learner.workers * policy_.ways(); }
  // What one update asks the evaluators for, on average over the cases.
  int64_t evaluations_per_update() const;
  int64_t greedy_evaluations(size_t index) const;

  struct Plays {
    std::vector<Play> all;
    bool stopped;  // `stop` said so on one of the ranks, at least: then some of them may be cut short
  };
  // The plays of an update (0 is the first; `round` and `share` as in PlayOptions) within so many evaluations, by
  // generators that `random` forks. Every case has its turn, also where there are more of them than workers. What other
  // ranks have played can be recalled as Policy::recalled_at_once says.
  Plays PlayUpdate(int64_t update, int64_t round, double share, int64_t evaluations, int64_t threads,
                   const Random& random, const StopCheck& stop);
  // One episode of the likeliest decisions for each way to play, within so many evaluations. Rank 0 plays it.
  Play PlayGreedily(size_t index, int64_t evaluations, int64_t threads, const Random& random,
                    const StopCheck& stop) const;

 private:
  std::unique_ptr<Search> Borrow(const LearnCase& of, const Lease& lease, const Random& random, Workspace& workspace,
                                 int64_t threads, const StopCheck& stop) const;
  void Pack(Parcel& parcel, Play& play) const;

  const Method& method_;
  const Policy& policy_;
  const std::vector<LearnCase>& cases_;
  const std::vector<Memory>& memories_;
  const std::vector<std::unique_ptr<Critic>>& critics_;
  Ranks& ranks_;
  std::string cause_;                                                // of plans
  std::vector<std::vector<std::unique_ptr<Workspace>>> workspaces_;  // per case, as many as its plays need at once
};

}  // namespace berth
