// How far the evaluator `parts` is off on plans that are run.
#pragma once

#include <cstddef>

#include "cli/catalogs.h"
#include "tools/measured/models.h"

namespace berth::measured {

// Fits what cuts cost on this machine, which the models' cluster has from then on, and prints how well so many plans
// each of other models are predicted with it.
void CalibrateAndPredict(const Catalogs& catalogs, Models& models, size_t plans);

}  // namespace berth::measured
