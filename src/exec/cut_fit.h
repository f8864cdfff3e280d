// What a runtime pays for cuts, from runs of plans: the numbers of the evaluator `parts`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "exec/openvino.h"
#include "placement/problem.h"

namespace berth {

// Seconds, and seconds per byte by class of op.
struct CutCosts {
  double part_overhead = 0;
  std::array<double, kOpClasses> read{}, write{};
  // Of classes that no run has shown: the mean of the others.
  std::array<bool, kOpClasses> read_guessed{}, write_guessed{};
};

// Least squares of relative errors over the parts of runs of any number of problems. What a part took above its ops'
// times is explained by one overhead and by the bytes that it shares with other parts, by class of the op that reads
// them first or makes them; no cost is below zero. A class of which little was seen takes after what was known before,
// or else after the mean of all classes. Deterministic.
class CutFit {
 public:
  // Fewer parts say little.
  static constexpr size_t kLeastParts = 20;

  CutFit() = default;
  explicit CutFit(const CutCosts& known) : known_(known) {}
  // `speed`: how long the machine took for the same work in the run, as a multiple of what the problem's op times say
  // (other programs, clock frequency); op times are multiplied by it. A run that failed adds nothing.
  // One during which other programs had the cores for more than a twentieth of the time counts only where the
  // others have fewer than 20 parts, beside these.
  void Add(const Problem& problem, const Measurement& measurement, double speed);
  CutCosts Fit() const;
  size_t num_parts() const { return used().parts; }

 private:
  static constexpr size_t kUnknowns = 1 + 2 * kOpClasses;
  using Row = std::array<double, kUnknowns>;

  // Of parts of runs.
  struct Sums {
    size_t parts = 0;
    std::array<Row, kUnknowns> products{};  // of the rows with one another, weighted
    Row targets{};
  };
  Sums used() const;

  std::optional<CutCosts> known_;
  Sums at_rest_, disturbed_;  // by whether other programs had the cores
};

// What a device file says of them, of the first device that says anything; nothing where none does.
std::optional<CutCosts> CutCostsOf(const Cluster& cluster);

// The same devices with these numbers, marked as measured by `source`.
Cluster WithCutCosts(const Cluster& cluster, const CutCosts& costs, const std::string& source);

}  // namespace berth
