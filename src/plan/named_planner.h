// What all planners of this folder share.
#pragma once

#include <optional>
#include <string>

#include "base/catalog.h"
#include "placement/planner.h"
#include "placement/units.h"

namespace berth {

// Knows its own name, and refuses problems whose constraints contradict one another. A planner that overrides Refuses
// asks this one too.
class NamedPlanner : public Planner {
 public:
  explicit NamedPlanner(const Params& params) : name_(params.canonical()) {}

  const std::string& name() const final { return name_; }

  std::optional<std::string> Refuses(const Problem& problem, const Evaluator&) const override {
    // Without constraints there is no contradiction, and no need to look.
    return problem.constraints().empty() ? std::nullopt : Units(problem).contradiction();
  }

 private:
  std::string name_;
};

// For methods that decide one op after another by cost alone.
inline std::optional<std::string> RefusesSeparate(const Problem& problem) {
  if (problem.constraints().separate.empty()) return std::nullopt;
  return "it cannot keep ops apart (constraint separate)";
}
inline std::optional<std::string> RefusesForbiddenTransfers(const Problem& problem) {
  if (problem.constraints().forbidden_transfers.empty()) return std::nullopt;
  return "it cannot keep tensors off a link (constraint forbid-transfer)";
}

}  // namespace berth
