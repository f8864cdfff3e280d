// The evaluator `parallel`: devices work side by side, one op at a time each. docs/semantics.md has its rules.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parameters.h"
#include "sim/complete_timeline.h"
#include "sim/flat_problem.h"
#include "sim/io.h"
#include "sim/parallel_run.h"
#include "sim/parallel_session.h"
#include "sim/simulators.h"

namespace berth {
namespace {

class Parallel : public Evaluator {
 public:
  Parallel(const Problem& problem, std::string name, const EvaluatorFacts& facts)
      : Evaluator(problem), name_(std::move(name)), facts_(facts), flat_(problem, facts.io_host()) {}

  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<ParallelWorkspace>(); }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    return Simulate(plan, static_cast<ParallelWorkspace&>(workspace), starts, nullptr);
  }

  Timeline Trace(const PlanView& plan) const override {
    Timeline timeline;
    ParallelWorkspace workspace;
    std::vector<double> starts(plan.device.size());
    timeline.score = Simulate(plan, workspace, starts, &timeline.transfers);
    for (const OpId op : problem().graph().ops()) {
      const double start = starts[Index(op)];
      const DeviceId device = plan.device[Index(op)];
      timeline.ops.push_back({.device = device, .start = start, .end = start + problem().op_time(op, device)});
    }
    if (timeline.score.time == kNever) timeline.infeasible_because = WhyItStops(plan, timeline);
    CompleteTimeline(*this, timeline.score.time, timeline);
    return timeline;
  }

  std::unique_ptr<Session> NewSession(const PlanView& start, Workspace&) const override {
    if (!start.priority.empty()) return SessionWithReady(start, &ParallelWorkspace::by_priority);
    return SessionWithReady(start, &ParallelWorkspace::first_come);
  }

 private:
  template <typename Ready>
  std::unique_ptr<Session> SessionWithReady(const PlanView& start, Ready ParallelWorkspace::* ready) const {
    switch (facts_.contention()) {
      case Contention::kEgress:
        return SessionWithRules(start, ready, &ParallelWorkspace::egress);
      case Contention::kPorts:
        return SessionWithRules(start, ready, &ParallelWorkspace::ports);
      case Contention::kLinks:
        return SessionWithRules(start, ready, &ParallelWorkspace::links);
      default:
        return SessionWithRules(start, ready, &ParallelWorkspace::unlimited);
    }
  }

  template <typename Ready, typename Transfers>
  std::unique_ptr<Session> SessionWithRules(const PlanView& start, Ready ParallelWorkspace::* ready,
                                            Transfers ParallelWorkspace::* transfers) const {
    if (CountsMemory())
      return std::make_unique<ParallelSession<Ready, Transfers, true>>(flat_, start, ready, transfers);
    return std::make_unique<ParallelSession<Ready, Transfers, false>>(flat_, start, ready, transfers);
  }

  bool CountsMemory() const { return facts_.tracks_memory && flat_.memory_may_lack(); }

  Score Simulate(const PlanView& plan, ParallelWorkspace& work, std::span<double> starts,
                 std::vector<TransferRun>* record) const {
    if (plan.sequence != nullptr) {
      switch (facts_.contention()) {
        case Contention::kEgress:
          return WithRules(plan, work, work.in_sequence, work.sequenced_egress, starts, record);
        case Contention::kPorts:
          return WithRules(plan, work, work.in_sequence, work.sequenced_ports, starts, record);
        case Contention::kLinks:
          return WithRules(plan, work, work.in_sequence, work.links, starts, record);
        default:
          return WithRules(plan, work, work.in_sequence, work.unlimited, starts, record);
      }
    }
    if (!plan.priority.empty()) return WithReady(plan, work, work.by_priority, starts, record);
    return WithReady(plan, work, work.first_come, starts, record);
  }

  template <typename Ready>
  Score WithReady(const PlanView& plan, ParallelWorkspace& work, Ready& ready, std::span<double> starts,
                  std::vector<TransferRun>* record) const {
    switch (facts_.contention()) {
      case Contention::kEgress:
        return WithRules(plan, work, ready, work.egress, starts, record);
      case Contention::kPorts:
        return WithRules(plan, work, ready, work.ports, starts, record);
      case Contention::kLinks:
        return WithRules(plan, work, ready, work.links, starts, record);
      default:
        return WithRules(plan, work, ready, work.unlimited, starts, record);
    }
  }

  template <typename Ready, typename Transfers>
  Score WithRules(const PlanView& plan, ParallelWorkspace& work, Ready& ready, Transfers& transfers,
                  std::span<double> starts, std::vector<TransferRun>* record) const {
    if (CountsMemory()) {
      return Run<Ready, Transfers, true>(flat_, work, ready, transfers, starts, record).Simulate(plan);
    }
    return Run<Ready, Transfers, false>(flat_, work, ready, transfers, starts, record).Simulate(plan);
  }

  // Names the first op that never runs, or never ends.
  std::string WhyItStops(const PlanView& plan, const Timeline& timeline) const {
    const Graph& graph = problem().graph();
    for (const OpId op : graph.ops()) {
      if (!problem().can_run(op, plan.device[Index(op)])) {
        return fmt::format("op {} cannot run on {}", graph.op_name(op),
                           problem().cluster().device(plan.device[Index(op)]).name);
      }
    }
    const auto& order = plan.sequence->ops;
    const auto stuck = std::ranges::find_if(order, [&](OpId op) { return timeline.ops[Index(op)].start == kNever; });
    if (stuck != order.end())
      return fmt::format("the sequence contradicts itself at op {}: it can never start", graph.op_name(*stuck));
    return "the sequence contradicts itself: not all outputs can be sent";
  }

  std::string name_;
  EvaluatorFacts facts_;
  FlatProblem flat_;
};

Contention ParseContention(std::string_view text) {
  if (text == "egress") return Contention::kEgress;
  if (text == "links") return Contention::kLinks;
  return text == "ports" ? Contention::kPorts : Contention::kNone;
}

}  // namespace

void RegisterParallel(EvaluatorCatalog& catalog) {
  catalog.Add(
      {.name = "parallel",
       .sentence = "devices run side by side, one op at a time each; transfers overlap with computing",
       .source = "Moirai (arXiv:2312.04025), for ports",
       .parameters =
           {Choice("contention", {"none", "egress", "ports", "links"},
                   "what transfers compete for: nothing; the sender's port, or the ports of both ends, one at a time; "
                   "or the bandwidth of the links, shared equally within a domain of the device file"),
            IoParameter(),
            Switch("memory", "true",
                   "track memory over time; a plan that needs more than a device has is infeasible")}},
      [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
        const Problem& problem = context.problem;
        const Io io(params, problem);
        return std::make_unique<Parallel>(
            problem, io.NameWithIo(params),
            EvaluatorFacts{
                .model = ParallelFacts{.contention = ParseContention(params.Text("contention")), .io_host = io.host()},
                .tracks_memory = params.Bool("memory"),
                .uses_priorities = true});
      });
}

}  // namespace berth
