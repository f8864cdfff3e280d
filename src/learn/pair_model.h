// A model of what placements cost, by which pairs of nodes share a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace berth {

// The logarithm of a placement's cost as a sum over all pairs of nodes, of a weight where the two are on one device
// and its negative where they are not, and over nodes of a weight for each kind of device. Learned by Bayesian linear
// regression (recursive least squares; all weights are near 0 at first). Swapping the names of devices of one kind
// changes no guess. As the quadratic models of Baptista and Poloczek 2018 (Bayesian optimization of combinatorial
// structures), with a plain prior.
class PairModel {
 public:
  // Its covariance has the square of so many numbers, and a score changes all of them.
  static constexpr size_t kMostFeatures = 1200;

  // `class_of`: per device the first of its kind. Empty: all devices are of one kind.
  static size_t NumFeatures(size_t nodes, std::span<const DeviceId> class_of);
  PairModel(size_t nodes, std::span<const DeviceId> class_of);

  // Less is better; by itself it means nothing. O(features).
  double Guess(std::span<const int64_t> device) const;
  // `cost` is finite and above 0. O(features^2).
  void Learn(std::span<const int64_t> device, double cost);

  // All that Learn changes. For checkpoints.
  std::span<double> state() { return state_; }

 private:
  template <typename Visit>
  void ForEachFeature(std::span<const int64_t> device, Visit visit) const;

  size_t nodes_;
  std::vector<size_t> kind_;  // per device, among the kinds; empty where there is one
  size_t kinds_ = 1, features_;
  std::vector<double> state_;  // the first cost, or 0; weights; their covariance
};

}  // namespace berth
