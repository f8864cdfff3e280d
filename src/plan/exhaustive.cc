#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/parameters.h"
#include "placement/bound.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/named_planner.h"
#include "plan/order_search.h"
#include "plan/planners.h"

namespace berth {
namespace {

constexpr size_t kDeepest = 1000;  // it goes as deep as there are ops

// What no placement that begins like this one can beat; ops are placed in number order. 0 for models without a bound.
class PrefixBound {
 public:
  PrefixBound(const Evaluator& evaluator)
      : problem_(evaluator.problem()),
        graph_(problem_.graph()),
        devices_(problem_.num_devices()),
        facts_(evaluator.facts()),
        host_(facts_.io_host()) {
    end_.resize(graph_.num_ops());
    load_.resize(devices_);
    least_.resize(graph_.num_ops() + 1, 0);
    tail_.assign(graph_.num_ops() * devices_, 0);
    for (size_t v = graph_.num_ops(); v-- > 0;) {
      least_[v] = least_[v + 1] + std::ranges::min(problem_.op_times(MakeId<OpId>(v)));
      for (const DeviceId p : problem_.cluster().ids()) tail_[v * devices_ + Index(p)] = Tail(MakeId<OpId>(v), p);
    }
  }

  // Of all placements whose first `count` ops are where `device` says. O(edges of those ops).
  double Of(std::span<const DeviceId> device, size_t count) {
    double time = 0;
    if (facts_.Is<SerialFacts>()) {
      time = Serial(device, count);
    } else if (facts_.Is<ParallelFacts>()) {
      time = Parallel(device, count);
    } else {
      return 0;
    }
    // Sums are made in another order here; shared media are simulated to nine digits.
    return time * (1 - (facts_.contention() == Contention::kLinks ? 1e-8 : 1e-12));
  }

 private:
  double TimeFromHost(InputId input, DeviceId to) const {
    return to == *host_ ? 0 : problem_.transfer_time(graph_.input_bytes(input), *host_, to);
  }
  double TimeToHost(TensorId tensor, DeviceId from) const {
    return host_ && from != *host_ && graph_.is_output(tensor) ? problem_.transfer_time(tensor, from, *host_) : 0;
  }

  double Tail(OpId op, DeviceId p) const {
    double tail = 0;
    for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t) {
      tail = std::max(tail, TimeToHost(MakeId<TensorId>(t), p));
      for (const OpId consumer : graph_.consumers(MakeId<TensorId>(t))) {
        double least = kCannotRun;
        for (const DeviceId q : problem_.cluster().ids()) {
          const double sent = p == q ? 0 : problem_.transfer_time(MakeId<TensorId>(t), p, q);
          least = std::min(least, sent + problem_.op_time(consumer, q) + tail_[Index(consumer) * devices_ + Index(q)]);
        }
        tail = std::max(tail, least);
      }
    }
    return tail;
  }

  double Serial(std::span<const DeviceId> device, size_t count) const {
    const auto any_on = [&](std::span<const OpId> ops, DeviceId q) {
      return std::ranges::any_of(ops, [&](OpId op) { return Index(op) < count && device[Index(op)] == q; });
    };
    double time = least_[count];
    for (size_t v = 0; v < count; ++v) {
      const auto op = MakeId<OpId>(v);
      time += problem_.op_time(op, device[v]);
      for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t) {
        const auto tensor = MakeId<TensorId>(t);
        for (const DeviceId q : problem_.cluster().ids()) {
          if (q == device[v]) continue;
          const bool returned = q == host_ && graph_.is_output(tensor);
          if (returned || any_on(graph_.consumers(tensor), q)) time += problem_.transfer_time(tensor, device[v], q);
        }
      }
    }
    if (!host_) return time;
    for (const InputId input : graph_.inputs()) {
      for (const DeviceId q : problem_.cluster().ids()) {
        if (any_on(graph_.input_consumers(input), q)) time += TimeFromHost(input, q);
      }
    }
    return time;
  }

  // The longest path through what is placed, and the work of the fullest device and of all.
  double Parallel(std::span<const DeviceId> device, size_t count) {
    double time = 0, work = least_[count];
    std::ranges::fill(load_, 0);
    for (size_t v = 0; v < count; ++v) {
      const auto op = MakeId<OpId>(v);
      const DeviceId here = device[v];
      double start = 0;
      if (host_) {
        for (const InputId input : graph_.graph_inputs_of(op)) start = std::max(start, TimeFromHost(input, here));
      }
      for (const TensorId tensor : graph_.inputs_of(op)) {
        const size_t u = Index(graph_.producer(tensor));
        start = std::max(start, end_[u] + (device[u] == here ? 0 : problem_.transfer_time(tensor, device[u], here)));
      }
      end_[v] = start + problem_.op_time(op, here);
      load_[Index(here)] += problem_.op_time(op, here);
      work += problem_.op_time(op, here);
      time = std::max(time, end_[v] + tail_[v * devices_ + Index(here)]);
    }
    return std::max({time, std::ranges::max(load_), work / static_cast<double>(devices_)});
  }

  const Problem& problem_;
  const Graph& graph_;
  size_t devices_;
  EvaluatorFacts facts_;
  std::optional<DeviceId> host_;  // of inputs and outputs
  std::vector<double> end_, load_, least_, tail_;
};

// Whether plans with priorities, or first-come runs, can do what no sequence can state: where transfers queue, a
// sequence cannot name those that a host makes necessary (docs/semantics.md).
bool SequencesMissPlans(const Evaluator& evaluator) {
  return evaluator.facts().io_host() && evaluator.facts().contention() != Contention::kNone;
}

// Depth first over the ops in number order; an op whose unit is placed already has its device.
class Enumeration {
 public:
  Enumeration(Search& search, const Units& units, std::vector<DeviceId> class_of, bool with_orders, double most_steps)
      : search_(search),
        most_steps_(most_steps),
        units_(units),
        bound_(search.evaluator()),
        orders_(search.problem(), with_orders ? search.evaluator().facts().contention() : Contention::kNone,
                search.evaluator().facts().io_host()),
        class_of_(std::move(class_of)),
        with_orders_(with_orders),
        first_come_too_(with_orders && SequencesMissPlans(search.evaluator())),
        whole_(RatesOf(search.evaluator()).whole),
        device_(search.problem().num_ops(), kNowhere),
        used_(search.problem().num_devices(), 0) {}

  // Whether nothing that was not ruled out was left out.
  bool complete() const { return !cut_short_ && !lost_; }

  void Place(size_t v) {
    if (cut_short_) return;
    if (v == device_.size()) {
      with_orders_ ? EvaluateOrders() : EvaluatePlacement();
      return;
    }
    if (++steps_ % OrderSearch::kStopEach == 0 && OutOfTime()) return;
    const size_t unit = units_.unit_of(MakeId<OpId>(v));
    if (device_[v] != kNowhere) {
      if (!RuledOut(v + 1)) Place(v + 1);
      return;
    }
    for (const DeviceId device : search_.problem().cluster().ids()) {
      if (!units_.Fits(device_, unit, device) || !FirstOfItsClass(device)) continue;
      units_.Put(device_, unit, device);
      ++used_[Index(device)];
      if (!RuledOut(v + 1)) Place(v + 1);
      --used_[Index(device)];
      units_.Put(device_, unit, kNowhere);
    }
  }

 private:
  static constexpr DeviceId kNowhere{-1};

  // Of interchangeable devices the smallest that are not in use are all the same.
  bool FirstOfItsClass(DeviceId device) const {
    for (size_t d = 0; d < Index(device); ++d) {
      if (class_of_[d] == class_of_[Index(device)] && used_[d] == 0) return false;
    }
    return true;
  }

  // Only a better plan that fits could be lost, and times of plans that do not fit say nothing about one that does.
  bool RuledOut(size_t count) {
    if (!search_.has_best() || !search_.best_score().fits()) return false;
    return !WeightsFit(count) || bound_.Of(device_, count) * whole_ >= search_.best_score().value();
  }

  // Whether the devices can hold the weights of the first `count` ops: all rules but Placeto's count these for the
  // whole run.
  bool WeightsFit(size_t count) {
    const EvaluatorFacts& facts = search_.evaluator().facts();
    if (!facts.tracks_memory || MemoryRule(facts) == "placeto") return true;
    const Problem& problem = search_.problem();
    for (const DeviceId device : problem.cluster().ids()) {
      int64_t left = problem.memory_limit(device);
      if (left == std::numeric_limits<int64_t>::max()) continue;
      for (const ParameterId parameter : problem.graph().parameters()) {
        const bool there = std::ranges::any_of(problem.graph().parameter_consumers(parameter), [&](OpId op) {
          return Index(op) < count && device_[Index(op)] == device;
        });
        if (there) left -= problem.graph().parameter_bytes(parameter);
      }
      if (left < 0) return false;
    }
    return true;
  }

  bool OutOfTime() {
    // Evaluations are asked for at the leaves; here it is about the clock, of which Done says nothing before the first
    // score, nor when the evaluations are spent.
    const bool done_tells_time = search_.evaluations() > 0 && search_.evaluations_left() > 0;
    const bool spent =
        static_cast<double>(steps_) >= most_steps_ || (done_tells_time ? search_.Done() : search_.Interrupted());
    cut_short_ = cut_short_ || spent;
    return spent;
  }

  void EvaluatePlacement() {
    if (search_.Done()) {
      cut_short_ = true;
      return;
    }
    search_.Evaluate({.device = device_}, "");
  }

  // Orders are compared by time alone: of one placement, the shortest is the best by any objective. Where memory is
  // limited a longer one might fit and a shorter one not: then the search is not complete.
  void EvaluateOrders() {
    if (first_come_too_) EvaluatePlacement();
    const bool fits = search_.has_best() && search_.best_score().fits();
    // A run that takes longer than this costs more than the best, whatever its devices take besides.
    const double below = !fits || whole_ == 0 ? kCannotRun : search_.best_score().value() / whole_;
    const auto result = orders_.Best(device_, below, [&] {
      steps_ += OrderSearch::kStopEach;
      return OutOfTime();
    });
    if (orders_.stopped()) cut_short_ = true;
    if (!result) return;
    if (search_.Done()) {
      cut_short_ = true;
      return;
    }
    const Score score = search_.Evaluate({.device = device_, .sequence = &result->sequence}, "");
    if (!score.fits() && WeightsFit(device_.size())) lost_ = true;
  }

  Search& search_;
  const double most_steps_;
  const Units& units_;
  PrefixBound bound_;
  OrderSearch orders_;
  std::vector<DeviceId> class_of_;
  bool with_orders_;
  bool first_come_too_;  // no sequence can state all that a first-come run does
  double whole_;         // what a time unit of the whole run costs at least
  std::vector<DeviceId> device_;
  std::vector<int> used_;  // units per device
  bool cut_short_ = false;
  bool lost_ = false;
  int64_t steps_ = 0;
};

// The oracle for tiny problems. space=placement: every placement, scored as it is. space=order: every placement, and
// for each every order of its ops, and of its transfers where they queue: the true optimum of parallel execution. Where
// transfers queue and inputs and outputs are on a host, it is the best of all that sequences can state, in which inputs
// go first and outputs last on each port, and of all first-come runs; priorities are not tried and may beat both.
// Devices that are interchangeable are used in order, and what cannot become better than the best so far is left out
// (bounds are lower bounds, so that nothing is lost).
class ExhaustivePlanner : public NamedPlanner {
 public:
  explicit ExhaustivePlanner(const Params& params)
      : NamedPlanner(params),
        orders_(params.Text("space") == "order"),
        limit_(params.Real("limit")),
        steps_(params.Real("steps")) {}

  PlannerFacts facts() const override {
    return {.space = orders_ ? PlannerFacts::Space::kSequence : PlannerFacts::Space::kPlacement,
            .deterministic_without_seed = true};
  }

  std::optional<std::string> Refuses(const Problem& problem, const Evaluator& evaluator) const override {
    if (auto refused = NamedPlanner::Refuses(problem, evaluator)) return refused;
    if (problem.num_ops() > kDeepest)
      return fmt::format("the model has {}, and trying every plan works for tiny problems only",
                         Counted(static_cast<int64_t>(problem.num_ops()), "op"));
    const Units units(problem);
    double size = 1;
    for (size_t unit = 0; unit < units.size(); ++unit) {
      size *= static_cast<double>(units.num_devices(unit));
      if (WithOrders(evaluator)) size *= static_cast<double>(unit + 1);
      if (size > limit_) {
        return fmt::format("there are more than {:g} plans, the limit for trying every one (parameter limit)", limit_);
      }
    }
    const EvaluatorFacts& facts = evaluator.facts();
    if (WithOrders(evaluator) && facts.contention() == Contention::kLinks) {
      return "space=order does not work with contention=links";
    }
    return std::nullopt;
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    if (const auto refused = Refuses(request.problem(), request.evaluator))
      throw Error("planner {}: {}", name(), *refused);
    Search search(request);
    const Units units(request.problem());
    Enumeration walk(search, units, ClassesFor(request.evaluator), WithOrders(request.evaluator), steps_);
    // What is known already rules out much.
    if (request.start != nullptr) {
      const auto& sequence = request.start->sequence;
      const bool in_order = sequence && WithOrders(request.evaluator);
      search.Evaluate({.device = request.start->device, .sequence = in_order ? &*sequence : nullptr},
                      "first placement of the search");
    }
    walk.Place(0);
    // Where nothing was complete in time there still has to be an answer.
    if (!search.has_best()) search.Evaluate({.device = units.AllOn(DeviceId{0})}, "");
    bool certain = walk.complete() && search.best_score().fits();
    std::string note = certain ? "every plan was tried or ruled out" : "not every plan was tried";
    if (certain && WithOrders(request.evaluator) && SequencesMissPlans(request.evaluator) &&
        search.best_score().value() > LowerBound(request.evaluator).value()) {
      certain = false;
      note = "the best of all sequences and of first come, first served; priorities beside a host may do better";
    }
    if (certain && WithOrders(request.evaluator)) search.Prove(search.best_score().value());
    PlanResult result = search.Finish(certain, std::move(note));
    GiveCauses(request, result, "part of the best of all plans");
    return result;
  }

 private:
  bool WithOrders(const Evaluator& evaluator) const {
    const EvaluatorFacts& facts = evaluator.facts();
    return orders_ && facts.Is<ParallelFacts>() && facts.uses_priorities;
  }

  // First-come transfers that are requested together start by the number of their destination, and so do graph inputs
  // on their way from the host in any order: there a swap of equal devices may change the score. Beside a host orders
  // include first-come runs.
  std::vector<DeviceId> ClassesFor(const Evaluator& evaluator) const {
    const EvaluatorFacts& facts = evaluator.facts();
    const bool numbered = facts.Is<ParallelFacts>() && facts.contention() != Contention::kNone &&
                          (!WithOrders(evaluator) || facts.io_host());
    if (!numbered) return InterchangeableDevices(evaluator);
    const auto ids = evaluator.problem().cluster().ids();
    return {ids.begin(), ids.end()};
  }

  bool orders_;
  double limit_, steps_;
};

}  // namespace

void RegisterExhaustive(PlannerCatalog& catalog) {
  catalog.Add({.name = "exhaustive",
               .sentence = "Tries every plan of a tiny problem, so that its answer is the optimum.",
               .source = "-",
               .parameters = {Choice("space", {"placement", "order"},
                                     "placement: all placements, first come first served; order: all orders that a "
                                     "sequence can state as well"),
                              Real("limit", "1e8", "it refuses problems with more plans than this", 1, 1e18),
                              Real("steps", "1e18",
                                   "it gives up when it has looked at about so many beginnings of plans", 1, 1e18)}},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<ExhaustivePlanner>(params); });
}

}  // namespace berth
