#include "moves/critical_path.h"

#include <algorithm>
#include <tuple>

namespace berth {

CriticalPath FindCriticalPath(const Problem& problem, std::span<const DeviceId> device,
                              std::span<const double> starts) {
  const Graph& graph = problem.graph();
  CriticalPath path;
  if (graph.num_ops() == 0) return path;
  const auto end = [&](OpId op) { return starts[Index(op)] + problem.op_time(op, device[Index(op)]); };
  // Where each op is in the order of its device, and where that begins. Ops of no length come before what starts with
  // them, so that the ends ascend too; of several of these a producer comes before its consumer, so that the walk back
  // does not go round in a circle.
  std::vector<OpId> order;
  for (const OpId op : graph.ops()) order.push_back(op);
  std::ranges::sort(order, {}, [&](OpId op) { return std::tuple(device[Index(op)], starts[Index(op)], end(op), op); });
  std::vector<size_t> at(order.size()), begin(problem.num_devices());
  for (size_t i = order.size(); i-- > 0;) {
    at[Index(order[i])] = i;
    begin[Index(device[Index(order[i])])] = i;
  }
  path.waits = Waits(order);

  OpId op = *std::ranges::max_element(order, {}, end);
  while (path.ops.size() < graph.num_ops()) {
    path.ops.push_back(op);
    // When its inputs were there, as far as nothing queues, and whose was the last.
    double ready = 0;
    OpId last{-1};
    for (const TensorId tensor : graph.inputs_of(op)) {
      const OpId producer = graph.producer(tensor);
      const DeviceId from = device[Index(producer)], to = device[Index(op)];
      const double arrival = end(producer) + (from == to ? 0 : problem.transfer_time(tensor, from, to));
      if (last != OpId{-1} && arrival <= ready) continue;
      ready = arrival;
      last = producer;
    }
    const double start = starts[Index(op)];
    const size_t place = at[Index(op)];
    const bool has_before = place > 0 && device[Index(order[place - 1])] == device[Index(op)];
    const bool waited = has_before && end(order[place - 1]) == start && ready < start;
    if (waited) {
      const auto first = order.begin() + static_cast<ptrdiff_t>(begin[Index(device[Index(op)])]),
                 last_before = order.begin() + static_cast<ptrdiff_t>(place);
      const auto since = std::ranges::upper_bound(first, last_before, ready, {}, end);
      path.waits.Add(op, static_cast<size_t>(since - order.begin()), place);
      op = order[place - 1];
    } else if (last != OpId{-1}) {
      op = last;
    } else {
      break;
    }
  }
  return path;
}

}  // namespace berth
