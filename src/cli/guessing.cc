#include "cli/guessing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <utility>

#include "cluster/cluster_numbers.h"
#include "placement/costs.h"
#include "placement/search.h"
#include "placement/single_devices.h"
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
  ClusterNumbers numbers(cluster);
  for (const DeviceId id : cluster.ids()) {
    std::array<bool, kOpClasses> predicted{};
    for (const OpId op : graph.ops()) {
      const OpWork& work = graph.work(op);
      if (work.flops > 0 && problem.can_run(op, id) && !problem.measured(op, id))
        predicted[static_cast<size_t>(work.op_class)] = true;
    }
    for (size_t c = 0; c < kOpClasses; ++c) {
      if (!predicted[c]) continue;
      Device& device = numbers.devices[Index(id)];
      device.efficiency.try_emplace(std::string(kOpClassNames[c]),
                                    Quantity{.value = DefaultEfficiency(device.kind, static_cast<OpClass>(c)),
                                             .provenance = Provenance::kGuess,
                                             .source = std::string(kDefaultOf) + device.kind});
    }
  }
  return std::make_shared<const Cluster>(std::move(numbers).Make());
}

// Machines like the setup's, with some numbers changed; what may not run where, and which kernels are whole for
// `device`, stays as it is.
struct Varied {
  Varied(const Setup& setup, const Catalogs& catalogs, const std::shared_ptr<const Cluster>& cluster,
         std::span<const DeviceId> device)
      : problem(MakeProblem(*setup.problem, setup.strings.costs, catalogs, cluster, device)),
        evaluator(
            WithObjective(catalogs.evaluators.Make(setup.strings.evaluator, problem, ModelFile(setup.strings.model)),
                          catalogs.objectives.Make(setup.strings.objective))) {}

  static Problem MakeProblem(const Problem& problem, const std::string& costs, const Catalogs& catalogs,
                             const std::shared_ptr<const Cluster>& cluster, std::span<const DeviceId> device) {
    Problem::Options options{.seconds_per_unit = problem.seconds_per_unit(), .constraints = problem.constraints()};
    for (const DeviceId id : cluster->ids()) options.memory_limits.push_back(problem.memory_limit(id));
    OpTimes times = catalogs.costs.MakeTimes(costs, problem.graph(), *cluster);
    for (const OpId op : problem.graph().ops()) {
      for (const DeviceId id : cluster->ids()) {
        if (!problem.can_run(op, id)) times.time[Index(op) * cluster->num_devices() + Index(id)] = kCannotRun;
      }
    }
    SplitKernels(device, cluster->num_devices(), times);
    return Problem(problem.shared_graph(), cluster, std::move(times), std::move(options));
  }

  const Problem problem;
  const std::unique_ptr<const Evaluator> evaluator;
};

// Whether varying means something for a plan that fits.
bool CanVary(const Setup& setup, const PlanReport& report) {
  const bool own = setup.strings.cluster == kOwn || setup.strings.costs == kOwn;
  return !own && setup.evaluator->facts().deterministic && report.timeline.score.fits();
}

GuessScope ScopeOf(const EvaluatorFacts& facts) {
  return {.energy = !facts.objective.is_time(), .cuts = facts.Is<PartsFacts>()};
}

// How often `seconds` of a budget let a model of this size be scored.
int64_t AffordableEvaluations(const Problem& problem, double seconds) {
  const double ops = kOpsPerSecond * std::min(seconds, kMostSeconds);
  return static_cast<int64_t>(ops / static_cast<double>(problem.num_ops()));
}

// Guessed latencies halved, guessed bandwidths doubled; null where none is guessed.
std::shared_ptr<const Cluster> WithFasterLinks(const Cluster& cluster) {
  bool is_guessed = false;
  ClusterNumbers numbers(cluster);
  for (const DeviceId from : cluster.ids()) {
    for (const DeviceId to : cluster.ids()) {
      if (from == to) continue;
      Link& link = numbers.link(from, to);
      if (link.latency.provenance == Provenance::kGuess) link.latency.value *= 0.5, is_guessed = true;
      if (link.bandwidth.provenance == Provenance::kGuess) link.bandwidth.value *= 2, is_guessed = true;
    }
  }
  if (!is_guessed) return nullptr;
  return std::make_shared<const Cluster>(std::move(numbers).Make());
}

std::optional<Rival> PlanOf(const Evaluator& evaluator, const Catalogs& catalogs, const std::string& planner,
                            std::string name, const Budget& budget) {
  const auto made = catalogs.planners.MakePlanner(planner);
  if (made->Refuses(evaluator.problem(), evaluator)) return std::nullopt;
  PlanResult result = made->MakePlan({.evaluator = evaluator, .budget = budget, .random = Random(0), .causes = false});
  if (result.plan.device.empty() || !result.score.fits()) return std::nullopt;
  return Rival{.name = std::move(name), .plan = std::move(result.plan)};
}

std::string NameAlone(const Problem& problem, DeviceId device) {
  return LegibleName(problem.cluster(), device) + " alone";
}

// What made a plan that is one device says less than which device that is.
std::string NameOf(const Problem& problem, const Plan& plan, const std::string& made_by) {
  if (plan.device.empty() || !OnOneDevice(plan.device)) return made_by;
  return NameAlone(problem, plan.device.front());
}

}  // namespace

std::optional<Rival> FastestDevice(const Problem& problem, const std::vector<double>& singles) {
  const auto best = std::ranges::min_element(singles);
  if (best == singles.end() || !std::isfinite(*best)) return std::nullopt;
  const DeviceId device = MakeId<DeviceId>(static_cast<size_t>(best - singles.begin()));
  return Rival{.name = NameAlone(problem, device),
               .plan = {.device = std::vector<DeviceId>(problem.num_ops(), device)}};
}

std::optional<Rival> BestSimple(const Problem& problem, const Comparison& comparison) {
  const ComparisonRow* row = comparison.best_simple();
  if (row == nullptr || !row->report.timeline.score.fits()) return std::nullopt;
  const Plan& plan = row->report.result.plan;
  return Rival{.name = NameOf(problem, plan, row->report.planner), .plan = plan};
}

std::optional<Rival> BestRival(const Setup& setup, const Catalogs& catalogs, const PlanReport& report,
                               const std::vector<double>& singles, double seconds, const std::atomic<bool>* cancelled) {
  const Problem& problem = *setup.problem;
  if (cancelled != nullptr && cancelled->load()) return FastestDevice(problem, singles);
  if (!CanVary(setup, report) || problem.num_devices() < 2) return std::nullopt;
  if (FindGuesses(*WithDefaults(problem), ScopeOf(setup.evaluator->facts())).empty()) return std::nullopt;
  std::vector<std::optional<Rival>> rivals = {FastestDevice(problem, singles)};
  constexpr int64_t kLeastEvaluations = 100;
  const Budget budget{.evaluations = AffordableEvaluations(problem, seconds) / 8, .cancelled = cancelled};
  if (budget.evaluations >= kLeastEvaluations) {
    for (const char* rule : {"one_cut", "human", "metis"}) {
      rivals.push_back(PlanOf(*setup.evaluator, catalogs, rule, rule, budget));
    }
    const bool on_one = OnOneDevice(report.result.plan.device);
    if (const auto cluster = on_one ? WithFasterLinks(problem.cluster()) : nullptr) {
      // With these numbers every rule may end on one device; what splitting could gain shows where links cost less.
      const Varied faster(setup, catalogs, cluster, report.result.plan.device);
      rivals.push_back(PlanOf(*faster.evaluator, catalogs, "on(group=fusion,planner=local_search)",
                              "a split made for links twice as fast", budget));
    }
  }
  if (cancelled != nullptr && cancelled->load()) return FastestDevice(problem, singles);
  const auto workspace = setup.evaluator->NewWorkspace();
  std::optional<Rival> best;
  Score least;
  for (std::optional<Rival>& rival : rivals) {
    if (!rival || rival->plan.device == report.result.plan.device) continue;
    const Score score = setup.evaluator->ScorePlan(rival->plan.view(), *workspace);
    if (!score.fits() || (best && !Better(score, least))) continue;
    // The same on another of several equal devices.
    if (OnOneDevice(rival->plan.device) && OnOneDevice(report.result.plan.device) &&
        score.value() == report.timeline.score.value()) {
      continue;
    }
    least = score;
    best = std::move(rival);
    best->name = NameOf(problem, best->plan, best->name);
  }
  return best;
}

std::optional<GuessReport> VaryGuesses(const Setup& setup, const Catalogs& catalogs, const PlanReport& report,
                                       const std::optional<Rival>& rival, double seconds) {
  const Problem& problem = *setup.problem;
  const Plan& plan = report.result.plan;
  if (!rival || !CanVary(setup, report) || plan.device == rival->plan.device) return std::nullopt;
  const auto both = [&](const Evaluator& evaluator) {
    const auto workspace = evaluator.NewWorkspace();
    return std::pair(evaluator.ScorePlan(plan.view(), *workspace).value(),
                     evaluator.ScorePlan(rival->plan.view(), *workspace).value());
  };
  const ScoreBoth score = [&](const std::shared_ptr<const Cluster>& cluster) {
    return both(*Varied(setup, catalogs, cluster, plan.device).evaluator);
  };
  const auto [value, other] = both(*setup.evaluator);
  auto varied = VaryGuesses(*WithDefaults(problem), ScopeOf(setup.evaluator->facts()), rival->name, other / value,
                            score, AffordableEvaluations(problem, seconds));
  if (varied) varied->on_one_device = OnOneDevice(plan.device);
  return varied;
}

}  // namespace berth
