// How long a tensor takes to be sent, where it is not known from where to where.
#pragma once

#include <cstdint>

#include "placement/problem.h"

namespace berth {

// The mean over all ordered pairs of devices, in the problem's time unit; 0 where there is one device, and for
// constants, which are not sent. Where times come from latency and bandwidth it is a line over the tensor's bytes,
// whose two numbers are found once: O(1) per tensor. O(devices^2) where a data set gives transfer times instead.
class MeanTransfer {
 public:
  explicit MeanTransfer(const Problem& problem);
  double operator()(TensorId tensor) const;
  // Of a number of bytes that is no tensor's, like those between two groups. O(devices^2).
  double operator()(int64_t bytes) const;

 private:
  template <typename What>
  double OverRoutes(What what) const;

  const Problem& problem_;
  double latency_ = 0, per_byte_ = 0;
  double pairs_ = 0;
};

}  // namespace berth
