// The one list of everything that exists.
#pragma once

#include "cluster/presets.h"
#include "import/cost_models.h"
#include "import/family_sets.h"
#include "import/import.h"
#include "placement/evaluator.h"
#include "placement/grouping.h"
#include "placement/planner.h"

namespace berth {

struct Catalogs {
  ModelCatalog models{"model"};
  FamilyCatalog families{"model"};
  ClusterCatalog clusters{"cluster"};
  CostCatalog costs;
  EvaluatorCatalog evaluators{"evaluator"};
  ObjectiveCatalog objectives{"objective"};
  GroupingCatalog groupings{"grouping"};
  PlannerCatalog planners;

  Catalogs();  // registers all, by explicit calls
};

}  // namespace berth
