// How urgent ops are.
#pragma once

#include <span>
#include <vector>

#include "placement/problem.h"

namespace berth {

// The mean transfer time of a tensor over all ordered pairs of devices, as a line over its bytes.
class MeanTransfer {
 public:
  explicit MeanTransfer(const Problem& problem);
  double operator()(TensorId tensor) const;

 private:
  const Problem& problem_;
  double latency_ = 0, per_byte_ = 0, pairs_ = 0;
};

// Over the devices that can run the op.
double MeanTime(std::span<const double> times);

// rank_u of HEFT (Topcuoglu, Hariri and Wu 2002, equation 6): the mean length of the longest way from the start of the
// op to the end. O(edges).
std::vector<double> UpwardRank(const Problem& problem);

// The same where each op has its device: its own time there, and transfers only where they are needed. O(edges).
std::vector<double> PlacedRank(const Problem& problem, std::span<const DeviceId> device);

}  // namespace berth
