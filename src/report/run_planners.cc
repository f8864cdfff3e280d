#include "report/run_planners.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/stopwatch.h"
#include "placement/set_up.h"
#include "report/table.h"

namespace berth {
namespace {

// Equally good for everything on its own, its way to and from the host of inputs and outputs included.
bool EquallyGood(const Evaluator& evaluator, DeviceId a, DeviceId b) {
  const Problem& problem = evaluator.problem();
  if (const std::optional<DeviceId> host = evaluator.facts().io_host()) {
    const auto same_way = [&](DeviceId from_a, DeviceId to_a, DeviceId from_b, DeviceId to_b) {
      const Link &of_a = problem.cluster().link(from_a, to_a), &of_b = problem.cluster().link(from_b, to_b);
      return of_a.latency.value == of_b.latency.value && of_a.bandwidth.value == of_b.bandwidth.value;
    };
    if (a == host || b == host || !same_way(*host, a, *host, b) || !same_way(a, *host, b, *host)) return false;
  }
  const EvaluatorFacts& facts = evaluator.facts();
  const Device &of_a = problem.cluster().device(a), &of_b = problem.cluster().device(b);
  if (facts.Is<PartsFacts>() && of_a.part_overhead.value != of_b.part_overhead.value) return false;
  if (!facts.objective.is_time() &&
      (of_a.watts_busy.value != of_b.watts_busy.value || of_a.watts_idle.value != of_b.watts_idle.value)) {
    return false;
  }
  return problem.memory_limit(a) == problem.memory_limit(b) && std::ranges::all_of(problem.graph().ops(), [&](OpId op) {
           return problem.op_time(op, a) == problem.op_time(op, b);
         });
}

std::vector<std::string> SimpleRules(const Evaluator& evaluator) {
  const Cluster& cluster = evaluator.problem().cluster();
  std::vector<std::string> rules;
  std::vector<DeviceId> tried;
  for (const DeviceId device : cluster.ids()) {
    const auto as_good = [&](DeviceId other) { return EquallyGood(evaluator, device, other); };
    if (std::ranges::any_of(tried, as_good)) continue;
    tried.push_back(device);
    rules.push_back(fmt::format("single(device=\"{}\")", cluster.device(device).name));
  }
  if (cluster.num_devices() > 1) {
    for (const char* rule : {"one_cut", "human", "metis"}) rules.emplace_back(rule);
  }
  return rules;
}

}  // namespace

PlanReport RunPlanner(const Conditions& conditions, Planner& planner, double seconds_left) {
  const Evaluator& evaluator = conditions.evaluator;
  Budget budget = BudgetOfSearch(conditions.budget, evaluator, conditions.scores_beside());
  budget.seconds = std::min(budget.seconds, std::max(0.0, seconds_left));
  const std::string prefix = planner.name() + ": ";
  PlanResult result;
  try {
    result =
        planner.MakePlan({.evaluator = evaluator,
                          .budget = budget,
                          .random = Random(conditions.seed),
                          .progress = conditions.progress ? conditions.progress(planner.name()) : ProgressCallback()});
  } catch (const Error& error) {
    const std::string what = error.what();
    throw NoAnswer(what, what.starts_with(prefix) ? what.substr(prefix.size()) : what);
  }
  if (result.score.failed()) {
    const std::string why = fmt::format("none of {} could be scored by {}; the last one: {}",
                                        Counted(result.evaluations, "plan"), evaluator.name(), result.failure);
    throw NoAnswer(prefix + why, why);
  }
  const SearchEnd ended = HowItEnded(budget, result);
  if (result.optimal && !NoPlanIsBetter(planner, result, evaluator.facts())) {
    result.optimal = false;
    constexpr const char* kPlacementAlone = "no placement is better in this order of ops; in another order one may be";
    result.note = result.note.empty() ? kPlacementAlone : result.note + "; " + kPlacementAlone;
  }
  PlanReport report = MakePlanReport(evaluator, planner.name(), std::move(result), conditions.bound);
  report.ended = ended;
  report.seed = conditions.seed;
  report.budget = conditions.budget.ToString();
  report.constraints = conditions.constraints;
  report.single_device_time = conditions.singles.times();
  report.single_device_spread = conditions.singles.spreads();
  report.set_up += conditions.singles.evaluations();
  return report;
}

Comparison ComparePlanners(const Conditions& conditions, const PlannerCatalog& catalog,
                           const std::vector<std::string>& planners, std::vector<ComparisonRow> known,
                           double seconds_for_all) {
  const Stopwatch watch;
  const Evaluator& evaluator = conditions.evaluator;
  const std::atomic<bool>* const cancelled = conditions.budget.cancelled;
  std::vector<std::unique_ptr<Planner>> all;
  const auto add = [&](const std::string& name) {
    auto planner = catalog.MakePlanner(name);
    const bool there =
        std::any_of(all.begin(), all.end(), [&](const auto& other) { return other->name() == planner->name(); });
    if (!there) all.push_back(std::move(planner));
  };
  for (const std::string& name : SimpleRules(evaluator)) add(name);
  for (const std::string& name : planners) add(name);

  std::vector<ComparisonRow> rows = std::move(known);
  std::vector<std::pair<std::string, std::string>> refusals;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& planner = all[i];
    if (!rows.empty() && cancelled != nullptr && cancelled->load()) {
      refusals.emplace_back(planner->name(), "the comparison was stopped before it began");
    } else if (const auto reason = planner->Refuses(evaluator.problem(), evaluator)) {
      refusals.emplace_back(planner->name(), *reason);
    } else {
      const double share = (seconds_for_all - watch.seconds()) / static_cast<double>(all.size() - i);
      try {
        rows.push_back({.report = RunPlanner(conditions, *planner, share), .simple = planner->facts().simple});
      } catch (const NoAnswer& none) {
        refusals.emplace_back(planner->name(), none.why);
      }
    }
  }
  if (rows.empty()) {
    throw Error("no planner answers this problem; {}: {}", refusals.front().first, refusals.front().second);
  }
  return MakeComparison(evaluator, std::move(rows), std::move(refusals));
}

}  // namespace berth
