#include "cli/comparing.h"

#include <algorithm>

#include "base/stopwatch.h"
#include "cli/planning.h"

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
  return problem.memory_limit(a) == problem.memory_limit(b) && std::ranges::all_of(problem.graph().ops(), [&](OpId op) {
           return problem.op_time(op, a) == problem.op_time(op, b);
         });
}

std::vector<std::string> SimpleRules(const Setup& setup) {
  const Cluster& cluster = setup.problem->cluster();
  std::vector<std::string> rules;
  std::vector<DeviceId> tried;
  for (const DeviceId device : cluster.ids()) {
    const auto as_good = [&](DeviceId other) { return EquallyGood(*setup.evaluator, device, other); };
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

Comparison ComparePlanners(const Setup& setup, const Catalogs& catalogs, const std::vector<std::string>& planners,
                           const SearchArguments& search, const std::atomic<bool>* cancelled,
                           std::vector<ComparisonRow> known, double seconds_for_all) {
  const Stopwatch watch;
  std::vector<std::unique_ptr<Planner>> all;
  const auto add = [&](const std::string& name) {
    auto planner = catalogs.planners.MakePlanner(name);
    const bool there =
        std::any_of(all.begin(), all.end(), [&](const auto& other) { return other->name() == planner->name(); });
    if (!there) all.push_back(std::move(planner));
  };
  for (const std::string& name : SimpleRules(setup)) add(name);
  for (const std::string& name : planners) add(name);

  const Bound bound = LowerBound(*setup.evaluator);
  std::vector<ComparisonRow> rows = std::move(known);
  std::vector<std::pair<std::string, std::string>> refusals;
  ProgressLine line;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& planner = all[i];
    if (!rows.empty() && cancelled->load()) {
      refusals.emplace_back(planner->name(), "the comparison was stopped before");
    } else if (const auto reason = planner->Refuses(*setup.problem, *setup.evaluator)) {
      refusals.emplace_back(planner->name(), *reason);
    } else {
      const double share = (seconds_for_all - watch.seconds()) / static_cast<double>(all.size() - i);
      rows.push_back({.report = RunPlanner(setup, *planner, search, bound, cancelled, line, share),
                      .simple = planner->facts().simple});
    }
  }
  if (rows.empty()) {
    throw Error("no planner answers this problem; {}: {}", refusals.front().first, refusals.front().second);
  }
  return MakeComparison(*setup.evaluator, std::move(rows), std::move(refusals));
}

}  // namespace berth
