// The one list of all learned placers.
#include "learn/method.h"
#include "learn/planners.h"

namespace berth {

void RegisterMethods(MethodCatalog& catalog) {
  RegisterGdp(catalog);
  RegisterHdp(catalog);
  RegisterHsdag(catalog);
  RegisterPlaceto(catalog);
  RegisterRnn(catalog);
  RegisterTabular(catalog);
}

void RegisterLearned(PlannerCatalog& catalog) {
  MethodCatalog methods;
  RegisterMethods(methods);
  for (const std::string& name : methods.Names()) {
    const MethodCatalog::Entry& entry = *methods.Find(name);
    catalog.Add(entry.info, [make = entry.factory](const Params& params, const PlannerCatalog&) {
      return MakeLearnedPlanner(make(params));
    });
  }
}

}  // namespace berth
