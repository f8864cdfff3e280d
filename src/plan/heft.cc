#include <algorithm>
#include <queue>

#include "base/error.h"
#include "placement/partial_schedule.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/named_planner.h"
#include "plan/planners.h"
#include "plan/rank.h"

namespace berth {
namespace {

// The optimistic cost table of PEFT (Arabnejad and Barbosa 2014, equation 5): per op and device, the least time from
// the end of the op there to the end of everything, each consumer on its best device. O(edges x devices).
std::vector<double> OptimisticCosts(const Problem& problem) {
  const Graph& graph = problem.graph();
  const size_t devices = problem.num_devices();
  const MeanTransfer transfer(problem);
  std::vector<double> cost(graph.num_ops() * devices, 0);
  for (size_t v = graph.num_ops(); v-- > 0;) {
    const auto op = MakeId<OpId>(v);
    for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      for (const OpId consumer : graph.consumers(tensor)) {
        double least = kCannotRun;
        const auto whole = [&](size_t q) {
          return cost[Index(consumer) * devices + q] + problem.op_time(consumer, MakeId<DeviceId>(q));
        };
        for (size_t q = 0; q < devices; ++q) least = std::min(least, whole(q));
        least += transfer(tensor);
        for (size_t p = 0; p < devices; ++p) {
          cost[v * devices + p] = std::max(cost[v * devices + p], std::min(least, whole(p)));
        }
      }
    }
  }
  return cost;
}

enum class Rank { kUpward, kOptimistic };

// One pass of list scheduling: the ready op of the highest rank next, on the device where it ends first (with the
// optimistic rank: where that and what must follow end first).
class ListScheduler {
 public:
  ListScheduler(const Units& units, Rank rank) : units_(units), problem_(units.problem()) {
    const size_t devices = problem_.num_devices();
    if (rank == Rank::kUpward) {
      rank_ = UpwardRank(problem_);
      return;
    }
    ahead_ = OptimisticCosts(problem_);
    for (size_t v = 0; v < problem_.num_ops(); ++v)
      rank_.push_back(MeanTime(std::span(ahead_).subspan(v * devices, devices)));
  }

  const std::vector<double>& rank() const { return rank_; }

  // With `mind_memory` only devices that would hold everything ever put there, while there is such a device.
  PartialSchedule Run(const EvaluatorFacts& facts, Contention contention, bool insertion, bool mind_memory) {
    const Graph& graph = problem_.graph();
    PartialSchedule schedule(problem_, contention, insertion, facts.io_host());
    io_host_ = facts.io_host();
    device_.assign(graph.num_ops(), DeviceId{-1});
    kept_apart_ = true;
    std::vector<size_t> missing(graph.num_ops());
    using Entry = std::pair<double, OpId>;
    const auto later = [](const Entry& a, const Entry& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(later)> ready(later);
    for (const OpId op : graph.ops()) {
      missing[Index(op)] = graph.inputs_of(op).size();
      if (missing[Index(op)] == 0) ready.emplace(rank_[Index(op)], op);
    }
    while (!ready.empty()) {
      const OpId op = ready.top().second;
      ready.pop();
      const size_t unit = units_.unit_of(op);
      if (device_[Index(op)] == DeviceId{-1}) units_.Put(device_, unit, Choose(op, unit, schedule, mind_memory));
      schedule.Place(op, device_[Index(op)]);
      for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
        for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) {
          if (--missing[Index(consumer)] == 0) ready.emplace(rank_[Index(consumer)], consumer);
        }
      }
    }
    return schedule;
  }

  // Of the last Run.
  const std::vector<DeviceId>& device() const { return device_; }
  // False when it came to an op that could be on none of the devices that were left.
  bool kept_apart() const { return kept_apart_; }

 private:
  DeviceId Choose(OpId op, size_t unit, PartialSchedule& schedule, bool mind_memory) {
    DeviceId best{-1};
    std::pair<int64_t, double> least;  // bytes over the limit, then time
    for (const DeviceId device : problem_.cluster().ids()) {
      if (!units_.Fits(device_, unit, device)) continue;
      std::pair<int64_t, double> cost{0, schedule.Find(op, device).end};
      cost.second += ReturnTime(op, device);
      if (!ahead_.empty()) cost.second += ahead_[Index(op) * problem_.num_devices() + Index(device)];
      if (mind_memory) {
        const int64_t needed = schedule.resident_bytes(device) + schedule.added_bytes(op, device);
        cost.first = std::max<int64_t>(0, needed - problem_.memory_limit(device));
      }
      if (best == DeviceId{-1} || cost < least) {
        best = device;
        least = cost;
      }
    }
    if (best != DeviceId{-1}) return best;
    kept_apart_ = false;
    return units_.fastest(unit);
  }

  // Until its outputs are back on the host, if there is one.
  double ReturnTime(OpId op, DeviceId device) const {
    if (!io_host_ || device == *io_host_) return 0;
    double time = 0;
    for (size_t t = problem_.graph().first_output(op); t < problem_.graph().end_output(op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      if (problem_.graph().is_output(tensor)) time = std::max(time, problem_.transfer_time(tensor, device, *io_host_));
    }
    return time;
  }

  const Units& units_;
  const Problem& problem_;
  std::optional<DeviceId> io_host_;
  std::vector<double> rank_;
  std::vector<double> ahead_;  // op x device; empty with the upward rank
  std::vector<DeviceId> device_;
  bool kept_apart_ = true;
};

// HEFT (Topcuoglu, Hariri and Wu 2002): list scheduling by upward rank with insertion into gaps; rank=optimistic is
// PEFT (Arabnejad and Barbosa 2014). Evaluates the schedule as it stands, and its placement under the first-come rule
// and under the ranks as priorities, and keeps the best. When that does not fit into memory it schedules once more,
// minding memory. O(edges x devices) and as many gap searches.
class HeftPlanner : public NamedPlanner {
 public:
  explicit HeftPlanner(const Params& params)
      : NamedPlanner(params),
        rank_(params.Text("rank") == "upward" ? Rank::kUpward : Rank::kOptimistic),
        insertion_(params.Bool("insertion")),
        contention_(params.Text("contention")),
        order_(params.Text("order")) {}

  PlannerFacts facts() const override {
    const auto space = order_ == "first_come" ? PlannerFacts::Space::kPlacement
                       : order_ == "priority" ? PlannerFacts::Space::kPriorities
                                              : PlannerFacts::Space::kSequence;
    return {.space = space, .deterministic_without_seed = true};
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Units units(request.problem());
    ListScheduler scheduler(units, rank_);
    EvaluateRun(search, units, scheduler, false);
    if (!search.best_score().fits() && request.problem().has_memory_limits()) {
      EvaluateRun(search, units, scheduler, true);
    }
    PlanResult result = search.Finish();
    GiveCauses(request.problem(), result.plan, "finishes first there");
    return result;
  }

 private:
  void EvaluateRun(Search& search, const Units& units, ListScheduler& scheduler, bool mind_memory) const {
    const EvaluatorFacts& facts = search.evaluator().facts();
    const PartialSchedule schedule = scheduler.Run(facts, ContentionFor(facts), insertion_, mind_memory);
    Plan plan{.device = scheduler.kept_apart() ? scheduler.device() : units.Legal(scheduler.device())};
    const auto evaluate = [&] {
      if (!search.Done()) search.Evaluate(plan);
    };
    const bool ordered = facts.uses_priorities && facts.Is<ParallelFacts>();
    if (ordered && scheduler.kept_apart() && (order_ == "best" || order_ == "sequence")) {
      plan.sequence = schedule.InOrder();
      evaluate();
      plan.sequence.reset();
      if (order_ == "sequence") return;
    }
    if (order_ != "priority" || !ordered) evaluate();
    if (ordered && (order_ == "best" || order_ == "priority")) {
      plan.priority = scheduler.rank();
      evaluate();
    }
  }

  Contention ContentionFor(const EvaluatorFacts& facts) const {
    if (contention_ == "ports") return Contention::kPorts;
    return contention_ == "auto" && facts.Is<ParallelFacts>() ? facts.contention() : Contention::kNone;
  }

  Rank rank_;
  bool insertion_;
  std::string contention_;
  std::string order_;
};

}  // namespace

void RegisterHeft(PlannerCatalog& catalog) {
  catalog.Add({.name = "heft",
               .sentence = "List scheduling: takes ops by their longest path to the end, and puts each on the device "
                           "where it finishes first.",
               .source = "Topcuoglu, Hariri and Wu 2002, section 4; rank=optimistic: Arabnejad and Barbosa 2014",
               .parameters = {{.name = "rank",
                               .type = ParameterType::kChoice,
                               .default_value = "upward",
                               .sentence = "upward: HEFT; optimistic: PEFT, which looks ahead when it chooses a device",
                               .choices = {"upward", "optimistic"}},
                              {.name = "insertion",
                               .type = ParameterType::kBool,
                               .default_value = "true",
                               .sentence = "ops may be inserted into idle gaps of a device"},
                              {.name = "contention",
                               .type = ParameterType::kChoice,
                               .default_value = "auto",
                               .sentence = "how transfers queue while scheduling; auto: as the evaluator says",
                               .choices = {"auto", "none", "ports"}},
                              {.name = "order",
                               .type = ParameterType::kChoice,
                               .default_value = "best",
                               .sentence = "order of ops in the plan: none (first_come), the ranks as priorities, the "
                                           "schedule's own sequence, or the best of the three",
                               .choices = {"best", "first_come", "priority", "sequence"}}}},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<HeftPlanner>(params); });
}

}  // namespace berth
