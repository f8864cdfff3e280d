#include "learn/update_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "learn/gradient.h"

namespace berth {

Bytes UpdateMemory(const Method& method, const Policy& policy, std::span<const Task* const> tasks,
                   const UpdateConditions& conditions) {
  // As GradientOf divides an update, in which each worker has one task, and the memory plays once on each of these.
  const int64_t rollouts = method.learner.rollouts;
  const int64_t cases = std::min(std::ssize(tasks), static_cast<std::ptrdiff_t>(method.learner.workers));
  const int64_t plays = method.learner.workers * policy.ways() + (method.memory.kept > 0 ? cases : 0);
  const int64_t most = PlaysTogether(policy, rollouts), together = std::min(most, plays);
  const int64_t of_rank = ((plays + most - 1) / most + conditions.ranks - 1) / conditions.ranks;
  const int64_t parts = std::min(of_rank, conditions.threads);
  const int64_t different = std::max<int64_t>(std::min(together, cases), 1);
  const int64_t of_one = (together + different - 1) / different;
  const int64_t episodes = std::min(policy.recalled_at_once(), rollouts * of_one + method.memory.kept);
  std::vector<double> numbers;
  for (const Task* const task : tasks) numbers.push_back(policy.recalled_numbers(*task, episodes));
  std::ranges::sort(numbers, std::greater<>());
  numbers.resize(std::min(numbers.size(), static_cast<size_t>(different)));
  // In bytes: with their gradients, both moments of Adam, and what undoes an update.
  double held = 0;
  for (const at::Tensor& each : policy.parameters()) held += 7 * static_cast<double>(each.nbytes());
  for (const double of_task : numbers) held += 4 * of_task * static_cast<double>(parts);
  return Bytes{static_cast<int64_t>(std::min(held, 9e18))};
}

std::optional<std::string> WhyTooLarge(const Method& method, const Policy& policy, std::span<const Task* const> tasks,
                                       const UpdateConditions& conditions) {
  if (!conditions.left || !method.learner.learns()) return std::nullopt;
  if (tasks.empty()) return std::nullopt;
  const Bytes held = UpdateMemory(method, policy, tasks, conditions);
  if (held.value <= conditions.left->value) return std::nullopt;
  const Graph& graph =
      (*std::ranges::max_element(tasks, {}, [](const Task* task) { return task->problem.num_ops(); }))->problem.graph();
  return fmt::format(
      "an update on {}graph {} of {}{} would hold about {} of memory, and {} are left here: put ops together, as in "
      "on(group=merge,planner=...), or take a smaller network or fewer rollouts{}",
      tasks.size() > 1 ? fmt::format("{} graphs, of which the largest is ", tasks.size()) : "", graph.name(),
      Counted(static_cast<int64_t>(graph.num_ops()), "op"), tasks.size() > 1 ? "," : "", ToString(held),
      ToString(*conditions.left), conditions.threads > 1 ? ", or --threads 1" : "");
}

}  // namespace berth
