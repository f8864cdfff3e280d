#include "plan/start.h"

#include "base/error.h"

namespace berth {

Parameter StartParameter() {
  return {.name = "start",
          .type = ParameterType::kChoice,
          .default_value = "simple",
          .sentence = "where it begins: simple, the best single device; random, a random placement",
          .choices = {"simple", "random"}};
}

std::vector<DeviceId> StartPlacement(Search& search, const Units& units, const Plan* given, const std::string& start) {
  const Problem& problem = units.problem();
  if (given != nullptr) {
    search.Evaluate({.device = given->device}, "where the search began");
    return given->device;
  }
  if (start == "random") {
    const std::vector<double> even(problem.num_devices(), 1);
    std::vector<DeviceId> device = units.Draw(search.random(), even);
    search.Evaluate({.device = device}, "drawn at random");
    return device;
  }
  const std::vector<DeviceId> class_of = InterchangeableDevices(search.evaluator());
  for (const DeviceId device : problem.cluster().ids()) {
    if (class_of[Index(device)] != device || search.Done()) continue;
    search.Evaluate({.device = units.AllOn(device)}, fmt::format("all on {}", problem.cluster().device(device).name));
  }
  return search.best().device;
}

}  // namespace berth
