#include "placement/on_groups.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace berth {
namespace {

constexpr std::string_view kWhat = "planner";

}  // namespace

std::vector<Parameter> OnGroups::Parameters() {
  return {{.name = "group",
           .type = ParameterType::kSpec,
           .default_value = "colocation",
           .sentence = "how ops are grouped: colocation, chain, fusion, merge, layers, random, with parameters",
           .mode_decides = true},
          {.name = "planner",
           .type = ParameterType::kSpec,
           .default_value = "local_search",
           .sentence = "the planner that places the groups",
           .mode_decides = true}};
}

std::optional<OnGroups> OnGroups::Parse(std::string_view name) {
  const Spec spec = Spec::Parse(name);
  if (spec.name != kName) return std::nullopt;
  return OnGroups(Params(spec, Parameters(), kWhat));
}

std::string OnGroups::NameWith(std::string_view planner) const {
  Spec spec = Spec::Parse(name_);
  spec.Set("planner", planner);
  return Params(spec, Parameters(), kWhat).canonical();
}

void CheckLearns(const std::string& planner, const PlannerCatalog& planners) {
  const std::optional<OnGroups> on = OnGroups::Parse(planner);
  const std::string& learner = on ? on->planner() : planner;
  const Spec spec = Spec::Parse(learner);
  if (spec.name == OnGroups::kName) {
    throw Error("train: {}: on(...) cannot stand inside on(...); write on(group=...,planner=placeto)", learner);
  }
  if (planners.MakePlanner(learner)->facts().learned) {
    if (std::ranges::count(spec.parameters, std::pair<std::string, std::string>("train", "false")) == 0) return;
    throw Error("train: {}: train=false means that nothing is trained; leave it out", learner);
  }
  const auto& parameters = planners.Find(spec.name)->info.parameters;
  if (std::ranges::count(parameters, ParameterType::kSpecs, &Parameter::type) > 0) {
    for (const std::string& member : spec.arguments) {
      if (!planners.MakePlanner(member)->facts().learned) continue;
      throw Error("train: {} has no policy of its own to train; name {} without it", spec.name, member);
    }
  }
  throw Error("train: {} is not a learned planner; name one, like placeto or hsdag", learner);
}

}  // namespace berth
