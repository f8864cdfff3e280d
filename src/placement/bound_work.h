// The work bound of LowerBound, for times and for joules.
#pragma once

#include <span>
#include <vector>

#include "placement/bound.h"

namespace berth {

// Takes away what `additions` roundings in another order than the simulator's could have added, and as much again.
double RoundDown(double sum, size_t additions);

// A device p costs fixed[p] for each time unit that it computes; the longest of all computing costs `shared` per time
// unit besides. No assignment of ops to devices costs less than this (rounding apart), not even one that divides ops.
// O(ops x devices) up to sixty times. `weight`, where it is not null, receives what each device counts in it: not
// negative, with a sum of 1 at most.
double LeastWork(const Problem& problem, std::span<const double> fixed, double shared,
                 std::vector<double>* weight = nullptr);

// The least time that a serial run spends between subgraphs: there is one per connected part of the graph at least.
double LeastOverhead(const Evaluator& evaluator);

// Sets bound.objective of an evaluator whose objective is not the time, from bound.time.
void AddObjectiveBound(const Evaluator& evaluator, Bound& bound);

}  // namespace berth
