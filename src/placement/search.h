// The one gate to scores: counts what planners ask for, minds the budget, and remembers the best plan.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "placement/evaluator.h"
#include "placement/plan.h"
#include "placement/planner.h"

namespace berth {

// On how many threads an evaluator may be asked at once: UsableThreads() where `wanted` is 0, one where it is
// exclusive.
int64_t ThreadsFor(const Evaluator& evaluator, int64_t wanted);

// Better means: the better Outcome, which begins with those that fit; then less excess memory, then less of the
// objective.
bool Better(const Score& a, const Score& b);

// For one thread, but for Interrupted. Work on several threads takes place behind EvaluateAll, or each thread has a
// Search of its own over a Lease, which is adopted afterwards: there is no lock, and any number of threads gives the
// same numbers. A plan that fails costs one evaluation and is no more than that: the search goes on with the next.
// Where scores are noisy, a plan that looks like the best is scored once more, which counts, and its mean counts.
class Search {
 public:
  // `workspace`: of the request's evaluator, to be used instead of a new one; outlives the search.
  explicit Search(const PlanRequest& request, Workspace* workspace = nullptr);
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  const Problem& problem() const { return request_.problem(); }
  const Evaluator& evaluator() const { return request_.evaluator; }
  Random& random() { return random_; }

  // True when the budget is spent; planners stop then. Its seconds are, too, when what is left of them is less than a
  // score has taken so far (seconds_per_evaluation): on large graphs that is seconds. The first evaluation is always
  // allowed, so that there is an answer.
  bool Done() const;
  // True when the time is over or somebody interrupted it, whatever was evaluated so far. From any thread.
  bool Interrupted() const;
  int64_t evaluations() const { return evaluations_; }
  int64_t evaluations_left() const {
    constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();
    return request_.budget.evaluations == kNoEnd ? kNoEnd : request_.budget.evaluations - evaluations_;
  }
  double seconds() const { return watch_.seconds(); }  // since the search began
  double seconds_left() const { return request_.budget.seconds - seconds(); }
  // In the mean, the first one aside where there are others: that one sets up. Those of adopted results count where
  // there are no own ones. 0 where there are none, or the budget has no seconds.
  double seconds_per_evaluation() const;
  // Of all evaluations so far: how many failed, and why the last of these did.
  int64_t failures() const { return failures_; }
  const std::string& last_failure() const { return last_failure_; }

  // Scores a plan and keeps it when it is the best so far. `cause` is what all its ops get as their reason when the
  // plan itself brings none; `starts`, where not empty, receives the start of each op.
  Score Evaluate(const PlanView& plan, std::string_view cause, std::span<double> starts = {});
  Score Evaluate(const Plan& plan);
  // Scores the plans as one after another would be, on the request's threads; keeps the best (of equals the first).
  // Returns how many of them, from the first on, were scored before the budget, or `stop`, which any of the threads may
  // ask, ended it.
  size_t EvaluateAll(std::span<const PlanView> plans, std::span<Score> scores, std::string_view cause,
                     const StopCheck& stop = {});
  // The plan of an evaluation before, whose score is known: counts as one more.
  void Repeat(const Score& score);

  bool has_best() const { return has_best_; }
  const Plan& best() const { return best_; }
  const Score& best_score() const { return best_score_; }

  // For composites: a request for another planner, with what is left of this budget (or less) and a random stream of
  // its own; and what that planner found under the budget that it was given, adopted (a result without a plan only
  // counts its evaluations). A portfolio names its members, and its result says what each has contributed.
  PlanRequest Remaining(uint64_t stream) const;
  PlanRequest Remaining(uint64_t stream, int64_t evaluations, double seconds) const;
  void Adopt(const PlanResult& result, const Budget& given, std::string member = {});
  // Of a planner that ended with an error: the scores that it had asked for.
  void AdoptFailure(const Error& error);
  // Told where a part of the search was cut short or left out. The clock counts for more than evaluations.
  void CutShort(SearchEnd by);

  // For workers: numbers of this search's own, which nobody else gets. A worker's Search over them ends in a result
  // that is adopted here, one worker after another in the order of their leases.
  Lease Lend(int64_t evaluations);
  int64_t next_number() const { return next_number_; }  // of the next evaluation, or the next lease's first
  void Adopt(const PlanResult& result) { AdoptPlan(result, {}); }

  // That no plan has a value below this one; noted where scores repeat.
  void Prove(double value);

  // What was found so far: without a plan where none has a score.
  PlanResult Found() const;
  // The answer. Some plan must have been evaluated; its score is kFailed where all failed.
  PlanResult Finish(bool optimal = false, std::string note = {});

 private:
  friend class Walk;

  // How long scores take: told when one begins, and how many then have ended.
  class Pace {
   public:
    explicit Pace(bool counts) : counts_(counts) {}
    void Begin() {
      if (counts_) watch_ = Stopwatch();
    }
    void End(int64_t evaluations);
    double seconds() const { return scores_ > 1 ? later_ / static_cast<double>(scores_ - 1) : first_; }

   private:
    bool counts_;
    Stopwatch watch_;
    int64_t scores_ = 0;
    double first_ = 0, later_ = 0;
  };

  Score Ask(const PlanView& plan, std::span<double> starts);
  // Counts a score, and says whether its plan is to be kept. A noisy one is first asked for again, as `plan`.
  bool IsBest(Score& score, const PlanView& plan);
  void Keep(const PlanView& plan, const Score& score, std::string_view cause, int64_t after);
  void Count(const Score& score);
  void AdoptPlan(const PlanResult& result, std::string member);
  void Tell();

  const PlanRequest request_;
  Random random_;
  std::unique_ptr<Workspace> own_workspace_;
  Workspace* workspace_;
  std::vector<std::unique_ptr<Workspace>> helpers_;  // of further threads
  Stopwatch watch_;
  Pace pace_;
  double adopted_pace_ = 0;
  double last_progress_ = 0;
  std::optional<Score> told_;
  std::vector<Contribution> contributions_;
  int64_t evaluations_ = 0, next_number_, set_up_ = 0, failures_ = 0;
  std::string last_failure_;
  bool deterministic_;
  bool confirms_;  // what seems the best is asked for once more
  std::optional<ProvenBound> bound_;
  std::optional<SearchEnd> cut_by_;
  bool has_best_ = false;
  Plan best_;
  Score best_score_;
  int64_t best_after_ = 0;  // evaluations up to and with it
};

// A plan of a search that is changed by moves: each is tried, which counts as an evaluation, and then taken or not.
class Walk {
 public:
  // Begins at a plan that the search has scored already: the simulator's own first score is set-up and not counted,
  // a measured one counts. `cause` is the reason of all ops in plans that are kept. Sequences are left out.
  Walk(Search& search, const PlanView& start, std::string_view cause);

  const Score& score() const { return session_->score(); }  // of the plan as it stands
  std::span<const DeviceId> device() const { return session_->device(); }
  std::span<const double> priority() const { return priority_; }  // empty, or one per op

  Score Try(OpId op, DeviceId device) {
    const std::pair<OpId, DeviceId> move(op, device);
    return Try(std::span(&move, 1));
  }
  Score Try(std::span<const std::pair<OpId, DeviceId>> moves) { return TryChange({.moves = moves}); }
  Score TryChange(const PlanChange& change);
  // The starts of all ops in the plan as it stands, by an evaluation more; and how many moves, then, until they are
  // worth asking for again.
  void Starts(std::span<double> starts);
  static constexpr int kStartsFor = 20;
  // Makes the last Try permanent; the search keeps the plan when it is the best so far. One Take per Try.
  void Take();

 private:
  Search& search_;
  std::string cause_;
  std::vector<double> priority_;
  std::vector<std::pair<OpId, double>> tried_priorities_;
  std::unique_ptr<Session> session_;
  Score tried_;
  bool has_tried_ = false;
};

}  // namespace berth
