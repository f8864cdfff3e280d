// The memory rule `msr`: what lies on a device from the first sample to the last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "placement/evaluator.h"

namespace berth {

// Tarnawski et al. 2020, section 3: the sizes of a device's nodes, summed; nothing comes and goes. The data set's files
// count weights and activations in one size per node, which is a parameter of that node here. In other graphs it is the
// parameters that a device's ops use, each once; tensors are not counted. O(uses of parameters).
class StaticMemory {
 public:
  explicit StaticMemory(const Problem& problem) : problem_(problem) {}

  // Scratch of one thread.
  struct Workspace {
    std::vector<int64_t> bytes;     // by device
    std::vector<size_t> last_seen;  // by device: 1 + the parameter last found there
  };

  // Fills workspace.bytes, and the memory part of `score`.
  void Count(std::span<const DeviceId> device, Workspace& workspace, Score& score) const;
  // The same for bytes that the caller keeps.
  void Judge(std::span<const int64_t> bytes, Score& score) const;
  // The memory part of a timeline.
  void Trace(std::span<const DeviceId> device, Timeline& timeline) const;

 private:
  const Problem& problem_;
};

}  // namespace berth
