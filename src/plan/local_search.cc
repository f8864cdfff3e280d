#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/parameters.h"
#include "moves/moves.h"
#include "placement/search.h"
#include "plan/improvement.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/start.h"

namespace berth {
namespace {

// Hill climbing over moves from one op to whole branches; a move is kept when the score is no worse, because makespans
// have wide plateaus. When a climb has gone on for long without a gain the next one begins from the best placement,
// shaken by a few random moves: until the budget ends, or when it has no end, `restarts` times. Never worse than its
// start.
class LocalSearchPlanner : public NamedPlanner {
 public:
  explicit LocalSearchPlanner(const Params& params)
      : NamedPlanner(params), restarts_(params.Int("restarts")), start_(params) {}

  PlannerFacts facts() const override { return {.space = start_.space()}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    Plan plan = StartPlan(search, units, request.start, start_);
    Improvement improvement(search, request);
    int64_t climbs = 0;
    if (search.Done()) return improvement.Finish("0 climbs, ", "below the start");
    const Structure structure(units);
    MoveMaker moves(units, structure);
    while (!search.Done() && request.problem().num_devices() > 1) {
      const bool moved = Climb(search, units, moves, plan);
      ++climbs;
      if (!moved || search.Done() || (request.budget.endless() && climbs > restarts_)) break;
      plan.device = Shaken(search, moves);
      search.Evaluate(plan.view(), kFoundBySearch);
    }
    return improvement.Finish(fmt::format("{} climb{}, ", climbs, climbs == 1 ? "" : "s"), "below the start");
  }

 private:
  // False where no op may move.
  static bool Climb(Search& search, const Units& units, MoveMaker& moves, const Plan& start) {
    Walk walk(search, start.view(), kFoundBySearch);
    ShapeChooser shapes;
    const size_t neighbours = units.size() * (search.problem().num_devices() - 1);
    const size_t patience = std::clamp<size_t>(4 * neighbours, 200, 20'000);
    bool moved = false;
    for (size_t without_gain = 0; without_gain < patience && !search.Done(); ++without_gain) {
      const MoveShape shape = shapes.Draw(search.random());
      const auto move = moves.Draw(shape, walk.device(), search.random());
      if (move.empty()) continue;
      moved = true;
      const Score before = walk.score();
      const Score score = walk.Try(move);
      if (Better(before, score)) {
        shapes.Report(shape, false);
        continue;
      }
      walk.Take();
      const bool gained = Better(score, before);
      shapes.Report(shape, gained);
      if (gained) without_gain = 0;
    }
    return moved;
  }

  static std::vector<DeviceId> Shaken(Search& search, MoveMaker& moves) {
    std::vector<DeviceId> device = search.best().device;
    for (size_t k = 2 + search.random().Below(4); k > 0; --k) {
      const auto shape = static_cast<MoveShape>(search.random().Below(kPlacementShapes));
      for (const auto& [op, to] : moves.Draw(shape, device, search.random())) device[Index(op)] = to;
    }
    return device;
  }

  int64_t restarts_;
  StartOptions start_;
};

}  // namespace

void RegisterLocalSearch(PlannerCatalog& catalog) {
  std::vector<Parameter> parameters = {Whole("restarts", "3", "restarts, where the budget sets no limit", 0)};
  for (Parameter& parameter : StartOptions::Parameters(SearchOrder::kRank)) parameters.push_back(std::move(parameter));
  catalog.Add({.name = "local_search",
               .sentence = "Hill climbing that moves single ops, segments, clusters and branches, with restarts.",
               .source = "-",
               .parameters = std::move(parameters)},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<LocalSearchPlanner>(params); });
}

}  // namespace berth
