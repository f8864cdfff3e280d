// Changes of a placement that searches try: from one op to a whole branch of the network.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "moves/critical_path.h"
#include "moves/structure.h"
#include "placement/evaluator.h"
#include "placement/units.h"

namespace berth {

// The shapes of what moves to one device together. Branches and layers are worth nothing in parts and must move whole,
// hence the larger ones; their sizes are drawn evenly over the orders of magnitude.
enum class MoveShape : uint8_t {
  kOne,       // one unit
  kSegment,   // neighbours in the topological order
  kCluster,   // ops around one that are on its device and joined by tensors
  kForward,   // an op and what depends on nothing else: a branch from its fork on
  kBackward,  // an op and what nothing else needs: a branch up to its join
  kSwap,      // two units change places
  kPart,      // a layer, or what else the network is made of (structure.h)
  kExchange,  // two such parts change places
  kBoundary,  // of two devices that follow each other in the forward pass: the one takes over from the other
  // Of searches over the order too:
  kCritical,  // one unit that the end waits for
  kUrgency,   // nothing moves: an op becomes more or less urgent
  kOvertake,  // nothing moves: an op that the end waits for gets before one that it waited for on its device
};
// Those that need no priorities; those before the ones that move nothing; all.
inline constexpr size_t kPlacementShapes = 9, kFirstOrderShape = 10, kMoveShapes = 12;

// Draws moves that keep all constraints. Not thread-safe: it has scratch memory.
class MoveMaker {
 public:
  // `structure` outlives it.
  MoveMaker(const Units& units, const Structure& structure);

  using Moves = std::vector<std::pair<OpId, DeviceId>>;
  // A move of this shape from `placement`; empty when the draw led to nothing. The span stays valid until the next
  // call.
  std::span<const std::pair<OpId, DeviceId>> Draw(MoveShape shape, std::span<const DeviceId> placement, Random& random);
  // The same of a plan that has priorities, for all shapes.
  PlanChange Draw(MoveShape shape, std::span<const DeviceId> placement, std::span<const double> priority,
                  Random& random);
  // Whether what must be apart still is after these moves, asked unit by unit.
  bool KeepsApart(std::span<const DeviceId> placement, std::span<const std::pair<OpId, DeviceId>> moves);
  // What kCritical and kOvertake draw from, until it is told anew.
  void Know(CriticalPath path) { path_ = std::move(path); }

 private:
  size_t Size(Random& random) const;
  DeviceId Target(std::span<const DeviceId> placement, OpId from, Random& random) const;
  void Segment(Random& random);
  void Cluster(std::span<const DeviceId> placement, Random& random);
  void Forward(Random& random);
  void Backward(Random& random);
  bool Visit(OpId op);
  void MoveAll(std::span<const DeviceId> placement, DeviceId to);
  void Swap(std::span<const DeviceId> placement, Random& random);
  void Part(Random& random);
  void Exchange(std::span<const DeviceId> placement, Random& random);
  void Boundary(std::span<const DeviceId> placement, Random& random);
  void Urgency(std::span<const double> priority, Random& random);
  void Overtake(std::span<const double> priority, Random& random);

  const Units& units_;
  const Structure& structure_;
  const Graph& graph_;
  Moves moves_;
  CriticalPath path_;
  std::vector<std::pair<OpId, double>> priorities_;
  std::vector<OpId> chosen_;
  std::vector<uint32_t> stamp_;      // per op: the round in which it was chosen
  std::vector<OpId> first_of_unit_;  // per unit: the first of its ops that is chosen
  std::vector<DeviceId> trial_;      // only where there are rules between units
  uint32_t round_ = 0;
  double range_ = 0;  // of the priorities that it saw first
};

// Draws shapes as often as they have helped lately: the share of a shape follows its gains per try.
class ShapeChooser {
 public:
  // `orders`: also those of searches over the order. `placements`: those that move an op elsewhere.
  explicit ShapeChooser(bool orders = false, bool placements = true) {
    if (orders) std::fill(weight_.begin() + kPlacementShapes, weight_.end(), 10);
    if (!placements) std::fill(weight_.begin(), weight_.begin() + kFirstOrderShape, 0);
  }

  MoveShape Draw(Random& random) const;
  void Report(MoveShape shape, bool helped);

 private:
  std::array<double, kMoveShapes> weight_ = {4, 2, 2, 2, 2, 1, 12, 4, 4, 0, 0, 0};
};

}  // namespace berth
