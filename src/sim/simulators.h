// The factories of this folder. What the execution models mean to the last bit: docs/semantics.md.
#pragma once

#include "placement/evaluator.h"

namespace berth {

void RegisterParallel(
    EvaluatorCatalog& catalog);  // parallel(contention=none|egress|ports,io=auto|everywhere|host|DEVICE,memory=true)
void RegisterSerial(EvaluatorCatalog& catalog);    // serial(subgraph_overhead=0)
void RegisterPipeline(EvaluatorCatalog& catalog);  // pipeline(overlap=false,passes=sum|max,memory=msr|none)
void RegisterPieces(EvaluatorCatalog& catalog);    // pieces(q=1,memory=msr|none)
void RegisterParts(EvaluatorCatalog& catalog);     // parts
void RegisterPlaceto(EvaluatorCatalog& catalog);   // placeto(op_gap=5.7,bus_hold=25)

}  // namespace berth
