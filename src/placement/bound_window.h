// Bounds of work that must be done within a window of the whole run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "placement/problem.h"

namespace berth {

// Per op: how early it can start and how long everything takes at least after its end, on whatever devices.
struct Windows {
  std::vector<double> head, tail;  // infinite where the op can run nowhere
};

// Of any ops, none of which can start before h and after each of which at least t is left, all work is done within the
// time less h and t: at least h + t + their work spread over the devices. The largest over all h and t. `weight`: of
// the devices, not negative, with a sum of 1 at most (LeastWork finds good ones). O(ops log ops).
double WindowBound(const Problem& problem, const Windows& windows, std::span<const double> weight);

// Raises heads and tails: an op starts after the work of all that it depends on, and what depends on it is left after
// its end, each by WindowBound. Of all ops only those are looked at that stand alone, as where an encoder ends: about
// `looks` of them, spread over the graph; the rest follows by paths. Nothing is done for graphs of more than kMostOps.
// O(ops x edges / 64 + looks x ops log ops).
void RaiseWindows(const Problem& problem, std::span<const double> weight, size_t looks, Windows& windows);

// The same of each group of ops that must share a device, whose work is not spread. O(ops x devices).
double GroupBound(const Problem& problem, const Windows& windows);

}  // namespace berth
