#include <algorithm>
#include <limits>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/parameters.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// The best cut of the topological order: what stands before it on one device, what stands after it on another, every
// cut and every ordered pair of devices (interchangeable devices once). An op that cannot run on its side's device goes
// to the other one, or else where it is fastest. When the budget is less than that, or no budget is given and the model
// is large: a grid of cuts first, then ever finer around the best. Ops that must share a device go with their first
// one.
class OneCutPlanner : public NamedPlanner {
 public:
  explicit OneCutPlanner(const Params& params) : NamedPlanner(params), cuts_(params.Int("cuts")) {}

  PlannerFacts facts() const override { return {.deterministic_without_seed = true, .simple = true}; }

  std::optional<std::string> Refuses(const Problem& problem, const Evaluator& evaluator) const override {
    if (problem.num_devices() < 2) return "it needs two devices";
    if (auto refused = RefusesSeparate(problem)) return refused;
    if (auto refused = RefusesForbiddenTransfers(problem)) return refused;
    return NamedPlanner::Refuses(problem, evaluator);
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    const std::vector<Pair> pairs = Pairs(request.evaluator);
    // Cut k has k units before it: 0 and all of them are the single devices.
    const int64_t per_pair = static_cast<int64_t>(units.size()) + 1;
    const int64_t all = per_pair * static_cast<int64_t>(pairs.size());
    const bool counted = request.budget.evaluations < std::numeric_limits<int64_t>::max();
    const int64_t most = counted ? request.budget.evaluations : cuts_ * static_cast<int64_t>(pairs.size());
    if (all <= most) {
      for (const Pair& pair : pairs) Sweep(search, units, pair, 1);
    } else {
      // Half of the budget for the grid, the rest for what is around its best.
      const auto stride = static_cast<size_t>(2 * ((all + most - 1) / most));
      std::vector<std::pair<Cut, Pair>> best;
      for (const Pair& pair : pairs) best.emplace_back(Sweep(search, units, pair, stride), pair);
      Refine(search, units, stride, best);
    }
    PlanResult result = search.Finish(false, all <= most ? "" : "not every cut was tried");
    GiveCauses(request, result, "on its side of the cut");
    return result;
  }

 private:
  struct Pair {
    DeviceId before, after;
  };
  struct Cut {
    Score score;
    size_t position;
  };

  static std::vector<Pair> Pairs(const Evaluator& evaluator) {
    const std::vector<DeviceId> class_of = InterchangeableDevices(evaluator);
    std::vector<Pair> pairs;
    std::set<std::pair<DeviceId, DeviceId>> seen;
    for (const DeviceId p : evaluator.problem().cluster().ids()) {
      for (const DeviceId q : evaluator.problem().cluster().ids()) {
        if (p != q && seen.emplace(class_of[Index(p)], class_of[Index(q)]).second) pairs.push_back({p, q});
      }
    }
    return pairs;
  }

  static DeviceId Side(const Units& units, size_t unit, DeviceId wanted, DeviceId other) {
    if (units.can_run(unit, wanted)) return wanted;
    return units.can_run(unit, other) ? other : units.fastest(unit);
  }

  static std::vector<DeviceId> Placement(const Units& units, const Pair& pair, size_t cut) {
    std::vector<DeviceId> device(units.problem().num_ops());
    for (size_t unit = 0; unit < units.size(); ++unit) {
      const bool before = unit < cut;
      units.Put(device, unit, Side(units, unit, before ? pair.before : pair.after, before ? pair.after : pair.before));
    }
    return device;
  }

  // Cuts 0, stride, 2 stride, ... of one pair, each reached from the one before by moving a few units. Returns the
  // best.
  static Cut Sweep(Search& search, const Units& units, const Pair& pair, size_t stride) {
    const std::vector<DeviceId> first = Placement(units, pair, 0);
    if (search.Done()) return {.score = {.time = kCannotRun, .outcome = Outcome::kImpossible}, .position = 0};
    Cut best{.score = search.Evaluate({.device = first}, ""), .position = 0};
    if (search.Done()) return best;
    Walk walk(search, {.device = first}, "");
    std::vector<std::pair<OpId, DeviceId>> moves;
    for (size_t cut = 0; cut < units.size() && !search.Done();) {
      moves.clear();
      for (const size_t end = std::min(cut + stride, units.size()); cut < end; ++cut) {
        const DeviceId device = Side(units, cut, pair.before, pair.after);
        for (const OpId op : units.ops(cut)) {
          if (walk.device()[Index(op)] != device) moves.emplace_back(op, device);
        }
      }
      if (moves.empty()) continue;
      const Score score = walk.Try(moves);
      walk.Take();
      if (Better(score, best.score)) best = {.score = score, .position = cut};
    }
    return best;
  }

  // Halves the stride around the best cut of the best pairs until it is 1.
  static void Refine(Search& search, const Units& units, size_t stride,
                     std::vector<std::pair<Cut, Pair>>& best_of_pair) {
    std::ranges::stable_sort(best_of_pair,
                             [](const auto& a, const auto& b) { return Better(a.first.score, b.first.score); });
    for (auto& [best, pair] : best_of_pair) {
      for (size_t step = stride; step > 1 && !search.Done();) {
        step = (step + 1) / 2;
        for (const bool up : {false, true}) {
          const size_t cut =
              up ? std::min(best.position + step, units.size()) : best.position - std::min(best.position, step);
          if (search.Done()) break;
          const Score score = search.Evaluate({.device = Placement(units, pair, cut)}, "");
          if (Better(score, best.score)) best = {.score = score, .position = cut};
        }
      }
    }
  }

  int64_t cuts_;
};

}  // namespace

void RegisterOneCut(PlannerCatalog& catalog) {
  catalog.Add({.name = "one_cut",
               .sentence = "The best single cut of the topological order between two devices.",
               .source = "-",
               .parameters = {Whole("cuts", "2000",
                                    "most cuts to try per pair of devices, where the budget sets no limit", 2)}},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<OneCutPlanner>(params); });
}

}  // namespace berth
