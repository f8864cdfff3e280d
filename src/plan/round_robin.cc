#include "placement/search.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// Units in turn to the devices, each to the next one that can run it.
class RoundRobinPlanner : public NamedPlanner {
 public:
  using NamedPlanner::NamedPlanner;

  PlannerFacts facts() const override { return {.deterministic_without_seed = true, .simple = true}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    const size_t devices = request.problem().num_devices();
    std::vector<DeviceId> device(request.problem().num_ops());
    for (size_t unit = 0, turn = 0; unit < units.size(); ++unit, ++turn) {
      while (!units.can_run(unit, MakeId<DeviceId>(turn % devices))) ++turn;
      units.Put(device, unit, MakeId<DeviceId>(turn % devices));
    }
    search.Evaluate({.device = units.Legal(std::move(device))}, "dealt in turn");
    return search.Finish();
  }
};

}  // namespace

void RegisterRoundRobin(PlannerCatalog& catalog) {
  catalog.Add({.name = "round_robin", .sentence = "Deals the ops out to the devices in turn.", .source = "-"},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<RoundRobinPlanner>(params); });
}

}  // namespace berth
