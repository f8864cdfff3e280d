#include "plan/rank.h"

#include <algorithm>

namespace berth {

MeanTransfer::MeanTransfer(const Problem& problem) : problem_(problem) {
  const size_t devices = problem.num_devices();
  if (devices < 2) return;
  pairs_ = static_cast<double>(devices * (devices - 1));
  for (size_t route = 0; route < devices * devices; ++route) {
    if (route / devices == route % devices) continue;
    latency_ += problem.latency()[route] / pairs_;
    per_byte_ += 1 / problem.bandwidth()[route] / pairs_;
  }
}

double MeanTransfer::operator()(TensorId tensor) const {
  if (!problem_.has_explicit_transfers()) {
    if (problem_.graph().is_constant(tensor)) return 0;
    return latency_ + static_cast<double>(problem_.graph().tensor_bytes(tensor)) * per_byte_;
  }
  double sum = 0;
  for (const DeviceId p : problem_.cluster().ids()) {
    for (const DeviceId q : problem_.cluster().ids()) sum += p == q ? 0 : problem_.transfer_time(tensor, p, q);
  }
  return pairs_ == 0 ? 0 : sum / pairs_;
}

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
