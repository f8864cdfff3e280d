#include <cmath>

#include "base/parameters.h"
#include "placement/search.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

constexpr int64_t kDefaultEvaluations = 100;

// The null of all searches: each unit's device uniformly and independently among those that can run it, again and again
// until the budget ends (100 times when it has no end). With bias a placement first draws how likely each device is,
// uniformly over the simplex.
class RandomPlanner : public NamedPlanner {
 public:
  explicit RandomPlanner(const Params& params) : NamedPlanner(params), bias_(params.Bool("bias")) {}

  PlanResult MakePlan(const PlanRequest& request) override {
    PlanRequest bounded = request;
    if (request.budget.endless()) bounded.budget.evaluations = kDefaultEvaluations;
    Search search(bounded);
    const Units units(request.problem());
    std::vector<double> weight(request.problem().num_devices(), 1);
    while (!search.Done()) {
      if (bias_) {
        for (double& w : weight) w = -std::log(1 - search.random().Uniform());
      }
      const std::vector<DeviceId> device = units.Draw(search.random(), weight);
      search.Evaluate({.device = device}, "drawn at random");
    }
    return search.Finish();
  }

 private:
  bool bias_;
};

}  // namespace

void RegisterRandom(PlannerCatalog& catalog) {
  catalog.Add({.name = "random",
               .sentence = "Each op on a random device; the best of as many placements as the budget allows (100 where "
                           "it sets no limit).",
               .source = "-",
               .parameters = {Switch("bias", "false", "draw how likely each device is, before each placement")}},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<RandomPlanner>(params); });
}

}  // namespace berth
