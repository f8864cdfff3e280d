#include "tools/common/problems.h"

namespace berth {

ProblemStrings StepOn(const std::string& model, const std::string& cluster, bool training) {
  ProblemStrings strings;
  strings.model = model;
  strings.cluster = cluster;
  strings.costs = "roofline(fusion=none)";
  strings.evaluator = "parallel(contention=ports)";
  strings.mode = training ? "training" : "inference";
  return strings;
}

}  // namespace berth
