#include "sim/static_memory.h"

#include <algorithm>

#include "base/error.h"

namespace berth {

void StaticMemory::Count(std::span<const DeviceId> device, Workspace& workspace, Score& score) const {
  const Graph& graph = problem_.graph();
  workspace.bytes.assign(problem_.num_devices(), 0);
  workspace.last_seen.assign(problem_.num_devices(), 0);
  for (const ParameterId parameter : graph.parameters()) {
    for (const OpId op : graph.parameter_consumers(parameter)) {
      const size_t d = Index(device[Index(op)]);
      if (workspace.last_seen[d] == Index(parameter) + 1) continue;
      workspace.last_seen[d] = Index(parameter) + 1;
      workspace.bytes[d] += graph.parameter_bytes(parameter);
    }
  }
  Judge(workspace.bytes, score);
}

void StaticMemory::Judge(std::span<const int64_t> bytes, Score& score) const {
  for (const DeviceId d : problem_.cluster().ids()) {
    const int64_t limit = problem_.memory_limit(d);
    if (bytes[Index(d)] <= limit) continue;
    score.outcome = std::max(score.outcome, Outcome::kTooBig);
    score.excess_bytes += bytes[Index(d)] - limit;
  }
}

void StaticMemory::Trace(std::span<const DeviceId> device, Timeline& timeline) const {
  const Graph& graph = problem_.graph();
  timeline.memory.resize(problem_.num_devices());
  for (const ParameterId parameter : graph.parameters()) {
    std::vector<DeviceId> holders;
    for (const OpId op : graph.parameter_consumers(parameter)) holders.push_back(device[Index(op)]);
    std::ranges::sort(holders);
    holders.erase(std::ranges::unique(holders).begin(), holders.end());
    for (const DeviceId d : holders) {
      timeline.memory[Index(d)].holders.push_back({.kind = MemoryHolder::Kind::kParameter,
                                                   .id = static_cast<int32_t>(parameter),
                                                   .bytes = graph.parameter_bytes(parameter)});
    }
  }
  for (const DeviceId d : problem_.cluster().ids()) {
    DeviceMemory& memory = timeline.memory[Index(d)];
    for (const MemoryHolder& holder : memory.holders) memory.peak_bytes += holder.bytes;
    std::ranges::stable_sort(memory.holders, std::greater<>(), &MemoryHolder::bytes);
    if (memory.peak_bytes > 0) memory.steps.push_back({.time = 0, .bytes = memory.peak_bytes});
    if (memory.peak_bytes > problem_.memory_limit(d) && timeline.infeasible_because.empty()) {
      timeline.infeasible_because =
          fmt::format("{} holds {} all the time, its limit is {}", problem_.cluster().device(d).name,
                      ToString(Bytes{memory.peak_bytes}), ToString(Bytes{problem_.memory_limit(d)}));
    }
  }
}

}  // namespace berth
