#include <algorithm>
#include <vector>

#include "placement/search.h"
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
    for (const DeviceId device : LeastWorkFirst(request.problem())) {
      if (class_of[Index(device)] != device) continue;
      if (search.Done()) return search.Finish(false, "the budget ended before every device was tried");
      search.Evaluate(PlanOn(units, device));
    }
    return search.Finish();
  }

 private:
  // So that a budget of one score is spent on the one that is likely the best.
  static std::vector<DeviceId> LeastWorkFirst(const Problem& problem) {
    std::vector<double> work(problem.num_devices());
    for (const OpId op : problem.graph().ops()) {
      for (const DeviceId device : problem.cluster().ids()) work[Index(device)] += problem.op_time(op, device);
    }
    const auto ids = problem.cluster().ids();
    std::vector<DeviceId> devices(ids.begin(), ids.end());
    std::ranges::stable_sort(devices, {}, [&](DeviceId device) { return work[Index(device)]; });
    return devices;
  }

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
