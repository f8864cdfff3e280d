// Why there is no plan at all.
#pragma once

#include <string>

#include "placement/diagnosis.h"
#include "report/json.h"

namespace berth {

// One block: what is impossible, the constraints that make it so, the ops, and what to relax.
std::string DiagnosisPage(const Diagnosis& diagnosis);
Json DiagnosisJson(const Diagnosis& diagnosis);

}  // namespace berth
