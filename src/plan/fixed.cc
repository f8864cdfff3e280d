#include "base/error.h"
#include "base/file.h"
#include "placement/placement_list.h"
#include "placement/plan_file.h"
#include "placement/search.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// A plan that somebody has already: a plan file, or a plain list of devices. One evaluation.
class FixedPlanner : public NamedPlanner {
 public:
  explicit FixedPlanner(const Params& params) : NamedPlanner(params), file_(params.Text("file")) {
    if (file_.empty()) throw Error("planner fixed: say which plan: fixed(file=plan.json)");
  }

  PlannerFacts facts() const override {
    return {.space = PlannerFacts::Space::kSequence, .deterministic_without_seed = true};
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    std::vector<std::string> warnings;
    Plan plan = Read(request.problem(), warnings);
    if (!request.evaluator.facts().uses_priorities) {
      plan.priority.clear();
      plan.sequence.reset();
    }
    if (const auto violation = FindViolation(request.problem(), plan.view())) throw Error("{}: {}", file_, *violation);
    if (plan.cause.empty()) plan.SetCause(fmt::format("as {} says", file_));
    Search search(request);
    search.Evaluate(plan);
    return search.Finish(false, fmt::format("{}", fmt::join(warnings, "; ")));
  }

 private:
  Plan Read(const Problem& problem, std::vector<std::string>& warnings) const {
    const std::string text = ReadFile(file_, kPlanKind);
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && text[first] == '{')
      return BindPlan(ParsePlanFile(text, file_), problem, warnings);
    return {.device = ParsePlacementList(text, file_, problem)};
  }

  std::string file_;
};

}  // namespace

void RegisterFixed(PlannerCatalog& catalog) {
  catalog.Add(
      {.name = "fixed",
       .sentence = "Reads a plan: a plan file, or a list with a device for each op.",
       .source = "-",
       .parameters = {{.name = "file",
                       .type = ParameterType::kText,
                       .default_value = "",
                       .sentence =
                           "a plan file of Berth, or device numbers or names in the order of the model's file"}}},
      [](const Params& params, const PlannerCatalog&) { return std::make_unique<FixedPlanner>(params); });
}

}  // namespace berth
