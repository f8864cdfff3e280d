#include "plan/seeds.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "moves/rank.h"

namespace berth {

std::vector<std::unique_ptr<Planner>> MakeRules(const PlannerCatalog& catalog) {
  constexpr const char* kRules[] = {
      "single",
      "heft",
      "human",
      "mincut",
      "round_robin",
      "equal_layers",
      "topo",
      "memory_proportional",
      "first_fit",
      "etf(clusters=always)",
      // Larger linear programs take longer than searches need to do better.
      "sct(clusters=always,edges=4000)",
      "heft(clusters=always)",
      "heft(rank=optimistic)",
      "heft(rank=critical,clusters=always)",
      "metis",
  };
  std::vector<std::unique_ptr<Planner>> rules;
  for (const char* name : kRules) {
    // Some are not in every build, nor in every program's catalog.
    if (catalog.Find(Spec::Parse(name).name) != nullptr) rules.push_back(catalog.MakePlanner(name));
  }
  return rules;
}

Seeds::Seeds(const Params& params, const PlannerCatalog& catalog) : options_(params) {
  if (options_.start == "rules") rules_ = MakeRules(catalog);
}

std::vector<Parameter> Seeds::Parameters(SearchOrder last, const char* order) {
  std::vector<Parameter> parameters = StartOptions::Parameters(last);
  parameters[0].default_value = "rules";
  parameters[0].choices = {"rules", "simple", "random"};
  parameters[0].sentence =
      "what it begins with: rules, the plans of all simple rules and schedules; simple, the best single device; "
      "random, nothing but random plans";
  parameters[1].default_value = order;
  return parameters;
}

PlannerFacts::Space Seeds::space() const {
  return searches_order() && !rules_.empty() ? PlannerFacts::Space::kSequence : options_.space();
}

std::vector<Plan> Seeds::Plans(Search& search, const Units& units, const PlanRequest& request) const {
  std::vector<Plan> plans = {StartPlan(search, units, request.start, options_)};
  if (rules_.empty() || units.problem().num_devices() < 2) return plans;
  AddRules(search, request, plans);
  const std::vector<double> rank = plans.front().priority;
  for (Plan& plan : plans) {
    std::vector<double> own = searches_order() && !rank.empty() ? PrioritiesOf(plan) : std::vector<double>{};
    plan.priority = own.empty() ? rank : std::move(own);
    plan.sequence.reset();
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto same = [&](const Plan& other) {
      return other.device == plans[i].device && other.priority == plans[i].priority;
    };
    const auto again = std::remove_if(plans.begin() + static_cast<std::ptrdiff_t>(i) + 1, plans.end(), same);
    plans.erase(again, plans.end());
  }
  return plans;
}

void Seeds::AddRules(Search& search, const PlanRequest& request, std::vector<Plan>& plans) const {
  const Problem& problem = request.problem();
  const bool counted = request.budget.evaluations < std::numeric_limits<int64_t>::max();
  const double end = search.seconds() + kShare * (request.budget.seconds - search.seconds());
  const int64_t last =
      search.evaluations() + static_cast<int64_t>(kShare * static_cast<double>(search.evaluations_left()));
  for (size_t i = 0; i < rules_.size() && !search.Done(); ++i) {
    const auto left = static_cast<int64_t>(rules_.size() - i);
    const int64_t evaluations = counted ? (last - search.evaluations()) / left : search.evaluations_left();
    const double seconds = (end - search.seconds()) / static_cast<double>(left);
    if (rules_[i]->Refuses(problem, request.evaluator)) continue;
    if (counted && last <= search.evaluations()) return search.CutShort(SearchEnd::kEvaluations);
    if (seconds <= 0) return search.CutShort(SearchEnd::kClock);
    PlanRequest part = search.Remaining(i + 1, std::max<int64_t>(1, evaluations), seconds);
    part.start = nullptr;
    part.causes = false;      // the search gives its own
    part.progress = nullptr;  // of plans that may not be kept; they take no time
    try {
      PlanResult result = rules_[i]->MakePlan(part);
      if (result.plan.device.size() == problem.num_ops()) plans.push_back(result.plan);
      // A plan in an order that is not asked for is no answer.
      if (!searches_order()) result.plan = {};
      search.Adopt(result, part.budget);
    } catch (const Error& error) {
      search.AdoptFailure(error);
      // Groups and rules that keep ops apart may leave a rule without any placement.
    }
  }
}

}  // namespace berth
