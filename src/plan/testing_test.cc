#include "plan/testing.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cluster/presets.h"
#include "import/cost_models.h"
#include "import/import.h"
#include "import/model_families.h"
#include "import/training.h"
#include "plan/planners.h"
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

const PlannerCatalog& SimplePlanners() {
  static const PlannerCatalog catalog = [] {
    PlannerCatalog all;
    RegisterSingle(all);
    RegisterRandom(all);
    RegisterRoundRobin(all);
    RegisterFixed(all);
    RegisterHeft(all);
    RegisterOneCut(all);
    RegisterLocalSearch(all);
    RegisterAnnealing(all);
    RegisterExhaustive(all);
    RegisterMinCut(all);
    RegisterBestOf(all);
    return all;
  }();
  return catalog;
}

std::unique_ptr<Evaluator> MakeSimulator(const std::string& name, const Problem& problem) {
  static const EvaluatorCatalog catalog = [] {
    EvaluatorCatalog all("evaluator");
    RegisterParallel(all);
    RegisterSerial(all);
    return all;
  }();
  return catalog.Make(name, problem);
}

PlanResult Trial::operator()(const std::string& planner, int64_t evaluations, uint64_t seed) const {
  Budget budget;
  if (evaluations > 0) budget.evaluations = evaluations;
  return SimplePlanners().MakePlanner(planner)->MakePlan(
      {.evaluator = *evaluator, .budget = budget, .random = Random(seed)});
}

double SlowBest(const Problem& problem, const Evaluator& evaluator) {
  const auto workspace = evaluator.NewWorkspace();
  double best = kCannotRun;
  ForEachPlacement(problem, [&](const std::vector<DeviceId>& device) {
    const Score score = evaluator.ScorePlan({.device = device}, *workspace);
    if (score.fits()) best = std::min(best, score.time);
  });
  return best;
}

}  // namespace berth::testing
