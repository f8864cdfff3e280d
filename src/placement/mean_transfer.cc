#include "placement/mean_transfer.h"

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

template <typename What>
double MeanTransfer::OverRoutes(What what) const {
  double sum = 0;
  for (const DeviceId p : problem_.cluster().ids()) {
    for (const DeviceId q : problem_.cluster().ids()) sum += p == q ? 0 : problem_.transfer_time(what, p, q);
  }
  return pairs_ == 0 ? 0 : sum / pairs_;
}

double MeanTransfer::operator()(int64_t bytes) const { return OverRoutes(bytes); }

double MeanTransfer::operator()(TensorId tensor) const {
  if (!problem_.has_explicit_transfers()) {
    if (problem_.graph().is_constant(tensor)) return 0;
    return latency_ + static_cast<double>(problem_.graph().tensor_bytes(tensor)) * per_byte_;
  }
  return OverRoutes(tensor);
}

}  // namespace berth
