// Evaluators that run the plan.
#pragma once

#include "placement/evaluator.h"

namespace berth {

// openvino(runs=,keep=,limit=), openvino_parallel(runs=,keep=,limit=), openvino_default(...),
// openvino_auto(first=,...). Each needs a model file, and a cluster whose devices are here.
void RegisterMeasured(EvaluatorCatalog& catalog);

}  // namespace berth
