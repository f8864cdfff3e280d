// Problems for tests of planners, and planners that answer them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "placement/planner.h"
#include "placement/problem.h"

namespace berth::testing {

// A model made by a formula on a cluster of those that ship, with predicted times: one step of training with plain
// gradient descent, or inference.
Problem ModelProblem(const std::string& model, const std::string& cluster, bool training);

// What one of the planners answers under parallel(io=everywhere) with this contention.
PlanResult AnswerOf(const PlannerCatalog& planners, std::string_view planner, const Problem& problem,
                    const std::string& contention, const Budget& budget = {});

// The classical planners and searches, and simulators under which to try them.
const PlannerCatalog& SimplePlanners();
std::unique_ptr<Evaluator> MakeSimulator(const std::string& name, const Problem& problem);

// Adds a planner `breaking`, whose MakePlan throws this.
inline void AddBreaking(PlannerCatalog& planners, std::string error) {
  class Breaking : public Planner {
   public:
    explicit Breaking(std::string error) : error_(std::move(error)) {}
    const std::string& name() const override { return name_; }
    PlanResult MakePlan(const PlanRequest&) override { throw Error(error_); }

   private:
    const std::string name_ = "breaking", error_;
  };
  planners.Add(
      {.name = "breaking", .sentence = "-", .source = "-"},
      [error = std::move(error)](const Params&, const PlannerCatalog&) { return std::make_unique<Breaking>(error); });
}

// What these planners answer under one simulator. The problem must outlive this.
struct Trial {
  const Problem& problem;
  std::unique_ptr<Evaluator> evaluator;

  Trial(const Problem& p, const std::string& name) : problem(p), evaluator(MakeSimulator(name, p)) {}

  PlanResult operator()(const std::string& planner, int64_t evaluations = 0, uint64_t seed = 1) const;
};

// Every placement that breaks no rule, one after another.
template <typename Visit>
void ForEachPlacement(const Problem& problem, Visit visit) {
  std::vector<DeviceId> device(problem.num_ops(), DeviceId{0});
  for (;;) {
    if (!FindViolation(problem, {.device = device})) visit(device);
    size_t v = 0;
    while (v < device.size() && Index(device[v]) + 1 == problem.num_devices()) device[v++] = DeviceId{0};
    if (v == device.size()) return;
    device[v] = MakeId<DeviceId>(Index(device[v]) + 1);
  }
}

// The shortest time of all of them; kCannotRun where none fits.
double SlowBest(const Problem& problem, const Evaluator& evaluator);

}  // namespace berth::testing
