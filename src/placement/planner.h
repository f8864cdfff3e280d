// Answers a Problem with a Plan, within a Budget, and keeps the best so far at any time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/catalog.h"
#include "base/random.h"
#include "base/stopwatch.h"
#include "placement/evaluator.h"
#include "placement/plan.h"

namespace berth {

// The same for every planner, so that comparisons are fair. Whichever ends first.
struct Budget {
  int64_t evaluations = std::numeric_limits<int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  const std::atomic<bool>* cancelled = nullptr;  // Ctrl-C or SIGTERM: stop and keep the best

  bool endless() const {
    return evaluations == std::numeric_limits<int64_t>::max() && seconds == std::numeric_limits<double>::infinity();
  }

  // "200evals", "10s", "200evals,10s"; throws Error with an example.
  static Budget Parse(std::string_view text);
  std::string ToString() const;
};

// Why a search was over. Plan files say it by these names, so that a plan that was cut short is known as one.
enum class SearchEnd : uint8_t {
  kItself,       // the planner had nothing more to try
  kEvaluations,  // its budget of evaluations was spent
  kClock,        // its seconds were over: another machine or another run may find another plan
  kInterrupted,  // by Ctrl-C or SIGTERM
};
inline constexpr std::array<std::string_view, 4> kSearchEndNames = {"itself", "evaluations", "clock", "interrupted"};

// Called now and then with what a progress line shows.
struct Progress {
  int64_t evaluations;
  double seconds;
  Score best;  // never worse than what was told before
};
using ProgressCallback = std::function<void(const Progress&)>;

struct PlanRequest {
  const Problem& problem;
  const Evaluator& evaluator;
  Budget budget;
  Random random;
  ProgressCallback progress{};  // may be empty
  // A placement to begin with, for planners that improve one; may be null.
  const Plan* start = nullptr;
};

struct PlanResult {
  Plan plan{};
  Score score{};
  int64_t evaluations = 0;  // every score that was asked for: cached, incremental and final ones too
  double wall_seconds = 0;
  bool optimal = false;  // proven so, in the planner's own space
  // Learned planners: what the policy's own answer takes, without a search among samples; and how many decisions it
  // took per step, in the mean over the last update.
  std::optional<double> policy_seconds{}, policy_decisions{};
  std::string note{};  // one line for the report: what the planner found out, or why it stopped
};

// Of a planner that has answered under a budget.
SearchEnd HowItEnded(const Budget& budget, const PlanResult& result);

// Better means: feasible before infeasible, then less excess memory, then less of the objective.
bool Better(const Score& a, const Score& b);

// The one way in which planners ask for scores: counts each, minds the budget, and remembers the best plan.
class Search {
 public:
  explicit Search(const PlanRequest& request);

  const Problem& problem() const { return request_.problem; }
  const Evaluator& evaluator() const { return request_.evaluator; }
  Random& random() { return random_; }

  // True when the budget is spent; planners stop then. The first evaluation is always allowed, so that there is an
  // answer.
  bool Done() const;
  // True when the time is over or somebody interrupted it, whatever was evaluated so far. From any thread.
  bool Interrupted() const;
  int64_t evaluations() const { return evaluations_; }
  int64_t evaluations_left() const {
    constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();
    return request_.budget.evaluations == kNoEnd ? kNoEnd : request_.budget.evaluations - evaluations_;
  }
  double seconds() const { return watch_.seconds(); }  // since the search began

  // Scores a plan and keeps it when it is the best so far. `cause` is what all its ops get as their reason when the
  // plan itself brings none.
  Score Evaluate(const PlanView& plan, std::string_view cause);
  Score Evaluate(const Plan& plan);

  // Moves in a session count as evaluations too. Offer keeps what is committed when it is the best so far; `priority`
  // is what the session began with.
  Score Try(Session& session, OpId op, DeviceId device);
  Score Try(Session& session, std::span<const std::pair<OpId, DeviceId>> moves);
  void Offer(const Session& session, std::string_view cause, std::span<const double> priority = {});

  bool has_best() const { return has_best_; }
  const Plan& best() const { return best_; }
  const Score& best_score() const { return best_score_; }

  // For composites: a request for another planner, with what is left of this budget (or less) and a random stream of
  // its own; and what that planner found, adopted (a result without a plan only counts its evaluations).
  PlanRequest Remaining(uint64_t stream) const;
  PlanRequest Remaining(uint64_t stream, int64_t evaluations, double seconds) const;
  void Adopt(const PlanResult& result);

  PlanResult Finish(bool optimal = false, std::string note = {});

 private:
  void Keep(const PlanView& plan, const Score& score, std::string_view cause);
  void Count();

  const PlanRequest request_;
  Random random_;
  std::unique_ptr<Workspace> workspace_;
  Stopwatch watch_;
  double last_progress_ = 0;
  std::optional<Score> told_;
  int64_t evaluations_ = 0;
  bool has_best_ = false;
  Plan best_;
  Score best_score_;
};

// What a planner promises; the conformance tests hold it to that.
struct PlannerFacts {
  enum class Space : uint8_t { kPlacement, kPriorities, kSequence };
  Space space = Space::kPlacement;  // what its plans may carry
  bool deterministic_without_seed = false;
  bool learned = false;  // it trains, or has trained, a policy: reports show controls beside it
};

class Planner {
 public:
  virtual ~Planner() = default;
  // Its own string again, canonical: "heft(rank=upward)".
  virtual const std::string& name() const = 0;
  virtual PlannerFacts facts() const { return {}; }
  // Why it cannot answer this problem under this evaluator (a device count, a constraint); empty when it can. Asked
  // first.
  virtual std::optional<std::string> Refuses(const Problem&, const Evaluator&) const { return std::nullopt; }
  virtual PlanResult MakePlan(const PlanRequest& request) = 0;
};

// Composites are given the catalog; they include no sibling.
class PlannerCatalog : public Catalog<std::unique_ptr<Planner>(const PlannerCatalog&)> {
 public:
  PlannerCatalog() : Catalog("planner") {}
  std::unique_ptr<Planner> MakePlanner(std::string_view text) const { return Make(text, *this); }
};

}  // namespace berth
