#include "cli/problem_factory.h"

namespace berth {

Graph MakeGraph(const Catalogs& catalogs, const std::string& model, const std::vector<std::string>& shapes,
                const std::string& format) {
  ImportOptions options{.format = format};
  for (const std::string& shape : shapes) ParseShape(shape, options);
  return ReadModel(model, catalogs.models, options);
}

Setup MakeSetup(const Catalogs& catalogs, const ProblemStrings& strings) {
  // First what is quick to be wrong about.
  auto cluster = std::make_shared<const Cluster>(ReadCluster(strings.cluster, catalogs.clusters));
  auto graph = std::make_shared<const Graph>(MakeGraph(catalogs, strings.model, strings.shapes, strings.format));
  OpTimes times = catalogs.costs.MakeTimes(strings.costs, *graph, *cluster);
  Setup setup{.strings = strings,
              .problem = std::make_unique<const Problem>(std::move(graph), std::move(cluster), std::move(times)),
              .evaluator = nullptr};
  setup.evaluator = catalogs.evaluators.Make(strings.evaluator, *setup.problem);
  return setup;
}

PlanFile MakePlanFile(const Setup& setup, const Plan& plan) {
  PlanFile file = MakePlanFile(*setup.problem, plan);
  file.model = setup.strings.model;
  file.shapes = setup.strings.shapes;
  file.format = setup.strings.format;
  file.cluster = setup.strings.cluster;
  file.costs = setup.problem->cost_source();
  file.evaluator = setup.evaluator->name();
  return file;
}

}  // namespace berth
