// What a transfer takes, worked out anew for Verify: from the links and the graph themselves, and not by Problem's and
// the simulators' code, which it is held against.
#pragma once

#include "placement/problem.h"

namespace berth {

// In the problem's time unit. `latency` passes before the link is used; `sending` is on the link.
struct ExpectedTransfer {
  double latency = 0, sending = 0;
  double total() const { return latency + sending; }
};

// Of so many bytes over a link of the cluster.
inline ExpectedTransfer ExpectBytes(const Problem& problem, int64_t bytes, DeviceId from, DeviceId to) {
  const Link& link = problem.cluster().link(from, to);
  return {.latency = link.latency.value / problem.seconds_per_unit(),
          .sending = static_cast<double>(bytes) / (link.bandwidth.value * problem.seconds_per_unit())};
}

// Of a tensor: the data set's time where it gives them; nothing for a constant; else that of its bytes.
inline ExpectedTransfer ExpectTensor(const Problem& problem, TensorId tensor, DeviceId from, DeviceId to) {
  if (problem.has_explicit_transfers()) return {.sending = problem.transfer_time(tensor, from, to)};
  if (problem.graph().is_constant(tensor)) return {};
  return ExpectBytes(problem, problem.graph().tensor_bytes(tensor), from, to);
}

}  // namespace berth
