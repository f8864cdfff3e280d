#include "learn/node_task.h"

#include "base/error.h"
#include "learn/scoring.h"

namespace berth {

void NodeTask::Place(std::span<const int32_t> order, std::span<const int64_t> device,
                     std::span<DeviceId> placement) const {
  BERTH_CHECK(order.size() == coarse.size() && device.size() == coarse.size());
  std::vector<int32_t> device_of_node(coarse.size());
  for (size_t i = 0; i < order.size(); ++i) {
    device_of_node[static_cast<size_t>(order[i])] = static_cast<int32_t>(device[i]);
  }
  placer.Place(device_of_node, placement);
  KeepRules(placement);
}

std::vector<double> NodeTask::CostsOf(std::span<const int32_t> order, std::span<const std::span<const int64_t>> devices,
                                      Search& search, const PlayOptions& options) const {
  if (options.stopped()) return {};
  std::vector<std::vector<DeviceId>> placements;
  std::vector<PlanView> plans;
  for (const std::span<const int64_t> device : devices) {
    Place(order, device, placements.emplace_back(problem.num_ops()));
  }
  for (const auto& placement : placements) plans.push_back({.device = placement});
  std::vector<Score> scores(plans.size());
  scores.resize(search.EvaluateAll(plans, scores, options.cause));
  std::vector<double> costs;
  for (const Score& score : scores) costs.push_back(CostOf(problem, score, options.memory_penalty));
  return costs;
}

std::vector<double> NodeTask::CostsOf(std::span<const int32_t> order,
                                      std::span<const std::unique_ptr<Episode>> episodes, Search& search,
                                      const PlayOptions& options) const {
  std::vector<std::span<const int64_t>> devices;
  for (const auto& episode : episodes) devices.emplace_back(episode->device);
  return CostsOf(order, devices, search, options);
}

}  // namespace berth
