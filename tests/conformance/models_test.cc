// What the searches promise on every model that ships.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cli/catalogs.h"
#include "placement/bound.h"

namespace berth {
namespace {

class ShippedModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedModel, IsPlacedBetterThanAtRandomAndNoWorseThanAtFirst) {
  const Catalogs all;
  const auto graph = std::make_shared<const Graph>(ReadModel(GetParam(), all.models));
  const auto cluster = std::make_shared<const Cluster>(all.clusters.Make("cpu_gpu"));
  const Problem problem(graph, cluster, all.costs.MakeTimes("roofline(fusion=none)", *graph, *cluster));
  for (const char* name : {"serial(io=everywhere)", "parallel(contention=ports,io=everywhere)"}) {
    SCOPED_TRACE(name);
    const auto evaluator = all.evaluators.Make(name, problem);
    const auto score = [&](const char* planner) {
      const PlanRequest request{.evaluator = *evaluator, .budget = {.evaluations = 40}, .random = Random(1)};
      return all.planners.MakePlanner(planner)->MakePlan(request).score.time;
    };
    const double random = score("random"), start = score("single"), bound = LowerBound(*evaluator).time;
    for (const char* planner : {"local_search", "annealing", "auto"}) {
      const double found = score(planner);
      EXPECT_LT(found, random) << planner;
      EXPECT_LE(found, start) << planner;
      EXPECT_GE(found, bound) << planner;
    }
    if (evaluator->facts().Is<SerialFacts>()) {
      const double least = score("mincut");
      EXPECT_GE(least, bound);
      for (const char* planner : {"heft", "one_cut", "local_search", "annealing"}) {
        EXPECT_LE(least, score(planner) * (1 + 1e-12)) << planner;
      }
    }
  }
}

std::vector<std::string> ModelNames() {
  std::vector<std::string> names;
  for (const auto& [name, path] : ShippedModels()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, ShippedModel, ::testing::ValuesIn(ModelNames()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace berth
