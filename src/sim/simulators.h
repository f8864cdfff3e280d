// The factories of this folder. What the execution models mean to the last bit: docs/semantics.md.
#pragma once

#include "placement/evaluator.h"

namespace berth {

void RegisterParallel(EvaluatorCatalog& catalog);  // parallel(contention=none|egress|ports,io=everywhere|host,memory=true)
void RegisterSerial(EvaluatorCatalog& catalog);    // serial(subgraph_overhead=0)

}  // namespace berth
