// The factories of this folder, one line each; every planner is one headerless .cc.
#pragma once

#include "placement/grouping.h"
#include "placement/planner.h"

namespace berth {

void RegisterSingle(PlannerCatalog& catalog);
void RegisterRandom(PlannerCatalog& catalog);
void RegisterRoundRobin(PlannerCatalog& catalog);
void RegisterFixed(PlannerCatalog& catalog);
void RegisterHeft(PlannerCatalog& catalog);  // heft, etf, sct
void RegisterOneCut(PlannerCatalog& catalog);
void RegisterLocalSearch(PlannerCatalog& catalog);
void RegisterAnnealing(PlannerCatalog& catalog);
void RegisterBrkga(PlannerCatalog& catalog);
void RegisterCrossEntropy(PlannerCatalog& catalog);
void RegisterExhaustive(PlannerCatalog& catalog);
void RegisterMinCut(PlannerCatalog& catalog);
void RegisterHuman(PlannerCatalog& catalog);
void RegisterSimpleRules(PlannerCatalog& catalog);  // memory_proportional, equal_layers, topo, first_fit
void RegisterBestOf(PlannerCatalog& catalog);
void RegisterMetis(PlannerCatalog& catalog);
void RegisterScotch(PlannerCatalog& catalog);  // where BERTH_HAS_SCOTCH
void RegisterMultilevel(PlannerCatalog& catalog);
void RegisterAuto(PlannerCatalog& catalog);
void RegisterOn(PlannerCatalog& catalog, const GroupingCatalog& groupings);

}  // namespace berth
