// Placements of GDP's policy near the best ones that it remembers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/random.h"
#include "learn/gdp_task.h"
#include "learn/memory.h"
#include "moves/moves.h"

namespace berth {

// Draws a few moves away from one of the memory's parents, or each part as in one of two. Where the memory has a model
// of costs, that chooses among 16; else moves start from the best one, as a climb does. Not thread-safe.
class Neighbours {
 public:
  // Both outlive it. The task has moves, the memory at least one parent.
  Neighbours(const GdpTask& task, const Memory& memory);

  // A device per node in the task's order; empty where each that it tried was `seen`.
  using Seen = std::function<bool(const std::vector<int64_t>&)>;
  std::vector<int64_t> Draw(Random& random, const Seen& seen);

 private:
  const std::vector<int64_t>& Parent(Random& random) const;
  const std::vector<int64_t>& DrawOne(Random& random);
  void Cross(const std::vector<int64_t>& other, Random& random);

  const GdpTask& task_;
  const Memory& memory_;
  MoveMaker moves_;
  const ShapeChooser shapes_{};
  std::vector<DeviceId> placement_;
  std::vector<int32_t> device_of_node_;
  std::vector<int64_t> drawn_{};
  std::vector<uint8_t> takes_{};
};

}  // namespace berth
