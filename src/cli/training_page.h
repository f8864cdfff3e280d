// What came of a training, for people and for machines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/problem_factory.h"
#include "learn/training.h"
#include "placement/bound.h"
#include "report/comparison.h"
#include "report/json.h"

namespace berth {

struct TrainedRow {
  const Setup& setup;
  const TrainedCase& trained;
  Bound bound;
  std::optional<Comparison> controls;  // empty where the run was stopped before
};

// A row per case: what the policy found, and what each control did.
std::string TrainingTable(const std::vector<TrainedRow>& rows, bool unseen);
Json TrainingJson(const std::vector<TrainedRow>& rows);

// "▇▅▃▂": the curve's relative cost in at most `width` bars.
std::string Sparkline(const std::vector<CurvePoint>& curve, size_t width);

}  // namespace berth
