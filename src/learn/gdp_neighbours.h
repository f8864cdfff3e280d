// Plans of GDP's policy near the best ones that it remembers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/random.h"
#include "learn/gdp_task.h"
#include "learn/memory.h"
#include "moves/moves.h"

namespace berth {

// Draws a few moves away from one of the memory's parents, or each part as in one of two. Where the memory has a model
// of costs, that chooses among 16; else it climbs: moves start from the best one, and from what they find where that is
// better. Where nodes have a level of priority, half of the moves change levels instead of devices. Not thread-safe.
class Neighbours {
 public:
  // Both outlive it. The task has moves, the memory at least one parent. `levels`: of priority; 0: nodes have none.
  Neighbours(const GdpTask& task, const Memory& memory, int64_t levels);

  // Per node in the task's order, as Episode::device and Episode::priority.
  struct Drawn {
    std::vector<int64_t> device{}, priority{};
  };
  // Empty where each that it tried was `seen`.
  using Seen = std::function<bool(std::span<const int64_t> device, std::span<const int64_t> priority)>;
  Drawn Draw(Random& random, const Seen& seen);

  // Whether the next one depends on what the last one cost.
  bool climbs() const { return memory_.model() == nullptr; }
  // What a plan cost that was drawn; where that is less than the best, the next ones start from it.
  void Learn(const Episode& drawn, double cost);

 private:
  const Memory::Kept& Parent(Random& random) const;
  const Drawn& DrawOne(Random& random);
  void Cross(const Memory::Kept& other, Random& random);
  void MoveDevices(bool once, Random& random);
  void MovePriorities(Random& random);

  const GdpTask& task_;
  const Memory& memory_;
  MoveMaker moves_;
  const ShapeChooser shapes_{};
  std::vector<DeviceId> placement_;
  std::vector<int32_t> device_of_node_;
  int64_t levels_;
  Drawn drawn_{};
  Drawn best_;  // where it climbs, what it starts from
  double best_cost_;
  std::vector<uint8_t> takes_{};
};

}  // namespace berth
