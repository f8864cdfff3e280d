#include "plan/testing.h"

#include <memory>
#include <string>
#include <utility>

#include "cluster/presets.h"
#include "import/cost_models.h"
#include "import/import.h"
#include "import/model_families.h"
#include "import/training.h"
#include "sim/simulators.h"

namespace berth::testing {

Problem ModelProblem(const std::string& model, const std::string& cluster, bool training) {
  ModelCatalog models("model");
  RegisterSyntheticModels(models);
  RegisterRecurrentModels(models);
  RegisterTransformerModels(models);
  RegisterRecommendationModels(models);
  RegisterConvolutionModels(models);
  ClusterCatalog clusters("cluster");
  RegisterClusterPresets(clusters);
  CostCatalog costs;
  RegisterCostModels(costs);
  Graph forward = ReadModel(model, models);
  Problem::Options options;
  std::shared_ptr<const Graph> graph;
  if (training) {
    TrainingGraph step = MakeTrainingGraph(forward, Optimizer::kSgd);
    options.constraints.colocate = std::move(step.colocate);
    graph = std::make_shared<const Graph>(std::move(step.graph));
  } else {
    graph = std::make_shared<const Graph>(std::move(forward));
  }
  auto machine = std::make_shared<const Cluster>(ReadCluster(cluster, clusters));
  OpTimes times = costs.MakeTimes("roofline(fusion=none)", *graph, *machine);
  return Problem(std::move(graph), std::move(machine), std::move(times), std::move(options));
}

PlanResult AnswerOf(const PlannerCatalog& planners, std::string_view planner, const Problem& problem,
                    const std::string& contention, const Budget& budget) {
  EvaluatorCatalog evaluators("evaluator");
  RegisterParallel(evaluators);
  const auto evaluator = evaluators.Make(fmt::format("parallel(contention={},io=everywhere)", contention), problem);
  return planners.MakePlanner(planner)->MakePlan({.evaluator = *evaluator, .budget = budget, .random = Random(1)});
}

}  // namespace berth::testing
