#include "learn/update_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "learn/gradient.h"

namespace berth {

Bytes UpdateMemory(const Method& method, const Policy& policy, const Task& task, const UpdateConditions& conditions) {
  // As GradientOf divides an update; the plays of the memory are one part more.
  const int64_t plays = method.learner.workers * policy.ways(), rollouts = method.learner.rollouts;
  const int64_t together = std::min(PlaysTogether(policy, rollouts), plays);
  const int64_t parts = std::min((plays + together - 1) / together / conditions.ranks + 1, conditions.threads);
  const int64_t episodes = std::min(policy.recalled_at_once(), rollouts * together + method.memory.kept);
  // In bytes: with their gradients, both moments of Adam, and what undoes an update.
  double held = 0;
  for (const at::Tensor& each : policy.parameters()) held += 7 * static_cast<double>(each.nbytes());
  held += 4 * policy.recalled_numbers(task, episodes) * static_cast<double>(parts);
  return Bytes{static_cast<int64_t>(std::min(held, 9e18))};
}

std::optional<std::string> WhyTooLarge(const Method& method, const Policy& policy, std::span<const Task* const> tasks,
                                       const UpdateConditions& conditions) {
  if (!conditions.left || !method.learner.learns()) return std::nullopt;
  for (const Task* const task : tasks) {
    const Bytes held = UpdateMemory(method, policy, *task, conditions);
    if (held.value <= conditions.left->value) continue;
    const Graph& graph = task->problem.graph();
    return fmt::format(
        "an update on graph {} of {} would hold about {} of memory, and {} are left here: put ops together, as in "
        "on(group=merge,planner=...), or take a smaller network, fewer rollouts or --threads 1",
        graph.name(), Counted(static_cast<int64_t>(graph.num_ops()), "op"), ToString(held), ToString(*conditions.left));
  }
  return std::nullopt;
}

}  // namespace berth
