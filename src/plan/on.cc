#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/units.h"
#include "placement/grouping.h"
#include "placement/on_groups.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// Runs a planner on the problem with the further demand that each group shares a device. Plans are evaluated on the
// ungrouped graph (docs/decisions/0004-groups.md), so scores compare with those of every other planner.
class OnPlanner : public NamedPlanner {
 public:
  OnPlanner(const Params& params, const PlannerCatalog& planners, const GroupingCatalog& groupings)
      : NamedPlanner(params), on_(params), groupings_(groupings), planner_(planners.MakePlanner(on_.planner())) {
    if (groupings.Find(Spec::Parse(on_.group()).name) == nullptr) {
      ThrowUnknownName(groupings.what(), Spec::Parse(on_.group()).name, groupings.Names());
    }
  }

  PlannerFacts facts() const override { return planner_->facts(); }

  std::optional<std::string> Refuses(const Problem& problem, const Evaluator& evaluator) const override {
    if (const auto own = NamedPlanner::Refuses(problem, evaluator)) return own;
    // Groups only make a problem smaller: who answers the whole of it answers it in groups, which take their time.
    if (!planner_->Refuses(problem, evaluator)) return std::nullopt;
    size_t dropped = 0;
    return planner_->Refuses(Grouped(problem, groupings_.Make(on_.group(), problem, {}), dropped), evaluator);
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    const Stopwatch watch;
    // Groups that were made in half of the time are better than no search on them.
    bool stopped = false;
    const StopCheck stop = [&] {
      const std::atomic<bool>* cancelled = request.budget.cancelled;
      stopped = watch.seconds() > request.budget.seconds / 2 || (cancelled != nullptr && cancelled->load());
      return stopped;
    };
    const Grouping grouping = groupings_.Make(on_.group(), request.problem(), stop);
    size_t dropped = 0;
    const Problem grouped = Grouped(request.problem(), grouping, dropped);
    Budget rest = request.budget;
    const double grouping_seconds = watch.seconds();
    rest.seconds = std::max(0.0, rest.seconds - grouping_seconds);
    const bool may_start = request.start != nullptr && !FindViolation(grouped, request.start->view());
    PlanRequest inner = request;
    inner.constrained = &grouped;
    inner.budget = rest;
    if (!may_start) inner.start = nullptr;
    PlanResult result = planner_->MakePlan(inner);
    // Better plans may split a group.
    result.optimal = result.optimal && grouped.constraints().colocate == request.problem().constraints().colocate;
    std::string note = fmt::format("{} in {}", Counted(static_cast<int64_t>(request.problem().num_ops()), "op"),
                                   Counted(static_cast<int64_t>(grouping.num_groups()), "group"));
    if (stopped) result.cut_by = SearchEnd::kClock;
    // A fast machine's notes need no clock, so that equal runs print equal pages.
    if (stopped)
      note += fmt::format(", which were stopped, or had used half of the time, after {}",
                          ToString(Seconds{grouping_seconds}));
    result.wall_seconds += grouping_seconds;
    if (dropped > 0) note += fmt::format("; constraints split {} of them", dropped);
    result.note = result.note.empty() ? note : note + "; " + result.note;
    return result;
  }

 private:
  OnGroups on_;
  GroupingCatalog groupings_;
  std::unique_ptr<Planner> planner_;
};

}  // namespace

void RegisterOn(PlannerCatalog& catalog, const GroupingCatalog& groupings) {
  catalog.Add({.name = OnGroups::kName,
               .sentence = "Runs a planner on groups of ops, each of which shares a device.",
               .source = "-",
               .parameters = OnGroups::Parameters()},
              [groupings](const Params& params, const PlannerCatalog& all) {
                return std::make_unique<OnPlanner>(params, all, groupings);
              });
}

}  // namespace berth
