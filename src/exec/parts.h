// The parts of a split model: what one device runs without waiting for another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth {

struct Part {
  int32_t device = 0;
  std::vector<int32_t> nodes{};   // ascending
  std::vector<int32_t> before{};  // parts that it takes tensors from, ascending
};

struct Parts {
  std::vector<Part> parts{};       // in an order in which they can run one after another
  std::vector<int32_t> part_of{};  // by node
};

// Divides a dataflow graph, whose nodes are numbered topologically, into parts of one device each that no path leaves
// and enters again, so that each can run as a whole. A node is in the phase
//   max over predecessors v of phase(v) + (1 where the devices differ or v is also used on another device),
// so that what others wait for ends its part; the connected pieces of a phase on a device are the parts. Every edge
// between parts leads to a later phase: they have no cycle. O((V + E) log V).
Parts CutIntoParts(std::span<const std::vector<int32_t>> predecessors, std::span<const int32_t> device);

// Seconds since a run of the whole model began.
struct PartRun {
  double begin = 0, end = 0;
};

// When a run would have ended had each part taken its device's `slowdown` times less, in seconds. A part begins after
// the parts that it waits for and the part before it on its device, and as much later as it did in the run (a thread
// that did not see at once that it may go on). `runs` by part, `slowdown` by device. O(parts + edges between them).
double EndAtOtherSpeeds(std::span<const Part> parts, std::span<const PartRun> runs, std::span<const double> slowdown);

}  // namespace berth
