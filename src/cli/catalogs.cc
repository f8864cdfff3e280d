#include "cli/catalogs.h"

#include "cli/learning.h"
#include "exec/measured.h"
#include "import/model_families.h"
#include "placement/wrappers.h"
#include "plan/planners.h"
#include "sim/simulators.h"

namespace berth {

Catalogs::Catalogs() {
  RegisterSyntheticModels(models);
  RegisterRecurrentModels(models);
  RegisterTransformerModels(models);
  RegisterRecommendationModels(models);
  RegisterConvolutionModels(models);
  RegisterTaskGraphs(models);
  RegisterIrModels(models);
  RegisterFamilyModels(models);

  RegisterFamilies(families);

  RegisterClusterPresets(clusters);
  RegisterPlacetoCluster(clusters);

  RegisterCostModels(costs);

  RegisterParallel(evaluators);
  RegisterSerial(evaluators);
  RegisterPipeline(evaluators);
  RegisterPieces(evaluators);
  RegisterParts(evaluators);
  RegisterPlaceto(evaluators);
  RegisterMeasured(evaluators);
  RegisterWrappers(evaluators);

  RegisterGroupings(groupings);

  RegisterObjectives(objectives);

  RegisterSingle(planners);
  RegisterRandom(planners);
  RegisterRoundRobin(planners);
  RegisterFixed(planners);
  RegisterHeft(planners);
  RegisterOneCut(planners);
  RegisterLocalSearch(planners);
  RegisterAnnealing(planners);
  RegisterBrkga(planners);
  RegisterCrossEntropy(planners);
  RegisterExhaustive(planners);
  RegisterMinCut(planners);
  RegisterHuman(planners);
  RegisterSimpleRules(planners);
  RegisterMetis(planners);
#if BERTH_HAS_SCOTCH
  RegisterScotch(planners);
#else
  planners.AddMissing({.names = {"scotch"},
                       .needs = "needs Scotch, which is not in this build: install libscotch-dev and build again"});
#endif
  RegisterBestOf(planners);
  RegisterOn(planners, groupings);
  RegisterMultilevel(planners);
  RegisterAuto(planners);
  if (kCanLearn) {
    planners.SetMore([]() -> const auto& {
      static const PlannerCatalog learned = [] {
        PlannerCatalog catalog;
        Learning().enter(catalog);
        return catalog;
      }();
      return learned;
    });
  } else {
    planners.AddMissing({.names = {kLearnedPlanners.begin(), kLearnedPlanners.end()}, .needs = kNeedsTorch});
  }
}

}  // namespace berth
