#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/parameters.h"
#include "moves/rank.h"
#include "placement/grouping.h"
#include "placement/search.h"
#include "plan/coarsening.h"
#include "plan/improvement.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/seeds.h"

namespace berth {
namespace {

// By level, from the finest on: the larger the groups, the hotter.
constexpr std::array<const char*, 4> kSearches = {
    "annealing(order=rank,hot=0.001)", "annealing(order=rank,hot=0.002,cold=0.0001)",
    "annealing(order=rank,hot=0.005,cold=0.0005)", "annealing(order=rank,hot=0.01,cold=0.001)"};

// Places a few large groups of ops first, then smaller and smaller ones, each time from the best of what the level
// before found and of the simple rules' plans, put into groups (Coarsening; after Hendrickson and Leland 1995, who did
// it for cuts, and Herrmann et al. 2017, who kept the groups without cycles). Plans are scored on the whole graph at
// every level. Each level has an equal share of what is left of the budget.
class MultilevelPlanner : public NamedPlanner {
 public:
  MultilevelPlanner(const Params& params, const PlannerCatalog& catalog)
      : NamedPlanner(params), fewest_(static_cast<size_t>(params.Int("groups"))), rules_(MakeRules(catalog)) {
    for (const char* name : kSearches) searches_.push_back(catalog.MakePlanner(name));
  }

  PlannerFacts facts() const override { return {.space = PlannerFacts::Space::kSequence}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Problem& problem = request.problem();
    std::vector<Plan> starts = Starts(search, request);
    const Units units(problem);
    if (starts.empty()) {
      if (!search.has_best()) search.Evaluate({.device = units.Legal(units.AllOn(DeviceId{0}))}, "all on one device");
      starts.push_back(search.best());
    }
    const size_t fewest = std::max(fewest_, 4 * problem.num_devices());
    const Coarsening coarsening(units, fewest, [&] { return search.Done(); });
    const std::vector<double> rank =
        request.evaluator.facts().uses_priorities ? UpwardRank(problem) : std::vector<double>{};
    for (size_t level = coarsening.size(); level-- > 0 && !search.Done() && problem.num_devices() > 1;) {
      size_t dropped = 0;
      // Constraints may leave a group as it was.
      std::optional<Problem> grouped;
      if (level > 0) grouped = Grouped(problem, Grouping(problem.graph(), coarsening.Labels(level)), dropped);
      const Problem& here = grouped ? *grouped : problem;
      const std::optional<Plan> start = BestInGroups(search, Units(here), starts, rank);
      if (!start || search.Done()) break;
      int64_t evaluations = std::numeric_limits<int64_t>::max();
      if (request.budget.endless()) {
        evaluations = kStepsOfLevel;
      } else if (request.budget.evaluations < evaluations) {
        evaluations = std::max<int64_t>(1, search.evaluations_left() / static_cast<int64_t>(level + 1));
      }
      const double seconds = (request.budget.seconds - search.seconds()) / static_cast<double>(level + 1);
      PlanRequest part = search.Remaining(kFirstStream + level, evaluations, seconds);
      part.constrained = &here;
      part.start = &*start;
      part.causes = false;
      const PlanResult result = searches_[std::min(level, searches_.size() - 1)]->MakePlan(part);
      search.Adopt(result, part.budget);
      if (!result.plan.device.empty()) starts.push_back(result.plan);
    }
    PlanResult result = search.Finish(
        false, fmt::format("{} levels, from {} on", coarsening.size(),
                           Counted(static_cast<int64_t>(coarsening.num_groups(coarsening.size() - 1)), "group")));
    GiveCauses(request, result, kFoundBySearch);
    return result;
  }

 private:
  static constexpr int64_t kStepsOfLevel = 5000;  // where the budget has no end
  static constexpr uint64_t kFirstStream = 1000;

  // The plan that the request brings, or those of the rules. All are scored.
  std::vector<Plan> Starts(Search& search, const PlanRequest& request) {
    if (request.start != nullptr) {
      search.Evaluate(*request.start);
      return {*request.start};
    }
    std::vector<Plan> starts;
    for (size_t i = 0; i < rules_.size() && !search.Done(); ++i) {
      if (rules_[i]->Refuses(request.problem(), request.evaluator)) continue;
      try {
        PlanRequest part = search.Remaining(i);
        part.causes = false;
        const PlanResult result = rules_[i]->MakePlan(part);
        search.Adopt(result, part.budget);
        if (!result.plan.device.empty()) starts.push_back(result.plan);
      } catch (const Error& error) {
        search.AdoptFailure(error);
        // Rules that keep ops apart may leave one without any placement.
      }
    }
    return starts;
  }

  // The best of the plans when each group goes to the device where most of its work is.
  static std::optional<Plan> BestInGroups(Search& search, const Units& groups, std::span<const Plan> plans,
                                          const std::vector<double>& rank) {
    std::optional<Plan> best;
    Score best_score;
    for (const Plan& plan : plans) {
      if (search.Done()) break;
      std::optional<Plan> mine = InGroups(groups, plan);
      if (!mine) continue;
      mine->priority = rank;
      const Score score = search.Evaluate(mine->view(), kFoundBySearch);
      if (best && !Better(score, best_score)) continue;
      best = std::move(mine);
      best_score = score;
    }
    return best;
  }

  static std::optional<Plan> InGroups(const Units& groups, const Plan& plan) {
    const Problem& problem = groups.problem();
    Plan mine{.device = plan.device};
    std::vector<double> work(problem.num_devices());
    for (size_t group = 0; group < groups.size(); ++group) {
      std::ranges::fill(work, 0);
      for (const OpId op : groups.ops(group)) {
        const DeviceId device = plan.device[Index(op)];
        work[Index(device)] += problem.op_time(op, device);
      }
      // A group without work stays where its first op is.
      const auto most = std::ranges::max_element(work);
      const auto busiest = MakeId<DeviceId>(static_cast<size_t>(most - work.begin()));
      groups.Put(mine.device, group, *most > 0 ? busiest : plan.device[Index(groups.ops(group).front())]);
    }
    if (!groups.Legalise(mine.device)) return std::nullopt;
    return mine;
  }

  size_t fewest_;
  std::vector<std::unique_ptr<Planner>> rules_, searches_;
};

}  // namespace

void RegisterMultilevel(PlannerCatalog& catalog) {
  catalog.Add(
      {.name = "multilevel",
       .sentence = "Places a few large groups of ops first, then ever smaller ones.",
       .source = "after Hendrickson and Leland 1995; Herrmann et al. 2017",
       .parameters = {Whole("groups", "32", "about how many groups there are at first; at least four per device")}},
      [](const Params& params, const PlannerCatalog& all) { return std::make_unique<MultilevelPlanner>(params, all); });
}

}  // namespace berth
