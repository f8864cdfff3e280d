// How far the evaluator `parts` is off on plans that are run.
#pragma once

#include <cstddef>

#include "cli/catalogs.h"
#include "tools/measured/models.h"

namespace berth::measured {

// Fits what cuts cost on this machine to runs of plans of three models, as `berth calibrate` does; the models' cluster
// has these costs from then on. Answers how many parts the fit has seen.
size_t Calibrate(const Catalogs& catalogs, Models& models);

// Prints how well so many plans each of other models are predicted with that.
void PredictPlans(const Catalogs& catalogs, Models& models, size_t fitted_parts, size_t plans);

}  // namespace berth::measured
