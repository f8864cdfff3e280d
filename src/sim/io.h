// The parameter `io` of the simulated evaluators: where graph inputs start and outputs return to.
#pragma once

#include <optional>
#include <string>

#include "base/catalog.h"
#include "placement/problem.h"

namespace berth {

Parameter IoParameter();

// What io=... means on one problem: `auto` is `host` where the cluster has a device of kind cpu, else `everywhere`;
// `host` is the first device of kind cpu; anything else is the name or number of a device.
class Io {
 public:
  // Throws Error for `host` without a device of kind cpu, and for a device that there is not.
  Io(const Params& params, const Problem& problem);

  // Nothing where inputs and outputs are everywhere.
  std::optional<DeviceId> host() const { return host_; }
  // The canonical name of the evaluator that `params` make, which shows what `auto` has become.
  std::string NameWithIo(const Params& params) const { return params.CanonicalWith("io", text_); }

 private:
  std::optional<DeviceId> host_;
  std::string text_;
};

}  // namespace berth
