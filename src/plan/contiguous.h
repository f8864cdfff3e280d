// Placements in contiguous parts: the forward pass in order, its first part on the first device, and so on; all that
// must share a device goes with its first op of the forward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "placement/layers.h"
#include "placement/problem.h"

namespace berth {

// Where the order of the ops may be cut.
enum class Cuts : uint8_t {
  kAnywhere,
  kLeastCrossing,  // near the place that a rule names, where fewest bytes cross
  kLayers,         // between layers
};

class Contiguous {
 public:
  // `layers` outlives it.
  Contiguous(const Problem& problem, const Layers& layers);

  // Parts of equal time: each device has the same share of its own time for the whole.
  std::vector<DeviceId> EqualWork(std::span<const DeviceId> devices, Cuts cuts) const;
  // Parts of this size each, by a size per position: what is left goes to the last device.
  std::vector<DeviceId> Parts(std::span<const DeviceId> devices, std::span<const double> size,
                              std::span<const double> share, Cuts cuts) const;

  const ForwardOrder& order() const { return order_; }
  size_t layer_at(size_t position) const { return static_cast<size_t>(layers_.layer_of[Index(order_.ops[position])]); }
  // A sum over all ops, by position.
  std::vector<double> Sums(const std::function<double(OpId)>& of) const;

 private:
  bool MayCut(size_t position, Cuts cuts) const;

  const Problem& problem_;
  const Layers& layers_;
  ForwardOrder order_;
};

// Of all ops on the device, those that it cannot run as on the slowest that can; the problem's unit.
double TimeOfAll(const Problem& problem, DeviceId device);
// Bytes of memory of each; those without a limit count as the largest of the others, or all as one byte.
std::vector<double> MemoryOfEach(const Problem& problem, std::span<const DeviceId> devices);
// The devices that can run most, fastest first: by the time of all ops that they can run, of equals by number.
std::vector<DeviceId> DevicesBySpeed(const Problem& problem);
// Those as fast as the fastest, nearly, by number.
std::vector<DeviceId> FastestDevices(const Problem& problem);

}  // namespace berth
