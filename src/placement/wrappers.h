// Evaluators made of others: repeated, remembered, with a deadline, checked against one another, noisy.
#pragma once

#include <cstdint>
#include <memory>

#include "placement/evaluator.h"

namespace berth {

// The mean of the last `keep` of `runs` scores of each plan, as measured times are averaged (HSDAG, section 3.1: 10 and
// 5). A run that fails ends it: the plan failed. 1 <= keep <= runs.
std::unique_ptr<const Evaluator> Repeated(std::shared_ptr<const Evaluator> of, int64_t runs, int64_t keep);

// A plan that was scored before in the same workspace has the score that it had, also where it failed; not where start
// times are asked for. Memory grows with every new plan.
std::unique_ptr<const Evaluator> Cached(std::shared_ptr<const Evaluator> of);

// repeat(runs=,keep=,of=), cached(of=), deadline(seconds=,of=), checked(a=,b=,tolerance=), noisy(share=,seed=,of=).
void RegisterWrappers(EvaluatorCatalog& catalog);

}  // namespace berth
