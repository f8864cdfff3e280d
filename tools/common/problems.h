// The problems of the papers' tables, as several benchmarks have them.
#pragma once

#include <string>

#include "cli/problem_strings.h"

namespace berth {

// One step, of training with `sgd` or of inference, under `parallel(contention=ports)`, with op times as published, op
// by op: `roofline(fusion=none)`.
ProblemStrings StepOn(const std::string& model, const std::string& cluster, bool training);

}  // namespace berth
