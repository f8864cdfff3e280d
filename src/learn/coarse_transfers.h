// How long it takes to send what leaves the nodes of a coarse graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "learn/coarse_graph.h"
#include "placement/mean_transfer.h"
#include "placement/problem.h"

namespace berth {

// Times are in the problem's unit. All tensors of a node, or of an edge, count as one message, and constants, which are
// not sent, as none of it; where a data set gives the times of transfers, these are added. Memory: O(nodes + edges),
// with given times O(nodes devices^2 + edges).
class CoarseTransfers {
 public:
  // O(tensors log edges); with given times devices^2 as much. Both must outlive this.
  CoarseTransfers(const Problem& problem, const CoarseGraph& graph);

  // Of all tensors that leave the node, each once. A node that sends nothing has the time of an empty message, except
  // where times are given: it has 0 then. `from` and `to` differ. O(1).
  double OfNode(size_t node, DeviceId from, DeviceId to) const;
  // The mean over all ordered pairs of devices; 0 where there is one device. O(devices^2).
  double MeanOfNode(size_t node) const;
  // Of an edge, by its number in Quotient::edges; 0 where all that goes this way is constant. O(devices^2).
  double MeanOfEdge(size_t edge) const;

 private:
  static constexpr int64_t kNothing = -1;

  const Problem& problem_;
  MeanTransfer mean_;
  std::vector<int64_t> node_bytes_, edge_bytes_;  // kNothing: an edge of constants
  // With given times.
  std::vector<double> node_time_;  // by node, from, to
  std::vector<double> mean_of_node_, mean_of_edge_;
};

}  // namespace berth
