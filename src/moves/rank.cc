#include "moves/rank.h"

#include <algorithm>

namespace berth {

double MeanTime(std::span<const double> times) {
  double sum = 0;
  int count = 0;
  for (const double time : times) {
    if (time == kCannotRun) continue;
    sum += time;
    ++count;
  }
  return sum / count;
}

std::vector<double> UpwardRank(const Problem& problem) {
  const Graph& graph = problem.graph();
  const MeanTransfer transfer(problem);
  std::vector<double> rank(graph.num_ops(), 0);
  for (size_t v = graph.num_ops(); v-- > 0;) {
    const auto op = MakeId<OpId>(v);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      const double sent = graph.consumers(tensor).empty() ? 0 : transfer(tensor);
      for (const OpId consumer : graph.consumers(tensor)) rank[v] = std::max(rank[v], sent + rank[Index(consumer)]);
    }
    rank[v] += MeanTime(problem.op_times(op));
  }
  return rank;
}

std::vector<double> PlacedRank(const Problem& problem, std::span<const DeviceId> device) {
  const Graph& graph = problem.graph();
  std::vector<double> rank(graph.num_ops(), 0);
  for (size_t v = graph.num_ops(); v-- > 0;) {
    for (size_t t = graph.first_output(MakeId<OpId>(v)); t < graph.end_output(MakeId<OpId>(v)); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      for (const OpId consumer : graph.consumers(tensor)) {
        const DeviceId to = device[Index(consumer)];
        const double sent = to == device[v] ? 0 : problem.transfer_time(tensor, device[v], to);
        rank[v] = std::max(rank[v], sent + rank[Index(consumer)]);
      }
    }
    rank[v] += problem.op_time(MakeId<OpId>(v), device[v]);
  }
  return rank;
}

}  // namespace berth
