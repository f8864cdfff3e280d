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
#include <utility>
#include <vector>

#include "base/catalog.h"
#include "base/error.h"
#include "base/random.h"
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
  kEvaluations,  // its evaluations, or those of a part of it, were spent
  kClock,        // its seconds, or those of a part, were over: another run may find another plan
  kInterrupted,  // by Ctrl-C or SIGTERM
};
inline constexpr std::array<std::string_view, 4> kSearchEndNames = {"itself", "evaluations", "clock", "interrupted"};

// Called now and then with what a progress line shows.
struct Progress {
  int64_t evaluations;
  double seconds;
  Score best;              // never worse than what was told before
  int64_t best_after = 0;  // evaluations up to and with the one that found it; `evaluations` may be a batch further
};
using ProgressCallback = std::function<void(const Progress&)>;

// A share of a search's evaluations: numbers, which nobody else has. They mean the same in another process.
struct Lease {
  int64_t first = 0;
  int64_t evaluations = std::numeric_limits<int64_t>::max();
};

struct PlanRequest {
  const Evaluator& evaluator;  // and with it the problem that it is bound to
  Budget budget;
  Random random;
  ProgressCallback progress{};  // may be empty
  // A placement to begin with, for planners that improve one; may be null.
  const Plan* start = nullptr;
  int64_t first_evaluation = 0;  // the number of its first one: a Lease's
  bool confirms = true;          // a noisy best is scored once more at once; false: by the search that adopts it
  // The evaluator's problem with further constraints, like groups that share a device; null: with its own alone.
  const Problem* constrained = nullptr;
  int64_t threads = 0;  // that planners may use; 0: as many as there are cores. No result depends on it
  // Whether the plan says of each op why it is where it is, which takes as long as a few scores. A composite that says
  // so itself asks no member for it.
  bool causes = true;

  const Problem& problem() const { return constrained != nullptr ? *constrained : evaluator.problem(); }
};

// That no plan has a lower Score::value, and of what that is proven.
struct ProvenBound {
  double value = 0;
  uint64_t problem = 0;  // Problem::fingerprint, which covers the constraints: of groups it is another one
  std::string evaluator{}, objective{};

  bool HoldsFor(const Evaluator& of) const {
    return of.facts().deterministic && evaluator == of.name() && objective == of.facts().objective.name &&
           problem == of.problem().fingerprint();
  }
};

// What one member of a portfolio did.
struct Contribution {
  std::string planner{};
  int64_t evaluations = 0;
  double seconds = 0;
  Score score{};     // of its own best plan
  bool led = false;  // that was better than all before it
};

// What a learned planner did beside its plan, in seconds; the costs of training with their penalty for memory.
struct Learned {
  struct Update {
    int64_t evaluations;  // of the search, up to and with this update
    double drawn;         // the least cost of what the policy has drawn so far; infinity where all failed
    double mean;          // of this update's draws that did not fail
  };
  std::vector<Update> updates{};  // the whole ones
  // The least cost of what was scored and not drawn: single devices first, and what episodes began with.
  std::optional<double> starts{};
  // What the policy's own answer takes, without a search among samples, in the unit of ObjectiveNumber (seconds, where
  // time is the objective); infinite where it does not fit.
  std::optional<double> likeliest{};
};

struct PlanResult {
  Plan plan{};
  Score score{};
  int64_t evaluations = 0;  // every score that was asked for: cached, incremental, failed and final ones too
  int64_t best_after = 0;   // how many of them were made up to and with the one that found the plan; 0: not known
  int64_t failures = 0;     // of these: how many failed,
  std::string failure{};    // and why the last one did
  // Scores that simulators gave besides, while searches set themselves up. Measured ones count as evaluations.
  int64_t set_up = 0;
  int64_t next_number = 0;  // of the evaluation after the last one; numbers that were lent and not used are skipped
  double wall_seconds = 0;
  // What a score took on average, the first one aside where there are others: that one sets up. 0 where the budget has
  // no seconds.
  double seconds_per_evaluation = 0;
  // Of searches made of others with budgets of their own: what cut one short or left it out; all spent counts as cut.
  std::optional<SearchEnd> cut_by{};
  bool optimal = false;                // proven so, in the planner's own space
  std::optional<ProvenBound> bound{};  // the largest that the search has proven
  std::optional<Learned> learned{};    // of learned planners
  // Portfolios: of each member that found a plan, in the order in which they were asked. The last that led has the
  // plan.
  std::vector<Contribution> contributions{};
  std::string note{};  // one line for the report: what the planner found out, or why it stopped
};

// A planner has no plan to answer with, after it asked for scores, which count.
class FailedSearch : public Error {
 public:
  FailedSearch(const Error& why, PlanResult found) : Error(why), asked(std::move(found)) { asked.plan = {}; }
  PlanResult asked;  // without a plan
};

// Of a planner that has answered under a budget: what ended its search, or a part of it.
SearchEnd HowItEnded(const Budget& budget, const PlanResult& result);

// What a planner promises; the conformance tests hold it to that.
struct PlannerFacts {
  enum class Space : uint8_t { kPlacement, kPriorities, kSequence };
  Space space = Space::kPlacement;  // what its plans may carry
  bool deterministic_without_seed = false;
  bool simple = false;   // a rule that takes no search, or what papers compare with: reports show the best of these
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

// Whether no plan is better than this result of the planner: an optimum among placements may still be beaten by an
// order.
bool NoPlanIsBetter(const Planner& planner, const PlanResult& result, const EvaluatorFacts& evaluator);

// Composites are given the catalog; they include no sibling.
class PlannerCatalog : public Catalog<std::unique_ptr<Planner>(const PlannerCatalog&)> {
 public:
  PlannerCatalog() : Catalog("planner") {}
  std::unique_ptr<Planner> MakePlanner(std::string_view text) const { return Make(text, *this); }
};

}  // namespace berth
