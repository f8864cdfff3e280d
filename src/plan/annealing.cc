#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/error.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/moves.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/start.h"

namespace berth {
namespace {

// Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) over the moves of local_search. A move that makes the score
// worse by the share x is kept with probability exp(-x / t); t falls geometrically from `hot` to `cold` over the budget
// (or `steps` when the budget has no end). Bytes over a memory limit count as time, so that the search can pass through
// placements that do not fit. Never worse than its start.
class AnnealingPlanner : public NamedPlanner {
 public:
  explicit AnnealingPlanner(const Params& params)
      : NamedPlanner(params),
        hot_(params.Real("hot")),
        cold_(params.Real("cold")),
        steps_(params.Int("steps")),
        start_(params) {}

  PlannerFacts facts() const override { return {.space = start_.space()}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    PlanRequest bounded = request;
    if (request.budget.endless()) bounded.budget.evaluations = steps_;
    Search search(bounded);
    const Units units(request.problem());
    const Plan start = StartPlan(search, units, request.start, start_);
    const double started_at = search.best_score().value();
    if (request.problem().num_devices() > 1 && !search.Done()) Anneal(search, units, bounded.budget, start);
    const double gain = started_at > 0 ? 1 - search.best_score().value() / started_at : 0;
    PlanResult result = search.Finish(false, fmt::format("{:.1f} % better than its first plan", 100 * gain));
    GiveCauses(request.problem(), result.plan, "found by search");
    return result;
  }

 private:
  void Anneal(Search& search, const Units& units, const Budget& budget, const Plan& start) const {
    Walk walk(search, start.view(), "found by search");
    const Structure structure(units);
    MoveMaker moves(units, structure);
    ShapeChooser shapes;
    const double whole = std::max(search.best_score().value(), std::numeric_limits<double>::min());
    const double all_bytes = MemoryOf(search.problem());
    const auto energy = [&](const Score& score) {
      // A placement that does not fit is at least a tenth worse.
      const double excess = static_cast<double>(score.excess_bytes) / all_bytes;
      return score.value() / whole + (score.fits() ? 0 : 0.1 + 10 * excess);
    };
    const int64_t first = search.evaluations();
    // A problem without moves (one device each) would draw empty ones for ever.
    for (int idle = 0; idle < 10'000 && !search.Done();) {
      const MoveShape shape = shapes.Draw(search.random());
      const auto move = moves.Draw(shape, walk.device(), search.random());
      ++idle;
      if (move.empty()) continue;
      idle = 0;
      const double spent = Spent(search, budget, first);
      const double temperature = hot_ * std::pow(cold_ / hot_, spent);
      const double before = energy(walk.score());
      const Score score = walk.Try(move);
      // A score that failed is nowhere to go on from.
      const double worse = score.failed() ? std::numeric_limits<double>::infinity() : energy(score) - before;
      shapes.Report(shape, worse < 0);
      if (worse > 0 && !search.random().Chance(std::exp(-worse / temperature))) continue;
      walk.Take();
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

  double hot_, cold_;
  int64_t steps_;
  StartOptions start_;
};

}  // namespace

void RegisterAnnealing(PlannerCatalog& catalog) {
  std::vector<Parameter> parameters = {{.name = "hot",
                                        .type = ParameterType::kReal,
                                        .default_value = "0.01",
                                        .sentence = "first temperature, as a share of the first score",
                                        .least = 1e-9,
                                        .most = 1e3},
                                       {.name = "cold",
                                        .type = ParameterType::kReal,
                                        .default_value = "0.00001",
                                        .sentence = "last temperature, as a share of the first score",
                                        .least = 1e-12,
                                        .most = 1e3},
                                       {.name = "steps",
                                        .type = ParameterType::kInt,
                                        .default_value = "20000",
                                        .sentence = "evaluations, where the budget sets no limit",
                                        .least = 1,
                                        .most = 1e12}};
  for (Parameter& parameter : StartOptions::Parameters()) parameters.push_back(std::move(parameter));
  catalog.Add({.name = "annealing",
               .sentence = "Simulated annealing with the moves of local_search, cooled over the budget.",
               .source = "Kirkpatrick, Gelatt and Vecchi 1983",
               .parameters = std::move(parameters)},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<AnnealingPlanner>(params); });
}

}  // namespace berth
