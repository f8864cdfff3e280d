// Plans on disk. Format: docs/plan-format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "placement/plan.h"
#include "placement/planner.h"
#include "placement/problem.h"

namespace berth {

// A plan with all that is needed to make its Problem again, and fingerprints that tell whether that is still the same.
// No clock times: equal runs write equal bytes.
struct PlanFile {
  std::string path;  // where it was read from, for errors; not written

  // The strings of which the problem was made, as they were given.
  std::string model;
  std::vector<std::string> shapes;  // "input=32,3,224,224"
  std::string batch;                // "8", or empty
  std::string format;
  std::string cluster;
  // The machines themselves, as a device file: the plan's own copy. Empty where the model's file describes them.
  std::string device_file;
  std::string costs;
  std::vector<std::string> constraints;  // as they were stated: ParseConstraint
  std::string evaluator;
  std::string mode;       // "inference" or "training"
  std::string optimizer;  // of training, else empty
  std::string objective;  // what the planner minimised

  std::string planner;  // canonical, or "given" for a placement that came from elsewhere
  uint64_t seed = 0;
  std::string budget;
  SearchEnd ended = SearchEnd::kItself;

  std::string berth_version;
  uint64_t graph_fingerprint = 0;
  uint64_t cluster_fingerprint = 0;
  uint64_t problem_fingerprint = 0;

  double score_seconds = 0;
  double lower_bound_seconds = 0;
  bool feasible = true;
  bool optimal = false;

  std::vector<std::string> devices;  // a DeviceId in `plan` is a position in here
  std::vector<std::string> ops;      // an OpId in `plan` is a position in here
  Plan plan;                         // its sequence stands below, because tensors are numbered by the graph

  struct Transfer {
    OpId producer;   // a position in `ops`
    int32_t output;  // which of its tensors, from 0
    DeviceId to;
  };
  struct Order {
    std::vector<OpId> ops;
    std::vector<Transfer> transfers;
  };
  std::optional<Order> sequence;
};

// A file of `plan` with names and fingerprints of `problem`; the strings are left to the caller.
PlanFile MakePlanFile(const Problem& problem, const Plan& plan);

std::string WritePlanFile(const PlanFile& file);

// Throws Error with `path` and the place. The result is consistent in itself.
PlanFile ParsePlanFile(std::string_view text, const std::string& path);
inline constexpr FileKind kPlanKind{.what = "plan"};  // to be read; of a million ops it has about 100 MB
PlanFile ReadPlanFile(const std::string& path);

// The plan in the numbers of `problem`: by op names, or by position where the ops were renamed. Throws Error when the
// graph has changed (its structural fingerprint), or when a device that the plan uses is not in the cluster. With
// `other_sizes` a graph of the same ops by name will do, whose tensors may have other sizes. Whether
// `problem` allows the plan is for FindViolation to say. `warnings` receives what makes it a what-if: another cluster,
// other costs, other sizes.
Plan BindPlan(const PlanFile& file, const Problem& problem, std::vector<std::string>& warnings,
              bool other_sizes = false);

}  // namespace berth
