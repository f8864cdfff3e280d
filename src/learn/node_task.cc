#include "learn/node_task.h"

#include "base/error.h"
#include "learn/scoring.h"

namespace berth {

std::vector<double> NodeTask::CostsOf(std::span<const int32_t> order, std::span<const std::span<const int64_t>> devices,
                                      Search& search, const PlayOptions& options) const {
  BERTH_CHECK(order.size() == coarse.size());
  if (options.stopped()) return {};
  std::vector<std::vector<DeviceId>> placements;
  std::vector<PlanView> plans;
  std::vector<int32_t> device_of_node(coarse.size());
  for (const std::span<const int64_t> device : devices) {
    for (size_t i = 0; i < order.size(); ++i) {
      device_of_node[static_cast<size_t>(order[i])] = static_cast<int32_t>(device[i]);
    }
    std::vector<DeviceId>& placement = placements.emplace_back(problem.num_ops());
    placer.Place(device_of_node, placement);
    KeepRules(placement);
  }
  for (const auto& placement : placements) plans.push_back({.device = placement});
  std::vector<Score> scores(plans.size());
  scores.resize(search.EvaluateAll(plans, scores, options.cause));
  std::vector<double> costs;
  for (const Score& score : scores) costs.push_back(CostOf(problem, score, options.memory_penalty));
  return costs;
}

}  // namespace berth
