// Units that belong together: sending what they exchange takes longer than the smaller of them computes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "placement/units.h"

namespace berth {

// A partition of the units. Why list scheduling needs one on training steps: docs/decisions/0009-list-scheduling.md.
class Clusters {
 public:
  // Every unit on its own.
  explicit Clusters(const Units& units);
  // Joins the two whose tie, the time of all transfers between them, is the largest multiple of the smaller one's work,
  // again and again, while that is at least `least_ratio` and none gets more than `most_work` (the problem's unit; work
  // on the fastest device). O(edges log^2 edges)
  // where few ties are offered again after their clusters have grown, quadratic in the worst case.
  Clusters(const Units& units, double least_ratio, double most_work);

  const Units& units() const { return units_; }
  size_t size() const { return first_.size() - 1; }
  size_t cluster_of(OpId op) const { return cluster_of_[units_.unit_of(op)]; }
  std::span<const size_t> units_of(size_t cluster) const {
    return {members_.data() + first_[cluster], first_[cluster + 1] - first_[cluster]};
  }
  // Other clusters, and the time of the transfers between the two, on average over pairs of devices.
  struct Tie {
    size_t cluster;
    double time;
  };
  std::span<const Tie> ties(size_t cluster) const {
    return {ties_.data() + first_tie_[cluster], first_tie_[cluster + 1] - first_tie_[cluster]};
  }
  double time(size_t cluster, DeviceId device) const {
    return time_[cluster * units_.problem().num_devices() + Index(device)];
  }
  // Weights and outputs of its ops, each once.
  int64_t bytes(size_t cluster) const { return bytes_[cluster]; }

 private:
  // `label` by unit.
  void Number(std::span<const size_t> label);
  void SetTies();
  void SetSums();

  const Units& units_;
  std::vector<size_t> cluster_of_;       // by unit
  std::vector<size_t> first_, members_;  // units by cluster
  std::vector<size_t> first_tie_;
  std::vector<Tie> ties_;
  std::vector<double> time_;  // cluster x device
  std::vector<int64_t> bytes_;
};

// What ties units to a cluster that list scheduling tries: the least ratio of the time of transfers to the time of the
// smaller one's work. A loose and a strict one, since neither is the better on all graphs
// (docs/decisions/0009-list-scheduling.md).
inline constexpr double kTieRatios[] = {0.5, 2};
// Clusters so tied, none with much more than the share of the work that each device would have. Nothing where every
// unit would be on its own, and for more than 500,000 ops, where joining takes longer than scheduling. `units` outlive
// them.
std::optional<Clusters> TieUnits(const Units& units, double least_ratio);

}  // namespace berth
