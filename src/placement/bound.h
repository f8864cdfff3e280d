// What no plan can beat.
#pragma once

#include <optional>
#include <string>

#include "placement/evaluator.h"

namespace berth {

// A lower bound on Score::time of every placement under an execution model, in time units, and on what planners
// minimise.
struct Bound {
  double time = 0;
  std::string reason;  // "longest path, with its transfers", "every op on its fastest device"
  std::optional<double>
      objective{};  // on Score::objective, where the evaluator sets it; `reason` is about this one then

  double value() const { return objective.value_or(time); }
};

// The best of the bounds that hold for the evaluator's model (research notes: planners, section 8).
//  parallel: communication-aware longest path L(v,p) = w(v,p) + max over consumers u min over q (transfer(v,p,q) +
//  L(u,q)),
//            bound max over v of min over p; and the work bound (fractional assignment of ops to devices, sum of least
//            times over devices as its simplest form); work within a window, and groups that share a device
//            (bound_window.h). O(E D^2 + V log V), and up to 50,000 ops 64 V log V + V E / 64 besides.
//  serial:   sum of least op times; with two devices and no overhead the minimum cut itself is the optimum (planner
//  mincut).
//  pipeline: the work bound over groups that share a device, and the largest group. O(V D).
//  pieces:   longest path, every op on its fastest device, nothing moved. O(V D + E).
//  placeto:  longest path with a rest or a transfer between ops, and the work with all rests (bound_placeto.cc). O(V D
//  +
//            E).
//  parts:    longest path of ops without transfers, and the work bound. O(V D + E).
//  measured: none (time = 0).
// With energy in the objective: what each op costs at least beyond idling, and what all devices cost while the least
// time passes; and the two weighed against each other, as in the work bound. A bound never exceeds an achieved score,
// not by one bit: sums are rounded down where rounding could matter.
Bound LowerBound(const Evaluator& evaluator);

// How far a score is above its lower bound: (score - bound) / bound, at least 0; 0 when both are 0, infinite when only
// the bound is.
double Gap(double score, double bound);

// The most that another plan can save of a score: (score - bound) / score, at least 0; 0 when both are 0.
double MostSaved(double score, double bound);

}  // namespace berth
