// What is scored beside a search, and who pays for it: what walks begin with, what a weighted objective is relative to,
// each device alone, the timeline of the plan that was found.
#pragma once

#include <cstdint>

#include "placement/evaluator.h"
#include "placement/planner.h"

namespace berth {

// How many of `scores` beside a search a budget of evaluations covers: none of a simulator's, which take no time worth
// counting; all of a measured evaluator's, each of which takes as long as any other.
int64_t Charged(const Evaluator& evaluator, int64_t scores);

// What is left of a budget for the search. Throws Error where that is no evaluation.
Budget BudgetOfSearch(const Budget& budget, const Evaluator& evaluator, int64_t scores_beside);

}  // namespace berth
