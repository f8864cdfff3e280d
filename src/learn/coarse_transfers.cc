#include "learn/coarse_transfers.h"

#include <algorithm>
#include <utility>

namespace berth {

CoarseTransfers::CoarseTransfers(const Problem& problem, const CoarseGraph& graph)
    : problem_(problem),
      mean_(problem),
      node_bytes_(graph.size(), 0),
      edge_bytes_(graph.quotient.edges.size(), kNothing) {
  const Graph& ops = problem.graph();
  const bool given = problem.has_explicit_transfers();
  const size_t devices = problem.num_devices();
  if (given) {
    node_time_.assign(graph.size() * devices * devices, 0);
    mean_of_node_.assign(graph.size(), 0);
    mean_of_edge_.assign(edge_bytes_.size(), 0);
  }
  const auto ends = [](const Quotient::Edge& edge) { return std::pair(edge.from, edge.to); };
  std::vector<GroupId> readers;
  for (const TensorId tensor : ops.tensors()) {
    if (!given && ops.is_constant(tensor)) continue;
    OtherReaders(ops, graph.grouping, tensor, readers);
    if (readers.empty()) continue;
    const GroupId from = graph.grouping.group_of(ops.producer(tensor));
    node_bytes_[Index(from)] += ops.tensor_bytes(tensor);
    for (size_t route = 0; given && route < devices * devices; ++route) {
      const auto p = MakeId<DeviceId>(route / devices), q = MakeId<DeviceId>(route % devices);
      if (p != q) node_time_[Index(from) * devices * devices + route] += problem.transfer_time(tensor, p, q);
    }
    if (given) mean_of_node_[Index(from)] += mean_(tensor);
    for (const GroupId to : readers) {
      const auto edge = std::ranges::lower_bound(graph.quotient.edges, std::pair(from, to), {}, ends);
      const auto number = static_cast<size_t>(edge - graph.quotient.edges.begin());
      edge_bytes_[number] = std::max<int64_t>(edge_bytes_[number], 0) + ops.tensor_bytes(tensor);
      if (given) mean_of_edge_[number] += mean_(tensor);
    }
  }
}

double CoarseTransfers::OfNode(size_t node, DeviceId from, DeviceId to) const {
  if (node_time_.empty()) return problem_.transfer_time(node_bytes_[node], from, to);
  const size_t devices = problem_.num_devices();
  return node_time_[(node * devices + Index(from)) * devices + Index(to)];
}

double CoarseTransfers::MeanOfNode(size_t node) const {
  return mean_of_node_.empty() ? mean_(node_bytes_[node]) : mean_of_node_[node];
}

double CoarseTransfers::MeanOfEdge(size_t edge) const {
  if (!mean_of_edge_.empty()) return mean_of_edge_[edge];
  return edge_bytes_[edge] == kNothing ? 0 : mean_(edge_bytes_[edge]);
}

}  // namespace berth
