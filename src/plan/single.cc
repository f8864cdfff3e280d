#include <vector>

#include "placement/search.h"
#include "plan/contiguous.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// Everything on one device; what it cannot run goes to the fastest that can, as a runtime's fallback does. With
// device=best every device is tried, one evaluation each (interchangeable ones once), and the best is kept.
class SinglePlanner : public NamedPlanner {
 public:
  explicit SinglePlanner(const Params& params) : NamedPlanner(params), device_(params.Text("device")) {}

  PlannerFacts facts() const override { return {.deterministic_without_seed = true, .simple = true}; }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    if (device_ != "best") {
      search.Evaluate(PlanOn(units, request.problem().cluster().Find(device_)));
      return search.Finish();
    }
    const std::vector<DeviceId> class_of = InterchangeableDevices(request.evaluator);
    // The fastest first, so that a budget of one score is spent on the one that is likely the best.
    for (const DeviceId device : DevicesBySpeed(request.problem())) {
      if (class_of[Index(device)] != device) continue;
      if (search.Done()) return search.Finish(false, "the budget ended before every device was tried");
      search.Evaluate(PlanOn(units, device));
    }
    return search.Finish();
  }

 private:
  static Plan PlanOn(const Units& units, DeviceId device) {
    const Problem& problem = units.problem();
    const std::string& name = problem.cluster().device(device).name;
    Plan plan{.device = units.AllOn(device)};
    plan.SetCause(fmt::format("all on {}", name));
    for (const OpId op : problem.graph().ops()) {
      if (plan.device[Index(op)] != device) plan.SetCause(op, fmt::format("may not run on {}", name));
    }
    return plan;
  }

  std::string device_;
};

}  // namespace

void RegisterSingle(PlannerCatalog& catalog) {
  catalog.Add({.name = "single",
               .sentence = "All ops on one device; an op that it cannot run goes to the fastest device that can.",
               .source = "-",
               .parameters = {{.name = "device",
                               .type = ParameterType::kText,
                               .default_value = "best",
                               .sentence = "a device's name or number, or best: tries each"}}},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<SinglePlanner>(params); });
}

}  // namespace berth
