#include "plan/start.h"

#include "base/error.h"
#include "placement/search.h"
#include "plan/rank.h"

namespace berth {

StartOptions::StartOptions(const Params& params)
    : start(params.Text("start")), by_rank(params.Text("order") == "rank") {}

std::vector<Parameter> StartOptions::Parameters() {
  return {{.name = "start",
           .type = ParameterType::kChoice,
           .default_value = "simple",
           .sentence = "first placement: simple, the best single device; random, a random one",
           .choices = {"simple", "random"}},
          {.name = "order",
           .type = ParameterType::kChoice,
           .default_value = "first_come",
           .sentence = "order of ops in its plans: first_come, none; rank, by the longest path to the end",
           .choices = {"first_come", "rank"}}};
}

Plan StartPlan(Search& search, const Units& units, const Plan* given, const StartOptions& options) {
  const Problem& problem = units.problem();
  Plan plan;
  if (options.by_rank && search.evaluator().facts().uses_priorities) plan.priority = UpwardRank(problem);
  const auto evaluate = [&](std::vector<DeviceId> device, std::string_view cause) {
    plan.device = std::move(device);
    return search.Evaluate(plan.view(), cause);
  };
  if (given != nullptr) {
    evaluate(given->device, "first placement of the search");
  } else if (options.start == "random") {
    const std::vector<double> even(problem.num_devices(), 1);
    evaluate(units.Draw(search.random(), even), "drawn at random");
  } else {
    const std::vector<DeviceId> class_of = InterchangeableDevices(search.evaluator());
    for (const DeviceId device : problem.cluster().ids()) {
      if (class_of[Index(device)] != device || search.Done()) continue;
      evaluate(units.AllOn(device), fmt::format("all on {}", problem.cluster().device(device).name));
    }
  }
  plan.device = search.best().device;
  return plan;
}

}  // namespace berth
