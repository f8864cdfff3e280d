// How long a tensor takes to be sent, where it is not known from where to where.
#pragma once

#include "placement/problem.h"

namespace berth {

// The mean over all routes between two devices, in the problem's time unit; 0 where there is one device. O(devices^2).
inline double MeanTransferTime(const Problem& problem, TensorId tensor) {
  double sum = 0, routes = 0;
  for (const DeviceId from : problem.cluster().ids()) {
    for (const DeviceId to : problem.cluster().ids()) {
      if (from != to) sum += problem.transfer_time(tensor, from, to), ++routes;
    }
  }
  return routes > 0 ? sum / routes : 0;
}

}  // namespace berth
