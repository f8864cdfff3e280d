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

std::vector<Score> NodeTask::ScoresOf(std::span<const int32_t> order, std::span<const Decided> decided, Search& search,
                                      const PlayOptions& options) const {
  if (options.stopped()) return {};
  std::vector<std::vector<DeviceId>> placements(decided.size());
  std::vector<std::vector<double>> priorities(decided.size());
  std::vector<PlanView> plans;
  for (size_t i = 0; i < decided.size(); ++i) {
    placements[i].resize(problem.num_ops());
    Place(order, decided[i].device, placements[i]);
    if (!decided[i].priority.empty()) priorities[i] = Priorities(order, decided[i].priority);
    plans.push_back({.device = placements[i], .priority = priorities[i]});
  }
  std::vector<Score> scores(plans.size());
  scores.resize(search.EvaluateAll(plans, scores, options.cause, options.stop));
  return scores;
}

std::vector<Score> NodeTask::ScoresOf(std::span<const int32_t> order,
                                      std::span<const std::unique_ptr<Episode>> episodes, Search& search,
                                      const PlayOptions& options) const {
  std::vector<Decided> decided;
  for (const auto& episode : episodes) decided.push_back({.device = episode->device, .priority = episode->priority});
  return ScoresOf(order, decided, search, options);
}

std::vector<double> NodeTask::Costs(std::span<const Score> scores, const PlayOptions& options) const {
  std::vector<double> costs;
  for (const Score& score : scores) costs.push_back(CostOf(problem, score, options.memory_penalty));
  return costs;
}

std::vector<double> NodeTask::CostsOf(std::span<const int32_t> order, std::span<const Decided> decided, Search& search,
                                      const PlayOptions& options) const {
  return Costs(ScoresOf(order, decided, search, options), options);
}

std::vector<double> NodeTask::CostsOf(std::span<const int32_t> order,
                                      std::span<const std::unique_ptr<Episode>> episodes, Search& search,
                                      const PlayOptions& options) const {
  return Costs(ScoresOf(order, episodes, search, options), options);
}

std::vector<double> NodeTask::Priorities(std::span<const int32_t> order, std::span<const int64_t> level) const {
  BERTH_CHECK(level.size() == order.size());
  std::vector<double> priority(problem.num_ops());
  for (size_t i = 0; i < order.size(); ++i) {
    for (const OpId op : coarse.grouping.ops_of(MakeId<GroupId>(static_cast<size_t>(order[i])))) {
      priority[Index(op)] = static_cast<double>(level[i]);
    }
  }
  return priority;
}

}  // namespace berth
