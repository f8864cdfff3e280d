#include "placement/single_devices.h"

#include <algorithm>
#include <functional>

namespace berth {

int64_t SingleDevices::evaluations() const {
  return std::ranges::count_if(score, [](const auto& one) { return one.has_value(); });
}

std::vector<double> SingleDevices::times() const {
  std::vector<double> times;
  for (const std::optional<Score>& one : score) times.push_back(one && one->fits() ? one->time : kCannotRun);
  return times;
}

std::vector<double> SingleDevices::spreads() const {
  std::vector<double> spreads;
  for (const std::optional<Score>& one : score) spreads.push_back(one && one->fits() ? one->spread : 0);
  return spreads;
}

bool OnOneDevice(std::span<const DeviceId> device) {
  return std::ranges::adjacent_find(device, std::not_equal_to<>()) == device.end();
}

SingleDevices ScoreSingleDevices(const Evaluator& evaluator) {
  const Problem& problem = evaluator.problem();
  const auto workspace = evaluator.NewWorkspace();
  SingleDevices singles;
  for (const DeviceId on : problem.cluster().ids()) {
    const std::vector<DeviceId> device(problem.num_ops(), on);
    std::optional<Score>& score = singles.score.emplace_back();
    workspace->evaluation = -1 - static_cast<int64_t>(on);  // noise that no evaluation of a search has
    if (!FindViolation(problem, {.device = device})) score = evaluator.ScorePlan({.device = device}, *workspace);
  }
  return singles;
}

}  // namespace berth
