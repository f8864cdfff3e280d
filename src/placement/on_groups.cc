#include "placement/on_groups.h"

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

}  // namespace berth
