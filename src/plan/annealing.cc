#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/parameters.h"
#include "moves/moves.h"
#include "placement/search.h"
#include "plan/improvement.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/sequence_walk.h"
#include "plan/start.h"

namespace berth {
namespace {

// Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) over the moves of local_search; with order=search also over
// priorities, with order=sequence over one order of all ops, in which a device waits for its next one. A move that
// makes the score worse by the share x is kept with probability exp(-x / t); t falls geometrically from `hot` to `cold`
// over the budget (or `steps` when the budget has no end). Bytes over a memory limit count as time, so that the search
// can pass through placements that do not fit. Never worse than its start.
class AnnealingPlanner : public NamedPlanner {
 public:
  explicit AnnealingPlanner(const Params& params)
      : NamedPlanner(params),
        hot_(params.Real("hot")),
        cold_(params.Real("cold")),
        work_(params.Real("work")),
        steps_(params.Int("steps")),
        places_(params.Text("moves") == "all"),
        start_(params) {
    if (!places_ && !start_.searches_order()) {
      throw Error("planner {}: moves=order changes orders alone; give order=search or order=sequence, too", name());
    }
  }

  PlannerFacts facts() const override { return {.space = start_.space()}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    PlanRequest bounded = request;
    if (request.budget.endless()) bounded.budget.evaluations = steps_;
    Search search(bounded);
    const Units units(request.problem());
    const Plan start = StartPlan(search, units, request.start, start_);
    Improvement improvement(search, request);
    const EvaluatorFacts& facts = request.evaluator.facts();
    if (search.Done()) return improvement.Finish("", "better than its first plan");
    const Structure structure(units);
    if (start_.order == SearchOrder::kSequence && facts.Is<ParallelFacts>() && facts.uses_priorities) {
      // Two evaluations at once; one device has orders, too.
      if (search.evaluations_left() > 2)
        Anneal(SequenceWalk(search, start.view(), kFoundBySearch), search, structure, units, bounded.budget);
    } else if (request.problem().num_devices() > 1) {
      Anneal(Walk(search, start.view(), kFoundBySearch), search, structure, units, bounded.budget);
    }
    return improvement.Finish("", "better than its first plan");
  }

 private:
  // The work of the devices under a plan, and under what a move would make of it.
  class Loads {
   public:
    Loads(const Problem& problem, std::span<const DeviceId> device) : problem_(problem), load_(problem.num_devices()) {
      for (const OpId op : problem.graph().ops()) load_[Index(device[Index(op)])] += Time(op, device[Index(op)]);
      mean_ = tried_mean_ = MeanOf(load_);
    }

    double mean() const { return mean_; }  // the root of the mean of their squares
    double Try(std::span<const DeviceId> device, std::span<const std::pair<OpId, DeviceId>> moves) {
      if (moves.empty()) return tried_mean_ = mean_;
      tried_ = load_;
      for (const auto& [op, to] : moves) {
        tried_[Index(device[Index(op)])] -= Time(op, device[Index(op)]);
        tried_[Index(to)] += Time(op, to);
      }
      return tried_mean_ = MeanOf(tried_);
    }
    // The last Try, whose moves these were.
    void Take(std::span<const std::pair<OpId, DeviceId>> moves) {
      if (!moves.empty()) load_ = tried_;
      mean_ = tried_mean_;
    }

   private:
    double Time(OpId op, DeviceId device) const {
      const double time = problem_.op_time(op, device);
      return time < kCannotRun ? time : 0;
    }
    static double MeanOf(const std::vector<double>& loads) {
      double sum = 0;
      for (const double load : loads) sum += load * load;
      return std::sqrt(sum / static_cast<double>(loads.size()));
    }

    const Problem& problem_;
    std::vector<double> load_, tried_;
    double mean_, tried_mean_;
  };

  // `Steps`: Walk or SequenceWalk.
  template <typename Steps>
  void Anneal(Steps walk, Search& search, const Structure& structure, const Units& units, const Budget& budget) const {
    MoveMaker moves(units, structure);
    const bool orders = start_.searches_order() && !walk.priority().empty();
    ShapeChooser shapes(orders, places_);
    Loads loads(search.problem(), walk.device());
    double whole = std::max(search.best_score().value(), std::numeric_limits<double>::min());
    const double all_bytes = MemoryOf(search.problem());
    const auto energy = [&](const Score& score, double load) {
      // A placement that does not fit is at least a tenth worse.
      const double excess = static_cast<double>(score.excess_bytes) / all_bytes;
      return (score.value() + work_ * load) / whole + (score.fits() ? 0 : 0.1 + 10 * excess);
    };
    const int64_t first = search.evaluations();
    std::vector<double> starts(orders ? search.problem().num_ops() : 0);
    int since_path = Steps::kStartsFor;
    bool taken = true;
    // A problem without moves (one device each) would draw empty ones for ever.
    for (int idle = 0; idle < 10'000 && !search.Done();) {
      if (orders && taken && ++since_path >= Steps::kStartsFor) {
        walk.Starts(starts);
        moves.Know(FindCriticalPath(search.problem(), walk.device(), starts));
        since_path = 0;
        taken = false;
        if (search.Done()) break;
      }
      const MoveShape shape = shapes.Draw(search.random());
      const PlanChange change = moves.Draw(shape, walk.device(), walk.priority(), search.random());
      ++idle;
      if (change.moves.empty() && change.priorities.empty()) continue;
      idle = 0;
      const double spent = Spent(search, budget, first);
      const double temperature = hot_ * std::pow(cold_ / hot_, spent);
      // Every plan that has a score is better than a start that failed, which says nothing of how long others take.
      const bool lost = walk.score().failed();
      const double before = lost ? std::numeric_limits<double>::infinity() : energy(walk.score(), loads.mean());
      const Score score = walk.TryChange(change);
      if (lost && !score.failed()) whole = std::max(score.value(), std::numeric_limits<double>::min());
      // A score that failed is nowhere to go on from.
      const double worse = score.failed() ? std::numeric_limits<double>::infinity()
                                          : energy(score, loads.Try(walk.device(), change.moves)) - before;
      shapes.Report(shape, worse < 0);
      if (worse > 0 && !search.random().Chance(std::exp(-worse / temperature))) continue;
      loads.Take(change.moves);
      walk.Take();
      taken = true;
    }
  }

  static double Spent(const Search& search, const Budget& budget, int64_t first) {
    double share = 0;
    if (budget.evaluations < std::numeric_limits<int64_t>::max()) {
      share = static_cast<double>(search.evaluations() - first) /
              static_cast<double>(std::max<int64_t>(1, budget.evaluations - first));
    }
    if (std::isfinite(budget.seconds)) share = std::max(share, search.seconds() / budget.seconds);
    return std::min(share, 1.0);
  }

  static double MemoryOf(const Problem& problem) {
    double bytes = 1;
    for (const DeviceId device : problem.cluster().ids()) {
      const int64_t limit = problem.memory_limit(device);
      if (limit < std::numeric_limits<int64_t>::max()) bytes += static_cast<double>(limit);
    }
    return bytes;
  }

  double hot_, cold_, work_;
  int64_t steps_;
  bool places_;  // whether ops go to other devices
  StartOptions start_;
};

}  // namespace

void RegisterAnnealing(PlannerCatalog& catalog) {
  std::vector<Parameter> parameters = {
      Real("hot", "0.01", "first temperature, as a share of the first score", 1e-9, 1e3),
      Real("cold", "0.00001", "last temperature, as a share of the first score", 1e-12, 1e3),
      Real("work", "0", "how much the root mean square of the devices' work counts beside the score", 0, 1e6),
      Choice("moves", {"all", "order"},
             "what moves: all; order, the order of ops alone, with order=search or order=sequence"),
      Whole("steps", "20000", "evaluations, where the budget sets no limit", 1, 1e12)};
  for (Parameter& parameter : StartOptions::Parameters(SearchOrder::kSequence))
    parameters.push_back(std::move(parameter));
  catalog.Add({.name = "annealing",
               .sentence = "Simulated annealing with the moves of local_search, cooled over the budget.",
               .source = "Kirkpatrick, Gelatt and Vecchi 1983",
               .parameters = std::move(parameters)},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<AnnealingPlanner>(params); });
}

}  // namespace berth
