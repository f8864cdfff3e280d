#include "cli/guessing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "placement/costs.h"
#include "report/table.h"

namespace berth {
namespace {

// Of all evaluations together, how many ops a second of the budget is good for: about a tenth of it.
constexpr double kOpsPerSecond = 400'000, kMostSeconds = 10;

// The same machines with the efficiencies that their file leaves to a device's kind, of the classes of ops that such a
// number predicts: guesses like all others then. No score changes.
std::shared_ptr<const Cluster> WithDefaults(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  const Graph& graph = problem.graph();
  std::vector<Device> devices;
  std::vector<Link> links;
  for (const DeviceId id : cluster.ids()) {
    Device& device = devices.emplace_back(cluster.device(id));
    std::array<bool, kOpClasses> predicted{};
    for (const OpId op : graph.ops()) {
      const OpWork& work = graph.work(op);
      if (work.flops > 0 && problem.can_run(op, id) && !problem.measured(op, id))
        predicted[static_cast<size_t>(work.op_class)] = true;
    }
    for (size_t c = 0; c < kOpClasses; ++c) {
      if (!predicted[c]) continue;
      device.efficiency.try_emplace(std::string(kOpClassNames[c]),
                                    Quantity{.value = DefaultEfficiency(device.kind, static_cast<OpClass>(c)),
                                             .provenance = Provenance::kGuess,
                                             .source = std::string(kDefaultOf) + device.kind});
    }
    for (const DeviceId to : cluster.ids()) links.push_back(cluster.link(id, to));
  }
  return std::make_shared<const Cluster>(cluster.name(), std::move(devices), std::move(links));
}

}  // namespace

std::optional<Rival> FastestDevice(const Problem& problem, const std::vector<double>& singles) {
  const auto best = std::ranges::min_element(singles);
  if (best == singles.end() || !std::isfinite(*best)) return std::nullopt;
  const DeviceId device = MakeId<DeviceId>(static_cast<size_t>(best - singles.begin()));
  return Rival{.name = LegibleName(problem.cluster(), device) + " alone",
               .plan = {.device = std::vector<DeviceId>(problem.num_ops(), device)}};
}

std::optional<Rival> BestSimple(const Comparison& comparison) {
  const ComparisonRow* row = comparison.best_simple();
  if (row == nullptr || !row->report.timeline.score.fits()) return std::nullopt;
  return Rival{.name = row->report.planner, .plan = row->report.result.plan};
}

std::optional<GuessReport> VaryGuesses(const Setup& setup, const Catalogs& catalogs, const PlanReport& report,
                                       const std::optional<Rival>& rival, double seconds) {
  const Problem& problem = *setup.problem;
  const EvaluatorFacts& facts = setup.evaluator->facts();
  const Plan& plan = report.result.plan;
  const bool own = setup.strings.cluster == kOwn || setup.strings.costs == kOwn;
  if (!rival || own || !facts.deterministic || !report.timeline.score.fits() || plan.device == rival->plan.device) {
    return std::nullopt;
  }
  const auto both = [&](const Evaluator& evaluator) {
    const auto workspace = evaluator.NewWorkspace();
    return std::pair(evaluator.ScorePlan(plan.view(), *workspace).value(),
                     evaluator.ScorePlan(rival->plan.view(), *workspace).value());
  };
  const ScoreBoth score = [&](const std::shared_ptr<const Cluster>& cluster) {
    Problem::Options options{.seconds_per_unit = problem.seconds_per_unit(), .constraints = problem.constraints()};
    for (const DeviceId device : cluster->ids()) options.memory_limits.push_back(problem.memory_limit(device));
    // What may not run where, and which kernels are whole, stays as it is.
    OpTimes times = catalogs.costs.MakeTimes(setup.strings.costs, problem.graph(), *cluster);
    for (const OpId op : problem.graph().ops()) {
      for (const DeviceId device : cluster->ids()) {
        if (!problem.can_run(op, device)) times.time[Index(op) * cluster->num_devices() + Index(device)] = kCannotRun;
      }
    }
    SplitKernels(plan.device, cluster->num_devices(), times);
    const Problem varied(problem.shared_graph(), cluster, std::move(times), std::move(options));
    const auto evaluator =
        WithObjective(catalogs.evaluators.Make(setup.strings.evaluator, varied, ModelFile(setup.strings.model)),
                      catalogs.objectives.Make(setup.strings.objective));
    return both(*evaluator);
  };
  const auto [value, other] = both(*setup.evaluator);
  const double ops = kOpsPerSecond * std::min(seconds, kMostSeconds);
  return VaryGuesses(*WithDefaults(problem), {.energy = !facts.objective.is_time(), .cuts = facts.Is<PartsFacts>()},
                     rival->name, other / value, score,
                     static_cast<int64_t>(ops / static_cast<double>(problem.num_ops())));
}

}  // namespace berth
