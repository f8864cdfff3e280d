// The plans that searches over many plans at once begin with.
#pragma once

#include <memory>
#include <vector>

#include "base/catalog.h"
#include "placement/planner.h"
#include "placement/search.h"
#include "placement/units.h"
#include "plan/start.h"

namespace berth {

// Rules and schedules that end by themselves, as far as the catalog has them: what a person would try first.
std::vector<std::unique_ptr<Planner>> MakeRules(const PlannerCatalog& catalog);

// The parameters `start` and `order` of such a search, and what they mean.
class Seeds {
 public:
  Seeds(const Params& params, const PlannerCatalog& catalog);
  static std::vector<Parameter> Parameters(SearchOrder last, const char* order);

  bool searches_order() const { return options_.searches_order(); }
  // Whether it begins with nothing but random plans.
  bool drawn() const { return options_.start == "random"; }
  // What the plans of such a planner may carry.
  PlannerFacts::Space space() const;

  // The request's start, or else the best single device, and with start=rules what the rules find in kShare of the
  // budget; with start=random one that is drawn evenly. At least one plan, different ones only, each with the
  // priorities by which the search runs it. All are evaluated, but for placements of rules in another order than
  // theirs.
  std::vector<Plan> Plans(Search& search, const Units& units, const PlanRequest& request) const;

 private:
  static constexpr double kShare = 0.4;
  void AddRules(Search& search, const PlanRequest& request, std::vector<Plan>& plans) const;

  StartOptions options_;
  std::vector<std::unique_ptr<Planner>> rules_;  // none but with start=rules
};

}  // namespace berth
