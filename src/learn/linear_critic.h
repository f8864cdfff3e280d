// A model of what a placement costs, linear in its weights and learned from scores: the "reward models instead of
// measured latency" that Duan et al. 2024 name as future work (section 4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/coarse_graph.h"
#include "learn/libtorch.h"
#include "placement/problem.h"

namespace berth {

// cost = constant + for each node what its device costs + for each tensor that leaves its node a price per other device
// that it is sent to. Linear in its weights, which are learned by recursive least squares (a Kalman filter without
// drift); exact for `serial` without an overhead per subgraph and equal links, a local approximation elsewhere.
// With more than kDense weights only the diagonal of their covariance is kept. Learn: O(weights^2), or O(weights).
class LinearCritic {
 public:
  static constexpr size_t kDense = 2500;

  // `costs`: begins with the problem's own op and transfer times; else with nothing but their magnitude.
  LinearCritic(const Problem& problem, const CoarseGraph& graph, bool costs);

  // In the problem's time unit. O(nodes + edges).
  double Predict(std::span<const int32_t> device_of_node) const;
  void Learn(std::span<const int32_t> device_of_node, double cost);

  // The mean of Predict when decisions (rows of `probability`, a column per device) are independent; differentiable.
  // Nodes of one decision share their device.
  at::Tensor Expected(const at::Tensor& probability, std::span<const int32_t> decision_of_node) const;

  // All that Learn changes, as views that share its memory: weights and covariance, float64. For checkpoints.
  std::vector<at::Tensor> State();

 private:
  struct Sent {
    int32_t producer;
    std::vector<int32_t> consumers;  // nodes, without the producer, each once
  };
  // Positions in weight_ and their values, other than 0, for a placement.
  struct Feature {
    size_t at;
    double value;
  };
  std::vector<Feature> Features(std::span<const int32_t> device_of_node) const;
  size_t node_at(size_t node, size_t device) const { return 1 + node * (devices_ - 1) + device - 1; }

  size_t nodes_, devices_;
  std::vector<Sent> sent_;
  std::vector<double> weight_;      // constant, nodes x (devices - 1) against device 0, tensors
  std::vector<double> covariance_;  // weights x weights, or the diagonal
  bool dense_;
  // The variance of what the model cannot explain, learned from its errors, and the least that it is taken for.
  std::vector<double> noise_;
  double least_noise_;
};

}  // namespace berth
