#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "placement/search.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// Runs one planner after another and keeps the best. Each gets an equal share of what is left of the budget, and what
// it does not use goes to those after it; planners that improve a placement begin from the best so far. `single` always
// runs first, and has all of the budget: the result is never worse than the best single device that it reaches. A
// member that refuses the problem is left out, and it says so.
class BestOfPlanner : public NamedPlanner {
 public:
  BestOfPlanner(const Params& params, const PlannerCatalog& catalog) : NamedPlanner(params) {
    const std::vector<std::string> names = params.Specs("planners");
    if (names.empty())
      throw Error("planner best_of: name planners, as in best_of(heft,mincut); auto chooses by itself");
    members_.push_back(catalog.MakePlanner("single"));
    for (const std::string& name : names) {
      std::unique_ptr<Planner> member = catalog.MakePlanner(name);
      if (member->name() != "single") members_.push_back(std::move(member));
    }
  }

  PlannerFacts facts() const override {
    PlannerFacts facts{.deterministic_without_seed = true};
    for (const auto& member : members_) {
      facts.space = std::max(facts.space, member->facts().space);
      facts.deterministic_without_seed = facts.deterministic_without_seed && member->facts().deterministic_without_seed;
    }
    return facts;
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    std::vector<size_t> able;
    std::vector<std::string> refusals;
    for (size_t i = 0; i < members_.size(); ++i) {
      const auto refused = members_[i]->Refuses(request.problem(), request.evaluator);
      if (!refused) able.push_back(i);
      if (refused) refusals.push_back(fmt::format("{} refused: {}", members_[i]->name(), *refused));
    }
    bool optimal = false;
    std::string last;  // what ended the last member that failed
    for (size_t k = 0; k < able.size() && !search.Done() && !optimal; ++k) {
      Planner& member = *members_[able[k]];
      const bool single = able[k] == 0;
      const PlanRequest part = Share(search, request, able[k], single ? 1 : static_cast<int64_t>(able.size() - k));
      try {
        const PlanResult result = member.MakePlan(part);
        search.Adopt(result, part.budget, member.name());
        optimal = NoPlanIsBetter(member, result, request.evaluator.facts());
      } catch (const Error& error) {
        search.AdoptFailure(error);
        last = error.what();
        refusals.push_back(fmt::format("{} failed: {}", member.name(), error.what()));
      }
    }
    if (!search.has_best() && !last.empty()) throw FailedSearch(Error("{}", last), search.Found());
    return search.Finish(optimal, fmt::format("{}", fmt::join(refusals, "; ")));
  }

 private:
  static PlanRequest Share(const Search& search, const PlanRequest& request, size_t member, int64_t members_left) {
    int64_t evaluations = request.budget.evaluations;
    if (evaluations < std::numeric_limits<int64_t>::max())
      evaluations = std::max<int64_t>(1, search.evaluations_left() / members_left);
    const double seconds = (request.budget.seconds - search.seconds()) / static_cast<double>(members_left);
    PlanRequest part = search.Remaining(member, evaluations, seconds);
    part.start = search.has_best() ? &search.best() : request.start;
    return part;
  }

  std::vector<std::unique_ptr<Planner>> members_;
};

}  // namespace

void RegisterBestOf(PlannerCatalog& catalog) {
  catalog.Add(
      {.name = "best_of",
       .sentence =
           "Runs the named planners one after another and takes the best plan; a search begins with the best one so "
           "far, where it takes one to begin with. Never worse than the best single device that the budget reaches.",
       .source = "-",
       .parameters = {{.name = "planners",
                       .type = ParameterType::kSpecs,
                       .default_value = "",
                       .sentence = "planners, in the order in which they run"}}},
      [](const Params& params, const PlannerCatalog& all) { return std::make_unique<BestOfPlanner>(params, all); });
}

}  // namespace berth
