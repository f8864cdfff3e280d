// `on(group=...,planner=...)`, as planning and training take it apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/catalog.h"
#include "placement/planner.h"

namespace berth {

class OnGroups {
 public:
  // What a catalog lists of it.
  static constexpr const char* kName = "on";
  static std::vector<Parameter> Parameters();

  explicit OnGroups(const Params& params)
      : name_(params.canonical()), group_(params.Text("group")), planner_(params.Text("planner")) {}
  // Of a planner's name; nothing where that is another planner. Throws Error for parameters that `on` does not take.
  static std::optional<OnGroups> Parse(std::string_view name);

  const std::string& group() const { return group_; }      // how ops are grouped, by name
  const std::string& planner() const { return planner_; }  // what places the groups, by name
  // The same with another planner on the groups; canonical.
  std::string NameWith(std::string_view planner) const;

 private:
  std::string name_, group_, planner_;
};

// Throws Error where training this planner, on(...) or not, would teach nothing to anybody.
void CheckLearns(const std::string& planner, const PlannerCatalog& planners);

}  // namespace berth
