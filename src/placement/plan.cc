#include "placement/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace berth {
namespace {

std::optional<std::string> FindSequenceViolation(const Problem& problem, const PlanView& plan) {
  const Graph& graph = problem.graph();
  std::vector<bool> seen(graph.num_ops());
  for (const OpId op : plan.sequence->ops) {
    if (Index(op) >= graph.num_ops())
      return fmt::format("its sequence names op {}, there are {}", Index(op), graph.num_ops());
    if (seen[Index(op)]) return fmt::format("its sequence names op {} twice", graph.op_name(op));
    seen[Index(op)] = true;
  }
  if (plan.sequence->ops.size() != graph.num_ops()) {
    return fmt::format("its sequence has {} of {} ops", plan.sequence->ops.size(), graph.num_ops());
  }
  std::vector<std::pair<TensorId, DeviceId>> needed;
  for (const TensorId tensor : graph.tensors()) {
    for (const OpId op : graph.consumers(tensor)) {
      const DeviceId to = plan.device[Index(op)];
      if (to != plan.device[Index(graph.producer(tensor))]) needed.emplace_back(tensor, to);
    }
  }
  std::ranges::sort(needed);
  needed.erase(std::ranges::unique(needed).begin(), needed.end());
  auto given = plan.sequence->transfers;
  std::ranges::sort(given);
  if (given != needed) return fmt::format("its sequence does not name each of its {} transfers once", needed.size());
  return std::nullopt;
}

}  // namespace

void Plan::SetCause(std::string text) {
  cause_texts.assign(1, std::move(text));
  cause.assign(device.size(), 0);
}

void Plan::SetCause(OpId op, std::string_view text) {
  if (cause.size() != device.size()) {
    cause_texts.assign(1, "");
    cause.assign(device.size(), 0);
  }
  constexpr size_t kMost = std::numeric_limits<uint16_t>::max();
  if (cause_texts.size() >= kMost) text = "other";
  // Planners give runs of ops the same cause: the newest texts are the likeliest.
  auto found = std::ranges::find(cause_texts.rbegin(), cause_texts.rend(), text);
  size_t index = cause_texts.size();
  if (found != cause_texts.rend()) {
    index = static_cast<size_t>(cause_texts.rend() - found) - 1;
  } else {
    cause_texts.emplace_back(text);
  }
  cause[Index(op)] = static_cast<uint16_t>(std::min(index, kMost));
}

std::string_view Plan::cause_of(OpId op) const {
  return cause.empty() ? std::string_view() : std::string_view(cause_texts[cause[Index(op)]]);
}

std::optional<std::string> FindViolation(const Problem& problem, const PlanView& plan) {
  const Graph& graph = problem.graph();
  if (plan.device.size() != graph.num_ops()) {
    return fmt::format("it places {}, the model has {}", Counted(static_cast<int64_t>(plan.device.size()), "op"),
                       graph.num_ops());
  }
  for (const OpId op : graph.ops()) {
    const DeviceId device = plan.device[Index(op)];
    if (Index(device) >= problem.num_devices()) {
      return fmt::format("op {} is on device {}, the cluster has {}", graph.op_name(op), static_cast<int32_t>(device),
                         problem.num_devices());
    }
    if (!problem.can_run(op, device)) {
      const bool narrowed = std::ranges::binary_search(problem.constraints().narrowed, op);
      return fmt::format("op {} ({}) {} on {}", graph.op_name(op), graph.op_type(op),
                         narrowed ? "may not be" : "cannot run", problem.cluster().device(device).name);
    }
  }
  for (const std::vector<OpId>& group : problem.constraints().colocate) {
    for (const OpId op : group) {
      if (plan.device[Index(op)] != plan.device[Index(group.front())]) {
        const auto has_both = [&](const Kernel& kernel) {
          return std::ranges::binary_search(kernel.ops, group.front()) && std::ranges::binary_search(kernel.ops, op);
        };
        return fmt::format("ops {} and {} must share a device and do not{}", graph.op_name(group.front()),
                           graph.op_name(op),
                           std::ranges::any_of(problem.kernels(), has_both)
                               ? ": they are one kernel; --costs 'roofline(fusion=none)' knows none"
                               : "");
      }
    }
  }
  for (const auto& [a, b] : problem.constraints().separate) {
    if (plan.device[Index(a)] == plan.device[Index(b)]) {
      return fmt::format("ops {} and {} must not share a device and do", graph.op_name(a), graph.op_name(b));
    }
  }
  for (const auto& [tensor, from, to] : problem.constraints().forbidden_transfers) {
    if (plan.device[Index(graph.producer(tensor))] != from) continue;
    for (const OpId op : graph.consumers(tensor)) {
      if (plan.device[Index(op)] != to) continue;
      return fmt::format("tensor {} must not go from {} to {} and does, from op {} to op {}", graph.tensor_name(tensor),
                         problem.cluster().device(from).name, problem.cluster().device(to).name,
                         graph.op_name(graph.producer(tensor)), graph.op_name(op));
    }
  }
  if (!plan.priority.empty()) {
    if (plan.priority.size() != graph.num_ops())
      return fmt::format("it gives {} priorities for {} ops", plan.priority.size(), graph.num_ops());
    for (const OpId op : graph.ops()) {
      if (std::isnan(plan.priority[Index(op)]))
        return fmt::format("the priority of op {} is no number", graph.op_name(op));
    }
  }
  if (plan.sequence != nullptr) return FindSequenceViolation(problem, plan);
  return std::nullopt;
}

}  // namespace berth
